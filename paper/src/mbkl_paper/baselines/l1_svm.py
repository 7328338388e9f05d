"""The l1-regularised SVM as liblinear solves it (`-s 5`), for columns of -1, 0 and +1.

The steps are those of liblinear: coordinate descent by Newton steps with a line search, in
random order, without columns that stay at zero, until the gradient is a hundredth of what it
was. Where liblinear keeps 16 bytes for every value, a column here has one, so that sweeps over
hundreds of millions of values take a fraction of a second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Columns that are turned to floating point at a time.
_AT_ONCE = 1_000


def l1_svm(
    columns: NDArray[np.int8],
    labels: NDArray,
    C: float,
    *,
    tol: float = 0.01,
    max_iter: int = 1000,
    seed: int = 0,
) -> tuple[Array, int]:
    """Minimise sum |w| + C * sum of max(0, 1 - y (w . x))^2.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows)
        Each is -1, 0 or +1 on every row. For an intercept, which is then a weight like
        others, as with liblinear's `-B 1`, one of them is 1 everywhere.
    labels : ndarray of shape (n_rows,)
        +1 or -1.
    C : float
        Cost of a row.
    tol : float
        Tolerance of liblinear, whose default is 0.01: the sum of violations at the end,
        relative to that at the start, and smaller where one label is rare.
    max_iter : int
        Largest number of sweeps.
    seed : int
        Of the order of the columns.

    Returns
    -------
    weights : ndarray of shape (n_columns,)
    n_iter : int
        Sweeps.

    References
    ----------
    R.-E. Fan et al. "LIBLINEAR: A Library for Large Linear Classification." JMLR 2008.
    G.-X. Yuan et al. "A Comparison of Optimization Methods and Software for Large-scale
    L1-regularized Linear Classification." JMLR 2010.

    Examples
    --------
    >>> import numpy as np
    >>> columns = np.array([[1, 1, -1, -1], [1, -1, 1, -1]], dtype=np.int8)
    >>> weights, _ = l1_svm(columns, np.array([1, 1, -1, -1]), C=1.0, tol=1e-6)
    >>> weights.round(3)
    array([0.875, 0.   ])
    """
    from mbkl_paper.baselines.loops import sweep_l1  # for those who use it: compiled

    generator = np.random.default_rng(seed)
    signs = np.asarray(labels, dtype=np.int8)
    rarer = max(min((signs > 0).sum(), (signs < 0).sum()), 1)
    weights, room = np.zeros(len(columns)), np.ones(len(signs))
    everything = np.arange(len(columns))
    active, first, slack, n_iter = everything, None, np.inf, 0
    while n_iter < max_iter:
        n_iter += 1
        order = generator.permutation(active)
        stays = np.ones(len(order), dtype=np.bool_)
        total, largest = sweep_l1(columns, signs, order, C, slack, weights, room, stays)
        first = total if first is None else first
        active, slack = order[stays], largest / len(signs)
        if total <= tol * rarer / len(signs) * first:
            if len(order) == len(everything):
                break
            # The columns left out are looked at once more.
            active, slack = everything, np.inf
    return weights, n_iter


def relative_gap(columns: NDArray[np.int8], labels: NDArray, C: float, weights: Array) -> float:
    """Return the duality gap of weights, relative to the objective.

    Supports of the rows are feasible for the dual problem once they are small enough.

    >>> columns = np.array([[1, 1, -1, -1], [1, -1, 1, -1]], dtype=np.int8)
    >>> labels = np.array([1, 1, -1, -1])
    >>> [round(relative_gap(columns, labels, 1.0, np.array([w, 0])), 3) for w in (0.5, 0.875)]
    [0.375, 0.0]
    """
    blocks = [slice(start, start + _AT_ONCE) for start in range(0, len(columns), _AT_ONCE)]
    scores = sum(weights[some] @ columns[some].astype(np.float64) for some in blocks)
    room = np.maximum(1.0 - labels * scores, 0.0)
    objective = np.abs(weights).sum() + C * (room**2).sum()
    supports = 2.0 * C * room
    signed = labels * supports
    pull = max(np.abs(columns[some].astype(np.float64) @ signed).max() for some in blocks)
    supports = supports / max(pull, 1.0)
    bound = supports.sum() - (supports**2).sum() / (4.0 * C)
    return float((objective - bound) / objective)
