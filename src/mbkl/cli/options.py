"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from mbkl import MBKLClassifier, MBKLClassifierCV
    from mbkl.tabular import Frame

DataFile = Annotated[
    Path,
    typer.Argument(
        help="File: .csv, .tsv, .parquet, .arrow, .feather, .svm, .npz or .npy.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(help="Model file, written by 'mbkl fit'.", show_default=False)
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="Column of the labels: its name, or its place (0 is the first, -1 the last).",
        show_default=False,
    ),
]
Folds = Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")]
TestFile = Annotated[
    Path | None,
    typer.Option("--test", help="File with new rows to be right about.", show_default=False),
]


@dataclass(frozen=True)
class Reading:
    """How to read a file for training."""

    target: Target = None
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Column to leave out; can be repeated.", show_default=False),
    ] = None
    text: Annotated[
        list[str] | None,
        typer.Option(help="Column whose numbers are names; can be repeated.", show_default=False),
    ] = None
    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="What else means a missing value, besides an empty field, ?, NA, N/A, NaN, null "
            "and None; can be repeated.",
            show_default=False,
        ),
    ] = None
    header: Annotated[
        bool,
        typer.Option("--header/--no-header", help="Whether a text file has a first line of names."),
    ] = True
    delimiter: Annotated[
        str | None,
        typer.Option(help="Separates fields; found out if not given.", show_default=False),
    ] = None
    encoding: Annotated[str, typer.Option(help="Of text files.")] = "utf-8"

    def read(self, path: Path) -> Frame:
        """Read a file with labels of two or more classes."""
        import numpy as np

        from mbkl.tabular import FrameError

        frame = self._read(path, self.text or [])
        classes = np.unique(frame.y)
        if classes.size < 2:
            found = f"always {classes[0]!s}" if classes.size else "empty"
            raise FrameError(
                f"{path}, column '{frame.target}': the label is {found}, but there must be two "
                "classes to tell apart. Choose another --target."
            )
        return frame

    def read_test(self, path: Path, train: Frame) -> Frame:
        """Read a file with labels of the same classes and columns of the same kinds."""
        import numpy as np

        frame = self._read(path, train.text_names)
        frame.check_labels(np.unique(train.y))
        return frame

    def _read(self, path: Path, text: list[str]) -> Frame:
        from mbkl.tabular import read_frame

        return read_frame(
            path, target=self.target, drop=self.drop or [], text=text, **self.dialect()
        )

    def dialect(self) -> dict[str, Any]:
        """Return what is the same for new rows of the same origin."""
        return {
            "missing": self.missing or [],
            "header": self.header,
            "delimiter": self.delimiter,
            "encoding": self.encoding,
        }


@dataclass(frozen=True)
class Learning:
    """How to learn."""

    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Choose costs and maps by cross-validation: better, and ten times slower.",
        ),
    ] = False
    maps: Annotated[
        Literal["auto", "stumps", "ferns", "projections"],
        typer.Option(help="Binary maps: stumps make an additive model, ferns see interactions."),
    ] = "auto"
    n_maps: Annotated[
        int | None, typer.Option(min=1, help="Number of maps to draw.", show_default="by size")
    ] = None
    theta: Annotated[
        Literal["ones", "learned", "reweighted", "alignment"],
        typer.Option(help="Kernel weights; with stumps, 'learned' makes the smallest models."),
    ] = "ones"
    cost: Annotated[
        float | None,
        typer.Option("--cost", "-C", help="Cost of errors.", show_default="chosen on a sample"),
    ] = None
    loss: Annotated[
        Literal["squared_hinge", "hinge", "logistic"], typer.Option(help="Loss of the classifier.")
    ] = "squared_hinge"
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Give all classes the same weight.")
    ] = False
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Learn probabilities too; about three times slower."),
    ] = False
    seed: Annotated[int, typer.Option(help="Of random numbers; the same seed, the same model.")] = 0
    jobs: Annotated[
        int | None, typer.Option(help="Number of threads.", show_default="all cores")
    ] = None

    def estimator(self, **more: Any) -> MBKLClassifier | MBKLClassifierCV:
        """Return a classifier that has not learned yet."""
        from mbkl import MBKLClassifier, MBKLClassifierCV

        parameters: dict[str, Any] = {
            "maps": self.maps,
            "n_maps": self.n_maps or "auto",
            "theta": self.theta,
            "loss": self.loss,
            "class_weight": "balanced" if self.balanced else None,
            "calibration": "temperature" if self.calibrate else None,
            "random_state": self.seed,
            "n_jobs": self.jobs,
            **more,
        }
        if self.tune:
            costs = {} if self.cost is None else {"Cs": [self.cost]}
            return MBKLClassifierCV(**parameters, **costs)
        return MBKLClassifier(**parameters, C=self.cost or "auto")
