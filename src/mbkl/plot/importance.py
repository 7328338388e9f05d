"""A picture of the importances of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.explain import explain_global
from mbkl.plot.style import COLOURS, INK, pyplot, quieten_bars, score_words, shorten


@dataclass(eq=False, repr=False)
class ImportanceDisplay:
    """Bars of the most important features.

    Parameters
    ----------
    names : sequence of str
        Features, the most important first.
    importances : ndarray of shape (n_shown, n_columns)
        See `GlobalExplanation`.
    n_features : int
        Number of all features.
    words : str, default="a score"
        What the importances are changes of.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
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

    names: Sequence[str]
    importances: NDArray[np.float64]
    _: KW_ONLY
    n_features: int
    words: str = "a score"

    @classmethod
    def from_estimator(cls, estimator, X=None, *, max_features: int = 15, ax=None, **options):
        """Explain a model and draw its importances.

        Parameters
        ----------
        estimator : MBKLClassifier or MBKLRegressor
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None
            See `explain_global`.
        max_features : int, default=15
            Number of bars.
        ax : matplotlib Axes or None
        **options
            For `explain_global`.

        Returns
        -------
        display : ImportanceDisplay
        """
        return cls.from_explanation(
            explain_global(estimator, X, **options), max_features=max_features, ax=ax
        )

    @classmethod
    def from_explanation(cls, explanation, *, max_features: int = 15, ax=None):
        """Draw the importances of a `GlobalExplanation`; see `from_estimator`."""
        shown = explanation.ranking[:max_features]
        names = [explanation.feature_names[feature] for feature in shown]
        # Several targets may have units of their own; what is drawn are then shares.
        importances = (explanation.importances / explanation.scale)[shown]
        n_features = len(explanation.importances)
        words = _words(explanation.unit, explanation.classes)
        return cls(names, importances, n_features=n_features, words=words).plot(ax=ax)

    def plot(self, ax=None):
        """Draw into an axes, or into a new figure; return the display."""
        if ax is None:
            height = 0.8 + 0.27 * len(self.names)
            _, ax = pyplot().subplots(figsize=(6.0, height), layout="constrained")
        lengths = self.importances.mean(axis=1)
        self.bars_ = ax.barh(range(len(self.names)), lengths, height=0.68, color=COLOURS[0])
        ax.bar_label(self.bars_, fmt="%#.2g", padding=4, fontsize=8.5, color=INK)
        ax.set_yticks(range(len(self.names)), [shorten(name) for name in self.names])
        ax.invert_yaxis()
        ax.margins(x=0.12, y=0.02)
        ax.set_xlabel(f"mean change of {self.words}")
        if len(self.names) < self.n_features:
            ax.set_title(
                f"the {len(self.names)} most important of {self.n_features} features",
                fontsize=10,
                loc="left",
            )
        quieten_bars(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _words(unit: str, names: tuple) -> str:
    """Return what importances are changes of."""
    if unit == "score":
        return "a score"
    if len(names) == 1:
        return score_words(unit, str(names[0]))
    return "a target, as a share" if unit == "target" else "log(target), as a share"
