"""Rows in parts: arrays behave as those of NumPy, labelled rows and models have the same bits."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import mbkl
from mbkl.cells import operator_of
from mbkl.dask import MBKLClassifier
from mbkl.dask.rows import RemoteLabelledRows, RemoteMatrix, RemoteRows, RowSet
from mbkl.dask.store import nothing
from mbkl.engine import limits
from mbkl.engine.arrays import exact_sum, exact_total
from mbkl.engine.rows import ArrayRows
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.maps import Stumps


@pytest.fixture(scope="module")
def spread(local_crew):
    """Return a function that gives the weights of rows in parts."""

    def make(values, cuts=(3, 3, 7)):
        pieces = np.split(values, list(cuts))
        parts = [(np.zeros((len(own), 1)), np.zeros(len(own)), own) for own in pieces]
        crew = local_crew(parts)
        return crew, RemoteMatrix(crew).labelled()[2]

    return make


@pytest.fixture
def both(spread):
    values = np.random.default_rng(0).random(10) + 0.1
    _, rows = spread(values)
    return values, rows


def fetch(rows) -> np.ndarray:
    """Return an array in parts as one."""
    return rows.collected()


EXPRESSIONS = {
    "arithmetic": lambda a: 2.0 * a - a**2 / (1.0 + a),
    "columns": lambda a: a[:, None] * np.array([1.0, -2.0]) + np.array([0.5, 0.25]),
    "comparison": lambda a: np.where((a < 0.5) & (a > 0.2), 1.0, a),
    "functions": lambda a: np.logaddexp(0.0 * a, -a) + special.expit(a) + np.maximum(a, 0.4),
    "clip": lambda a: np.clip(a, 0.3, 0.6),
    "type": lambda a: np.rint(8 * a).astype(np.int64),
    "some columns": lambda a: (a[:, None] * np.arange(3.0))[:, np.array([2, 0])],
    "one column": lambda a: (a[:, None] * np.arange(3.0))[:, 1],
    "sides": lambda a: abs(-a) + (1.0 - a) + np.sqrt(a),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name, both):
    values, rows = both
    expected = EXPRESSIONS[name](values)
    found = EXPRESSIONS[name](rows)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.size == expected.size
    np.testing.assert_array_equal(fetch(found), expected)


def test_in_place_operations(both):
    values, rows = both
    plain, remote = values[:, None] * np.ones(3), rows[:, None] * np.ones(3)
    before = remote + 0.0
    for array, own in ((plain, values), (remote, rows)):
        array[:, np.array([0, 2])] += own[:, None] * np.array([1.0, 10.0])
        array *= 2.0
    np.testing.assert_array_equal(fetch(remote), plain)
    np.testing.assert_array_equal(fetch(before), values[:, None] * np.ones(3))


@given(st.lists(st.integers(0, 30), max_size=4), st.integers(0, 5))
def test_sums_have_the_same_bits_for_any_parts(spread, cuts, seed):
    generator = np.random.default_rng(seed)
    values = generator.random(30) * 10.0 ** generator.integers(-9, 9, size=30)
    _, rows = spread(values, sorted(cuts))
    assert exact_total(rows) == exact_total(values)
    columns = np.array([1.0, -3.0, 1e-9])
    np.testing.assert_array_equal(
        exact_sum(rows[:, None] * columns), exact_sum(values[:, None] * columns)
    )


def test_rows_that_are_not_zero(both):
    values, rows = both
    chosen = np.flatnonzero(np.where(rows > 0.5, rows, 0.0))
    assert isinstance(chosen, RowSet)
    assert chosen.size == (values > 0.5).sum()
    part = rows[chosen]
    assert part.shape == (chosen.size,)
    assert exact_total(part) == exact_total(values[values > 0.5])


def test_sums_of_numbers_with_a_fraction_are_refused(both):
    with pytest.raises(TypeError, match="Only integers"):
        both[1].sum(axis=0)


def test_nothing_is_gathered_by_accident(both):
    with pytest.raises(TypeError, match="not gathered"):
        np.asarray(both[1])
    with pytest.raises(TypeError):
        np.sort(both[1])


def test_stores_forget_what_nobody_refers_to(spread):
    crew, rows = spread(np.ones(10))
    exact_total(rows)
    crew.call(nothing)
    held = len(crew._stores[0]._objects)
    for _ in range(20):
        exact_total((rows + 1.0) * 2.0)
    crew.call(nothing)
    assert len(crew._stores[0]._objects) == held


def test_a_chain_is_computed_once(spread):
    _, rows = spread(np.ones(10))
    twice = rows * 2.0
    assert isinstance(twice, RemoteRows)
    exact_total(twice)
    assert twice.node.expression().function is None


# --- Labelled rows, and models ---

SETTINGS = {
    "default": {},
    "stumps, learned": {"maps": "stumps", "theta": "learned", "n_maps": 100},
    "stumps, few pairs": {"maps": "stumps", "theta": "learned", "n_maps": 100, "max_pairs": 200},
    "stumps, quantiles": {"maps": Stumps(thresholds="quantile"), "n_maps": 60},
    "ferns, reweighted": {"maps": "ferns", "theta": "reweighted", "n_maps": 20},
    "both, logistic": {
        "maps": ["stumps", "ferns"],
        "loss": "logistic",
        "n_maps": 20,
        "class_weight": "balanced",
    },
    "hinge": {"maps": "stumps", "loss": "hinge", "n_maps": 50},
    "alignment": {"maps": "stumps", "theta": "alignment", "n_maps": 50},
    "class weights": {"maps": "stumps", "n_maps": 50, "class_weight": {0: 1.0, 1: 2.5}},
}


@pytest.fixture
def few_rows_are_many(monkeypatch):
    """Let the solvers for many rows have their turn."""
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 100)
    monkeypatch.setattr(limits, "ROWS_OF_A_PART", 80)
    monkeypatch.setattr(limits, "FEW_ROWS_HINGE", 50)


@pytest.fixture
def rows_change_sides(monkeypatch):
    """Let the method for high costs have its turn."""
    monkeypatch.setattr("mbkl.solvers.barrier._SHORT", np.inf)
    monkeypatch.setattr("mbkl.solvers.barrier._MOST_SHORT", 1)
    monkeypatch.setattr(limits, "FEW_PAIRS", 0)


@pytest.fixture(scope="module")
def fit_pieces(local_crew):
    """Return a function that fits a model with a store for each piece."""

    def fit(X, y, weights, cuts, own) -> MBKLClassifier:
        masses = [None] * (len(cuts) + 1) if weights is None else np.split(weights, cuts)
        pieces = zip(np.split(X, cuts), np.split(y, cuts), masses, strict=True)
        model = MBKLClassifier(random_state=0, **own)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model._fit_stores(local_crew(list(pieces)))
        return model

    return fit


def data(make_data, n_rows=400, n_classes=2):
    X, y = make_data(n_rows, 5, n_classes)
    X[::17, 2] = np.nan
    X[200:250], y[200:250] = X[:50], y[:50]  # equal rows in different parts
    return X, y


@pytest.fixture
def both_rows(local_crew, make_data):
    """Return a function that gives the same labelled rows here and in stores."""

    def make(n_classes=3):
        X, y = data(make_data, n_classes=n_classes)
        weights = np.random.default_rng(0).random(400)
        cuts = [3, 3, 150]
        crew = local_crew([*zip(*(np.split(a, cuts) for a in (X, y, weights)), strict=True)])
        matrix = RemoteMatrix(crew)
        labels = matrix.labelled()[1:]
        found = []
        for rows, own, mass in ((ArrayRows(X), y, weights), (matrix, *labels)):
            maps, codes = Stumps().fit_codes(rows, mass, 60, 0)
            found.append((operator_of(codes, maps.cells), own, n_classes, mass, 7))
        return LabelledRows(*found[0]), RemoteLabelledRows(*found[1])

    return make


def same_rows(here, there) -> None:
    """Check that rows that are here have the same bits, in the same order."""
    np.testing.assert_array_equal(there.operator.codes.values, here.operator.codes.values)
    np.testing.assert_array_equal(there.y, here.y)
    np.testing.assert_array_equal(there.weights, here.weights)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_merged_rows_are_here(both_rows, n_classes):
    here, there = both_rows(n_classes)
    assert isinstance(there.merged, LabelledRows)
    assert there.merged.n_rows < there.n_rows
    same_rows(here.merged, there.merged)


@pytest.mark.parametrize("n_rows", [60, 1_000])
def test_balanced_and_first_rows_are_those_of_rows_here(both_rows, few_rows_are_many, n_rows):
    here, there = (rows.merged for rows in both_rows())
    assert isinstance(there, RemoteLabelledRows)
    same_rows(here.balanced(n_rows), there.balanced(n_rows))
    same_rows(here.take(here.first(50)), there.take(there.first(50)))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_same_bits_with_supports(
    fit_pieces, loss, make_data, bits_of, few_rows_are_many, rows_change_sides
):
    own = {"maps": "stumps", "theta": "learned", "n_maps": 100, "loss": loss}
    X, y = data(make_data)
    expected = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y)
    model = fit_pieces(X, y, None, [3, 150], own)
    assert bits_of(model) == bits_of(expected)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("n_classes", "cuts"), [(2, [150]), (3, [3, 3, 390])])
def test_same_bits(fit_pieces, name, n_classes, cuts, make_data, bits_of, few_rows_are_many):
    own = dict(SETTINGS[name])
    if name == "class weights" and n_classes == 3:
        own["class_weight"] = {0: 1.0, 1: 2.5, 2: 0.5}
    X, y = data(make_data, n_classes=n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y)
    assert bits_of(fit_pieces(X, y, None, cuts, own)) == bits_of(plain)


def test_few_rows_are_collected(fit_pieces, make_data, bits_of):
    X, y = data(make_data)
    plain = mbkl.MBKLClassifier(random_state=0).fit(X, y)
    assert bits_of(fit_pieces(X, y, None, [100, 101], {})) == bits_of(plain)


@settings(max_examples=8)
@given(st.lists(st.integers(0, 300), max_size=3), st.integers(0, 3))
def test_any_parts_and_weights(fit_pieces, make_data, bits_of, cuts, seed):
    X, y = make_data(300, 3)
    weights = np.random.default_rng(seed).integers(0, 4, size=300) / 3.0
    own = {"maps": "stumps", "theta": "learned", "n_maps": 40}
    plain = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y, weights)
    assert bits_of(fit_pieces(X, y, weights, sorted(cuts), own)) == bits_of(plain)


def test_quantiles_of_many_rows_come_from_a_sample(fit_pieces, make_data, bits_of, monkeypatch):
    monkeypatch.setattr(limits, "ROWS_OF_QUANTILES", 100)
    X, y = data(make_data)
    own = {"maps": Stumps(thresholds="quantile"), "n_maps": 60}
    plain = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y)
    assert bits_of(fit_pieces(X, y, None, [77, 300], own)) == bits_of(plain)


def test_stores_that_are_empty(fit_pieces, make_data, bits_of):
    X, y = data(make_data)
    own = {"maps": ["stumps", "ferns"], "n_maps": 20}
    plain = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y)
    assert bits_of(fit_pieces(X, y, None, [0, 0, 400], own)) == bits_of(plain)


def test_columns_that_do_not_match(local_crew, make_data):
    X, y = make_data(40, 3)
    crew = local_crew([(X, y, None), (X[:, :2], y, None)])
    with pytest.raises(ValueError, match="different numbers of columns"):
        MBKLClassifier()._fit_stores(crew)
