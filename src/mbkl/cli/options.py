"""Options that several commands share."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from mbkl.cli.console import Console
    from mbkl.tabular import Frame
    from mbkl.tabular.columns import Task


def option(text: str, *names: str, shown: bool | str = False, **more: Any) -> Any:
    """Return an option with a help text; its default is hidden, or described by `shown`."""
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

Picture = Annotated[
    Path | None, option("Picture of it to draw, .png, .svg or .pdf.", metavar="FILE")
]


def _read_config(context: typer.Context, path: Path | None) -> None:
    """Make the options in a TOML file the defaults of a command.

    A section with the name of the command holds its options, such as `n-maps` or `n_maps`.
    Options outside of any section are for all commands that have them.
    """
    if path is None:
        return
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}.") from None
    except ValueError as error:
        raise typer.BadParameter(f"{path} is no TOML file: {error}") from None
    sections = {name: value for name, value in content.items() if isinstance(value, dict)}
    program: Any = context.find_root().command
    for name in sections.keys() - program.commands.keys():
        raise typer.BadParameter(f"{path}: there is no command '{name}'.")
    of_command = sections.get(context.info_name or "", {})
    parameters = {
        name.lstrip("-").replace("-", "_"): parameter
        for parameter in context.command.params
        for name in parameter.opts
    }
    options: dict[str, Any] = {}
    for key, value in {**content, **of_command}.items():
        parameter = parameters.get(key.replace("-", "_"))
        if parameter is not None:
            # Values are text as on the command line, except lists and switches.
            value = value if isinstance(value, bool | list) else str(value)
            is_one_of_many = getattr(parameter, "multiple", False) and not isinstance(value, list)
            options[str(parameter.name)] = [value] if is_one_of_many else value
        elif key in of_command:
            raise typer.BadParameter(f"{path}: 'mbkl {context.info_name}' has no option '{key}'.")
    context.default_map = options


Config = Annotated[
    Path | None,
    typer.Option(
        is_eager=True,
        callback=_read_config,
        help="TOML file with options. Those on the command line win.",
    ),
]

# More classes than the first number must have two rows each on average; more than the second would
# take hours.
_FEW_CLASSES, _MANY_CLASSES = 20, 1_000
# Options for parameters that only classifiers or only regressors have.
_OF_ONE_TASK = {"class_weight": "balanced", "calibration": "calibrate", "quantile": "quantile"}


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
        option("What else means a missing value, besides ?, NA, null and such; can be repeated."),
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
        option("Whether to learn classes or numbers.", shown="found out"),
    ] = None

    def read(self, path: Path, console: Console) -> Frame:
        """Read a file for training, print its notes and check its target."""
        from mbkl.tabular import read_frame

        options = {name: value for name, value in vars(self).items() if value is not None}
        frame = read_frame(path, **options)
        console.note(*frame.notes)
        _check_targets(frame, task_is_given=self.task is not None)
        return frame

    def dialect(self) -> dict[str, Any]:
        """Return the options that also apply to new files of the same origin."""
        names = ("header", "delimiter", "decimal", "encoding")
        return {"missing": self.missing or [], **{name: getattr(self, name) for name in names}}


def _check_targets(frame: Frame, task_is_given: bool) -> None:
    """Raise an error if a target is constant, or has too many labels to be classes."""
    import numpy as np

    from mbkl.tabular import FrameError

    is_numbers = frame.task == "regression"
    for target, column in zip(frame.targets, np.atleast_2d(frame.y.T), strict=True):
        n_labels, place = np.unique(column).size, f"{frame.path}, column '{target}'"
        if n_labels < 2:
            wanted = "two numbers" if is_numbers else "two classes"
            raise FrameError(
                f"{place}: the label is always {column[0]!s}, but there must be {wanted} to tell "
                "apart. Choose another column (--target)."
            )
        too_many = n_labels > min(_MANY_CLASSES, max(_FEW_CLASSES, frame.n_rows / 2))
        if too_many and not is_numbers and not task_is_given:
            raise FrameError(
                f"{place}: {n_labels:,} different labels in {frame.n_rows:,} rows are no classes. "
                "Choose another column (--target), make a class of each (--task classification), "
                "or predict them as numbers if they are (--task regression)."
            )


@dataclass(frozen=True)
class Learning:
    """How to learn."""

    tune: Annotated[
        bool, option("Choose costs and maps by cross-validation: ten times slower.", "--tune")
    ] = False
    maps: Annotated[
        Literal["auto", "stumps", "ferns", "grown", "projections"],
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
        str | None,
        option(
            "Of classes squared_hinge, hinge or logistic; of numbers squared_error, "
            "absolute_error, quantile or poisson, for counts.",
            shown="squared_hinge or squared_error",
        ),
    ] = None
    quantile: Annotated[
        float | None, option("Share of rows that are to be below the prediction.", min=0, max=1)
    ] = None
    balanced: Annotated[bool, option("Give all classes the same weight.", "--balanced")] = False
    calibrate: Annotated[
        bool, option("Probabilities by folds; about three times slower.", "--calibrate")
    ] = False
    seed: Annotated[int, typer.Option(help="Of random numbers; the same seed, the same model.")] = 0
    jobs: Annotated[int | None, option("Number of threads.", shown="all cores")] = None

    def estimator(self, task: Task | None, **more: Any) -> Any:
        """Return an unfitted classifier or regressor."""
        import mbkl

        if self.quantile is not None and self.loss not in (None, "quantile"):
            raise typer.BadParameter(f"--quantile needs --loss quantile, not {self.loss}.")
        kind = "MBKLRegressor" if task == "regression" else "MBKLClassifier"
        make = getattr(mbkl, f"{kind}CV" if self.tune else kind)
        estimator = make(
            maps=self.maps, theta=self.theta, random_state=self.seed, n_jobs=self.jobs, **more
        )
        costs = {"Cs": [self.cost]} if self.tune else {"C": self.cost}
        given = {
            "quantile": self.quantile,
            "class_weight": "balanced" if self.balanced else None,
            "calibration": "temperature" if self.calibrate else None,
            "loss": "quantile" if self.quantile is not None else self.loss,
            "n_maps": self.n_maps,
            **(costs if self.cost is not None else {}),
        }
        given = {name: value for name, value in given.items() if value is not None}
        for name in given.keys() - estimator.get_params().keys():
            raise typer.BadParameter(
                f"--{_OF_ONE_TASK[name]} is not for {task}; leave it out, or say another --task."
            )
        return estimator.set_params(**given)
