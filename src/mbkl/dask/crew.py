"""All stores together: the same call to each, and their answers in one.

Arguments of a call may be arrays of the stores: nodes, or what has one. What a node stands for is
not computed until a call needs it: a whole chain of operations goes to the workers at once.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count, repeat
from operator import getitem
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mbkl.dask.store import Order, Store, itself, join, keep_chosen, nothing
from mbkl.extras import require

if TYPE_CHECKING:
    from distributed import Client

# Seconds after which to look whether all workers are still there; how often after an error.
_PATIENCE, _LOOKS = 1.0, 20


class WorkerLostError(RuntimeError):
    """A worker that held rows is gone, and its codes with it."""


class Node:
    """An array of the stores; until it is computed, with what it is computed from."""

    def __init__(self, crew: Crew, function=None, *arguments) -> None:
        own = tuple(getattr(each, "node", each) for each in arguments)
        self._order = Order(crew.new_key(), function, own)
        weakref.finalize(self, crew.forget, self.key)

    @property
    def key(self) -> int:
        return self._order.key

    def order(self) -> Order:
        """Return what the stores need to have this; it and all it needs then count as computed."""
        order = replace(self._order, arguments=_ordered(self._order.arguments))
        # What nothing else refers to is forgotten from here on.
        self._order = Order(self.key)
        return order


def _ordered(arguments: tuple) -> tuple:
    """Return arguments as stores get them."""
    nodes = (getattr(each, "node", each) for each in arguments)
    return tuple(node.order() if isinstance(node, Node) else node for node in nodes)


class Crew:
    """Stores as actors on the workers of a cluster.

    Of each worker's address, `pieces` has futures of the partitions that it is to hold.
    """

    def __init__(self, client: Client, pieces: dict[str, list]) -> None:
        self._client, self._addresses = client, list(pieces)
        # A name of its own for each fit: a name that is known already is not run again.
        self._name = uuid4().hex
        known = workers_of(client)
        threads = [known[address]["nthreads"] if address in known else 1 for address in pieces]
        self._begin()
        self._futures = [
            self._submit("store", Store, n_threads, place=place, actor=True)
            for place, n_threads in enumerate(threads)
        ]
        try:
            self._stores[:] = self._gather(self._futures)
            self._gather(self._each("hold", _hold, self._stores, pieces.values()))
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._stores: list = []
        self._numbers = count()
        self._garbage: list[int] = []
        # What each store begins with, until somebody takes it: rows, targets and weights.
        self.loaded: Any = tuple(Node(self) for _ in range(3))

    def close(self) -> None:
        self._client.cancel(self._futures)
        self._futures.clear()
        self._stores.clear()

    @property
    def n_stores(self) -> int:
        return len(self._stores)

    def new_key(self) -> int:
        return next(self._numbers)

    def forget(self, key: int) -> None:
        """Let the stores forget an array, at the next call."""
        self._garbage.append(key)

    def call(self, function: Callable, *arguments) -> list:
        """Call a function on every store; return all answers."""
        return self._run_all([self._prepared(function, arguments)] * self.n_stores)

    def work(self, name: str, node: Node) -> None:
        """Let every store compute now what takes long, as a task with a name that people read."""
        self._gather(self._each(name, _run, self._stores, repeat(self._prepared(nothing, (node,)))))

    def keep_each(self, values: Sequence) -> Node:
        """Let every store keep a value of its own."""
        node = Node(self)
        self._run_all([(nothing, (Order(node.key, itself, (own,)),)) for own in values])
        return node

    def exchange(
        self, name: str, divide: Callable, choose: Callable, *arguments
    ) -> tuple[Node, Node, int]:
        """Let rows of all stores with the same key meet, and some of them be chosen.

        `divide` returns a part of a store's rows for each store, and `choose` which of all rows in
        such parts to take, with a value each. Every store keeps the numbers of its rows that were
        chosen, and their values; returned are these, and how many rows there are in all.
        """
        call = self._prepared(divide, (*arguments, self.n_stores))
        every = range(self.n_stores)
        parts = self._each(f"{name}-split", _run, self._stores, repeat(call))
        met = [self._each(f"{name}-part", getitem, parts, repeat(owner)) for owner in every]
        joined = self._each(f"{name}-merge", join, repeat(choose), met)
        answers = [self._each(f"{name}-answer", getitem, joined, repeat(place)) for place in every]
        node = Node(self)
        kept = self._each(f"{name}-keep", _keep, self._stores, repeat(node.key), answers)
        n_rows = sum(self._gather(kept))
        return Node(self, getitem, node, 0), Node(self, getitem, node, 1), n_rows

    def _each(self, name: str, function: Callable, *columns: Iterable) -> list:
        """Return futures of a function on each worker, which has an entry of each column."""
        return [
            self._submit(name, function, *own, place=place)
            for place, own in enumerate(zip(*columns))
        ]

    def _prepared(self, function: Callable, arguments: tuple) -> tuple:
        """Return what a store is to run, and to forget after that."""
        ordered = _ordered(arguments)
        forget, self._garbage = self._garbage, []
        return function, ordered, forget

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
            return [patiently(future.result, self._check_workers) for future in waiting]

    def _gather(self, futures: list) -> list:
        # Tasks of a worker that is gone would wait for it forever.
        patiently(partial(require("distributed", "dask").wait, futures), self._check_workers)
        with self._naming_lost_workers():
            return self._client.gather(futures)

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
        for address, future in zip(self._addresses, self._futures, strict=True):
            if address not in there or future.status not in ("pending", "finished"):
                raise WorkerLostError(
                    f"The worker {address} that held a part of the rows was lost during fit, and "
                    "what it held with it. Call fit again: the data are loaded anew, onto the "
                    "workers that are there."
                ) from error


def workers_of(client: Client) -> dict:
    """Return what the scheduler knows of its workers; nothing if it is gone too."""
    return client.scheduler_info(n_workers=-1).get("workers", {})


def patiently(wait: Callable, check: Callable[[], None]) -> Any:
    """Return what is waited for; check now and then that there is something to wait for."""
    while True:
        try:
            return wait(timeout=_PATIENCE)
        except TimeoutError:
            check()


def _hold(store, pieces: list) -> None:
    store.hold(pieces).result()


def _run(store, call: tuple) -> Any:
    return store.run(*call).result()


def _keep(store, key: int, answers: list) -> int:
    """Let a store keep which of its rows were chosen; return how many these are."""
    chosen = keep_chosen(answers)
    _run(store, (nothing, (Order(key, itself, (chosen,)),)))
    return chosen[0].size
