"""Fits compared with the way of the paper: the matrix of the same maps, and liblinear.

Shows how many times faster `MBKLClassifier.fit` is at equal objective, for the shape
of Daimler and for 5,000 rows of 200 features. One command:

    python -m benchmarks.speed.against_paper
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from benchmarks.common import (
    PAPER_FORM,
    markdown_table,
    parse,
    percent,
    plain_log_ticks,
    record,
    say,
    start,
)
from benchmarks.data import Dataset, daimler_hog, gaussian_dataset
from mbkl import MBKLClassifier, MBKLClassifierCV
from mbkl.engine import choose_loops
from mbkl.engine.rows import ArrayRows
from mbkl.maps import Stumps

COMMAND = "python -m benchmarks.speed.against_paper"
STAGES = ("maps", "Step 1", "Step 2")
TOLERANCES = (1e-2, 1e-3, 1e-4)
SCIKIT_LEARN_TOLERANCE = 1e-4
EQUAL = 1e-3
SEED = 0
# mbkl multiplies the mean loss by this; liblinear minimises the sum of the losses.
REFERENCE_ROWS = 1000
# liblinear penalises the intercept: 1 is scikit-learn's default; larger values make
# the penalty negligible, and liblinear slower.
INTERCEPT_SCALINGS = (1.0,)
# Limit of the iterations of liblinear.
MAX_ITERATIONS = 5_000
_BLOCK = 1_000


class Costs(NamedTuple):
    """C_kernel, the cost of Step 1, and C, that of Step 2."""

    kernel: float
    classifier: float

    def __str__(self) -> str:
        if self.kernel == self.classifier:
            return f"{self.classifier:g}"
        return f"{self.kernel:g} and {self.classifier:g}"


FIXED_COSTS = (Costs(1.0, 1.0),)


@dataclass(frozen=True)
class Problem:
    """A data set, the maps drawn for it and the costs to fit it with."""

    data: Dataset
    n_maps: int
    features: NDArray[np.intp]
    thresholds: NDArray[np.float64]
    fixed: tuple[Costs, ...]
    chosen: Costs

    @property
    def name(self) -> str:
        return f"{self.data.name}, {self.data.shape}, K = {self.n_maps:,}"

    @property
    def all_costs(self) -> list[Costs]:
        return sorted({*self.fixed, self.chosen})

    @property
    def labels(self) -> NDArray[np.float64]:
        """+1 for the second class and -1 for the first."""
        return np.where(self.data.y_train == self.data.y_train.max(), 1.0, -1.0)


@dataclass
class Outcome:
    """One fit: seconds by stage, objectives, and quality of the model.

    Parameters
    ----------
    way : str
    stages : dict
        Seconds of each stage.
    total : float
        Seconds of the whole fit.
    step_1 : float
        Objective of Step 1, with theta >= 0.
    step_2 : float
        Objective of Step 2 with the kernel that mbkl learned, for all ways.
    n_kept : int
    accuracy : float
        On the test rows.
    details : dict
        Values that only one of the ways has.
    """

    way: str
    stages: dict[str, float]
    total: float
    step_1: float
    step_2: float
    n_kept: int
    accuracy: float
    details: dict = field(default_factory=dict)


# ---------------------------------------------------------------- the problem


def pose(data: Dataset, n_maps: int, quick: bool) -> Problem:
    """Draw the maps that `fit` draws, and choose the costs on a part of the rows."""
    seed = int(check_random_state(SEED).randint(2**31 - 1))
    weights = np.ones(len(data.y_train))
    rows = ArrayRows(data.X_train, choose_loops(data.X_train.size))
    maps, _ = Stumps().fit_codes(rows, weights, n_maps, seed)
    part = data.first(500 if quick else 3_000)
    search = MBKLClassifierCV(**PAPER_FORM, cv=3, n_maps=n_maps, random_state=SEED)
    if quick:
        search.set_params(Cs=(0.01, 0.1), C_kernels=(0.1,))
    search.fit(part.X_train, part.y_train)
    chosen = Costs(search.C_kernel_, search.C_)
    say(f"{data.name}: costs {chosen} chosen by cross-validation")
    fixed = FIXED_COSTS[:1] if quick else FIXED_COSTS
    return Problem(data, n_maps, maps.stump_features, maps.edges.thresholds, fixed, chosen)


# ---------------------------------------------------------------- our way


def fit_ours(problem: Problem, costs: Costs, repeats: int) -> tuple[Outcome, MBKLClassifier]:
    """Fit with mbkl, after a warm-up; the times are medians."""
    data = problem.data
    settings = {"n_maps": problem.n_maps, "C_kernel": costs.kernel, "C": costs.classifier}
    settings |= {**PAPER_FORM, "random_state": SEED}
    model = MBKLClassifier(**settings).fit(data.X_train, data.y_train)
    timings, totals, totals_of_one_thread = [], [], []
    for _ in range(repeats):
        began = time.perf_counter()
        model = MBKLClassifier(**settings).fit(data.X_train, data.y_train)
        totals.append(time.perf_counter() - began)
        timings.append(model.timings_)
        began = time.perf_counter()
        MBKLClassifier(**settings, n_jobs=1).fit(data.X_train, data.y_train)
        totals_of_one_thread.append(time.perf_counter() - began)
    stages = {
        "maps": _median_stage(timings, "binary maps"),
        "Step 1": _median_stage(timings, "initial guess", "kernel weights"),
        "Step 2": _median_stage(timings, "classifier weights"),
    }
    outcome = Outcome(
        "mbkl",
        stages,
        statistics.median(totals),
        float(model.objective_[0]),
        float(model.objective_[1]),
        model.n_maps_,
        model.score(data.X_test, data.y_test),
        {"one thread": statistics.median(totals_of_one_thread)},
    )
    return outcome, model


def _median_stage(timings: list[dict[str, float]], *names: str) -> float:
    return statistics.median(sum(timing.get(name, 0.0) for name in names) for timing in timings)


# ---------------------------------------------------------------- the paper's way


@dataclass(frozen=True)
class Setting:
    """Parameters of liblinear."""

    tolerance: float
    intercept_scaling: float

    @property
    def name(self) -> str:
        return f"liblinear, tolerance {self.tolerance:g}, intercept x {self.intercept_scaling:g}"

    def solver(self, cost: float, penalty: str = "l2") -> LinearSVC:
        return LinearSVC(
            penalty=penalty,
            loss="squared_hinge",
            dual=False,
            C=cost,
            tol=self.tolerance,
            intercept_scaling=self.intercept_scaling,
            max_iter=MAX_ITERATIONS,
            random_state=SEED,
        )


SETTINGS = tuple(Setting(t, scaling) for t in TOLERANCES for scaling in INTERCEPT_SCALINGS)
USUAL = Setting(SCIKIT_LEARN_TOLERANCE, 1.0)


@dataclass(frozen=True)
class Materialised:
    """All maps on all training rows, and the signs of Step 0."""

    maps: NDArray[np.float64]
    signs: NDArray[np.float64]
    seconds: float


def materialise(problem: Problem) -> Materialised:
    """Form the matrix of the maps, +1 and -1, times the sign of each map from Step 0."""
    began = time.perf_counter()
    X, labels = problem.data.X_train, problem.labels
    maps = np.empty((len(X), problem.features.size))
    for first in range(0, len(X), _BLOCK):
        rows = slice(first, first + _BLOCK)
        right = X[rows][:, problem.features] > problem.thresholds
        maps[rows] = np.where(right, 1.0, -1.0)
    balance = np.where(labels > 0, 1 / (labels > 0).sum(), -1 / (labels < 0).sum())
    signs = np.sign(np.round(balance @ maps, 12))
    maps *= signs
    return Materialised(maps, signs, time.perf_counter() - began)


def fit_paper_way(
    problem: Problem, matrix: Materialised, costs: Costs, setting: Setting, ours: MBKLClassifier
) -> Outcome:
    """Run Steps 1 and 2 with liblinear."""
    labels = problem.labels
    cost_1 = costs.kernel * REFERENCE_ROWS / len(labels)
    cost_2 = costs.classifier * REFERENCE_ROWS / len(labels)
    began = time.perf_counter()
    step_1 = setting.solver(cost_1, penalty="l1").fit(matrix.maps, labels)
    seconds_of_step_1 = time.perf_counter() - began
    weights = step_1.coef_[0]

    began = time.perf_counter()
    kept = np.flatnonzero(weights > 0)
    theta = weights[kept] / weights[kept].sum()
    step_2 = setting.solver(cost_2)
    step_2.fit(matrix.maps[:, kept] * np.sqrt(theta / 2), labels)
    seconds_of_step_2 = time.perf_counter() - began

    stages = {"maps": matrix.seconds, "Step 1": seconds_of_step_1, "Step 2": seconds_of_step_2}
    jumps = step_2.coef_[0] * np.sqrt(theta / 2) * matrix.signs[kept]
    return Outcome(
        setting.name,
        stages,
        sum(stages.values()),
        _objective_of_step_1(matrix.maps, np.maximum(weights, 0), labels, cost_1),
        _step_2_with_our_kernel(problem, matrix, cost_2, setting, ours),
        kept.size,
        _accuracy(problem, kept, jumps, float(step_2.intercept_[0])),
        {
            "setting": setting,
            "gave up": max(int(step_1.n_iter_), int(step_2.n_iter_)) >= MAX_ITERATIONS,
            "own step 1": _objective_of_step_1(matrix.maps, weights, labels, cost_1),
            "negative": int((weights < 0).sum()),
        },
    )


def _step_2_with_our_kernel(
    problem: Problem,
    matrix: Materialised,
    cost: float,
    setting: Setting,
    ours: MBKLClassifier,
) -> float:
    """Return liblinear's objective of Step 2 on the kernel of mbkl; its time does not count."""
    features = matrix.maps[:, _positions(problem, ours)] * np.sqrt(ours.theta_ / 2)
    model = setting.solver(cost).fit(features, problem.labels)
    weights = model.coef_[0]
    loss = _least_loss(features @ weights, problem.labels)
    return float(weights @ weights) / 2 + cost * loss


