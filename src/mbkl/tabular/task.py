"""What is to be learned: classes or numbers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mbkl.extras import require
from mbkl.tabular.columns import is_measure

Task = Literal["classification", "regression"]

# As many different whole numbers are classes, if they come twice on average.
_FEW = 20
# More of them are, if they count from 0 or 1 and each comes so often.
_OFTEN = 5


def task_of(target: Any) -> Task:
    """Say whether a target is made of classes or of numbers.

    Text, booleans, categories and dates are classes. Numbers with fractions are numbers. Whole
    numbers are classes if there are few of them, or if they look like codes of classes: all
    from 0 or 1 to the largest, and each often. Counts and prices have gaps, and rare values.

    Parameters
    ----------
    target : array-like of shape (n_rows,)
        Also a series, or a column of pyarrow. Missing values do not matter.

    Returns
    -------
    task : {"classification", "regression"}

    Examples
    --------
    >>> from mbkl.tabular import task_of
    >>> task_of(["yes", "no"]), task_of([0, 1, 1, 0]), task_of([326, 401, 2757, 554])
    ('classification', 'classification', 'regression')
    """
    pa = require("pyarrow", "cli")
    if not isinstance(target, pa.ChunkedArray):
        target = pa.chunked_array([pa.array(target, from_pandas=True)])
    if not is_measure(target):
        return "classification"
    numbers = target.drop_null().cast(pa.float64(), safe=False).to_numpy()
    values, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    if not np.all(np.isfinite(values) & (values == np.round(values))):
        return "regression"
    few = values.size <= max(2, min(_FEW, counts.sum() // 2))
    return "classification" if few or _are_codes(values, counts) else "regression"


def _are_codes(values: np.ndarray, counts: np.ndarray) -> bool:
    """Say whether whole numbers, sorted, are codes of classes."""
    no_gaps = values[-1] - values[0] + 1 == values.size
    return values[0] in (0, 1) and no_gaps and counts.min() >= _OFTEN
