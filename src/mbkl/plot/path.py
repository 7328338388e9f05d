"""A picture of a search: accuracy and kept maps along the costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import cycle

import numpy as np

from mbkl.plot.style import COLOURS, INK, QUIET, pyplot, quieten


@dataclass(eq=False, repr=False)
class PathDisplay:
    """Accuracy of the folds, and maps kept, along C.

    Parameters
    ----------
    results : dict of ndarray
        `cv_results_` of an `MBKLClassifierCV`.
    C : float
        The cost chosen.
    C_kernel : float
        The cost of Step 1 chosen.
    score_name : str, default="accuracy"

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
    ax_ : matplotlib Axes
        That of the accuracy.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from mbkl import MBKLClassifierCV
    >>> from mbkl.plot import PathDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifierCV(maps="stumps", Cs=(0.1, 1, 10), random_state=0).fit(X, y)
    >>> PathDisplay.from_estimator(model).ax_.get_ylabel()
    'accuracy of the folds'
    """

    results: Mapping
    _: KW_ONLY
    C: float
    C_kernel: float
    score_name: str = "accuracy"

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the search of a fitted `MBKLClassifierCV`.

        Parameters
        ----------
        estimator : MBKLClassifierCV
            Fitted.
        ax : sequence of two matplotlib Axes, or None

        Returns
        -------
        display : PathDisplay
        """
        if not hasattr(estimator, "cv_results_"):
            raise TypeError("estimator must be a fitted MBKLClassifierCV, which has a path.")
        display = cls(
            estimator.cv_results_,
            C=estimator.C_,
            C_kernel=estimator.C_kernel_,
            score_name=estimator.scoring.replace("_", " "),
        )
        return display.plot(ax=ax)

    def plot(self, ax=None):
        """Draw into two axes, or into a new figure; return the display."""
        if ax is None:
            _, ax = pyplot().subplots(
                2, 1, figsize=(6.0, 4.6), sharex=True, height_ratios=[2, 1], layout="constrained"
            )
        upper, lower = np.asarray(ax, dtype=object).ravel()
        paths = self._paths()
        for colour, (label, candidates) in zip(cycle(COLOURS), paths):
            C = self.results["param_C"][candidates]
            mean = self.results["mean_test_score"][candidates]
            line = {"color": colour, "marker": "o", "markersize": 4.5, "linewidth": 1.6}
            upper.plot(C, mean, label=label, **line)
            lower.plot(C, self.results["mean_n_maps"][candidates], **line)
            if candidates.size > 1 and self._is_chosen(candidates):
                error = self._standard_error()[candidates]
                band = {"color": colour, "alpha": 0.14, "linewidth": 0, "zorder": 0}
                upper.fill_between(C, mean - error, mean + error, **band)
        costs = np.unique(self.results["param_C"])
        for axis in (upper, lower):
            axis.axvline(self.C, color=QUIET, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
            axis.set_xscale("log")
            axis.minorticks_off()
            axis.set_xticks(costs, [_digits(C) for C in costs])
            quieten(axis, grid="y")
        note = {"va": "bottom", "ha": "center", "fontsize": 8.5, "color": INK}
        above = upper.get_xaxis_transform()
        upper.text(self.C, 1.01, f"chosen: C = {_digits(self.C)}", transform=above, **note)
        upper.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")
        upper.set_ylabel(f"{self.score_name} of the folds")
        lower.set_ylabel("maps kept")
        lower.set_ylim(bottom=0)
        lower.set_xlabel("C")
        if len(paths) > 1:
            upper.legend(frameon=False, fontsize=8.5, labelcolor=INK)
        self.axes_ = np.array([upper, lower], dtype=object)
        self.ax_, self.figure_ = upper, upper.figure
        return self

    def _is_chosen(self, candidates: np.ndarray) -> bool:
        """Say whether the costs chosen are on this path."""
        C, C_kernel = self.results["param_C"], self.results["param_C_kernel"]
        return bool(((C == self.C) & (C_kernel == self.C_kernel))[candidates].any())

    def _standard_error(self) -> np.ndarray:
        n_folds = sum(name.startswith("split") for name in self.results)
        return self.results["std_test_score"] / max(n_folds - 1, 1) ** 0.5

    def _paths(self) -> list[tuple[str, np.ndarray]]:
        """Return a name and the candidates, by cost, of each path."""
        C_kernels, depths = self.results["param_C_kernel"], self.results["param_depth"]
        shrinkages = self.results["param_theta_shrinkage"]
        # NaN is no depth and equals none, not even itself.
        keys = np.column_stack([C_kernels, shrinkages, np.nan_to_num(depths, nan=-1.0)])
        paths = []
        for C_kernel, shrinkage, depth in np.unique(keys, axis=0):
            found = np.flatnonzero((keys == (C_kernel, shrinkage, depth)).all(axis=1))
            names = []
            if np.unique(C_kernels).size > 1:
                names.append(f"C_kernel = {C_kernel:g}")
            if np.unique(shrinkages).size > 1:
                names.append(f"shrinkage {shrinkage:g}")
            if depth >= 0:
                names.append(f"depth {depth:.1f}")
            paths.append((", ".join(names), found[np.argsort(self.results["param_C"][found])]))
        return paths


def _digits(C: float) -> str:
    """Return three digits of a cost, without an exponent where it is of usual size."""
    rounded = float(f"{C:.3g}")
    return f"{rounded:g}" if rounded < 1e-4 or rounded > 1e6 else f"{rounded:.10g}"