def _positions(problem: Problem, model: MBKLClassifier) -> NDArray[np.intp]:
    """Return the indices of the kept maps of a model among the drawn ones."""
    drawn = {key: k for k, key in enumerate(zip(problem.features, problem.thresholds))}
    kept = zip(model.stump_features_, model.stump_thresholds_)
    return np.array([drawn[key] for key in kept], dtype=np.intp)


def _objective_of_step_1(maps, weights, labels, cost: float) -> float:
    return float(np.abs(weights).sum()) + cost * _least_loss(maps @ weights, labels)


def _least_loss(scores: NDArray, labels: NDArray) -> float:
    """Return the sum of squared hinge losses at the best intercept."""

    def slope(intercept: float) -> float:
        return -float(labels @ np.maximum(0.0, 1.0 - labels * (scores + intercept)))

    far = float(np.abs(scores).max()) + 2.0
    intercept = brentq(slope, -far, far, xtol=1e-12)
    return float((np.maximum(0.0, 1.0 - labels * (scores + intercept)) ** 2).sum())


def _accuracy(problem: Problem, kept: NDArray, jumps: NDArray, intercept: float) -> float:
    """Return the accuracy on the test rows of a sum of jumps over the kept maps."""
    data, right = problem.data, 0
    features, thresholds = problem.features[kept], problem.thresholds[kept]
    for first in range(0, len(data.y_test), _BLOCK):
        rows = slice(first, first + _BLOCK)
        maps = np.where(data.X_test[rows][:, features] > thresholds, 1.0, -1.0)
        second_class = maps @ jumps + intercept > 0
        right += int((second_class == (data.y_test[rows] == data.y_train.max())).sum())
    return right / len(data.y_test)


