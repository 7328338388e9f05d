"""Stages of a fit: timed, shown when asked for, and open to scikit-learn's callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mbkl.learn.checkpoint import Checkpoint

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in: this scikit-learn has no callbacks."""

    def with_callbacks(method):
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]

T = TypeVar("T")


class Progress:
    """Time the stages of one fit, print them, and call the estimator's callbacks.

    The estimator's `verbose` decides what is printed: 1 for stages, 2 for iterations. Its
    `max_time`, if it has one, is when solvers are told to stop. Stages that are `saved` need not
    be run again.
    """

    def __init__(self, estimator, saved: Checkpoint | None = None) -> None:
        self._saved = saved
        self.timings: dict[str, float] = {}
        self._nested: list[float] = []
        self._estimator = estimator
        self._began = time.perf_counter()
        self._max_time = getattr(estimator, "max_time", None)
        self._stopped_by_callback = False
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator)

    def used(self) -> float:
        """Return the share of the time allowed that is used; zero if there is no limit."""
        if self._max_time is None:
            return 0.0
        return (time.perf_counter() - self._began) / self._max_time

    def reason_to_stop(self) -> str | None:
        """Return why solvers are to end with what they have, or None."""
        if self._stopped_by_callback:
            return "a callback asked to"
        return f"max_time={self._max_time:g} s is over" if self.used() >= 1.0 else None

    def recall(self, stage: str, kind: type[T], compute: Callable[[], T]) -> T:
        """Return the result of a stage, from the checkpoint where it is there."""
        if self._saved is None:
            return compute()
        return self._saved.recall(stage, kind, compute, lambda: self.reason_to_stop() is None)

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[..., bool]]:
        """Run one stage; yields a function to call once an iteration with its solution.

        That function returns True when the solver is to stop: a callback asked to, in
        this stage or before, or the time is over. Every solver makes one step at least.
        """
        began = time.perf_counter()
        context = None
        if self._context is not None:
            context = self._context.subcontext(task_name=name, max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self._estimator)

        def iteration(solution) -> bool:
            if self._estimator.verbose > 1:
                print(
                    f"[mbkl]   {name}, iteration {solution.n_iter}: {solution.standing}",
                    flush=True,
                )
            if context is not None:
                task = context.subcontext(task_name="iteration")
                task.call_on_fit_task_begin(estimator=self._estimator)
                wish = task.call_on_fit_task_end(estimator=self._estimator)
                self._stopped_by_callback |= bool(wish)
            return solution.n_iter > 0 and self.reason_to_stop() is not None

        self._nested.append(0.0)
        try:
            yield iteration
        finally:
            if context is not None:
                context.call_on_fit_task_end(estimator=self._estimator)
            elapsed = time.perf_counter() - began
            # A stage within a stage counts once.
            own = elapsed - self._nested.pop()
            if self._nested:
                self._nested[-1] += elapsed
            self.timings[name] = self.timings.get(name, 0.0) + own
        if self._estimator.verbose:
            print(f"[mbkl] {name}: {elapsed:.2f} s", flush=True)

    def finish(self) -> dict[str, float]:
        """End the fit; return the seconds of each stage and of the whole."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)
        return {**self.timings, "total": time.perf_counter() - self._began}
