"""Numbers as targets of rows in stores, here and on a cluster of processes."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import mbkl
from mbkl.dask import MBKLClassifier, MBKLRegressor
from mbkl.dask.rows import RemoteLabelledRows, RemoteMatrix
from mbkl.engine import limits
from mbkl.maps import GrownFerns
from mbkl.maps.numbers import Numbers

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")

SMALL = {"maps": ["stumps", "ferns"], "n_maps": 40, "random_state": 0}
FEWEST = {"maps": "stumps", "n_maps": 20, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    """Rows beyond those that are collected, with missing values, weights and equal targets."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(6_000, 5)).astype(np.float32)
    y = 90 + 10 * X[:, 0] * X[:, 1] + 5 * X[:, 2] + generator.normal(size=6_000)
    X[generator.random(X.shape) < 0.02] = np.nan
    weights = generator.integers(0, 4, size=6_000) / 2
    return X, np.maximum(np.round(y, 1), 0.0), weights


@pytest.fixture
def fitted(local_crew):
    """Return a function that fits a model to stores in this process."""

    def fit(model, X, y, weights, n_parts=3):
        cuts = np.linspace(0, len(X), n_parts + 1).astype(int)
        pieces = [(X[a:b], y[a:b], weights[a:b]) for a, b in pairwise(cuts)]
        model._fit_stores(local_crew(pieces))
        return model

    return fit


CASES = {
    "squared error": SMALL,
    "learned": {**SMALL, "maps": "stumps", "theta": "learned"},
    "alignment": {**SMALL, "theta": "alignment", "C": 0.3},
    "absolute error": {**SMALL, "loss": "absolute_error", "maps": "stumps", "tol": 0.03},
    "counts": {**SMALL, "loss": "poisson", "maps": "stumps"},
    "grown": {"maps": GrownFerns(depth=3), "n_maps": 12, "random_state": 0},
    "grown quantiles": {
        "maps": GrownFerns(depth=3),
        "n_maps": 8,
        "loss": "quantile",
        "quantile": 0.9,
        "random_state": 0,
    },
    "costs given": {"C": 1.0, "n_maps": 60, "random_state": 0},
}


@pytest.mark.parametrize("name", CASES)
def test_same_bits_as_in_memory(fitted, name, rows, bits_of):
    settings = CASES[name]
    plain = mbkl.MBKLRegressor(**settings).fit(*rows)
    found = fitted(MBKLRegressor(**settings), *rows)
    assert bits_of(found) == bits_of(plain)
    assert found.residuals_.tobytes() == plain.residuals_.tobytes()
    assert found.n_held_out_ == plain.n_held_out_
    np.testing.assert_array_equal(found.predict(rows[0]), plain.predict(rows[0]))


def test_a_line_beside_grown_ferns(fitted, rows, bits_of, monkeypatch):
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH_FOR_NUMBERS", 2_000)
    X, y, weights = rows
    y = y + 20 * np.nan_to_num(X[:, 3])
    plain = mbkl.MBKLRegressor(random_state=0).fit(X, y, weights)
    found = fitted(MBKLRegressor(random_state=0), X, y, weights)
    assert len(plain.maps_.families) == 2
    assert bits_of(found) == bits_of(plain)
    np.testing.assert_array_equal(found.predict(X), plain.predict(X))


def test_several_targets_of_few_rows(fitted, rows, bits_of):
    X, y, weights = (each[:150] for each in rows)
    targets = np.column_stack([y, -y])
    plain = mbkl.MBKLRegressor(random_state=0).fit(X, targets, weights)
    found = fitted(MBKLRegressor(random_state=0), X, targets, weights)
    assert bits_of(found) == bits_of(plain)


