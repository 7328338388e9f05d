"""A picture of how good probabilities are: ROC, precision and recall, reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbkl.explain.quality import Curves, quality_curves
from mbkl.plot.style import COLOURS, INK, QUIET, pyplot, quieten, shorten


@dataclass(eq=False, repr=False)
class QualityDisplay:
    """ROC, precision and recall, and reliability of probabilities, side by side.

    Parameters
    ----------
    curves : sequence of Curves
        Of one class against the rest each; see `mbkl.explain.quality_curves`.

    Attributes
    ----------
    axes_ : ndarray of three matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.plot import QualityDisplay
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MBKLClassifier(random_state=0).fit(X[:300], y[:300])
    >>> display = QualityDisplay.from_estimator(model, X[300:], y[300:])
    >>> [ax.get_title() for ax in display.axes_]
    ['ROC', 'precision and recall', 'reliability']
    """

    curves: Sequence[Curves]

    @classmethod
    def from_estimator(cls, estimator, X, y, *, classes=None, ax=None):
        """Draw the curves of a fitted classifier on rows that it has not seen.

        Parameters
        ----------
        estimator : classifier with `predict_proba`
        X, y
            New rows, and their classes.
        classes : sequence of class labels or None
            Which to draw; None means the second of two, or up to six of the most frequent.
        ax : sequence of three matplotlib Axes, or None

        Returns
        -------
        display : QualityDisplay
        """
        return cls.from_predictions(
            y, estimator.predict_proba(X), estimator.classes_, classes=classes, ax=ax
        )

    @classmethod
    def from_predictions(cls, y, probabilities, labels, *, classes=None, ax=None):
        """Draw the curves of probabilities; `labels` are the classes of their columns."""
        found = quality_curves(np.asarray(y), np.asarray(probabilities), np.asarray(labels))
        if classes is not None:
            known = [each.label for each in found]
            missing = [label for label in classes if label not in known]
            if missing:
                raise ValueError(f"classes names {missing[0]!r}, but there are curves of {known}.")
            found = [each for each in found if each.label in list(classes)]
        found = sorted(found, key=lambda each: -each.share)[: len(COLOURS)]
        return cls(found).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw into three axes, or into a new figure; return the display."""
        if ax is None:
            _, ax = pyplot().subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
        roc, precision, reliability = self.axes_ = np.asarray(ax, dtype=object)
        self.figure_ = roc.figure
        for each in (roc, reliability):
            each.plot([0, 1], [0, 1], color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
        for curves, colour in zip(self.curves, COLOURS, strict=False):
            name = shorten(str(curves.label))
            roc.plot(*curves.roc, color=colour, label=f"{name}: AUC {curves.auc:.3f}")
            average = f"{name}: mean {curves.average_precision:.3f}"
            precision.step(*curves.precision_recall, where="pre", color=colour, label=average)
            precision.axhline(curves.share, color=colour, linewidth=1, linestyle=(0, (1, 3)))
            chance, share, counts = curves.reliability
            reliability.plot(chance, share, color=colour, linewidth=1.2)
            # Each dot is about as many rows.
            sizes = 12 + 60 * counts / max(counts.sum(), 1)
            reliability.scatter(chance, share, s=sizes, color=colour, zorder=3)
        titles = {
            roc: ("ROC", "others taken for the class", "of the class found"),
            precision: ("precision and recall", "of the class found", "of those found right"),
            reliability: ("reliability", "probability", "share of rows that are of the class"),
        }
        for each, (title, below, left) in titles.items():
            each.set(title=title, xlabel=below, ylabel=left, xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
            quieten(each, grid="both")
        roc.legend(frameon=False, fontsize=8, labelcolor=INK, loc="lower right")
        if len(self.curves) == 1:  # more would lie on the curves
            place = "lower left" if self.curves[0].share > 0.2 else "upper right"
            precision.legend(frameon=False, fontsize=8, labelcolor=INK, loc=place)
        return self
