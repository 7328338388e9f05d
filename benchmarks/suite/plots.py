"""Pictures of the suite: critical differences, and the first measure against time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from benchmarks.common import plain_log_ticks
from benchmarks.suite.ranking import cliques
from benchmarks.suite.tasks import Task, is_ours

_OUR_COLOUR = "tab:orange"
_OTHER_COLOUR = "tab:blue"
_BAR_COLOUR = "0.25"


def _colour(method: str) -> str:
    return _OUR_COLOUR if is_ours(method) else _OTHER_COLOUR


# ---------------------------------------------------------------- critical differences


def critical_difference(
    mean_ranks: Mapping[str, float], difference: float, n_sets: int, task: Task
) -> Figure:
    """Draw mean ranks on a line, with bars over those that do not differ significantly.

    Parameters
    ----------
    mean_ranks : mapping from method to mean rank
    difference : float
        Critical difference.
    n_sets : int
        Number of data sets behind the ranks.
    task : Task
    """
    names = sorted(mean_ranks, key=mean_ranks.__getitem__)
    positions = np.array([mean_ranks[name] for name in names])
    groups = cliques(positions, difference)
    low, high = _ends(positions, difference)
    n_left = (len(names) + 1) // 2
    first_label = 0.9 + 0.35 * len(groups)
    depth = first_label + n_left - 1
    figure = Figure(figsize=(10, 1.3 + 0.3 * depth), layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    margin = 0.32 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(depth + 0.6, -2.4)
    _draw_scale(axes, low, high)
    _draw_ruler(axes, low, difference)
    gap = 0.02 * (high - low)
    for place, name in enumerate(names[:n_left]):
        _draw_method(axes, name, positions[place], first_label + place, low - gap, "right")
    for place, name in enumerate(reversed(names[n_left:])):
        rank = positions[len(names) - 1 - place]
        _draw_method(axes, name, rank, first_label + place, high + gap, "left")
    for level, (first, last) in enumerate(groups):
        ends = [positions[first] - gap / 3, positions[last] + gap / 3]
        height = 0.45 + 0.35 * level
        axes.plot(ends, [height] * 2, color=_BAR_COLOUR, linewidth=4, solid_capstyle="round")
    axes.set_title(f"Mean rank of {task.measure} over {n_sets} data sets (1 is best)", fontsize=11)
    return figure


def _ends(positions: np.ndarray, difference: float) -> tuple[int, int]:
    """Return whole ranks around all methods, with room for the ruler."""
    low = math.floor(positions[0])
    return low, max(math.ceil(positions[-1]), math.ceil(low + difference), low + 1)


def _draw_scale(axes: Axes, low: int, high: int) -> None:
    axes.plot([low, high], [0, 0], color="black", linewidth=1)
    for tick in range(low, high + 1):
        axes.plot([tick, tick], [0, -0.2], color="black", linewidth=1)
        axes.text(tick, -0.3, str(tick), ha="center", va="bottom", fontsize=9)


def _draw_ruler(axes: Axes, low: int, difference: float) -> None:
    height = -1.6
    axes.plot([low, low + difference], [height] * 2, color=_BAR_COLOUR, linewidth=2)
    for end in (low, low + difference):
        axes.plot([end, end], [height - 0.15, height + 0.15], color=_BAR_COLOUR, linewidth=2)
    text = f"critical difference {difference:.2f}"
    axes.text(low + difference / 2, height - 0.2, text, ha="center", va="bottom", fontsize=9)


def _draw_method(
    axes: Axes, name: str, rank: float, height: float, edge: float, alignment: str
) -> None:
    """Draw a line from the scale down and out to the name of a method at the edge."""
    colour = _colour(name)
    axes.plot([rank, rank, edge], [0, height, height], color=colour, linewidth=1)
    text = f"{name}  {rank:.2f} " if alignment == "right" else f" {rank:.2f}  {name}"
    weight = "bold" if is_ours(name) else "normal"
    axes.text(
        edge, height, text, ha=alignment, va="center", fontsize=9, color=colour, weight=weight
    )


# ---------------------------------------------------------------- accuracy against time


def score_against_time(
    points: Mapping[str, tuple[float, float]], n_sets: int, task: Task
) -> Figure:
    """Draw the mean of the first measure against fit time.

    Parameters
    ----------
    points : mapping from method to (seconds, measure)
    n_sets : int
        Number of data sets behind the points.
    task : Task
    """
    unit = 100 if task.in_per_cent else 1
    points = {name: (seconds, unit * value) for name, (seconds, value) in points.items()}
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for method, point in points.items():
        axes.plot(*point, "o", color=_colour(method), markersize=7)
    axes.set_xscale("log")
    axes.margins(0.12)
    plain_log_ticks(axes.xaxis)
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.set_xlabel("seconds to fit, with the choice of parameters: median (logarithmic)")
    axes.set_ylabel(f"mean {task.measure}{' (per cent)' if task.in_per_cent else ''}")
    axes.set_title(
        f"{task.title} against time over {n_sets} data sets (top left is best)", fontsize=11
    )
    figure.draw_without_rendering()
    _label_points(axes, points)
    return figure


def _label_points(axes: Axes, points: Mapping[str, tuple[float, float]]) -> None:
    """Write a name beside each point, at a place where it covers no other name or point."""
    pixels = {name: axes.transData.transform(point) for name, point in points.items()}
    taken = [_box(x, y, 10, 10) for x, y in pixels.values()]
    frame = axes.get_window_extent()
    pixels_a_point = axes.figure.dpi / 72
    for name, point in points.items():
        label = axes.annotate(
            name,
            point,
            textcoords="offset points",
            xytext=(0, 0),
            ha="center",
            va="center",
            fontsize=9,
            color=_colour(name),
            weight="bold" if is_ours(name) else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
        size = label.get_window_extent()
        width, height = size.width + 4, size.height + 2
        right, up = _free_place(pixels[name], width, height, taken, frame)
        taken.append(_box(pixels[name][0] + right, pixels[name][1] + up, width, height))
        label.set_position((right / pixels_a_point, up / pixels_a_point))
        if abs(up) > 1.3 * height:
            _draw_leader(axes, point, label.get_position())


def _free_place(
    point: NDArray, width: float, height: float, taken: Sequence[Bbox], frame: Bbox
) -> tuple[float, float]:
    """Return the offset in pixels from a point to the nearest free place for its name."""
    for distance in range(8, 160, 4):
        beside = width / 2 + 8
        for right, up in (
            (beside, 0),
            (-beside, 0),
            (0, distance + height / 2),
            (0, -distance - height / 2),
            (beside, distance),
            (-beside, distance),
            (beside, -distance),
            (-beside, -distance),
        ):
            area = _box(point[0] + right, point[1] + up, width, height)
            is_inside = frame.containsx(area.x0) and frame.containsx(area.x1)
            is_inside = is_inside and frame.containsy(area.y0) and frame.containsy(area.y1)
            if is_inside and not any(area.overlaps(other) for other in taken):
                return right, up
    return width / 2 + 8, 0.0


def _box(x: float, y: float, width: float, height: float) -> Bbox:
    """Return the box of this size around a point."""
    return Bbox.from_bounds(x - width / 2, y - height / 2, width, height)


def _draw_leader(axes: Axes, point: tuple[float, float], offset: tuple[float, float]) -> None:
    """Draw a line from a point to its name."""
    line = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.7, "shrinkA": 7, "shrinkB": 5}
    axes.annotate("", point, xytext=offset, textcoords="offset points", arrowprops=line, zorder=1)
