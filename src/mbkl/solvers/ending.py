"""When an interior-point method ends, and how it follows the central path."""

from __future__ import annotations

from mbkl.solvers.problem import Progress, Solution

# At very high costs the rows on the margin change with every step, and progress can end
# before the gap closes.
_PATIENCE = 30


class Ending:
    """Says whether a solution of one column is good enough, or not going to improve.

    Parameters
    ----------
    tol, max_iter, progress
        See `mbkl.solvers.problem`.
    """

    def __init__(self, tol: float, max_iter: int, progress: Progress) -> None:
        self._tol, self._max_iter, self._progress = tol, max_iter, progress
        self._objectives: list[float] = []

    def is_here(self, solution: Solution) -> bool:
        """Say whether to stop; to be asked once an iteration."""
        self._objectives.append(float(solution.objective[0]))
        return bool(
            self._progress(solution)
            or solution.is_within(self._tol).all()
            or self._stagnates()
            or solution.n_iter >= self._max_iter
        )

    def _stagnates(self) -> bool:
        """Tell whether the objective has hardly changed for many iterations."""
        if len(self._objectives) <= _PATIENCE:
            return False
        before, now = self._objectives[-_PATIENCE], self._objectives[-1]
        return abs(before - now) < 1e-5 * now


def next_centring(length: float) -> float:
    """Aim far down the central path after long steps, stay near it after short ones."""
    if length > 0.9:
        return 0.05
    if length > 0.7:
        return 0.1
    return 0.3 if length > 0.3 else 0.7
