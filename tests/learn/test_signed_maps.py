"""The signed maps on pairs against their matrix."""

import numpy as np
import pytest

from mbkl.cells import Block, Ladder, Operator
from mbkl.engine.rows import ArrayRows
from mbkl.learn.initial_guess import class_shares, initial_signs
from mbkl.learn.kernel_weights import SignedMaps, pairs_of
from mbkl.maps import Ferns, Stumps

FAMILIES = {
    "stumps": [Stumps()],
    "ferns": [Ferns(depth=2)],
    "both": [Stumps(), Ferns(depth=2)],
}


@pytest.fixture(params=FAMILIES)
def families(request):
    return FAMILIES[request.param]


@pytest.fixture
def make_problem(make_data, labelled, families):
    """Return a function that gives labelled rows, their pairs and the signs of the maps."""

    def make(n_classes):
        X, y = make_data(70, 3, n_classes)
        weights = np.random.default_rng(0).random(70) + 0.5
        drawn = [family.fit_codes(ArrayRows(X), weights, 35, 0) for family in families]
        operator = Operator(tuple(Block(codes, maps.cells) for maps, codes in drawn))
        rows = labelled(operator, y, n_classes, weights)
        return rows, pairs_of(rows, 2), initial_signs(operator, class_shares(rows), "balanced")

    return make


def maps_of(operator):
    """Return for each column of the operator the slot of its map."""
    slots = np.arange(operator.n_slots)
    return operator.spread(slots)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_are_signed_for_the_class_of_the_pair(make_problem, n_classes):
    rows, pairs, signs = make_problem(n_classes)
    operator = rows.operator
    columns = operator.dense()[pairs.rows] * signs[:, pairs.classes].T
    expected = np.zeros((pairs.rows.size, operator.n_slots))
    np.add.at(expected.T, maps_of(operator), columns.T)
    found = SignedMaps.of(operator, pairs, signs).dense()
    np.testing.assert_allclose(found, np.where(operator.is_map, expected, 0.0), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_operator_is_its_matrix(make_problem, n_classes):
    rows, pairs, signs = make_problem(n_classes)
    operator = SignedMaps.of(rows.operator, pairs, signs)
    S, generator = operator.dense(), np.random.default_rng(0)
    theta, residuals = generator.random((S.shape[1], 1)), generator.normal(size=(S.shape[0], 1))
    assert S.shape == (pairs.rows.size, operator.n_columns)
    np.testing.assert_allclose(operator.forward(theta), S @ theta, atol=1e-10)
    np.testing.assert_allclose(operator.adjoint(residuals), S.T @ residuals, atol=1e-10)
    np.testing.assert_allclose(operator.adjoint_and_total(residuals)[1], residuals.sum())
    weights = generator.random((S.shape[0], 1))
    total, *columns = operator.products(weights)
    mean, diagonal, neighbour = (column[:, 0] for column in columns)
    gram = S.T @ (weights * S)
    assert total == pytest.approx(weights.sum())
    np.testing.assert_allclose(mean, S.T @ weights[:, 0], atol=1e-10)
    np.testing.assert_allclose(diagonal, np.diag(gram), atol=1e-10)
    expected = np.where(operator.is_chained[1:] > 0, np.diag(gram, 1), 0)
    np.testing.assert_allclose(neighbour[1:], expected, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_some_of_the_pairs(make_problem, n_classes):
    rows, pairs, signs = make_problem(n_classes)
    operator = SignedMaps.of(rows.operator, pairs, signs)
    chosen = np.flatnonzero(np.random.default_rng(0).random(pairs.rows.size) < 0.4)
    theta = np.random.default_rng(1).random((operator.n_columns, 1))
    some = operator.take(chosen).forward(theta)
    np.testing.assert_array_equal(some, operator.forward(theta)[chosen])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_some_of_the_maps(make_problem, n_classes):
    rows, pairs, signs = make_problem(n_classes)
    operator = SignedMaps.of(rows.operator, pairs, signs)
    kept = np.random.default_rng(0).random(operator.n_columns) < 0.5
    small = operator.keep_maps(kept)
    assert small.is_map.sum() == (kept & operator.is_map).sum()
    theta = (
        np.random.default_rng(1).random((operator.n_columns, 1)) * (kept & operator.is_map)[:, None]
    )
    own = np.zeros((small.n_columns, 1))
    own[small.is_map] = theta[kept & operator.is_map]
    np.testing.assert_allclose(small.forward(own), operator.forward(theta), atol=1e-12)


def test_chains_are_said_as_truths(make_problem):
    rows, pairs, signs = make_problem(3)
    chained = SignedMaps.of(rows.operator, pairs, signs).is_chained
    assert chained.dtype == bool
    expected = [
        own.is_chained if isinstance(own, Ladder) else np.zeros(own.n_slots, dtype=bool)
        for own in (block.cells for block in rows.operator.blocks)
    ]
    np.testing.assert_array_equal(chained, np.concatenate(expected))
