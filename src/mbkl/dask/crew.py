"""All stores together: the same call to each, and their answers in one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mbkl.dask.store import Instruction, Store
from mbkl.extras import require

if TYPE_CHECKING:
    from distributed import Client

# Seconds after which to look whether all workers are still there; how often after an error.
_PATIENCE, _LOOKS = 1.0, 20


class WorkerLostError(RuntimeError):
    """A worker that held rows is gone, and its codes with it."""


class Crew:
    """Stores in this process: for tests, and what `DaskCrew` has in common with them."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self._stores = list(stores)
        self._numbers = itertools.count()
        self._garbage: list[int] = []

    @property
    def n_stores(self) -> int:
        return len(self._stores)

    def new_key(self) -> int:
        """Return a name for a new array of the stores."""
        return next(self._numbers)

    def forget(self, key: int) -> None:
        """Let the stores forget an array, at the next call."""
        self._garbage.append(key)

    def call(self, method: str, *arguments, program: Sequence[Instruction] = ()) -> list:
        """Call a method of every store, after the instructions; return all answers."""
        return self.call_each(method, [arguments] * self.n_stores, program)

    def call_each(
        self, method: str, arguments: Sequence[tuple], program: Sequence[Instruction] = ()
    ) -> list:
        """Call a method with arguments that are each store's own."""
        forget, self._garbage = self._garbage, []
        return self._run_all([(program, method, own, forget) for own in arguments])

    def work(self, name: str, method: str, *arguments) -> list:
        """Call a method that takes long, as tasks of a name that a person can read."""
        return self.call(method, *arguments)

    def exchange(
        self, name: str, split: str, arguments: tuple, merge: Callable[[list], tuple[list, Any]]
    ) -> tuple[list[list], list]:
        """Let the stores send each other parts, which are merged, and answers back.

        `split` is the method that returns a part for each store, and `merge` turns the parts of
        all stores for one of them into an answer for each, and a result. Returned are for each
        store the answers of all, and the results.
        """
        parts = self.call(split, *arguments, self.n_stores)
        merged = [merge(list(own)) for own in zip(*parts, strict=True)]
        answers = [[answer[store] for answer, _ in merged] for store in range(self.n_stores)]
        return answers, [result for _, result in merged]

    def answered(self, name: str, method: str, answers: Sequence[list], *arguments) -> list:
        """Call a method with what an exchange answered, and other arguments."""
        return self.call_each(method, [(own, *arguments) for own in answers])

    def _run_all(self, calls: Sequence[tuple]) -> list:
        return [store.run(*call) for store, call in zip(self._stores, calls, strict=True)]


def local_crew(pieces: Sequence[tuple]) -> Crew:
    """Return stores in this process, one for each partition."""
    stores = [Store() for _ in pieces]
    for store, piece in zip(stores, pieces, strict=True):
        store.hold(*piece)
    return Crew(stores)


