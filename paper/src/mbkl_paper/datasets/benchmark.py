"""Benchmark: rows or images, labels, and the protocol by which they are divided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl_paper.datasets.protocols import Protocol, Split


@dataclass(frozen=True)
class Printed:
    """A column of the paper's table of data sets, for one split, its errata corrected."""

    n_classes: int
    n_train: int
    n_test: int
    descriptor: str
    n_features: int


@dataclass(frozen=True)
class Description:
    """What is known of a set before it is read: who offers it, on which terms."""

    name: str
    source: str
    licence: str
    printed: Printed


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark:
    """A data set of the paper and its protocol.

    Parameters
    ----------
    description : Description
        Holds `name`, `source`, `licence` and `printed`, which are attributes here too.
    y : ndarray of shape (n_rows,)
        Numbers of the classes, from 0.
    class_names : tuple of str
    protocol : callable
        Gives the splits; see `mbkl_paper.datasets.protocols`.
    X : array-like of shape (n_rows, n_features) or None
        None where the set is one of images, of which descriptors are to be computed.
    feature_names : tuple of str or None
    images : sequence of ndarray or None
        Pixels as uint8: rows x columns, x RGB where there are colours. Decoded when
        asked for; a slice or an index array gives a shorter sequence.
    stand_in : str or None
        For what this set stands in and how faithful it is; None for the real one.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.datasets.benchmark import Benchmark, Description, Printed
    >>> from mbkl_paper.datasets.protocols import StratifiedFolds
    >>> toy = Description("toy", "Nobody.", "None.", Printed(2, 8, 2, "numbers", 1))
    >>> y = np.arange(10) % 2
    >>> benchmark = Benchmark(toy, y, ("even", "odd"), StratifiedFolds(), X=y[:, None])
    >>> benchmark
    <Benchmark toy: 10 rows of 1 features, 2 classes>
    >>> [test.size for train, test in benchmark.splits(random_state=0)]
    [2, 2, 2, 2, 2]
    """

    description: Description
    y: NDArray[np.intp]
    class_names: tuple[str, ...]
    protocol: Protocol
    X: Any = None
    feature_names: tuple[str, ...] | None = None
    images: Any = None
    stand_in: str | None = None

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def source(self) -> str:
        return self.description.source

    @property
    def licence(self) -> str:
        return self.description.licence

    @property
    def printed(self) -> Printed:
        return self.description.printed

    def splits(self, random_state=0, **options) -> Iterator[Split]:
        """Return the splits of the set's protocol.

        Parameters
        ----------
        random_state : int, RandomState instance or None
            Of splits that are drawn; official ones are always the same.
        **options
            Of protocols that draw: n_repeats, and for held-out rows test_size.

        Returns
        -------
        splits : iterator of (train, test)
            Arrays of row numbers.
        """
        return self.protocol(self.y, random_state, **options)

    def __repr__(self) -> str:
        what = "images" if self.X is None else f"rows of {self.X.shape[1]:,} features"
        text = f"{self.name}: {self.y.size:,} {what}, {len(self.class_names)} classes"
        if self.stand_in:
            text += f"; stand-in: {self.stand_in}"
        return f"<Benchmark {text}>"
