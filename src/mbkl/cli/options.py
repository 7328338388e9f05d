"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mbkl.cli.console import Console

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


# So many classes may be as many as half of the rows, and more than so many take hours.
_FEW_CLASSES, _MANY_CLASSES = 20, 1_000


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
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether a text file has a first line of names; else they are column_1 and so on.",
            show_default="found out",
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="Separates fields; a space stands for any number of them.",
            show_default="found out",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(help="Stands before the fraction of numbers.", show_default="found out"),
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Of text files.", show_default="found out")
    ] = None
    task: Annotated[
        Literal["classification"] | None,
        typer.Option(
            help="What there is to learn: 'classification' makes a class of each number.",
            show_default="found out",
        ),
    ] = None

    def read(self, path: Path, console: Console) -> Frame:
        """Read a file with labels of two or more classes, and say what is odd about it."""
        import numpy as np

        from mbkl.tabular import FrameError

        frame = self._read(path, text=self.text or [], header=self.header)
        console.notes(frame.notes)
        n_classes, place = np.unique(frame.y).size, f"{path}, column '{frame.target}'"
        if n_classes < 2:
            found = f"always {frame.y[0]!s}" if n_classes else "empty"
            raise FrameError(
                f"{place}: the label is {found}, but there must be two classes to tell apart. "
                "Choose another column (--target)."
            )
        too_many = n_classes > min(_MANY_CLASSES, max(_FEW_CLASSES, frame.n_rows / 2))
        if self.task is None and (frame.task == "regression" or too_many):
            raise FrameError(
                f"{place}: {n_classes:,} different labels in {frame.n_rows:,} rows are no classes, "
                "and mbkl learns to tell classes apart. Choose another column (--target), cut its "
                "values into classes, or make a class of each (--task classification)."
            )
        return frame

    def read_test(self, path: Path, train: Frame) -> Frame:
        """Read a file with labels of the same classes and columns of the same kinds."""
        import numpy as np

        frame = self._read(path, text=train.text_names, header=train.header, task="classification")
        return frame.with_classes(np.unique(train.y))

    def _read(self, path: Path, **more: Any) -> Frame:
        from mbkl.tabular import read_frame

        options = {"task": self.task, **self.dialect(), **more}
        return read_frame(path, target=self.target, drop=self.drop or [], **options)

    def dialect(self) -> dict[str, Any]:
        """Return what is the same for new rows of the same origin."""
        return {
            "missing": self.missing or [],
            "header": self.header,
            "delimiter": self.delimiter,
            "decimal": self.decimal,
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
        typer.Option("--calibrate", help="Probabilities by folds; about three times slower."),
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
            "calibration": "temperature" if self.calibrate else "auto",
            "random_state": self.seed,
            "n_jobs": self.jobs,
            **more,
        }
        if self.tune:
            return MBKLClassifierCV(**parameters, Cs="auto" if self.cost is None else [self.cost])
        return MBKLClassifier(**parameters, C=self.cost or "auto")
