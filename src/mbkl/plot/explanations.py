"""Pictures of explanations: importances, shape functions, single rows and pairs of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.explain import (
    FeatureShape,
    GlobalExplanation,
    LocalExplanation,
    explain_global,
    explain_local,
)
from mbkl.explain.attribution import joint_dependence
from mbkl.explain.explanations import check_model, feature_names_of, score_classes, unit_of
from mbkl.explain.rows import some_rows
from mbkl.explain.shapes import column_of, data_range
from mbkl.plot.style import (
    COLOURS,
    DASHED,
    FAINT,
    INK,
    QUIET,
    Display,
    add_colour_bar,
    added_words,
    number_of,
    quieten,
    quieten_bars,
    score_words,
    shorten,
)

# Height of the strip with the density of the data, as a share of the axes.
_STRIP = 0.13
# Largest number of levels of a category in a picture.
_LEVELS = 14


class ExplanationDisplay(Display):
    """A picture of what a model has learned."""

    @classmethod
    def from_estimator(cls, estimator, X=None, *which, **options):
        """Explain a fitted model by `explain_global(estimator, X)` and draw that.

        Parameters
        ----------
        estimator : MBKLClassifier or MBKLRegressor
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None
            See `explain_global`; the density is drawn only with data.
        *which, **options
            Passed to `from_explanation`.
        """
        return cls.from_explanation(explain_global(estimator, X), *which, **options)

    @classmethod
    def from_explanation(cls, explanation: GlobalExplanation, *which, **options):
        """Draw an explanation."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class ImportanceDisplay(ExplanationDisplay):
    """Bars of the most important features.

    Parameters
    ----------
    explanation : GlobalExplanation
    max_features : int, default=15
        Number of bars.

    Attributes
    ----------
    bars_ : matplotlib BarContainer

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.plot import ImportanceDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    >>> display = ImportanceDisplay.from_estimator(model, X)
    >>> display.ax_.get_xlabel()
    'mean change of a score'
    """

    explanation: GlobalExplanation
    _: KW_ONLY
    max_features: int = 15

    @classmethod
    def from_explanation(cls, explanation, *, max_features: int = 15, ax=None):
        """Draw importances into an axes, or into a new figure."""
        return cls(explanation, max_features=max_features).plot(ax=ax)

    def plot(self, ax=None):
        """Draw into an axes, or into a new figure; return the display."""
        names, importance = self.explanation.feature_names, self.explanation.importance
        shown = self.explanation.ranking[: self.max_features]
        (ax,) = self._begin(ax, figsize=(6.0, 0.8 + 0.27 * shown.size))
        places = np.arange(shown.size)
        self.bars_ = ax.barh(places, importance[shown], height=0.68, color=COLOURS[0])
        ax.bar_label(self.bars_, fmt="%#.2g", padding=4, fontsize=8.5, color=INK)
        ax.set_yticks(places, [shorten(names[feature]) for feature in shown])
        ax.invert_yaxis()
        ax.margins(x=0.12, y=0.02)
        ax.set_xlabel(f"mean change of {self._words()}")
        if shown.size < len(names):
            title = f"the {shown.size} most important of {len(names)} features"
            ax.set_title(title, fontsize=10, loc="left")
        quieten_bars(ax)
        return self

    def _words(self) -> str:
        """Return the quantity whose changes the importances are, in words."""
        unit, targets = self.explanation.unit, self.explanation.classes
        if unit == "score":
            return "a score"
        if len(targets) == 1:
            return score_words(unit, str(targets[0]))
        return "a target, as a share" if unit == "target" else "log(target), as a share"


