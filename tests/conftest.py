"""Small data, builders and switches that many tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings

import mbkl
from mbkl.cells import operator_of
from mbkl.engine.codes import DenseCodes, SparseCodes
from mbkl.engine.rows import ArrayRows, as_rows
from mbkl.engine.twins import TWINS
from mbkl.learn.algorithm import Learner, Settings
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.learn.progress import Progress
from mbkl.maps import Stumps

settings.register_profile("mbkl", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("mbkl")

# The method as the paper has it, in full words: what the defaults are is another matter.
PAPER = {"maps": "stumps", "theta": "learned", "theta_shrinkage": 0, "C": 1.0}

DEFAULT_SETTINGS = {
    "theta": "learned",
    "theta_shrinkage": 0.0,
    "init_rule": "balanced",
    "theta_power": 0.5,
    "loss": "squared_hinge",
    "negatives_per_positive": 2,
    "max_pairs": 50_000,
    "tol": 1e-3,
    "max_iter": 200,
    "seed": 0,
}


@pytest.fixture
def data_folder() -> Path:
    """Return the folder of the real data sets, or skip."""
    folder = os.environ.get("MBKL_DATA")
    if not folder:
        pytest.skip("The environment variable MBKL_DATA does not name the folder of the data sets.")
    return Path(folder)


@pytest.fixture(scope="session")
def make_data():
    """Return a function that draws overlapping classes."""

    def make(n_rows=80, n_features=4, n_classes=2, seed=0, spread=1.0):
        generator = np.random.default_rng(seed)
        y = np.arange(n_rows) % n_classes
        centres = generator.normal(size=(n_classes, n_features))
        X = centres[y] + spread * generator.normal(size=(n_rows, n_features))
        # Few digits, so that the values are the same in float32 and float64.
        return np.round(X * 64) / 64, y

    return make


@pytest.fixture(scope="session")
def local_crew():
    """Return a function that makes stores in this process, one for each (X, y, weights)."""
    from mbkl.dask.crew import Crew
    from mbkl.dask.partitions import partition
    from mbkl.dask.store import Store

    class LocalStore(Store):
        def run(self, *call):
            result = super().run(*call)
            return SimpleNamespace(result=lambda timeout=None: result)

    class LocalCrew(Crew):
        def __init__(self, pieces):
            self._begin()
            numbers = [np.asarray(y).dtype.kind == "f" for _, y, _ in pieces]
            own = [partition(*each) for each in zip(numbers, range(len(pieces)), *zip(*pieces))]
            self._stores = [LocalStore() for _ in own]
            for store, piece in zip(self._stores, own):
                store.hold([piece])

        def _submit(self, name, function, *arguments, place):
            return function(*arguments)

        def _gather(self, futures):
            return futures

    return LocalCrew


def in_the_form_of_the_paper(kind, **parameters):
    """Return an estimator of stumps with learned weights, whatever its defaults are."""
    known = kind._get_param_names()
    paper = {name: value for name, value in PAPER.items() if name in known}
    return kind(**{**paper, **parameters})


def in_the_default_form(kind, **parameters):
    """Return an estimator that chooses its maps and its cost itself."""
    return kind(**parameters)


@pytest.fixture(scope="session")
def paper():
    """Return a function that makes an estimator in the form of the paper."""
    return in_the_form_of_the_paper


@pytest.fixture(
    scope="session",
    params=[in_the_form_of_the_paper, in_the_default_form],
    ids=["paper", "default"],
)
def form(request):
    """Return a function that makes an estimator, in the form of the paper and the default one."""
    return request.param


@pytest.fixture(scope="session")
def bits_of():
    """Return a function that gives all bits of a fitted model, the maps included."""

    def bits(model) -> dict[str, bytes]:
        names = ("coef_", "intercept_", "theta_", "stump_features_", "stump_thresholds_")
        names = (*names, "objective_", "gap_")
        found = {name: getattr(model, name).tobytes() for name in names if hasattr(model, name)}
        for number, maps in enumerate(model.maps_.families):
            if hasattr(maps, "numbers"):
                arrays = (maps.features, maps.thresholds, maps.offsets, maps.numbers)
                found[f"ferns {number}"] = b"".join(array.tobytes() for array in arrays)
        return found

    return bits


@pytest.fixture(scope="session")
def make_operator():
    """Return a function that draws stumps for X and returns their operator."""

    def make(X, n_maps=60, seed=0, loops=TWINS, weights=None, **family):
        weights = np.ones(X.shape[0]) if weights is None else weights
        rows = replace(as_rows(X), loops=loops)
        maps, codes = Stumps(**family).fit_codes(rows, weights, n_maps, seed)
        return operator_of(codes, maps.cells)

    return make


@pytest.fixture(scope="session")
def make_learner():
    """Return a function that builds a Learner without an estimator."""

    def make(X, y, weights=None, n_maps=60, loops=TWINS, maps_seed=0, **changes):
        weights = np.ones(X.shape[0]) if weights is None else np.asarray(weights, float)
        maps, codes = Stumps().fit_codes(ArrayRows(X, loops), weights, n_maps, maps_seed)
        prior = np.zeros(maps.cells.n_slots)
        prior[maps.cells.is_map] = maps.prior()
        settings = Settings(**{**DEFAULT_SETTINGS, **changes})
        operator = operator_of(codes, maps.cells)
        rows = LabelledRows(operator, y, int(y.max()) + 1, weights, settings.seed)
        return Learner(rows, prior, settings, Progress(SimpleNamespace(verbose=0)))

    return make


@pytest.fixture(scope="session")
def make_codes():
    """Return a function that draws random codes."""

    def make(n_rows=130, n_cells=(3, 5, 2, 9, 4), dtype=np.uint8, kind="dense", seed=0):
        generator = np.random.default_rng(seed)
        n_cells = np.asarray(n_cells, dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(n_cells)]).astype(np.int64)
        values = np.empty((n_cells.size, n_rows), dtype=dtype)
        for group, count in enumerate(n_cells):
            values[group] = generator.integers(count, size=n_rows)
        if kind == "dense":
            return DenseCodes(values, offsets)
        zero_codes = generator.integers(n_cells)
        absent = generator.random(values.shape) < 0.7
        values = np.where(absent, zero_codes[:, None], values).astype(dtype)
        return sparse_codes(values, zero_codes, offsets)

    return make


def sparse_codes(values, zero_codes, offsets) -> SparseCodes:
    """Store only the codes that differ from that of zero."""
    groups, rows = np.nonzero(values != zero_codes[:, None])
    cells = offsets[groups] + values[groups, rows]
    return SparseCodes.of(rows, cells, values.shape[1], zero_codes, offsets, TWINS)


@pytest.fixture
def make_compiled(monkeypatch):
    """Return a function that makes compiled loops which use all their threads on tiny data."""
    from mbkl.engine import compiled

    monkeypatch.setattr(compiled, "SMALLEST_SHARE", 1)
    return compiled.Compiled


@pytest.fixture(params=["twins", "compiled"])
def loops(request):
    """The twins and the compiled loops in turn."""
    if request.param == "twins":
        return TWINS
    return request.getfixturevalue("make_compiled")(2)


@pytest.fixture
def use_loops(monkeypatch):
    """Return a function that makes all estimators use the same loops."""

    def use(loops):
        users = [m for n, m in sys.modules.items() if n.startswith("mbkl.") and n != "mbkl.engine"]
        uses = [module for module in users if hasattr(module, "choose_loops")]
        assert len(uses) >= 2
        for module in uses:
            monkeypatch.setattr(module, "choose_loops", lambda *_: loops)

    return use


@pytest.fixture
def choices(monkeypatch):
    """What fits with maps="auto" choose, one after the other."""
    from mbkl import estimator

    found, original = [], estimator.choose_kernel

    def noted(*arguments):
        found.append(original(*arguments))
        return found[-1]

    monkeypatch.setattr(estimator, "choose_kernel", noted)
    return found


@pytest.fixture(scope="session")
def python_environment():
    """Environment variables with which another Python finds the package."""
    source = str(Path(mbkl.__file__).parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


@pytest.fixture(scope="session")
def run_python(python_environment):
    """Return a function that runs code in a Python of its own and returns what it did."""

    def run(code: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**python_environment, **variables},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return run
