"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mbkl.cli.console import Console

if TYPE_CHECKING:
    from mbkl.tabular import Frame
    from mbkl.tabular.columns import Task


def option(text: str, *names: str, shown: bool | str = False, **more: Any) -> Any:
    """Return an option with this help, whose default is not shown, or shown in other words."""
    return typer.Option(*names, help=text, show_default=shown, **more)


DataFile = Annotated[
    Path,
    typer.Argument(
        help="File: .csv, .tsv, .parquet, .arrow, .feather, .svm, .npz or .npy.", show_default=False
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(help="Model file, written by 'mbkl fit'.", show_default=False)
]
Target = Annotated[
    list[str] | None,
    option(
        "Column to predict: its name, or its place (0 is the first, -1 the last); can be repeated "
        "for several columns of numbers.",
        "--target",
        "-t",
    ),
]
Folds = Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")]
TestFile = Annotated[Path | None, option("File with new rows to be right about.", "--test")]


_LOSSES_OF_CLASSES = ("squared_hinge", "hinge", "logistic")
# So many classes may be as many as half of the rows, and more than so many take hours.
_FEW_CLASSES, _MANY_CLASSES = 20, 1_000


@dataclass(frozen=True)
class Reading:
    """How to read a file for training."""

    target: Target = None
    drop: Annotated[list[str] | None, option("Column to leave out; can be repeated.")] = None
    text: Annotated[
        list[str] | None, option("Column whose numbers are names; can be repeated.")
    ] = None
    missing: Annotated[
        list[str] | None,
        option(
            "What else means a missing value, besides an empty field, ?, NA, N/A, NaN, null "
            "and None; can be repeated."
        ),
    ] = None
    header: Annotated[
        bool | None,
        option(
            "Whether a text file has a first line of names; else they are column_1 and so on.",
            "--header/--no-header",
            shown="found out",
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        option("Separates fields; a space stands for any number of them.", shown="found out"),
    ] = None
    decimal: Annotated[
        str | None, option("Stands before the fraction of numbers.", shown="found out")
    ] = None
    encoding: Annotated[str | None, option("Of text files.", shown="found out")] = None
    task: Annotated[
        Literal["classification", "regression"] | None,
        option(
            "What there is to learn: classes (one for each number) or numbers.", shown="found out"
        ),
    ] = None

    def read(self, path: Path, console: Console) -> Frame:
        """Read a file with two or more classes or numbers, and say what is odd about it."""
        import numpy as np

        from mbkl.tabular import FrameError

        frame = self._read(path, text=self.text or [], header=self.header)
        console.note(*frame.notes)
        is_numbers = frame.task == "regression"
        for target, column in zip(frame.targets, np.atleast_2d(frame.y.T), strict=True):
            n_labels, place = np.unique(column).size, f"{path}, column '{target}'"
            if n_labels > 1:
                continue
            found = f"always {column[0]!s}" if n_labels else "empty"
            wanted = "two numbers" if is_numbers else "two classes"
            raise FrameError(
                f"{place}: the label is {found}, but there must be {wanted} to tell apart. "
                "Choose another column (--target)."
            )
        too_many = n_labels > min(_MANY_CLASSES, max(_FEW_CLASSES, frame.n_rows / 2))
        if self.task is None and not is_numbers and too_many:
            raise FrameError(
                f"{place}: {n_labels:,} different labels in {frame.n_rows:,} rows are no classes. "
                "Choose another column (--target), make a class of each (--task classification), "
                "or predict them as numbers if they are (--task regression)."
            )
        return frame

    def read_test(self, path: Path, train: Frame) -> Frame:
        """Read a file with labels and columns of the same kinds."""
        import numpy as np

        frame = self._read(path, text=train.text_names, header=train.header, task=train.task)
        return frame if train.task == "regression" else frame.with_classes(np.unique(train.y))

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
    n_maps: Annotated[int | None, option("Number of maps to draw.", shown="by size", min=1)] = None
    theta: Annotated[
        Literal["ones", "learned", "reweighted", "alignment"],
        typer.Option(help="Kernel weights; with stumps, 'learned' makes the smallest models."),
    ] = "ones"
    cost: Annotated[
        float | None, option("Cost of errors.", "--cost", "-C", shown="chosen on a sample")
    ] = None
    loss: Annotated[
        Literal[
            "squared_hinge",
            "hinge",
            "logistic",
            "squared_error",
            "absolute_error",
            "quantile",
            "poisson",
        ]
        | None,
        option(
            "The first three are for classes, the others for numbers; poisson is for counts.",
            shown="squared_hinge or squared_error",
        ),
    ] = None
    quantile: Annotated[
        float | None, option("Share of rows that are to be below the prediction; numbers only.")
    ] = None
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Give all classes the same weight.")
    ] = False
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Probabilities by folds; about three times slower.")
    ] = False
    seed: Annotated[int, typer.Option(help="Of random numbers; the same seed, the same model.")] = 0
    jobs: Annotated[int | None, option("Number of threads.", shown="all cores")] = None

    def estimator(self, task: Task | None, **more: Any) -> Any:
        """Return a classifier or a regressor that has not learned yet."""
        import mbkl

        of_numbers = task == "regression"
        parameters: dict[str, Any] = {
            "maps": self.maps,
            "n_maps": self.n_maps or "auto",
            "theta": self.theta,
            "random_state": self.seed,
            "n_jobs": self.jobs,
            **self._of_the_task(of_numbers),
            **more,
        }
        kind = "MBKLRegressor" if of_numbers else "MBKLClassifier"
        if self.tune:
            Cs = "auto" if self.cost is None else [self.cost]
            return getattr(mbkl, f"{kind}CV")(**parameters, Cs=Cs)
        return getattr(mbkl, kind)(**parameters, C=self.cost or "auto")

    def _of_the_task(self, of_numbers: bool) -> dict[str, Any]:
        """Return what only classifiers or only regressors have; those of the other kind are wrong.

        A quantile says which loss is meant.
        """
        of_classes, loss = self.loss in _LOSSES_OF_CLASSES, f"--loss {self.loss}"
        if of_numbers:
            kind, own, other = "classes", "numbers", "classification"
            wrong = {loss: of_classes, "--balanced": self.balanced, "--calibrate": self.calibrate}
        else:
            kind, own, other = "numbers", "classes", "regression"
            is_loss_of_numbers = self.loss is not None and not of_classes
            wrong = {loss: is_loss_of_numbers, "--quantile": self.quantile is not None}
        for name, is_given in wrong.items():
            if is_given:
                raise typer.BadParameter(
                    f"{name} is for {kind}, and the target is of {own}; leave it out, or say "
                    f"--task {other}."
                )
        if not of_numbers:
            return {
                "loss": self.loss or "squared_hinge",
                "class_weight": "balanced" if self.balanced else None,
                "calibration": "temperature" if self.calibrate else "auto",
            }
        if self.quantile is None:
            return {"loss": self.loss or "squared_error"}
        if self.loss not in (None, "quantile"):
            raise typer.BadParameter(f"--quantile needs --loss quantile, not {self.loss}.")
        if not 0 < self.quantile < 1:
            raise typer.BadParameter(f"--quantile must be between 0 and 1, got {self.quantile}.")
        return {"loss": "quantile", "quantile": self.quantile}
