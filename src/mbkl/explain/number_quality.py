"""How good predicted numbers are, beside always saying their mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def number_figures(y: Array, predictions: Array, bounds: Array | None = None) -> dict[str, float]:
    """Return R2, the errors in the unit of the numbers, and how often intervals hold them.

    Parameters
    ----------
    y, predictions : ndarray of shape (n_rows,)
    bounds : ndarray of shape (n_rows, 2) or None
        Lower and upper ends of intervals.

    Returns
    -------
    figures : dict
        "r2" (not there where all numbers are the same), "rmse", "mae" and "below", the share of
        rows whose number is below the prediction; with bounds also "coverage" and "mean_width".

    Examples
    --------
    >>> import numpy as np
    >>> y, bounds = np.array([1.0, 2.0, 4.0]), np.array([[0, 2], [3, 4], [3, 5]])
    >>> figures = number_figures(y, np.array([1.0, 3.0, 4.0]), bounds)
    >>> {name: round(value, 2) for name, value in figures.items()}
    {'r2': 0.79, 'rmse': 0.58, 'mae': 0.33, 'below': 0.33, 'coverage': 0.67, 'mean_width': 1.67}
    """
    away = y - predictions
    spread = ((y - y.mean()) ** 2).sum()
    found = {"r2": float(1 - (away**2).sum() / spread)} if spread > 0 else {}
    found["rmse"] = float(np.sqrt((away**2).mean()))
    found["mae"] = float(np.abs(away).mean())
    found["below"] = float((away < 0).mean())
    if bounds is not None:
        lower, upper = bounds.T
        found["coverage"] = float(((lower <= y) & (y <= upper)).mean())
        found["mean_width"] = float((upper - lower).mean())
    return found


def figures_of_the_mean(y: Array, coverage: float) -> dict[str, float]:
    """Return the figures of always saying the mean, with the quantiles of the numbers as bounds."""
    outside = (1 - coverage) / 2
    bounds = np.tile(np.quantile(y, [outside, 1 - outside]), (y.size, 1))
    return number_figures(y, np.full(y.size, y.mean()), bounds)
