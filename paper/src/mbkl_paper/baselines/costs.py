"""One grid of costs for all rivals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from mbkl_paper.baselines.base import CostRival


def cross_validate_costs(
    estimator, X, y, costs: Sequence[float], *, cv=5, metric: Callable = accuracy_score
) -> NDArray[np.float64]:
    """Return how well each cost does in cross-validation.

    Explicit maps and whatever else does not depend on the cost are computed once a fold;
    kernels between rows once for all folds.

    Parameters
    ----------
    estimator : estimator with a parameter C
        Such as one from `make`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Class labels.
    costs : sequence of float
    cv : int, splitter or iterable of splits, default=5
        As in scikit-learn; a number means stratified folds.
    metric : callable, default=accuracy_score
        Called with true and predicted classes.

    Returns
    -------
    values : ndarray of shape (n_costs, n_folds)

    Examples
    --------
    >>> from mbkl_paper.baselines import cross_validate_costs, make
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> values = cross_validate_costs(make("chi2"), X, y, [0.1, 1, 10], cv=3)
    >>> values.shape, bool(values.max() > 0.9)
    ((3, 3), True)
    """
    if "C" not in estimator.get_params():
        raise ValueError(f"{type(estimator).__name__} has no cost C to choose.")
    y = np.asarray(y)
    parts = list(check_cv(cv, y, classifier=True).split(X, y))
    predictions: Iterable[Sequence[NDArray] | NDArray]
    if isinstance(estimator, CostRival):
        predictions = estimator.predict_parts(X, y, parts, costs)
    else:
        predictions = (_predict(estimator, X, y, train, test, costs) for train, test in parts)
    values = [
        [metric(y[test], line) for line in lines]
        for (_, test), lines in zip(parts, predictions, strict=True)
    ]
    return np.array(values).T


def _predict(estimator, X, y, train, test, costs: Sequence[float]) -> list[NDArray]:
    rows, new = _safe_indexing(X, train), _safe_indexing(X, test)
    models = (clone(estimator).set_params(C=C).fit(rows, y[train]) for C in costs)
    return [model.predict(new) for model in models]