# ---------------------------------------------------------------- comparison


@dataclass
class Comparison:
    """All fits of one problem at some costs."""

    problem: Problem
    costs: Costs
    ours: Outcome
    theirs: list[Outcome]

    def reaches_ours(self, outcome: Outcome) -> bool:
        """Say whether both objectives are at most 0.1 % above ours."""
        return (
            outcome.step_1 <= (1 + EQUAL) * self.ours.step_1
            and outcome.step_2 <= (1 + EQUAL) * self.ours.step_2
        )

    @property
    def rival(self) -> Outcome:
        """The fastest setting at equal objective; scikit-learn's defaults where none is."""
        equal = [outcome for outcome in self.theirs if self.reaches_ours(outcome)]
        usual = [outcome for outcome in self.theirs if outcome.details["setting"] == USUAL]
        return min(equal or usual, key=lambda outcome: outcome.total)

    @property
    def careful_rival(self) -> Outcome:
        """The fastest setting within 0.1 % of where liblinear itself ends up.

        Judged by liblinear's own Step 1, without theta >= 0.
        """
        best = min(outcome.details["own step 1"] for outcome in self.theirs)
        near = [o for o in self.theirs if o.details["own step 1"] <= (1 + EQUAL) * best]
        return min(near, key=lambda outcome: outcome.total)


