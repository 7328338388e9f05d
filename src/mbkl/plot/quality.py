"""Pictures of the quality of a model: probabilities, numbers, a search, the kernel matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import cycle

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length

from mbkl.explain.quality import (
    Curves,
    interval_band,
    number_figures,
    quality_curves,
    rows_to_draw,
    scoring_words,
    search_paths,
)
from mbkl.explain.rows import kernel_matrix, rows_by_class, shades_of
from mbkl.plot.style import (
    COLOURS,
    DASHED,
    INK,
    Display,
    add_colour_bar,
    number_of,
    quieten,
    shorten,
)

# Largest number of dots; more would hide each other.
_MOST_DOTS = 5_000


@dataclass(eq=False, repr=False)
class QualityDisplay(Display):
    """ROC, precision and recall, and reliability of probabilities, side by side.

    Parameters
    ----------
    curves : sequence of Curves
        Curves of one class against the rest; see `mbkl.explain.quality_curves`.

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
            Classes to draw; None means the second of two, or up to six of the most frequent.
        ax : sequence of three matplotlib Axes, or None
        """
        return cls.from_predictions(
            y, estimator.predict_proba(X), estimator.classes_, classes=classes, ax=ax
        )

    @classmethod
    def from_predictions(cls, y, probabilities, labels, *, classes=None, ax=None):
        """Draw the curves of probabilities; `labels` are the classes of their columns."""
        curves = quality_curves(np.asarray(y), np.asarray(probabilities), np.asarray(labels))
        if classes is not None:
            known = tuple(each.label for each in curves)
            curves = [curves[number_of(known, label)] for label in classes]
        curves = sorted(curves, key=lambda each: -each.share)[: len(COLOURS)]
        return cls(curves).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw into three axes, or into a new figure; return the display."""
        roc, precision, reliability = self._begin(ax, 1, 3, figsize=(10.5, 3.6))
        for each in (roc, reliability):
            each.plot([0, 1], [0, 1], **DASHED)
        for curves, colour in zip(self.curves, COLOURS, strict=False):
            name = shorten(str(curves.label))
            roc.plot(*curves.roc, color=colour, label=f"{name}: AUC {curves.auc:.3f}")
            average = f"{name}: mean {curves.average_precision:.3f}"
            precision.step(*curves.precision_recall, where="pre", color=colour, label=average)
            precision.axhline(curves.share, color=colour, linewidth=1, linestyle=(0, (1, 3)))
            probability, share, counts = curves.reliability
            reliability.plot(probability, share, color=colour, linewidth=1.2)
            # The area of a dot is proportional to its number of rows.
            sizes = 12 + 60 * counts / max(counts.sum(), 1)
            reliability.scatter(probability, share, s=sizes, color=colour, zorder=3)
        titles = {
            roc: ("ROC", "others taken for the class", "of the class found"),
            precision: ("precision and recall", "of the class found", "of those found right"),
            reliability: ("reliability", "probability", "share of rows that are of the class"),
        }
        for each, (title, below, left) in titles.items():
            each.set(title=title, xlabel=below, ylabel=left, xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
            quieten(each, grid="both")
        roc.legend(frameon=False, fontsize=8, labelcolor=INK, loc="lower right")
        if len(self.curves) == 1:  # a longer legend would hide the curves
            place = "lower left" if self.curves[0].share > 0.2 else "upper right"
            precision.legend(frameon=False, fontsize=8, labelcolor=INK, loc=place)
        return self


class PredictionDisplay(Display):
    """Predicted against true numbers, and residuals, side by side.

    Parameters
    ----------
    y, predictions : array-like of shape (n_rows,)
    bounds : array-like of shape (n_rows, 2) or None
        Intervals, drawn around the residuals.
    name : str, default="y"
        What is predicted.

    Examples
    --------
    >>> from mbkl import MBKLRegressor
    >>> from mbkl.plot import PredictionDisplay
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MBKLRegressor(n_maps=100, random_state=0).fit(X[:300], y[:300])
    >>> display = PredictionDisplay.from_estimator(model, X[300:], y[300:], name="progression")
    >>> [ax.get_title() for ax in display.axes_]
    ['predicted and true', 'residuals; intervals hold ...%']
    """

    def __init__(self, y, predictions, bounds=None, *, name="y"):
        self.y = np.asarray(y, dtype=np.float64)
        self.predictions = np.asarray(predictions, dtype=np.float64)
        self.bounds = None if bounds is None else np.asarray(bounds, dtype=np.float64)
        self.name = name
        if self.y.ndim != 1 or self.y.shape != self.predictions.shape:
            raise ValueError(
                f"y and predictions must be of one target and as many rows each, got shapes "
                f"{self.y.shape} and {self.predictions.shape}; draw several targets one by one."
            )

    @classmethod
    def from_estimator(cls, estimator, X, y, *, coverage=0.9, name="y", ax=None):
        """Draw the predictions of a fitted regressor for rows that it has not seen.

        Parameters
        ----------
        estimator : regressor
            If it has `predict_interval`, intervals are drawn too.
        X, y
            New rows, and their numbers.
        coverage : float, default=0.9
            Coverage of the intervals.
        name : str, default="y"
            What is predicted.
        ax : sequence of two matplotlib Axes, or None
        """
        has_intervals = hasattr(estimator, "predict_interval")
        bounds = estimator.predict_interval(X, coverage) if has_intervals else None
        return cls.from_predictions(y, estimator.predict(X), bounds, name=name, ax=ax)

    @classmethod
    def from_predictions(cls, y, predictions, bounds=None, *, name="y", ax=None):
        """Draw predictions and, if given, intervals with bounds of shape (n_rows, 2)."""
        return cls(y, predictions, bounds, name=name).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw into two axes, or into a new figure; return the display."""
        truth, residuals = self._begin(ax, 1, 2, figsize=(9, 4))
        shown = rows_to_draw(self.y.size, _MOST_DOTS)
        y, predictions = self.y[shown], self.predictions[shown]
        dots = {
            "s": 12,
            "color": COLOURS[0],
            "alpha": float(np.clip(30 / np.sqrt(max(y.size, 1)), 0.15, 0.8)),
            "linewidths": 0,
            "rasterized": True,
        }
        both = np.concatenate([y, predictions])
        span = [both.min(), both.max()] if both.size else [0.0, 1.0]
        truth.plot(span, span, **DASHED)
        truth.scatter(predictions, y, **dots)
        residuals.axhline(0, **DASHED)
        residuals.scatter(predictions, y - predictions, **dots)
        figures = number_figures(self.y, self.predictions, self.bounds)
        place = {"transform": truth.transAxes, "va": "top", "fontsize": 9, "color": INK}
        truth.text(0.03, 0.97, _figures_as_text(figures), **place)
        title = "residuals"
        band = interval_band(self.predictions, self.bounds)
        if band is not None:
            residuals.fill_between(*band, color=COLOURS[4], alpha=0.25, linewidth=0)
            title = f"residuals; intervals hold {figures['coverage']:.1%}"
        below = f"predicted {self.name}"
        truth.set(title="predicted and true", xlabel=below, ylabel=f"true {self.name}")
        residuals.set(title=title, xlabel=below, ylabel=f"true less predicted {self.name}")
        for each in (truth, residuals):
            quieten(each, grid="both")
        return self


def _figures_as_text(figures: dict[str, float]) -> str:
    lines = [f"R2 {figures['r2']:.3f}"] if "r2" in figures else []
    return "\n".join([*lines, f"RMSE {figures['rmse']:.4g}", f"MAE {figures['mae']:.4g}"])


@dataclass(eq=False, repr=False)
class PathDisplay(Display):
    """Scores of the folds, and maps kept, along C.

    Parameters
    ----------
    results : dict of ndarray
        `cv_results_` of an `MBKLClassifierCV` or `MBKLRegressorCV`.
    C : float
        The cost chosen.
    C_kernel : float
        The cost of Step 1 chosen.
    score_name : str, default="accuracy"

    Examples
    --------
    >>> from mbkl import MBKLClassifierCV
    >>> from mbkl.plot import PathDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifierCV(maps="stumps", Cs=(0.1, 1, 10), random_state=0).fit(X, y)
    >>> PathDisplay.from_estimator(model).ax_.get_ylabel()
    'accuracy of the folds'
    """

    results: Mapping
    _: KW_ONLY
    C: float
    C_kernel: float
    score_name: str = "accuracy"

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the search of a fitted estimator.

        Parameters
        ----------
        estimator : MBKLClassifierCV or MBKLRegressorCV
            Fitted.
        ax : sequence of two matplotlib Axes, or None
        """
        if not hasattr(estimator, "cv_results_"):
            raise TypeError(
                "estimator must be a fitted MBKLClassifierCV or MBKLRegressorCV, which have a path."
            )
        chosen = {"C": estimator.C_, "C_kernel": estimator.C_kernel_}
        name = scoring_words(estimator)
        return cls(estimator.cv_results_, **chosen, score_name=name).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw into two axes, or into a new figure; return the display."""
        options = {"figsize": (6.0, 4.6), "sharex": True, "height_ratios": [2, 1]}
        upper, lower = self._begin(ax, 2, 1, **options)
        C, scores = self.results["param_C"], self.results["mean_test_score"]
        n_folds = sum(name.startswith("split") for name in self.results)
        errors = self.results["std_test_score"] / max(n_folds - 1, 1) ** 0.5
        is_chosen = (C == self.C) & (self.results["param_C_kernel"] == self.C_kernel)
        paths = search_paths(self.results)
        for colour, (label, rows) in zip(cycle(COLOURS), paths):
            line = {"color": colour, "marker": "o", "markersize": 4.5, "linewidth": 1.6}
            upper.plot(C[rows], scores[rows], label=label, **line)
            lower.plot(C[rows], self.results["mean_n_maps"][rows], **line)
            if is_chosen[rows].any() and rows.size > 1:
                ends = (scores - errors)[rows], (scores + errors)[rows]
                upper.fill_between(C[rows], *ends, color=colour, alpha=0.14, linewidth=0, zorder=0)
        costs = np.unique(C)
        for axis in (upper, lower):
            axis.axvline(self.C, zorder=0, **DASHED)
            axis.set_xscale("log")
            axis.minorticks_off()
            axis.set_xticks(costs, [_digits(cost) for cost in costs])
            quieten(axis, grid="y")
        note = {"va": "bottom", "ha": "center", "fontsize": 8.5, "color": INK}
        above = upper.get_xaxis_transform()
        upper.text(self.C, 1.01, f"chosen: C = {_digits(self.C)}", transform=above, **note)
        if self.score_name.endswith("accuracy"):
            upper.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")
        upper.set_ylabel(f"{self.score_name} of the folds")
        lower.set_ylabel("maps kept")
        lower.set_ylim(bottom=0)
        lower.set_xlabel("C")
        if len(paths) > 1:
            upper.legend(frameon=False, fontsize=8.5, labelcolor=INK)
        return self


def _digits(C: float) -> str:
    """Return a cost with three digits, without an exponent unless it is very small or large."""
    rounded = float(f"{C:.3g}")
    return f"{rounded:g}" if rounded < 1e-4 or rounded > 1e6 else f"{rounded:.10g}"


@dataclass(eq=False, repr=False)
class KernelMatrixDisplay(Display):
    """The kernel matrix of rows sorted by class; a good kernel shows a dark block per class.

    Parameters
    ----------
    kernel : ndarray of shape (n_rows, n_rows)
        Of rows sorted by class.
    labels : ndarray of shape (n_rows,)
        Their classes.
    title : str

    Attributes
    ----------
    image_ : matplotlib AxesImage

    Examples
    --------
    Equal weights beside learned ones:

    >>> import matplotlib.pyplot as plt
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.plot import KernelMatrixDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(maps="stumps", theta="learned", random_state=0).fit(X, y)
    >>> figure, axes = plt.subplots(1, 2)
    >>> left = KernelMatrixDisplay.from_estimator(model, X, y, theta="ones", ax=axes[0])
    >>> right = KernelMatrixDisplay.from_estimator(model, X, y, ax=axes[1])
    """

    kernel: NDArray[np.float64]
    labels: NDArray
    _: KW_ONLY
    title: str = ""

    @classmethod
    def from_estimator(cls, estimator, X, y, *, theta="model", max_rows: int = 400, ax=None):
        """Compute the kernel of rows and draw it.

        Parameters
        ----------
        estimator : MBKLClassifier or MBKernel
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes, by which rows are sorted.
        theta : {"model", "ones"}, default="model"
            Weights of the maps: the model's, or equal ones.
        max_rows : int, default=400
            Largest number of rows; more are sampled by a hash of their values.
        ax : matplotlib Axes or None
        """
        if theta not in ("model", "ones"):
            raise ValueError(f"theta must be 'model' or 'ones', got {theta!r}.")
        y = np.asarray(y)
        check_consistent_length(X, y)
        rows = rows_by_class(estimator.rows_of(X), y, max_rows)
        shown = _safe_indexing(X, rows)
        kernel = kernel_matrix(estimator, shown, equal_weights=theta == "ones")
        title = "equal weights" if theta == "ones" else "weights of the model"
        return cls(kernel, y[rows], title=f"{title}, {estimator.n_maps_:,} maps").plot(ax=ax)

    def plot(self, ax=None, *, cmap="Blues", colorbar: bool = True):
        """Draw into an axes, or into a new figure; return the display."""
        (ax,) = self._begin(ax, figsize=(5.2, 4.6))
        size = len(self.kernel)
        low, high = shades_of(self.kernel)
        self.image_ = ax.imshow(
            self.kernel, cmap=cmap, vmin=low, vmax=high, interpolation="nearest"
        )
        classes, first, counts = np.unique(self.labels, return_index=True, return_counts=True)
        for edge in first[1:] - 0.5:
            ax.axhline(edge, color=INK, linewidth=0.5)
            ax.axvline(edge, color=INK, linewidth=0.5)
        # Labels of small classes are left out: they would overlap.
        shown = counts >= size / 30
        ax.set_yticks(
            (first + (counts - 1) / 2)[shown], [shorten(str(name), 16) for name in classes[shown]]
        )
        ax.set_xticks([])
        ax.set_title(self.title, fontsize=10)
        quieten(ax)
        ax.spines[:].set_visible(False)
        ax.tick_params(axis="y", length=0)
        if colorbar:
            label = "share of the weight on which two rows agree"
            add_colour_bar(ax, self.image_, label, fraction=0.04)
        return self
