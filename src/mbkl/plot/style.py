"""Colours, labels and the base class of all pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbkl.extras import require

# The colours of Okabe and Ito, which colour-blind people can tell apart, darkest first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
QUIET = "#8A8F98"
FAINT = "#D9DCE1"
INK = "#2B2F36"
DASHED = {"color": QUIET, "linewidth": 1.0, "linestyle": (0, (4, 3))}


class Display:
    """Base class of all pictures.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
    ax_ : matplotlib Axes
        The first of `axes_`.
    figure_ : matplotlib Figure
    """

    def _begin(self, ax, *shape: int, **options) -> NDArray:
        """Store and return the given axes, or those of a new figure with this grid."""
        if ax is None:
            pyplot = require("matplotlib.pyplot", "plot")
            _, ax = pyplot.subplots(*shape, layout="constrained", **options)
        self.axes_ = np.asarray(ax, dtype=object).ravel()
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        return self.axes_


def quieten(ax, grid: str | None = None) -> None:
    """Make the frame and ticks of an axes unobtrusive; draw the grid of an axis, or of both."""
    if grid is not None:
        ax.grid(axis=grid, color=FAINT, linewidth=0.6)
        ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)
    ax.tick_params(color=QUIET, labelcolor=INK, labelsize=9)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    ax.title.set_color(INK)


def quieten_bars(ax) -> None:
    """Style an axes of horizontal bars with names."""
    quieten(ax, grid="x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def add_colour_bar(ax, image, label: str, fraction: float) -> None:
    """Draw a colour bar beside an image."""
    bar = ax.figure.colorbar(image, ax=ax, fraction=fraction, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=0, labelcolor=INK)
    bar.set_label(label, fontsize=8.5, color=INK)


def shorten(name: str, length: int = 28) -> str:
    """Return a name, with an ellipsis for its middle where it is long."""
    if len(name) <= length:
        return name
    half = (length - 1) // 2
    return f"{name[:half].rstrip()}…{name[-half:].lstrip()}"


def score_words(unit: str, name: str = "", length: int = 24) -> str:
    """Return a label for a score of a class, a target, or the logarithm of counts.

    >>> score_words("score", "yes"), score_words("target", "price"), score_words("log", "visits")
    ('score of yes', 'price', 'log(visits)')
    """
    short = shorten(name, length)
    if unit == "score":
        return f"score of {short}" if name else "score"
    return f"log({short or 'target'})" if unit == "log" else short or "target"


def added_words(unit: str, name: str = "", length: int = 24) -> str:
    """Return a label for contributions to a score; see `score_words`."""
    article = "the " if unit == "score" or not (name or unit == "log") else ""
    return f"added to {article}{score_words(unit, name, length)}"


def number_of(classes: tuple, label, strengths=None, unit: str = "score") -> int:
    """Return the index of the score of a class; None means the strongest, or the first target."""
    if label is None and strengths is not None:
        return int(np.argmax(strengths)) if unit == "score" else 0
    if label not in classes:
        raise ValueError(f"classes names {label!r}, but the scores are of {list(classes)}.")
    return classes.index(label)
