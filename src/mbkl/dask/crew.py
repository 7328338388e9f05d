"""All stores together: the same call to each, and their answers in one.

Arguments of a call may be arrays of the stores: nodes, or what has one. What a node stands for is
not computed until a call needs it: a whole chain of operations goes to the workers at once.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
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

    def __init__(self, crew: Crew, function=None, arguments: tuple = (), options=None) -> None:
        self.key = crew.new_key()
        self.function, self.options = function, options or {}
        self.arguments = tuple(getattr(each, "node", each) for each in arguments)
        weakref.finalize(self, crew.forget, self.key)

    @property
    def is_computed(self) -> bool:
        return self.function is None

    def order(self) -> Order:
        """Return what the stores need to have this; it and all it needs then count as computed."""
        if self.is_computed:
            return Order(self.key)
        arguments = tuple(map(_ordered, self.arguments))
        order = Order(self.key, self.function, arguments, self.options)
        # What nothing else refers to is forgotten from here on.
        self.function, self.arguments = None, ()
        return order


def _ordered(argument: Any) -> Any:
    """Return an argument as stores get it."""
    node = getattr(argument, "node", argument)
    return node.order() if isinstance(node, Node) else node


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

    def call(self, function: Callable | str, *arguments) -> list:
        """Call a function, or a method of the store, on every store; return all answers."""
        return self._run_all([self._prepared(function, arguments)] * self.n_stores)

    def work(self, name: str, function: Callable | str, *arguments) -> list:
        """Call what takes long, as tasks of a name that a person can read."""
        return self._gather(self._tasks(name, self._prepared(function, arguments)))

    def keep(self, name: str, function: Callable | str, *arguments) -> Node:
        """Let every store compute an array now, and keep it."""
        node = Node(self, function, arguments)
        self.work(name, nothing, node)
        return node

    def keep_each(self, values: Sequence) -> Node:
        """Let every store keep a value of its own."""
        node = Node(self)
        orders = [Order(node.key, itself, (own,)) for own in values]
        self._run_all([(nothing, (order,), ()) for order in orders])
        return node

    def exchange(
        self, name: str, divide: Callable, arguments: tuple, choose: Callable
    ) -> tuple[tuple[Node, Node], int]:
        """Let rows of all stores with the same key meet, and some of them be chosen.

        `divide` returns a part of a store's rows for each store, and `choose` which of all rows in
        such parts to take, with a value each. Every store keeps the numbers of its rows that were
        chosen, and their values; returned are these, and how many rows there are in all.
        """
        node, call = Node(self), self._prepared(divide, (*arguments, self.n_stores))
        parts = self._tasks(f"{name}-split", call)
        joined = []
        for owner in range(self.n_stores):
            own = self._each(f"{name}-part", getitem, parts, owner)
            joined.append(self._submit(f"{name}-merge", join, choose, own, place=owner))
        kept = []
        for place, store in enumerate(self._stores):
            answers = self._each(f"{name}-answer", _answer, joined, place)
            keep = (store, node.key, answers)
            kept.append(self._submit(f"{name}-keep", _keep_answers, *keep, place=place))
        counts = self._each(f"{name}-result", getitem, joined, 1)
        self._gather(kept)
        rows, values = (Node(self, getitem, (node, place)) for place in range(2))
        return (rows, values), sum(self._gather(counts))

    def _each(self, name: str, function: Callable, futures: list, argument: Any) -> list:
        """Return futures of a function of others, each where the other one is."""
        return [
            self._submit(name, function, future, argument, place=place)
            for place, future in enumerate(futures)
        ]

    def _tasks(self, name: str, call: tuple) -> list:
        """Return futures of the same call to each store."""
        return self._each(name, _run_store, self._stores, call)

    def _prepared(self, function: Callable | str, arguments: tuple) -> tuple:
        """Return what a store is to run, and to forget after that."""
        ordered = tuple(map(_ordered, arguments))
        forget, self._garbage = self._garbage, []
        return function, ordered, forget

    # What is different on a cluster: here things are done at once.

    def _run_all(self, calls: Sequence[tuple]) -> list:
        return [store.run(*call) for store, call in zip(self._stores, calls, strict=True)]

    def _submit(self, name: str, function: Callable, *arguments, place: int) -> Any:
        return function(*arguments)

    def _gather(self, futures: list) -> list:
        return futures


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
        wait_for(futures, self._check_workers)
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
        states = [future.status for future in self._futures] or ["pending"] * len(self._addresses)
        for address, state in zip(self._addresses, states, strict=True):
            if address not in there or state not in ("pending", "finished"):
                raise WorkerLostError(
                    f"The worker {address} that held a part of the rows was lost during fit, and "
                    "what it held with it. Call fit again: the data are loaded anew, onto the "
                    "workers that are there."
                ) from error


def workers_of(client: Client) -> dict:
    """Return what the scheduler knows of its workers; nothing if it is gone too."""
    return client.scheduler_info(n_workers=-1).get("workers", {})


def wait_for(futures: list, check: Callable[[], None]) -> None:
    """Wait for tasks, and check now and then that there is something to wait for."""
    patiently(partial(require("distributed", "dask").wait, futures), check)


def patiently(wait: Callable, check: Callable[[], None]) -> Any:
    """Return what is waited for; check now and then that there is something to wait for."""
    while True:
        try:
            return wait(timeout=_PATIENCE)
        except TimeoutError:
            check()


def _hold(store, piece: tuple) -> None:
    store.hold(*piece).result()


def _run_store(store, call: tuple) -> Any:
    found = store.run(*call)
    return found if isinstance(store, Store) else found.result()


def _keep_answers(store, key: int, answers: list) -> None:
    _run_store(store, (nothing, (Order(key, keep_chosen, (answers,)),), ()))


def _answer(joined: tuple, store: int) -> Any:
    return joined[0][store]
