"""Ranks of methods over data sets, and the tests of Demšar (JMLR 7, 2006)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range


def ranks(accuracy: NDArray) -> NDArray[np.float64]:
    """Rank the methods on each data set; 1 is the best, ties get their mean rank.

    Parameters
    ----------
    accuracy : ndarray of shape (n_sets, n_methods)

    Examples
    --------
    >>> ranks(np.array([[0.9, 0.8, 0.7], [0.5, 0.6, 0.6]]))
    array([[1. , 2. , 3. ],
           [3. , 1.5, 1.5]])
    """
    return rankdata(-np.asarray(accuracy), axis=1)


def wins(accuracy: NDArray) -> NDArray[np.intp]:
    """Count the data sets on which each method is best; ties count for all.

    Examples
    --------
    >>> wins(np.array([[0.9, 0.8, 0.7], [0.5, 0.6, 0.6]])).tolist()
    [1, 1, 1]
    """
    return (accuracy == accuracy.max(axis=1, keepdims=True)).sum(axis=0)


def friedman(accuracy: NDArray) -> tuple[float, float]:
    """Return statistic and p-value of the hypothesis that all methods are equally good."""
    result = friedmanchisquare(*accuracy.T)
    return float(result.statistic), float(result.pvalue)


def nemenyi_quantile(n_methods: int, level: float = 0.05) -> float:
    """Return the studentised range over the root of two.

    Examples
    --------
    >>> round(nemenyi_quantile(2), 3), round(nemenyi_quantile(5), 3)
    (1.96, 2.728)
    """
    return float(studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2))


def critical_difference(n_methods: int, n_sets: int, level: float = 0.05) -> float:
    """Return the difference of mean ranks beyond which two methods differ (Nemenyi)."""
    spread = np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets))
    return nemenyi_quantile(n_methods, level) * float(spread)


def cliques(mean_ranks: NDArray, difference: float) -> list[tuple[int, int]]:
    """Return the maximal groups of methods without significant differences.

    Parameters
    ----------
    mean_ranks : ndarray
        In ascending order.
    difference : float
        Critical difference.

    Returns
    -------
    groups : list of (first, last)
        Positions of the best and the worst of each group of two or more.

    Examples
    --------
    >>> cliques(np.array([1.0, 1.5, 2.2, 4.0]), 1.0)
    [(0, 1), (1, 2)]
    """
    groups: list[tuple[int, int]] = []
    for first, rank in enumerate(mean_ranks):
        last = int(np.searchsorted(mean_ranks, rank + difference, side="right")) - 1
        already_joined = bool(groups) and groups[-1][1] >= last
        if last > first and not already_joined:
            groups.append((first, last))
    return groups