def compare(problem: Problem, repeats: int) -> list[Comparison]:
    """Fit both ways at all costs."""
    fitted = {}
    for costs in problem.all_costs:
        fitted[costs] = fit_ours(problem, costs, repeats)
        say(f"{problem.name}, C = {costs}: mbkl {fitted[costs][0].total:.3f} s")
    matrix = materialise(problem)
    say(f"maps materialised in {matrix.seconds:.1f} s, {matrix.maps.nbytes / 1e9:.2f} GB")
    comparisons = []
    for costs, (ours, model) in fitted.items():
        theirs = []
        for setting in SETTINGS:
            theirs.append(fit_paper_way(problem, matrix, costs, setting, model))
            say(f"C = {costs}: {theirs[-1].way} {theirs[-1].total:.1f} s")
        comparisons.append(Comparison(problem, costs, ours, theirs))
    return comparisons


def _summary(comparison: Comparison) -> dict:
    ours, rival, careful = comparison.ours, comparison.rival, comparison.careful_rival
    chosen = " (chosen)" if comparison.costs == comparison.problem.chosen else ""
    return {
        "problem": comparison.problem.name,
        "C": f"{comparison.costs}{chosen}",
        "mbkl, s": ours.total,
        "mbkl, 1 thread, s": ours.details["one thread"],
        "paper's way, s": rival.total,
        "times faster": rival.total / ours.total,
        "compared with": rival.way,
        "our objective": "reached" if comparison.reaches_ours(rival) else "not reached",
        "times faster, careful": careful.total / ours.total,
        "careful: compared with": careful.way,
        "test accuracy, mbkl": percent(ours.accuracy),
        "paper's way": percent(rival.accuracy),
    }


def _details(comparison: Comparison) -> list[dict]:
    rows = []
    for outcome in (comparison.ours, *comparison.theirs):
        details = outcome.details
        rows.append(
            {
                "problem": comparison.problem.data.shape,
                "C": str(comparison.costs),
                "way": outcome.way + (" (gave up)" if details.get("gave up") else ""),
                **{f"{stage}, s": outcome.stages[stage] for stage in STAGES},
                "total, s": outcome.total,
                "Step 1 objective": f"{outcome.step_1:.4f}",
                "without theta ≥ 0": f"{details['own step 1']:.4f}"
                if "own step 1" in details
                else "-",
                "negative weights": details.get("negative", 0),
                "Step 2 objective": f"{outcome.step_2:.4f}",
                "maps kept": outcome.n_kept,
                "test accuracy": percent(outcome.accuracy),
            }
        )
    return rows