@dataclass(eq=False, repr=False)
class ShapeFunctionDisplay(ExplanationDisplay):
    """Step functions of features, with the density of the data below them; bars for categories.

    Parameters
    ----------
    shapes : sequence of FeatureShape
    classes : sequence of int
        Scores to draw, by number.
    unit : {"score", "target", "log"}, default="score"
        See `GlobalExplanation`.

    Attributes
    ----------
    lines_ : list of list of matplotlib Line2D or BarContainer
        For each axes, a line for each score, or bars for each level of a category.

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.plot import ShapeFunctionDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    >>> display = ShapeFunctionDisplay.from_estimator(model, X, ["petal width (cm)"])
    >>> len(display.lines_[0])
    3
    """

    shapes: Sequence[FeatureShape]
    _: KW_ONLY
    classes: Sequence[int]
    unit: str = "score"

    @classmethod
    def from_explanation(cls, explanation, features=None, *, classes=None, ax=None, n_columns=2):
        """Draw shape functions of a `GlobalExplanation`.

        Parameters
        ----------
        explanation : GlobalExplanation
        features : sequence of int or str, or None
            Features to draw; None means the four most important ones.
        classes : sequence of class labels or names of targets, or None
            Scores to draw; None means the six that change most.
        ax : matplotlib Axes, sequence of them, or None
        n_columns : int, default=2
            Columns of a new figure.
        """
        if features is None:
            drawn = {shape.feature for shape in explanation.shapes}
            features = [feature for feature in explanation.ranking if feature in drawn][:4]
        shapes = [explanation.shape(feature) for feature in features]
        if not shapes:
            raise ValueError("features is empty, or the model has no stumps and no ferns.")
        if classes is None:
            spread = np.max([np.ptp(shape.values, axis=0) for shape in shapes], axis=0)
            numbers = sorted(np.argsort(-spread, kind="stable")[: len(COLOURS)].tolist())
        else:
            numbers = [number_of(explanation.classes, label) for label in classes]
        return cls(shapes, classes=numbers, unit=explanation.unit).plot(ax=ax, n_columns=n_columns)

    def plot(self, ax=None, *, n_columns: int = 2):
        """Draw into given axes, or into a new figure; return the display."""
        n_columns = min(n_columns, len(self.shapes))
        n_lines = -(-len(self.shapes) // n_columns)
        size = (3.9 * n_columns + 0.4, 2.7 * n_lines + 0.4)
        axes = self._begin(ax, n_lines, n_columns, figsize=size, sharey=True)
        if axes.size < len(self.shapes):
            raise ValueError(f"ax has {axes.size} axes for {len(self.shapes)} features.")
        self.lines_ = [self._draw(axis, shape) for axis, shape in zip(axes, self.shapes)]
        for unused in axes[len(self.shapes) :]:
            unused.set_visible(False)
        self.axes_ = axes[: len(self.shapes)]
        low = min(shape.values[:, self.classes].min() for shape in self.shapes)
        high = max(shape.values[:, self.classes].max() for shape in self.shapes)
        room = (high - low) or 1.0
        names = self.shapes[0].classes
        only = str(names[self.classes[0]]) if len(self.classes) == 1 else ""
        label = added_words(self.unit, only, 16)
        for axis in self.axes_:
            axis.set_ylim(low - (0.08 + 1.35 * _STRIP) * room, high + 0.08 * room)
            if axis.get_subplotspec() is None or axis.get_subplotspec().is_first_col():
                axis.set_ylabel(label)
        if len(self.classes) > 1:
            self.figure_.legend(
                handles=self.lines_[0],
                loc="outside upper left",
                ncols=len(self.classes),
                frameon=False,
                labelcolor=INK,
                fontsize=9,
                handlelength=1.4,
            )
        return self

    def _draw(self, ax, shape: FeatureShape) -> list:
        ax.axhline(0.0, color=FAINT, linewidth=0.8, zorder=0)
        ax.set_xlabel(shorten(shape.name, 40))
        quieten(ax)
        if shape.levels is None:
            return self._draw_steps(ax, shape)
        return self._draw_levels(ax, shape, ("missing", *map(str, shape.levels), "new"))

    def _draw_steps(self, ax, shape: FeatureShape) -> list:
        edges, steps = shape.curve()
        steps = np.vstack([steps, steps[-1:]])
        has_missing = np.isneginf(shape.thresholds[0])
        lines = []
        for colour, column in zip(COLOURS, self.classes):
            label = str(shape.classes[column])
            (line,) = ax.step(edges, steps[:, column], where="post", color=colour, label=label)
            lines.append(line)
            if has_missing:
                side = ax.get_yaxis_transform()
                marker = {"color": colour, "markersize": 5, "clip_on": False, "transform": side}
                ax.plot([0.0], shape.values[:1, column], "D", **marker)
        if has_missing:
            note = {"va": "top", "fontsize": 8, "color": QUIET, "transform": ax.transAxes}
            ax.text(0.02, 0.97, "◆ missing", **note)
        if shape.bins is not None and shape.density is not None:
            heights = _STRIP * shape.density / max(shape.density.max(), 1)
            strip = {"color": QUIET, "alpha": 0.35, "zorder": 0}
            ax.stairs(heights, shape.bins, fill=True, transform=ax.get_xaxis_transform(), **strip)
        ax.set_xlim(edges[0], edges[-1])
        return lines

    def _draw_levels(self, ax, shape: FeatureShape, names: Sequence[str]) -> list:
        """Draw bars for the most frequent levels, or without data for the largest values."""
        relevance = np.abs(shape.values).max(axis=1)
        if shape.counts is not None:
            relevance = shape.counts.astype(np.float64)
        else:
            relevance[[0, -1]] = 0.0
        cells = np.sort(np.argsort(-relevance, kind="stable")[:_LEVELS])
        cells = cells[relevance[cells] > 0]
        width = 0.8 / len(self.classes)
        bars = [
            ax.bar(
                np.arange(cells.size) + (number + 0.5) * width - 0.4,
                shape.values[cells, column],
                width,
                color=colour,
                label=str(shape.classes[column]),
            )
            for number, (colour, column) in enumerate(zip(COLOURS, self.classes))
        ]
        labels = [shorten(names[cell], 14) for cell in cells]
        ax.set_xticks(np.arange(cells.size), labels, rotation=40, ha="right", fontsize=8)
        left_out = len(names) - 2 - np.isin(cells, np.arange(1, len(names) - 1)).sum()
        if left_out > 0 and cells.size == _LEVELS:
            ax.set_xlabel(f"{ax.get_xlabel()} ({left_out} more levels)")
        return bars


@dataclass(eq=False, repr=False)
class WaterfallDisplay(Display):
    """Steps from the mean score of the background to the score of one row.

    Parameters
    ----------
    names : sequence of str
        Names of the steps, the first on top.
    steps : ndarray of shape (n_steps,)
        Contribution of each step.
    baseline : float
        Where the first step begins.
    label : str
        Class of the score, or name of the target.
    unit : {"score", "target", "log"}, default="score"
        See `LocalExplanation`.

    Attributes
    ----------
    bars_ : matplotlib BarContainer

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.plot import WaterfallDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    >>> display = WaterfallDisplay.from_estimator(model, X[:1], background=X, max_features=3)
    >>> len(display.bars_)
    4
    """

    names: Sequence[str]
    steps: NDArray[np.float64]
    _: KW_ONLY
    baseline: float
    label: str = ""
    unit: str = "score"

    @classmethod
    def from_estimator(cls, estimator, X, *, background=None, row: int = 0, **options):
        """Explain rows by `explain_local(estimator, X, background=background)` and draw one.

        The values of a frame are shown beside the names; see `from_explanation` for the options.
        """
        explanation = explain_local(estimator, X, background=background)
        if hasattr(X, "iloc"):
            pairs = zip(explanation.feature_names, X.iloc[row], strict=True)
            options["names"] = [
                f"{shorten(name)} = {f'{value:.4g}' if np.isreal(value) else value}"
                for name, value in pairs
            ]
        return cls.from_explanation(explanation, row=row, **options)

    @classmethod
    def from_explanation(
        cls,
        explanation: LocalExplanation,
        *,
        row: int = 0,
        label=None,
        max_features: int = 10,
        names: Sequence[str] | None = None,
        ax=None,
    ):
        """Draw one row of a `LocalExplanation`.

        Parameters
        ----------
        explanation : LocalExplanation
        row : int, default=0
            Number of the row.
        label : class label, name of a target, or None
            Score to draw; None means the highest, or the first target.
        max_features : int, default=10
            Number of features with a step each; all others share one more step.
        names : sequence of str or None
            Labels of the steps in place of the names of the features.
        ax : matplotlib Axes or None
        """
        column = number_of(explanation.classes, label, explanation.scores[row], explanation.unit)
        added = explanation.contributions[row, :, column]
        order = np.argsort(-np.abs(added), kind="stable")
        shown, others = order[:max_features], order[max_features:]
        names = explanation.feature_names if names is None else names
        texts, steps = [names[feature] for feature in shown], added[shown]
        if others.size:
            texts.append(f"{others.size} other features")
            steps = np.append(steps, added[others].sum())
        score = {"label": str(explanation.classes[column]), "unit": explanation.unit}
        return cls(texts, steps, baseline=float(explanation.baseline[column]), **score).plot(ax=ax)

    def plot(self, ax=None):
        """Draw into an axes, or into a new figure; return the display."""
        n_steps = len(self.steps)
        (ax,) = self._begin(ax, figsize=(6.4, 1.2 + 0.3 * n_steps))
        ends = self.baseline + np.cumsum(self.steps)
        starts = ends - self.steps
        colours = [COLOURS[0] if step >= 0 else COLOURS[1] for step in self.steps]
        places = np.arange(n_steps)
        self.bars_ = ax.barh(places, self.steps, left=starts, height=0.68, color=colours)
        texts = [f"{step:+.2g}" for step in self.steps]
        ax.bar_label(self.bars_, texts, padding=4, fontsize=8.5, color=INK)
        # Connect the end of each step to the beginning of the next.
        ax.vlines(ends[:-1], places[:-1] - 0.34, places[1:] + 0.34, color=QUIET, linewidth=0.7)
        for place in (self.baseline, ends[-1]):
            ax.axvline(place, zorder=0, **DASHED)
        transform = ax.get_xaxis_transform()
        notes = {"ha": "center", "fontsize": 8.5, "color": INK, "transform": transform}
        last = "score" if self.unit == "score" else "prediction"
        ax.text(self.baseline, 1.01, f"mean {self.baseline:.3g}", va="bottom", **notes)
        ax.text(ends[-1], -0.01, f"{last} {ends[-1]:.3g}", va="top", **notes)
        ax.set_yticks(places, [shorten(name, 40) for name in self.names])
        ax.use_sticky_edges = False
        ax.margins(x=0.14)
        ax.set_ylim(n_steps - 0.5, -0.5)
        ax.set_xlabel(score_words(self.unit, self.label), labelpad=12)
        quieten_bars(ax)
        ax.tick_params(axis="x", pad=12)
        return self


@dataclass(eq=False, repr=False)
class InteractionDisplay(Display):
    """Heat map of the joint partial dependence of a score on two features.

    Parameters
    ----------
    grids : pair of ndarray of shape (n_first,) and (n_second,)
        Values of the two features.
    values : ndarray of shape (n_second, n_first)
        Mean score of the background with both features at these values, less its mean.
    names : pair of str
    label : str
        Class of the score, or name of the target.
    unit : {"score", "target", "log"}, default="score"
        See `GlobalExplanation`.

    Attributes
    ----------
    mesh_ : matplotlib QuadMesh

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.plot import InteractionDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    >>> display = InteractionDisplay.from_estimator(model, X, features=(2, 3), resolution=8)
    >>> display.values.shape
    (8, 8)
    """

    grids: Sequence[NDArray[np.float64]]
    values: NDArray[np.float64]
    _: KW_ONLY
    names: Sequence[str]
    label: str = ""
    unit: str = "score"

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        features,
        label=None,
        background_rows: int = 50,
        resolution: int = 40,
        ax=None,
    ):
        """Compute a joint partial dependence and draw it.

        Parameters
        ----------
        estimator : MBKLClassifier or MBKLRegressor
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows from which all other features get their values.
        features : pair of int or str
            The two features, by number or name.
        label : class label, name of a target, or None
            Score to draw; None means the one that changes most, or the first target.
        background_rows : int, default=50
            Rows of X to average over, drawn by a hash of their values.
        resolution : int, default=40
            Values of each feature, evenly spread over those of X.
        ax : matplotlib Axes or None
        """
        check_model(estimator)
        names, classes = feature_names_of(estimator), score_classes(estimator)
        pair = [_feature_number(names, feature) for feature in features]
        if len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"features must be two different ones, got {features!r}.")
        data = estimator.rows_of(X)
        grids = [np.linspace(*data_range(column_of(data, feature)), resolution) for feature in pair]
        rows = some_rows(data, background_rows)
        added = joint_dependence(estimator.predictor_, rows, pair, grids)
        unit = unit_of(estimator)
        column = number_of(classes, label, np.ptp(added, axis=(0, 1)), unit)
        values = added[:, :, column].T
        shown = [names[feature] for feature in pair]
        label = str(classes[column])
        return cls(grids, values, names=shown, label=label, unit=unit).plot(ax=ax)

    def plot(self, ax=None, *, cmap="RdBu", colorbar: bool = True):
        """Draw into an axes, or into a new figure; return the display."""
        (ax,) = self._begin(ax, figsize=(5.4, 4.4))
        most = np.abs(self.values).max() or 1.0
        self.mesh_ = ax.pcolormesh(
            *self.grids, self.values, cmap=cmap, vmin=-most, vmax=most, shading="nearest"
        )
        ax.set_xlabel(shorten(self.names[0], 40))
        ax.set_ylabel(shorten(self.names[1], 40))
        quieten(ax)
        if colorbar:
            add_colour_bar(ax, self.mesh_, added_words(self.unit, self.label), fraction=0.05)
        return self


def _feature_number(names, feature) -> int:
    if feature in names:
        return names.index(feature)
    if isinstance(feature, (int, np.integer)) and 0 <= feature < len(names):
        return int(feature)
    raise ValueError(f"features names {feature!r}, which is no name or number of a feature.")
