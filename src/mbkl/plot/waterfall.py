"""A picture of why one row gets its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.explain import LocalExplanation, explain_local
from mbkl.plot.style import (
    COLOURS,
    INK,
    QUIET,
    number_of,
    pyplot,
    quieten_bars,
    score_words,
    shorten,
)


@dataclass(eq=False, repr=False)
class WaterfallDisplay:
    """Steps from the mean score of the background to the score of one row.

    Parameters
    ----------
    names : sequence of str
        What each step is of, the first on top.
    steps : ndarray of shape (n_steps,)
        What each adds.
    baseline : float
        Where the first step begins.
    label : str
        Class of the score, or name of the target.
    unit : {"score", "target", "log"}, default="score"
        See `LocalExplanation`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
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
    def from_estimator(
        cls, estimator, X, *, row: int = 0, label=None, max_features: int = 10, ax=None, **options
    ):
        """Explain rows and draw one of them.

        Parameters
        ----------
        estimator : MBKLClassifier or MBKLRegressor
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        row : int, default=0
            Which of the rows.
        label : class label, name of a target, or None
            Whose score; None means the highest, or the first target.
        max_features : int, default=10
            Number of steps; all other features are one more.
        ax : matplotlib Axes or None
        **options
            For `explain_local`, such as `background`.

        Returns
        -------
        display : WaterfallDisplay
        """
        explanation = explain_local(estimator, X, **options)
        names = explanation.feature_names
        if hasattr(X, "iloc"):
            values = (f"{value:.4g}" if np.isreal(value) else str(value) for value in X.iloc[row])
            names = tuple(f"{shorten(name)} = {value}" for name, value in zip(names, values))
        return cls.from_explanation(
            explanation, row=row, label=label, max_features=max_features, names=names, ax=ax
        )

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
        """Draw one row of a `LocalExplanation`; see `from_estimator`.

        `names` are what to write beside the steps in place of the features' names.
        """
        if label is None:
            column = int(explanation.scores[row].argmax()) if explanation.unit == "score" else 0
        else:
            column = number_of(explanation.classes, label)
        added = explanation.contributions[row, :, column]
        order = np.argsort(-np.abs(added), kind="stable")
        shown, others = order[:max_features], order[max_features:]
        names = explanation.feature_names if names is None else names
        texts, steps = [names[feature] for feature in shown], added[shown]
        if others.size:
            texts.append(f"{others.size} other features")
            steps = np.append(steps, added[others].sum())
        display = cls(
            texts,
            steps,
            baseline=float(explanation.baseline[column]),
            label=str(explanation.classes[column]),
            unit=explanation.unit,
        )
        return display.plot(ax=ax)

    def plot(self, ax=None):
        """Draw into an axes, or into a new figure; return the display."""
        n_steps = len(self.steps)
        if ax is None:
            height = 1.2 + 0.3 * n_steps
            _, ax = pyplot().subplots(figsize=(6.4, height), layout="constrained")
        ends = self.baseline + np.cumsum(self.steps)
        starts = ends - self.steps
        colours = [COLOURS[0] if step >= 0 else COLOURS[1] for step in self.steps]
        places = np.arange(n_steps)
        self.bars_ = ax.barh(places, self.steps, left=starts, height=0.68, color=colours)
        texts = [f"{step:+.2g}" for step in self.steps]
        ax.bar_label(self.bars_, texts, padding=4, fontsize=8.5, color=INK)
        # From the end of each step to the beginning of the next.
        ax.vlines(ends[:-1], places[:-1] - 0.34, places[1:] + 0.34, color=QUIET, linewidth=0.7)
        marks = {"color": QUIET, "linewidth": 1.0, "linestyle": (0, (4, 3)), "zorder": 0}
        ax.axvline(self.baseline, **marks)
        ax.axvline(ends[-1], **marks)
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
        self.ax_, self.figure_ = ax, ax.figure
        return self