class DaskCrew(Crew):
    """Stores as actors on the workers of a cluster.

    Of each worker's address, `pieces` has futures of the partitions that it is to hold.
    """

    def __init__(self, client: Client, pieces: dict[str, list]) -> None:
        self._client = client
        self._addresses = list(pieces)
        self._futures: list = []
        threads = {address: worker["nthreads"] for address, worker in workers_of(client).items()}
        # A name of its own for each fit: a name that is known already is not run again.
        self._name = uuid4().hex
        super().__init__([])
        try:
            self._start(pieces, threads)
        except BaseException:
            self.close()
            raise

    def _start(self, pieces: dict[str, list], threads: dict[str, int]) -> None:
        """Make the stores, and hand them their partitions."""
        self._futures = [
            self._submit("store", Store, threads.get(address, 1), place=place, actor=True)
            for place, address in enumerate(pieces)
        ]
        self._stores = self._gather(self._futures)
        for own in zip_longest(*pieces.values()):
            # One partition a worker at a time: it is there twice while it changes hands.
            self._gather(
                [
                    self._submit("hold", _hold, self._stores[place], piece, place=place)
                    for place, piece in enumerate(own)
                    if piece is not None
                ]
            )

    def close(self) -> None:
        """Let the workers forget the stores, also where an error still refers to them."""
        self._client.cancel(self._futures)
        self._futures.clear()
        self._stores.clear()

    def work(self, name: str, method: str, *arguments) -> list:
        forget, self._garbage = self._garbage, []
        tasks = [
            self._submit(name, _run_store, store, ((), method, arguments, forget), place=number)
            for number, store in enumerate(self._stores)
        ]
        return self._gather(tasks)

    def exchange(self, name, split, arguments, merge) -> tuple[list[list], list]:
        every = range(self.n_stores)
        call = ((), split, (*arguments, self.n_stores), ())
        parts = [
            self._submit(f"{name}-split", _run_store, store, call, place=number)
            for number, store in enumerate(self._stores)
        ]
        merged = []
        for owner in every:
            own = [self._submit(f"{name}-part", _item, part, owner, place=place)
                   for place, part in enumerate(parts)]  # fmt: skip
            merged.append(self._submit(f"{name}-merge", merge, own, place=owner))
        answers = [
            [self._submit(f"{name}-answer", _answer, each, store, place=place)
             for place, each in enumerate(merged)]
            for store in every
        ]  # fmt: skip
        results = [self._submit(f"{name}-result", _item, each, 1, place=place)
                   for place, each in enumerate(merged)]  # fmt: skip
        self._wait([future for own in answers for future in own])
        return answers, self._gather(results)

    def answered(self, name, method, answers, *arguments) -> list:
        tasks = [
            self._submit(name, _run_with, store, method, own, arguments, place=number)
            for number, (store, own) in enumerate(zip(self._stores, answers, strict=True))
        ]
        return self._gather(tasks)

    def _submit(self, name: str, function: Callable, *arguments, place: int, actor: bool = False):
        return self._client.submit(
            function,
            *arguments,
            workers=[self._addresses[place]],
            key=(f"mbkl-{name}", self._name, self.new_key()),
            actor=actor,
        )

    def _run_all(self, calls: Sequence[tuple]) -> list:
        with self._naming_lost_workers():
            waiting = [store.run(*call) for store, call in zip(self._stores, calls, strict=True)]
            return [self._result(future) for future in waiting]

    def _result(self, future) -> Any:
        """Return the answer of a store; look now and then whether all are still there."""
        while True:
            try:
                return future.result(timeout=_PATIENCE)
            except TimeoutError:
                self._check_workers()

    def _gather(self, futures: list) -> list:
        self._wait(futures)
        with self._naming_lost_workers():
            return self._client.gather(futures)

    def _wait(self, futures: list) -> None:
        """Wait for tasks; those of a worker that is gone would wait for it forever."""
        wait_for(futures, self._check_workers)

    @contextmanager
    def _naming_lost_workers(self) -> Iterator[None]:
        """Turn errors that come of a lost worker into one that says so."""
        try:
            yield
        except WorkerLostError:
            raise
        except (OSError, RuntimeError) as error:
            # A closed connection is known here a moment before the scheduler takes note.
            for _ in range(_LOOKS):
                self._check_workers(error)
                time.sleep(_PATIENCE / 4)
            raise

    def _check_workers(self, error: Exception | None = None) -> None:
        """Raise an error that names a worker that is gone, or was and is back without rows."""
        there = workers_of(self._client)
        states = [future.status for future in self._futures] or ["pending"] * len(self._addresses)
        for address, state in zip(self._addresses, states, strict=True):
            if address not in there or state not in ("pending", "finished"):
                raise lost(address) from error


def workers_of(client: Client) -> dict:
    """Return what the scheduler knows of its workers; nothing if it is gone too."""
    return client.scheduler_info(n_workers=-1).get("workers", {})


def wait_for(futures: list, check: Callable[[], None]) -> None:
    """Wait for tasks, and check now and then that there is something to wait for."""
    wait = require("distributed", "dask").wait
    while True:
        try:
            wait(futures, timeout=_PATIENCE)
            return
        except TimeoutError:
            check()


def lost(address: str) -> WorkerLostError:
    """Return the error that says that a worker is gone."""
    return WorkerLostError(
        f"The worker {address} that held a part of the rows was lost during fit, and what it held "
        "with it. Call fit again: the data are loaded anew, onto the workers that are there."
    )


def _hold(store, piece: tuple) -> None:
    store.hold(*piece).result()


def _run_store(store, call: tuple) -> Any:
    return store.run(*call).result()


def _run_with(store, method: str, own: list, arguments: tuple) -> Any:
    return store.run((), method, (own, *arguments), ()).result()


def _item(values: Sequence, position: int) -> Any:
    return values[position]


def _answer(merged: tuple, store: int) -> Any:
    return merged[0][store]
