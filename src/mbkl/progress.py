"""Stages of a fit: timed, shown when asked for, and open to scikit-learn's callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in: this scikit-learn has no callbacks."""

    def with_callbacks(method):
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]


class Progress:
    """Time the stages of one fit, print them, and call the estimator's callbacks.

    Parameters
    ----------
    estimator : estimator
        Its `verbose` decides what is printed: 1 for stages, 2 for iterations.
    """

    def __init__(self, estimator) -> None:
        self.timings: dict[str, float] = {}
        self._nested: list[float] = []
        self._estimator = estimator
        self._began = time.perf_counter()
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator)

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[..., bool]]:
        """Run one stage; yields a function to call once an iteration with its solution.

        That function returns True when a callback asks to stop.
        """
        began = time.perf_counter()
        context = None
        if self._context is not None:
            context = self._context.subcontext(task_name=name, max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self._estimator)

        def iteration(solution) -> bool:
            if self._estimator.verbose > 1:
                print(
                    f"[mbkl]   {name}, iteration {solution.n_iter}: "
                    f"relative gap {solution.relative_gap:.1e}",
                    flush=True,
                )
            if context is None:
                return False
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self._estimator)
            return bool(task.call_on_fit_task_end(estimator=self._estimator))

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
