"""Growth of the time of a fit with rows, features, maps, classes and threads.

Shows that sixteen times the maps take less than twice the time, and that the time is
about linear in rows and classes. One command:

    python -m benchmarks.speed.growth
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common import (
    PAPER_FORM,
    markdown_table,
    median_seconds,
    n_cores,
    parse,
    plain_log_ticks,
    record,
    say,
    start,
)
from benchmarks.data import Dataset, daimler_hog, gaussian_classes
from mbkl import MBKLClassifier

COMMAND = "python -m benchmarks.speed.growth"
MAPS_COSTS = (0.1, 1.0)


@dataclass
class Series:
    """Times of a fit while one size grows.

    Parameters
    ----------
    what : str
        The size that grows.
    setting : str
        All other sizes, which stay the same.
    times : dict
        Seconds for each size.
    """

    what: str
    setting: str
    times: dict[int, float]

    @property
    def ends(self) -> tuple[int, int]:
        return min(self.times), max(self.times)

    @property
    def overall_ratio(self) -> float:
        smallest, largest = self.ends
        return self.times[largest] / self.times[smallest]

    def ratio_per_doubling(self, size: int) -> float | None:
        """Return the growth of the time from the previous size, scaled to a doubling."""
        before = max((other for other in self.times if other < size), default=None)
        if before is None:
            return None
        ratio = self.times[size] / self.times[before]
        return float(ratio ** (1 / np.log2(size / before)))


@dataclass(frozen=True)
class Sizes:
    """Sizes to measure: those of a full run, or those of a quick one."""

    rows: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
    features: tuple[int, ...] = (10, 20, 50, 100, 200, 500, 1_000)
    maps: tuple[int, ...] = (10_000, 20_000, 40_000, 80_000, 160_000)
    classes: tuple[int, ...] = (2, 3, 5, 10, 20, 50)
    threads: tuple[int, ...] = (1, 2)
    base_rows: int = 10_000
    base_features: int = 100
    base_maps: int = 4_000
    daimler_part: tuple[int | None, int | None] = (None, None)
    repeats: int = 3


QUICK = Sizes(
    rows=(500, 1_000),
    features=(5, 10),
    maps=(200, 400),
    classes=(2, 4),
    base_rows=600,
    base_features=10,
    base_maps=200,
    daimler_part=(2_500, 40),
    repeats=1,
)


def _measure(what: str, setting: str, fits: dict[int, Callable], repeats: int) -> Series:
    """Time the fits in turns, after a warm-up by the smallest."""
    fits[min(fits)]()
    named = {str(size): fit for size, fit in fits.items()}
    times = median_seconds(named, repeats)
    series = Series(what, setting, {size: times[str(size)] for size in fits})
    smallest, largest = series.ends
    say(f"{what}, {smallest:,} to {largest:,}: {series.overall_ratio:.2f} times the time")
    return series


def _fit(X, y, n_maps: int, **settings) -> Callable[[], MBKLClassifier]:
    model = MBKLClassifier(**PAPER_FORM, n_maps=n_maps, random_state=0, **settings)
    return lambda: model.fit(X, y)


def growth_in_rows(sizes: Sizes) -> Series:
    X, y = gaussian_classes(max(sizes.rows), sizes.base_features)
    fits = {rows: _fit(X[:rows], y[:rows], sizes.base_maps) for rows in sizes.rows}
    setting = f"synthetic, {sizes.base_features} features, K = {sizes.base_maps:,}, C = 1"
    return _measure("rows", setting, fits, sizes.repeats)


def growth_in_features(sizes: Sizes) -> Series:
    fits = {
        features: _fit(*gaussian_classes(sizes.base_rows, features), sizes.base_maps)
        for features in sizes.features
    }
    setting = f"synthetic, {sizes.base_rows:,} rows, K = {sizes.base_maps:,}, C = 1"
    return _measure("features", setting, fits, sizes.repeats)


def growth_in_maps(sizes: Sizes, data: Dataset, cost: float) -> Series:
    fits = {n_maps: _fit(data.X_train, data.y_train, n_maps, C=cost) for n_maps in sizes.maps}
    setting = f"{data.name}, {data.shape}, C = {cost:g}"
    return _measure("maps", setting, fits, sizes.repeats)


def growth_in_classes(sizes: Sizes) -> Series:
    fits = {
        classes: _fit(
            *gaussian_classes(sizes.base_rows, sizes.base_features, classes, separation=4.0),
            sizes.base_maps,
        )
        for classes in sizes.classes
    }
    setting = (
        f"synthetic, {sizes.base_rows:,} rows, {sizes.base_features} features, "
        f"K = {sizes.base_maps:,}, C = 1"
    )
    return _measure("classes", setting, fits, sizes.repeats)


def growth_in_threads(sizes: Sizes, data: Dataset) -> tuple[Series, bool]:
    """Return the times, and whether all models have the same bits."""
    n_maps = min(sizes.maps)
    threads = [count for count in sizes.threads if count <= n_cores()]
    fits = {count: _fit(data.X_train, data.y_train, n_maps, n_jobs=count) for count in threads}
    setting = f"{data.name}, {data.shape}, K = {n_maps:,}, C = 1"
    series = _measure("threads", setting, fits, sizes.repeats)
    models = [fit() for fit in fits.values()]
    same = all(np.array_equal(models[0].coef_, model.coef_) for model in models)
    same &= all(np.array_equal(models[0].theta_, model.theta_) for model in models)
    return series, same


def _rows(series: Series) -> list[dict]:
    rows = []
    for size, taken in series.times.items():
        ratio = series.ratio_per_doubling(size)
        rows.append(
            {
                "growing": series.what,
                "size": size,
                "seconds": taken,
                "times the time, per doubling": "-" if ratio is None else ratio,
                "times that of the smallest": taken / series.times[series.ends[0]],
                "the rest": series.setting,
            }
        )
    return rows


def _plot(all_series: list[Series]) -> Figure:
    figure = Figure(figsize=(13, 7.5), layout="constrained")
    names = list(dict.fromkeys(series.what for series in all_series))
    for axes, what in zip(figure.subplots(2, 3).ravel(), names):
        for series in (s for s in all_series if s.what == what):
            sizes = np.array(list(series.times))
            axes.loglog(sizes, list(series.times.values()), "o-", label=series.setting)
        slope = -1.0 if what == "threads" else 1.0
        smallest, largest = series.ends
        line = np.array([smallest, largest], dtype=float)
        label = "half per doubling" if what == "threads" else "linear"
        axes.loglog(line, series.times[smallest] * (line / smallest) ** slope, "k:", label=label)
        axes.set_xlabel(f"number of {what}")
        axes.set_ylabel("time of a fit (seconds)")
        plain_log_ticks(axes.xaxis)
        plain_log_ticks(axes.yaxis)
        axes.tick_params(axis="x", labelsize=8, rotation=30)
        axes.legend(fontsize=7)
        axes.grid(True, alpha=0.3)
    figure.axes[-1].set_visible(len(names) == len(figure.axes))
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all series and record them."""
    quick = parse(__doc__, arguments).quick
    sizes = QUICK if quick else Sizes()
    data = daimler_hog().first(*sizes.daimler_part)
    in_maps = [growth_in_maps(sizes, data, cost) for cost in MAPS_COSTS]
    in_threads, same = growth_in_threads(sizes, data)
    all_series = [growth_in_rows(sizes), growth_in_features(sizes), *in_maps]
    all_series += [growth_in_classes(sizes), in_threads]
    notes = [
        f"time(K = {s.ends[1]:,}) / time(K = {s.ends[0]:,}) = {s.overall_ratio:.2f} ({s.setting})."
        for s in in_maps
    ]
    notes.append(f"The models of all numbers of threads are the same to the bit: {same}.")
    notes.append(f"Median of {sizes.repeats} fits of each size, which take turns.")
    table = markdown_table(row for series in all_series for row in _rows(series))
    record(
        "growth",
        COMMAND,
        table,
        notes,
        _plot(all_series),
        title="Growth of the time of a fit",
        quick=quick,
    )


if __name__ == "__main__":
    raise SystemExit(start(main))
