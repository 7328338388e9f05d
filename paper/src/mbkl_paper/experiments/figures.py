"""The pictures of the paper: kernels and distances, number of maps, and test time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from mbkl import MBKernel
from mbkl_paper.baselines import chi2_distance
from mbkl_paper.experiments.collection import Collection
from mbkl_paper.experiments.systems import MBKL, SWEPT, SYSTEMS

Style = dict[str, Any]

# Of the colours of Okabe and Ito, which the colour-blind can tell apart.
BLACK, ORANGE, GREEN, BLUE = "#000000", "#E69F00", "#009E73", "#0072B2"
RED, PURPLE = "#D55E00", "#CC79A7"
# Colours are families of systems, marks their members.
STYLES = {
    "mbkl": (RED, "*"),
    "mbkl_published": (RED, "D"),
    "mbkl_ones": (RED, "o"),
    "mbkl_projections": (RED, "s"),
    "mbkl_default": (RED, "P"),
    "linear": (BLACK, "X"),
    "l1_maps": (BLACK, "d"),
    "random_forest": (GREEN, "o"),
    "adaboost": (GREEN, "s"),
    "chi2": (BLUE, "o"),
    "rb_chi2": (BLUE, "s"),
    "approx_chi2_x3": (BLUE, "v"),
    "approx_chi2": (BLUE, "^"),
    "pmsvm_chi2": (BLUE, "D"),
    "intersection": (ORANGE, "o"),
    "approx_intersection": (ORANGE, "^"),
    "pmsvm_intersection": (ORANGE, "D"),
    "raginsky_lazebnik": (PURPLE, "o"),
    "fourier_mkl": (PURPLE, "s"),
}
_CURVES = dict(zip(SWEPT, (RED, PURPLE, ORANGE, BLUE, BLACK)))
# Points in the scatter plot: more only cover each other.
_PAIRS = 20_000


# ---------------------------------------------------------------- distances and kernels


@dataclass(frozen=True)
class Kernels:
    """Rows compared in pairs, sorted by class; `ones` and `learned` are MBKL kernels."""

    y: NDArray
    chi2: NDArray
    ones: NDArray
    learned: NDArray

    def contrast(self, kernel: NDArray) -> float:
        """Return by how many deviations rows of one class agree more than others."""
        same = self.y[:, None] == self.y
        others = kernel[~same]
        same &= ~np.eye(self.y.size, dtype=bool)
        return float((kernel[same].mean() - others.mean()) / others.std())


def compare(X, y: NDArray, **parameters) -> Kernels:
    """Compare training rows by χ², and by MBKL with θ = 1 and with θ as learned, not shrunk.

    The χ² distance is divided by the sums of both rows, so that it is at most one.
    """
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    totals = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    ones = MBKernel(maps="stumps", theta="ones", **parameters).fit(X, y)
    learned = MBKernel(maps="stumps", theta="learned", theta_shrinkage=0, **parameters).fit(X, y)
    chi2 = chi2_distance(X) / np.maximum(totals[:, None] + totals, 1e-300)
    return Kernels(y, chi2, ones.kernel(X), learned.kernel(X))


def figure_2(kernels: Kernels, class_names: Sequence[str], title: str) -> Figure:
    """Draw the distances against each other, and both kernels."""
    figure = Figure(figsize=(14, 4.7), layout="constrained")
    figure.suptitle(f"{title}: training rows in pairs", fontsize=12)
    scatter, *panels = figure.subplots(1, 3, width_ratios=(1, 1.12, 1.12))
    _draw_distances(scatter, kernels)
    drawn = {
        "(b) MBKL kernel, θ = 1": kernels.ones,
        "(c) MBKL kernel, θ as learned": kernels.learned,
    }
    for axes, (name, kernel) in zip(panels, drawn.items()):
        _draw_kernel(axes, kernel, kernels.y, class_names)
        axes.set_title(f"{name}; contrast of classes {kernels.contrast(kernel):.2f}", fontsize=10)
    return figure


def _draw_distances(axes: Axes, kernels: Kernels) -> None:
    rows, columns = np.triu_indices(kernels.y.size, 1)
    chi2, mbkl = kernels.chi2[rows, columns], 1.0 - kernels.ones[rows, columns]
    is_same = kernels.y[rows] == kernels.y[columns]
    drawn = np.random.default_rng(0).permutation(rows.size)[:_PAIRS]
    for of_one, colour, label in ((False, BLUE, "of two classes"), (True, ORANGE, "of one class")):
        chosen = drawn[is_same[drawn] == of_one]
        style: Style = {"color": colour, "markersize": 3, "alpha": 0.4, "markeredgewidth": 0}
        axes.plot(chi2[chosen], mbkl[chosen], ".", label=label, **style)
    axes.set_xlabel("χ² distance, divided by the sums of both rows")
    axes.set_ylabel("MBKL distance: share of maps that differ")
    correlation = np.corrcoef(chi2, mbkl)[0, 1]
    axes.set_title(f"(a) distances, θ = 1; correlation {correlation:.2f}", fontsize=10)
    for handle in axes.legend(fontsize=9, loc="upper left", frameon=False).get_lines():
        handle.set(markersize=9, alpha=1.0)
    _tidy(axes)


def _draw_kernel(axes: Axes, kernel: NDArray, y: NDArray, class_names: Sequence[str]) -> None:
    low, high = np.percentile(kernel[~np.eye(y.size, dtype=bool)], (1, 99.5))
    image = axes.imshow(kernel, cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
    labels, starts, counts = np.unique(y, return_index=True, return_counts=True)
    names = [class_names[label] for label in labels]
    axes.set_yticks(starts + (counts - 1) / 2, names, fontsize=9 if len(names) <= 10 else 7)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.figure.colorbar(image, ax=axes, shrink=0.85, pad=0.02).outline.set_visible(False)


# ---------------------------------------------------------------- number of initial maps


def figure_3(collection: Collection, name: str) -> Figure:
    """Draw accuracy, times and kept maps against the number of initial maps."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    figure.suptitle(f"{collection.problems[name].title}: number of initial maps", fontsize=12)
    (accuracy, training), (test, kept) = figure.subplots(2, 2)
    _draw_curves(accuracy, collection, name, "accuracy", 100.0)
    accuracy.set_title("(a) test accuracy (per cent)", fontsize=10)
    for axes, field, title in (
        (training, "fit_seconds", "(b) training time (s)"),
        (test, "predict_seconds", "(c) test time (s, all test rows)"),
        (kept, "n_maps", "(d) maps kept"),
    ):
        _draw_curves(axes, collection, name, field)
        axes.set_yscale("log")
        _plain_log_ticks(axes.yaxis)
        axes.set_title(title, fontsize=10)
    handles, labels = accuracy.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(SWEPT), frameon=False)
    return figure


