"""A picture of predicted numbers: against the true ones, and what is left."""

from __future__ import annotations

import numpy as np

from mbkl.explain.quality import number_figures
from mbkl.plot.style import COLOURS, INK, QUIET, pyplot, quieten

# More dots than this hide each other.
_MOST_DOTS = 5_000
# Parts of the rows, by prediction, for which intervals are drawn.
_BANDS = 40


class PredictionDisplay:
    """Predicted against true numbers, and residuals, side by side.

    Parameters
    ----------
    y, predictions : array-like of shape (n_rows,)
    bounds : array-like of shape (n_rows, 2) or None
        Intervals, drawn around the residuals.
    name : str, default="y"
        What is predicted.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
    figure_ : matplotlib Figure

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
            Where it has `predict_interval`, intervals are drawn too.
        X, y
            New rows, and their numbers.
        coverage : float, default=0.9
            Of the intervals.
        name : str, default="y"
            What is predicted.
        ax : sequence of two matplotlib Axes, or None

        Returns
        -------
        display : PredictionDisplay
        """
        has_intervals = hasattr(estimator, "predict_interval")
        bounds = estimator.predict_interval(X, coverage) if has_intervals else None
        return cls.from_predictions(y, estimator.predict(X), bounds, name=name, ax=ax)

    @classmethod
    def from_predictions(cls, y, predictions, bounds=None, *, name="y", ax=None):
        """Draw predictions and, where they are given, bounds of shape (n_rows, 2)."""
        return cls(y, predictions, bounds, name=name).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw into two axes, or into a new figure; return the display."""
        if ax is None:
            _, ax = pyplot().subplots(1, 2, figsize=(9, 4), layout="constrained")
        truth, residuals = self.axes_ = np.asarray(ax, dtype=object)
        self.figure_ = truth.figure
        shown = _some(self.y.size)
        y, said = self.y[shown], self.predictions[shown]
        dots = {
            "s": 12,
            "color": COLOURS[0],
            "alpha": float(np.clip(30 / np.sqrt(max(y.size, 1)), 0.15, 0.8)),
            "linewidths": 0,
            "rasterized": True,
        }
        both = np.concatenate([y, said])
        span = [both.min(), both.max()] if both.size else [0.0, 1.0]
        truth.plot(span, span, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
        truth.scatter(said, y, **dots)
        residuals.axhline(0, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
        residuals.scatter(said, y - said, **dots)
        figures = number_figures(self.y, self.predictions, self.bounds)
        place = {"transform": truth.transAxes, "va": "top", "fontsize": 9, "color": INK}
        truth.text(0.03, 0.97, _in_words(figures), **place)
        title = "residuals"
        if self.bounds is not None and np.isfinite(self.bounds).all():
            residuals.fill_between(
                *self._band(self.bounds), color=COLOURS[4], alpha=0.25, linewidth=0
            )
            title = f"residuals; intervals hold {figures['coverage']:.1%}"
        below = f"predicted {self.name}"
        truth.set(title="predicted and true", xlabel=below, ylabel=f"true {self.name}")
        residuals.set(title=title, xlabel=below, ylabel=f"true less predicted {self.name}")
        for each in (truth, residuals):
            quieten(each, grid="both")
        return self

    def _band(self, bounds):
        """Return predictions, and the mean ends of intervals of about the same, less them.

        Rows of several folds have intervals of several models.
        """
        order = np.argsort(self.predictions, kind="stable")
        parts = np.array_split(order, min(_BANDS, order.size))
        said = np.array([self.predictions[part].mean() for part in parts])
        away = bounds - self.predictions[:, None]
        ends = np.array([away[part].mean(axis=0) for part in parts])
        # From the first to the last dot.
        said[0], said[-1] = self.predictions[order[[0, -1]]]
        return said, *ends.T


def _some(n_rows: int) -> np.ndarray:
    """Return the numbers of as many rows as can be seen, the same each time."""
    if n_rows <= _MOST_DOTS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, _MOST_DOTS, replace=False))


def _in_words(figures: dict[str, float]) -> str:
    lines = [f"R2 {figures['r2']:.3f}"] if "r2" in figures else []
    return "\n".join([*lines, f"RMSE {figures['rmse']:.4g}", f"MAE {figures['mae']:.4g}"])
