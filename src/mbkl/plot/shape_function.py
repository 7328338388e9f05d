"""Pictures of shape functions: how the scores change with single features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from mbkl.engine.twins import just_above
from mbkl.explain import FeatureShape, explain_global
from mbkl.plot.style import (
    COLOURS,
    FAINT,
    INK,
    QUIET,
    added_words,
    number_of,
    pyplot,
    quieten,
    shorten,
)

# Height of the strip of the data's density, of the axes'.
_STRIP = 0.13
# Levels of a category that have room in a picture.
_LEVELS = 14


@dataclass(eq=False, repr=False)
class ShapeFunctionDisplay:
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
    axes_ : ndarray of matplotlib Axes
    ax_ : matplotlib Axes
        The first of them.
    figure_ : matplotlib Figure
    lines_ : list of list of matplotlib Line2D or BarContainer
        Of each axes, a line for each score, or bars for each level of a category.

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
    def from_estimator(
        cls, estimator, X=None, features=None, *, classes=None, ax=None, n_columns=2, **options
    ):
        """Explain a model and draw shape functions.

        Parameters
        ----------
        estimator : MBKLClassifier or MBKLRegressor
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None
            See `explain_global`; without data there is no density.
        features : sequence of int or str, or None
            Features to draw; None means the four most important ones.
        classes : sequence of class labels or names of targets, or None
            Whose scores to draw; None means those that change most, at most six.
        ax : matplotlib Axes, sequence of them, or None
        n_columns : int, default=2
            Columns of a new figure.
        **options
            For `explain_global`.

        Returns
        -------
        display : ShapeFunctionDisplay
        """
        explanation = explain_global(estimator, X, **options)
        return cls.from_explanation(
            explanation, features, classes=classes, ax=ax, n_columns=n_columns
        )

    @classmethod
    def from_explanation(cls, explanation, features=None, *, classes=None, ax=None, n_columns=2):
        """Draw shape functions of a `GlobalExplanation`; see `from_estimator`."""
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
        if ax is None:
            n_columns = min(n_columns, len(self.shapes))
            n_lines = -(-len(self.shapes) // n_columns)
            _, ax = pyplot().subplots(
                n_lines,
                n_columns,
                figsize=(3.9 * n_columns + 0.4, 2.7 * n_lines + 0.4),
                layout="constrained",
                sharey=True,
                squeeze=False,
            )
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if axes.size < len(self.shapes):
            raise ValueError(f"ax has {axes.size} axes for {len(self.shapes)} features.")
        self.lines_ = [self._draw(axis, shape) for axis, shape in zip(axes, self.shapes)]
        for unused in axes[len(self.shapes) :]:
            unused.set_visible(False)
        self.axes_ = axes[: len(self.shapes)]
        self.ax_, self.figure_ = axes[0], axes[0].figure
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
        if shape.levels is not None:
            return self._draw_levels(ax, shape, ("missing", *map(str, shape.levels), "new"))
        low, high = _range(shape)
        cuts = shape.thresholds[(shape.thresholds > low) & (shape.thresholds < high)]
        edges = np.concatenate([[low], cuts, [high]])
        steps = shape.at(just_above(edges))
        has_missing = np.isneginf(shape.thresholds[0])
        ax.axhline(0.0, color=FAINT, linewidth=0.8, zorder=0)
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
        ax.set_xlim(low, high)
        ax.set_xlabel(shorten(shape.name, 40))
        quieten(ax)
        return lines

    def _draw_levels(self, ax, shape: FeatureShape, names: Sequence[str]) -> list:
        """Draw a bar for each level: the most frequent ones, or those that add most."""
        matter = np.abs(shape.values).max(axis=1)
        if shape.counts is not None:
            matter = shape.counts.astype(np.float64)
        else:
            matter[[0, -1]] = 0.0
        cells = np.sort(np.argsort(-matter, kind="stable")[:_LEVELS])
        cells = cells[matter[cells] > 0]
        ax.axhline(0.0, color=FAINT, linewidth=0.8, zorder=0)
        width = 0.8 / len(self.classes)
        bars = [
            ax.bar(
                np.arange(cells.size) + (turn + 0.5) * width - 0.4,
                shape.values[cells, column],
                width,
                color=colour,
                label=str(shape.classes[column]),
            )
            for turn, (colour, column) in enumerate(zip(COLOURS, self.classes))
        ]
        labels = [shorten(names[cell], 14) for cell in cells]
        ax.set_xticks(np.arange(cells.size), labels, rotation=40, ha="right", fontsize=8)
        left_out = len(names) - 2 - np.isin(cells, np.arange(1, len(names) - 1)).sum()
        more = f" ({left_out} more levels)" if left_out > 0 and cells.size == _LEVELS else ""
        ax.set_xlabel(shorten(shape.name, 40) + more)
        quieten(ax)
        return bars


def _range(shape: FeatureShape) -> tuple[float, float]:
    """Return where to draw: over the data, or over all thresholds."""
    marks = shape.bins if shape.bins is not None else shape.thresholds
    marks = marks[np.isfinite(marks)]
    low, high = (marks[0], marks[-1]) if marks.size else (0.0, 1.0)
    margin = 0.02 * (high - low) or 0.5
    return low - margin, high + margin
