"""The model does not depend on how the rows are divided; stores in this process."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mbkl
from mbkl.cells import operator_of
from mbkl.dask import MBKLClassifier
from mbkl.dask.crew import local_crew
from mbkl.dask.labelled_rows import RemoteLabelledRows
from mbkl.dask.rows import RemoteMatrix
from mbkl.engine import limits
from mbkl.engine.rows import ArrayRows
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.maps import Stumps

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


def fit_pieces(X, y, weights, cuts, own) -> MBKLClassifier:
    """Fit with a store for each piece."""
    masses = [None] * (len(cuts) + 1) if weights is None else np.split(weights, cuts)
    pieces = zip(np.split(X, cuts), np.split(y, cuts), masses, strict=True)
    model = MBKLClassifier(random_state=0, **own)
    crew = local_crew(list(pieces))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model._fit_stores(crew)
    return model


def data(make_data, n_rows=400, n_classes=2):
    X, y = make_data(n_rows, 5, n_classes)
    X[::17, 2] = np.nan
    X[200:250], y[200:250] = X[:50], y[:50]  # equal rows in different parts
    return X, y


@pytest.fixture
def both_rows(make_data):
    """Return a function that gives the same labelled rows here and in stores."""

    def make(n_classes=3):
        X, y = data(make_data, n_classes=n_classes)
        weights = np.random.default_rng(0).random(400)
        cuts = [3, 3, 150]
        crew = local_crew([*zip(*(np.split(a, cuts) for a in (X, y, weights)), strict=True)])
        matrix = RemoteMatrix(crew)
        labels = matrix.labelled(np.arange(n_classes))
        found = []
        for rows, own, mass in ((ArrayRows(X), y, weights), (matrix, *labels)):
            maps, codes = Stumps().fit_codes(rows, mass, 60, 0)
            found.append((operator_of(codes, maps.cells), own, n_classes, mass, 7))
        return LabelledRows(*found[0]), RemoteLabelledRows(crew, *found[1])

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
    same_rows(here.take(here.first(50)), there.collected(there.first(50)))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_same_bits_with_supports(loss, make_data, bits_of, few_rows_are_many, rows_change_sides):
    own = {"maps": "stumps", "theta": "learned", "n_maps": 100, "loss": loss}
    X, y = data(make_data)
    expected = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y)
    model = fit_pieces(X, y, None, [3, 150], own)
    assert bits_of(model) == bits_of(expected)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("n_classes", "cuts"), [(2, [150]), (3, [3, 3, 390])])
def test_same_bits(name, n_classes, cuts, make_data, bits_of, few_rows_are_many):
    own = dict(SETTINGS[name])
    if name == "class weights" and n_classes == 3:
        own["class_weight"] = {0: 1.0, 1: 2.5, 2: 0.5}
    X, y = data(make_data, n_classes=n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y)
    assert bits_of(fit_pieces(X, y, None, cuts, own)) == bits_of(plain)


def test_few_rows_are_collected(make_data, bits_of):
    X, y = data(make_data)
    plain = mbkl.MBKLClassifier(random_state=0).fit(X, y)
    assert bits_of(fit_pieces(X, y, None, [100, 101], {})) == bits_of(plain)


@settings(max_examples=8)
@given(st.lists(st.integers(0, 300), max_size=3), st.integers(0, 3))
def test_any_parts_and_weights(make_data, bits_of, cuts, seed):
    X, y = make_data(300, 3)
    weights = np.random.default_rng(seed).integers(0, 4, size=300) / 3.0
    own = {"maps": "stumps", "theta": "learned", "n_maps": 40}
    plain = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y, weights)
    assert bits_of(fit_pieces(X, y, weights, sorted(cuts), own)) == bits_of(plain)


def test_quantiles_of_many_rows_come_from_a_sample(make_data, bits_of, monkeypatch):
    monkeypatch.setattr("mbkl.maps.stumps._QUANTILE_ROWS", 100)
    X, y = data(make_data)
    own = {"maps": Stumps(thresholds="quantile"), "n_maps": 60}
    plain = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y)
    assert bits_of(fit_pieces(X, y, None, [77, 300], own)) == bits_of(plain)


def test_stores_that_are_empty(make_data, bits_of):
    X, y = data(make_data)
    own = {"maps": ["stumps", "ferns"], "n_maps": 20}
    plain = mbkl.MBKLClassifier(random_state=0, **own).fit(X, y)
    assert bits_of(fit_pieces(X, y, None, [0, 0, 400], own)) == bits_of(plain)


def test_columns_that_do_not_match(make_data):
    X, y = make_data(40, 3)
    crew = local_crew([(X, y, None), (X[:, :2], y, None)])
    with pytest.raises(ValueError, match="different numbers of columns"):
        MBKLClassifier()._fit_stores(crew)