def _plot(comparisons: list[Comparison]) -> Figure:
    """Draw the stages of both ways, at the chosen costs of each problem."""
    shown = [c for c in comparisons if c.costs == c.problem.chosen]
    figure = Figure(figsize=(6.5 * len(shown), 5.2), layout="constrained")
    for axes, comparison in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown):
        places = np.arange(len(STAGES) + 1)
        for shift, outcome in ((-0.2, comparison.rival), (0.2, comparison.ours)):
            heights = [*(outcome.stages[stage] for stage in STAGES), outcome.total]
            name = "mbkl" if outcome is comparison.ours else f"paper's way ({outcome.way})"
            bars = axes.bar(places + shift, heights, width=0.4, label=name)
            axes.bar_label(bars, fmt="%.3g s", fontsize=8)
        axes.set_xticks(places, ["maps: matrix\nor codes", "Step 1", "Step 2", "whole fit"])
        axes.set_yscale("log")
        plain_log_ticks(axes.yaxis)
        axes.margins(y=0.1)
        axes.set_ylabel("time (seconds, logarithmic)")
        axes.set_title(f"{comparison.problem.name}, C = {comparison.costs}", fontsize=10)
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    return figure


NOTES = (
    "Where two costs are given, the first is that of Step 1 (C_kernel) and the second that of "
    "Step 2 (C). 'Chosen': by cross-validation on a part of the training rows.",
    "Both ways use the same maps, drawn by mbkl; equal ones are merged for both.",
    "mbkl: median of {repeats} fits after a warm-up, all cores unless stated. liblinear: one "
    "run through scikit-learn's LinearSVC, one thread, its only mode; its Step 0 and the "
    "matrix of the maps are in 'maps'.",
    "Step 1 objective: sum of theta + 1000 C_kernel mean loss with the best intercept. liblinear "
    "does not know theta ≥ 0; its negative weights are set to zero, as in the paper, and the "
    "objective is that of the kernel which is then used. 'Without theta ≥ 0' is what "
    "liblinear itself minimises, which can be lower than any kernel allows.",
    "Step 2 objective: both solvers on the same kernel, that of mbkl. The time of liblinear is "
    "that of Step 2 on its own kernel.",
    "'Times faster' takes the fastest setting of liblinear at which both objectives are at "
    "most 0.1 % above those of mbkl, or scikit-learn's defaults where none is. 'Careful' "
    "takes the fastest one whose own Step 1 is within 0.1 % of liblinear's best here.",
    "'Intercept x' is scikit-learn's intercept_scaling: liblinear penalises the intercept, "
    "less so where this is large.",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison and record it."""
    quick = parse(__doc__, arguments).quick
    warnings.simplefilter("ignore", ConvergenceWarning)
    repeats = 2 if quick else 5
    if quick:
        problems = [(daimler_hog().first(2_500, 40), 300), (gaussian_dataset(600, 30), 300)]
    else:
        problems = [(daimler_hog(), 10_000), (gaussian_dataset(5_000, 200), 4_000)]
    comparisons = []
    for data, n_maps in problems:
        comparisons += compare(pose(data, n_maps, quick), repeats)
    summary = markdown_table(_summary(comparison) for comparison in comparisons)
    details = markdown_table(row for comparison in comparisons for row in _details(comparison))
    record(
        "against_paper",
        COMMAND,
        f"{summary}\n\nAll runs:\n\n{details}",
        [note.format(repeats=repeats) for note in NOTES],
        _plot(comparisons),
        title="Fit against the paper's way",
        quick=quick,
    )


if __name__ == "__main__":
    raise SystemExit(start(main))
