"""All stores of a cluster: the same call goes to each, and their answers are returned together.

Arguments of a call may be nodes, which stand for arrays of the stores, or have an attribute `node`.
Nodes are lazy: a chain of operations goes to the workers at once, when a call needs its result.
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

from mbkl.dask.store import Expression, Store, choose_rows, chosen_of_store, identity, nothing
from mbkl.extras import require

if TYPE_CHECKING:
    from distributed import Client

# Seconds between checks that all workers are there, and number of checks after an error.
_PATIENCE, _CHECKS = 1.0, 20


class WorkerLostError(RuntimeError):
    """A worker was lost together with the rows and codes that it held."""


class Node:
    """An array that each store has a part of; computed when a call needs it."""

    def __init__(self, crew: Crew, function=None, *arguments) -> None:
        nodes = tuple(getattr(each, "node", each) for each in arguments)
        self._expression = Expression(crew.new_key(), function, nodes)
        weakref.finalize(self, crew.forget, self.key)

    @property
    def key(self) -> int:
        return self._expression.key

    def expression(self) -> Expression:
        """Return the expression to send to the stores; the node then counts as computed."""
        arguments = _with_expressions(self._expression.arguments)
        expression = replace(self._expression, arguments=arguments)
        # Drop the references to arguments, so that nodes without other references are forgotten.
        self._expression = Expression(self.key)
        return expression


def _with_expressions(arguments: tuple) -> tuple:
    """Return arguments with nodes replaced by their expressions."""
    nodes = (getattr(each, "node", each) for each in arguments)
    return tuple(node.expression() if isinstance(node, Node) else node for node in nodes)


class Crew:
    """Stores as actors on the workers of a cluster.

    `pieces` has, for the address of each worker, futures of the partitions that it will hold.
    """

    def __init__(self, client: Client, pieces: dict[str, list]) -> None:
        self._client, self._addresses = client, list(pieces)
        # Unique for each fit: Dask does not run a task again whose key it knows.
        self._name = uuid4().hex
        workers = workers_of(client)
        threads = [workers[address]["nthreads"] if address in workers else 1 for address in pieces]
        self._begin()
        self._futures = [
            self._submit("store", Store, n_threads, place=place, actor=True)
            for place, n_threads in enumerate(threads)
        ]
        try:
            self._stores[:] = self._gather(self._futures)
            self._gather(self._submit_each("hold", _hold, self._stores, pieces.values()))
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._stores: list = []
        self._keys = count()
        self._forgotten: list[int] = []
        # Nodes of the rows, targets and weights of each store, until `RemoteMatrix` takes them.
        self.loaded: Any = tuple(Node(self) for _ in range(3))

    def close(self) -> None:
        self._client.cancel(self._futures)
        self._futures.clear()
        self._stores.clear()

    @property
    def n_stores(self) -> int:
        return len(self._stores)

    def new_key(self) -> int:
        return next(self._keys)

    def forget(self, key: int) -> None:
        """Let the stores delete an array at the next call."""
        self._forgotten.append(key)

    def call(self, function: Callable, *arguments) -> list:
        """Call a function on every store; return all answers."""
        return self._run_all([self._message(function, arguments)] * self.n_stores)

    def work(self, name: str, node: Node) -> None:
        """Compute a node now, as tasks with a name that the dashboard of Dask shows."""
        call = self._message(nothing, (node,))
        self._gather(self._submit_each(name, _run, self._stores, repeat(call)))

    def keep_each(self, values: Sequence) -> Node:
        """Return a node of which each store has one of the values."""
        node = Node(self)
        expressions = [Expression(node.key, identity, (value,)) for value in values]
        self._run_all([(nothing, (expression,)) for expression in expressions])
        return node

    def exchange(
        self, name: str, divide: Callable, choose: Callable, *arguments
    ) -> tuple[Node, Node, int]:
        """Choose rows among all rows with the same key, wherever they are (a shuffle by key).

        `divide` splits the rows of a store into a part for each store, and `choose` returns which
        rows of the parts for one store to take, with a value each. Returned are nodes of the row
        numbers and of the values of the chosen rows of each store, and their total number.
        """
        call = self._message(divide, (*arguments, self.n_stores))
        stores = range(self.n_stores)
        parts = self._submit_each(f"{name}-split", _run, self._stores, repeat(call))
        by_key = [self._submit_each(f"{name}-part", getitem, parts, repeat(n)) for n in stores]
        chosen = self._submit_each(f"{name}-merge", choose_rows, repeat(choose), by_key)
        answers = [self._submit_each(f"{name}-answer", getitem, chosen, repeat(n)) for n in stores]
        node = Node(self)
        kept = self._submit_each(f"{name}-keep", _keep, self._stores, repeat(node.key), answers)
        n_rows = sum(self._gather(kept))
        return Node(self, getitem, node, 0), Node(self, getitem, node, 1), n_rows

    def _submit_each(self, name: str, function: Callable, *columns: Iterable) -> list:
        """Return futures of a function on each worker; a column has an argument for each worker."""
        return [
            self._submit(name, function, *arguments, place=place)
            for place, arguments in enumerate(zip(*columns))
        ]

    def _message(self, function: Callable, arguments: tuple) -> tuple:
        """Return what is sent to each store for a call: the arguments of `Store.run`."""
        expressions = _with_expressions(arguments)
        forgotten, self._forgotten = self._forgotten, []
        return function, expressions, forgotten

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
        # Tasks that are bound to a lost worker would wait forever, so check the workers.
        patiently(partial(require("distributed", "dask").wait, futures), self._check_workers)
        with self._naming_lost_workers():
            return self._client.gather(futures)

    @contextmanager
    def _naming_lost_workers(self) -> Iterator[None]:
        """Turn errors caused by a lost worker into a WorkerLostError."""
        try:
            yield
        except WorkerLostError:
            raise
        except (OSError, RuntimeError) as error:
            # The connection closes a moment before the scheduler notices the loss.
            for _ in range(_CHECKS):
                self._check_workers(error)
                time.sleep(_PATIENCE / 4)
            raise

    def _check_workers(self, error: Exception | None = None) -> None:
        """Raise an error if a worker is lost, or has restarted without its rows."""
        workers = workers_of(self._client)
        for address, future in zip(self._addresses, self._futures, strict=True):
            if address not in workers or future.status not in ("pending", "finished"):
                raise WorkerLostError(
                    f"The worker {address} that held a part of the rows was lost during fit, and "
                    "what it held with it. Call fit again: the data are loaded anew, onto the "
                    "workers that are there."
                ) from error


def workers_of(client: Client) -> dict:
    """Return the workers by address, as the scheduler knows them; empty without a scheduler."""
    return client.scheduler_info(n_workers=-1).get("workers", {})


def patiently(wait: Callable, check: Callable[[], None]) -> Any:
    """Return the result of `wait`, and call `check` regularly meanwhile."""
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
    """Store the chosen rows of a store, and their values, under a key; return their number."""
    chosen = chosen_of_store(answers)
    _run(store, (nothing, (Expression(key, identity, (chosen,)),)))
    return chosen[0].size