def test_few_rows_are_collected_and_mixed_here(fitted, rows, bits_of):
    few = [each[:400] for each in rows]
    plain = mbkl.MBKLRegressor(random_state=0).fit(*few)
    found = fitted(MBKLRegressor(random_state=0), *few, n_parts=4)
    assert bits_of(found) == bits_of(plain)
    assert found.grown_share_ == plain.grown_share_
    np.testing.assert_array_equal(found.predict_interval(rows[0]), plain.predict_interval(rows[0]))


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_numbers_of_stores_are_those_of_the_rows(local_crew, loss, rows):
    X, y, weights = (each[rows[2] > 0] for each in rows)
    expected, places = Numbers.of(y, weights, loss)
    crew = local_crew([(X[:9], y[:9], weights[:9]), (X[9:], y[9:], weights[9:])])
    levels, own, own_weights = RemoteMatrix(crew).labelled()
    found = Numbers.of_levels(levels[:, None], own, own_weights, loss)
    np.testing.assert_array_equal(own.collected(), places)
    for name in ("values", "shift", "unit"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for position in (0.1, 0.5):
        level = Numbers(found.values, "quantile", position, found.shift, found.unit)
        np.testing.assert_array_equal(
            level.quantiles(own, own_weights), level.quantiles(places, weights)
        )


def test_folds_and_samples_are_those_of_the_rows(local_crew, rows, monkeypatch):
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 1_000)
    settings = {"maps": "stumps", "n_maps": 60, "random_state": 0}
    X, y, weights = (each[rows[2] > 0] for each in rows)
    local, remote = mbkl.MBKLRegressor(**settings), MBKLRegressor(**settings)
    progress = local._progress()
    here = local._draw(local._training_rows(X, y, weights, progress), None, progress).rows.merged
    crew = local_crew([(X[:700], y[:700], weights[:700]), (X[700:], y[700:], weights[700:])])
    data = remote._data(RemoteMatrix(crew), progress)
    there = remote._draw(data, None, progress).rows.merged
    assert isinstance(there, RemoteLabelledRows)

    def in_order(*columns):
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    found = in_order(there.y.collected(), there.weights.collected(), there.folds(3).collected())
    assert found == in_order(here.y, here.weights, here.folds(3))
    few, expected = there.balanced(1_000), here.balanced(1_000)
    assert few.n_rows == 1_000
    np.testing.assert_array_equal(few.y, expected.y)


def test_a_cluster_of_processes(client, rows, bits_of, tmp_path):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=list("abcde"))
    table = dd.from_pandas(frame, npartitions=3, sort=False)
    targets = dd.from_pandas(pd.Series(y), npartitions=3, sort=False)
    model = MBKLRegressor(**FEWEST).fit(table, targets)
    plain = mbkl.MBKLRegressor(**FEWEST).fit(frame, y)
    assert bits_of(model) == bits_of(plain)
    np.testing.assert_array_equal(model.predict(table).compute(), plain.predict(frame))
    found = model.predict_interval(table, coverage=0.8).compute()
    np.testing.assert_array_equal(found, plain.predict_interval(frame, coverage=0.8))
    assert model.score(table, targets) == pytest.approx(plain.score(frame, y))
    model.save(tmp_path / "model.mbkl")
    np.testing.assert_array_equal(
        mbkl.load(tmp_path / "model.mbkl").predict(frame), plain.predict(frame)
    )


def test_several_targets(client, rows, bits_of):
    X, y, weights = rows
    targets = np.column_stack([y, np.round(X[:, 3])])
    targets[np.isnan(targets)] = 0.0
    plain = mbkl.MBKLRegressor(**FEWEST).fit(X, targets, weights)
    parts = da.from_array(X, chunks=(2_500, 5))
    model = MBKLRegressor(**FEWEST).fit(parts, da.from_array(targets, chunks=(2_000, 1)), weights)
    assert bits_of(model) == bits_of(plain)
    for method in ("predict", "predict_interval"):
        found, expected = getattr(model, method)(parts), getattr(plain, method)(X)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found.compute(), expected)


def test_targets_have_the_names_of_series_alone(client, rows):
    X, y, _ = (each[:60] for each in rows)
    model = MBKLRegressor(**FEWEST).fit(da.from_array(X), da.from_array(y))
    assert model.target_names_ == ["y"]
    table = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")), npartitions=2)
    model.fit(table, dd.from_pandas(pd.Series(y, name="price"), npartitions=2))
    assert model.target_names_ == ["price"]


BAD = {
    "text": (lambda y: np.where(y > 90, "x", "y").astype(object), "could not convert string"),
    "missing": (lambda y: np.where(y > 90, np.nan, y), "Input y contains NaN"),
    "infinite": (
        lambda y: np.where(y > 90, np.inf, y),
        "Input y contains infinity",
    ),
    "three dimensions": (lambda y: y[:, None, None], "Found array with dim 3"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_targets(client, rows, name):
    make, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        MBKLRegressor(**SMALL).fit(da.from_array(rows[0], chunks=(2_500, 5)), make(rows[1]))


def test_counts_are_not_negative(fitted, rows):
    with pytest.raises(ValueError, match="y of at least zero"):
        fitted(MBKLRegressor(loss="poisson", **SMALL), rows[0], -rows[1], rows[2])


def test_classifiers_still_refuse_numbers(client, rows):
    with pytest.raises(ValueError, match="Unknown label type"):
        MBKLClassifier(**SMALL).fit(da.from_array(rows[0], chunks=(2_500, 5)), rows[1])
