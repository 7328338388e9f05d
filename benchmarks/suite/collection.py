"""The results for a report, by data set and method."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import MEGABYTE
from benchmarks.suite.store import Result, Store, Unit

MICROSECOND = 1e-6
Measure = Callable[[Result], float]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Collection:
    """Results by data set and method.

    Parameters
    ----------
    names : list of str
        Data sets with a result or a failure.
    methods : list of str
        Methods with results on at least half as many data sets as any.
    others : list of str
        The other methods: measured on few sets yet, or failed on all.
    results : dict from (data set, method) to list of Result
        A result for each fold; only if all folds are measured.
    failures : dict from (data set, method) to str
        The message of the first fold that failed.
    """

    names: list[str]
    methods: list[str]
    others: list[str]
    results: dict[Pair, list[Result]]
    failures: dict[Pair, str]

    @property
    def complete(self) -> list[str]:
        """The data sets on which every method has a result."""
        return [
            name
            for name in self.names
            if all((name, method) in self.results for method in self.methods)
        ]

    def matrix(self, names: Sequence[str], measure: Measure) -> NDArray[np.float64]:
        """Return means over folds of a measure, of shape (n_sets, n_methods)."""
        means = [[self.mean(name, method, measure) for method in self.methods] for name in names]
        return np.array(means).reshape(len(names), len(self.methods))

    def mean(self, name: str, method: str, measure: Measure) -> float:
        """Return the mean over folds, rounded so that equal means stay equal and share a rank."""
        return round(statistics.fmean(map(measure, self.results[name, method])), 10)

    def median(self, names: Sequence[str], method: str, measure: Measure) -> float:
        """Return the median over data sets of the median over folds of a measure."""
        return statistics.median(
            statistics.median(map(measure, self.results[name, method])) for name in names
        )

    def median_ratio(
        self, names: Sequence[str], method: str, reference: str, measure: Measure
    ) -> float:
        """Return `median` of the ratio of a measure to that of another method on the same fold."""
        return statistics.median(
            statistics.median(
                measure(result) / measure(other)
                for result, other in zip(self.results[name, method], self.results[name, reference])
            )
            for name in names
        )


def collect(units: Iterable[Unit], store: Store) -> Collection:
    """Gather the results of units."""
    units = list(units)
    n_folds = Counter((unit.data_set, unit.method) for unit in units)
    names: dict[str, None] = {}
    measured: dict[Pair, list[Result]] = {}
    failures: dict[Pair, str] = {}
    for unit in units:
        result = store.get(unit)
        if result is None:
            continue
        names[unit.data_set] = None
        pair = (unit.data_set, unit.method)
        if result.error is None:
            measured.setdefault(pair, []).append(result)
        else:
            failures.setdefault(pair, result.error)
    results = {pair: folds for pair, folds in measured.items() if len(folds) == n_folds[pair]}
    methods = list(dict.fromkeys(unit.method for unit in units))
    # A method that is still being measured would leave few data sets to compare on.
    n_sets = Counter(method for _, method in {*results, *failures})
    most = max(n_sets.values(), default=0)
    with_result = {method for _, method in results if 2 * n_sets[method] >= most}
    return Collection(
        names=list(names),
        methods=[method for method in methods if method in with_result],
        others=[method for method in methods if method not in with_result],
        results=results,
        failures=failures,
    )


# ---------------------------------------------------------------- measures


def measure_of(name: str) -> Measure:
    """Return a function that returns this measure of a result."""
    return lambda result: result.measures[name]


def fit_seconds_of(result: Result) -> float:
    """Return the time of the fit, with the choice of parameters."""
    return result.fit_seconds


def predict_microseconds_of(result: Result) -> float:
    """Return the time of a prediction, for one row of the batch."""
    return result.predict_seconds / result.predict_rows / MICROSECOND


def megabytes_of(result: Result) -> float:
    """Return the size of the model."""
    return result.model_bytes / MEGABYTE