def _draw_curves(
    axes: Axes, collection: Collection, name: str, field: str, factor: float = 1.0
) -> None:
    n_splits = collection.n_swept_splits(name)
    for system in SWEPT:
        sizes = collection.sizes(name, system)
        if not sizes:
            continue
        # A point of more splits than its neighbours would not compare with them.
        swept = [collection.values(name, f"{system}@{size}", field)[:n_splits] for size in sizes]
        values = [factor * statistics.fmean(splits) for splits in swept]
        mark = STYLES[system][1]
        style: Style = {"marker": mark, "markersize": 10 if mark == "*" else 6, "linewidth": 1.5}
        label = SYSTEMS[system].label
        axes.plot(sizes, values, label=label, color=_CURVES[system], **style)
    axes.set_xscale("log")
    sizes = sorted({size for system in SWEPT for size in collection.sizes(name, system)})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("initial maps (logarithmic)")
    _tidy(axes)


# ---------------------------------------------------------------- test time and accuracy


def figure_4(collection: Collection, names: Sequence[str]) -> Figure:
    """Draw test time and accuracy relative to MBKL, a panel each set."""
    n_columns = min(len(names), 3)
    n_rows = math.ceil(len(names) / n_columns)
    size = (3.0 + 4.2 * n_columns, 0.8 + 4.0 * n_rows)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle("Test time and accuracy relative to MBKL (left and up is better)", fontsize=12)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    handles: dict = {}
    for axes, name in zip(panels, names):
        handles |= _draw_rivals(axes, collection, name)
        axes.set_title(collection.problems[name].title, fontsize=10)
        _frame(axes)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    labels = [SYSTEMS[one].label for one in STYLES if one in handles]
    marks = [handles[one] for one in STYLES if one in handles]
    figure.legend(marks, labels, loc="outside right center", fontsize=9, frameon=False)
    return figure


def _draw_rivals(axes: Axes, collection: Collection, name: str) -> dict:
    """Draw a point for each system; return them."""
    own_time = collection.median(name, MBKL.name, "predict_seconds")
    own_accuracy = collection.mean(name, MBKL.name)
    points = {}
    for system, (colour, mark) in STYLES.items():
        if collection.has(name, system):
            time = collection.median(name, system, "predict_seconds") / own_time
            gain = 100 * (collection.mean(name, system) - own_accuracy)
            edge: Style = {"markeredgecolor": "white", "markeredgewidth": 0.6}
            size = 14 if system == MBKL.name else 8
            (points[system],) = axes.plot(time, gain, mark, color=colour, markersize=size, **edge)
    return points


def _frame(axes: Axes) -> None:
    """Shade where a system is faster and more accurate than MBKL, and label the axes."""
    axes.set_xscale("log")
    axes.margins(0.1)
    axes.autoscale_view()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    left, right, bottom, top = min(left, 0.5), max(right, 2.0), min(bottom, -1), max(top, 1)
    axes.add_patch(Rectangle((left, 0), 1 - left, top, color=RED, alpha=0.08, linewidth=0))
    axes.axhline(0, color="0.7", linewidth=0.8, zorder=1)
    axes.axvline(1, color="0.7", linewidth=0.8, zorder=1)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    _plain_log_ticks(axes.xaxis)
    axes.tick_params(axis="x", labelrotation=45)
    axes.set_xlabel("test time, times that of MBKL")
    axes.set_ylabel("accuracy minus MBKL (points)")
    _tidy(axes)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.93")
    axes.set_axisbelow(True)


def _plain_log_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers at 1, 2, 5, 10 and so on."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
