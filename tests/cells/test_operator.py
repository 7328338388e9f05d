"""Operators of one family and of several, against the matrices they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.engine.codes import DenseCodes
from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.learn.operator import JointOperator, MapOperator, join
from mbkl.learn.tables import Cells, Ladder
from mbkl.maps import Ferns, Stumps

KINDS = ["stumps", "ferns", "stumps and ferns", "ferns, stumps and ferns"]


def random_operator(kinds, n_cells, n_rows, generator, engine=None):
    """Return an operator on random codes; every kind has its own groups."""
    parts = []
    offsets = np.concatenate([[0], np.cumsum(n_cells)]).astype(np.int64)
    for kind in kinds:
        values = [generator.integers(count, size=n_rows) for count in n_cells]
        values = np.array(values, dtype=np.uint8).reshape(len(n_cells), n_rows)
        cells = Ladder(offsets) if kind == "stumps" else Cells(offsets)
        parts.append(MapOperator(DenseCodes(values, offsets), cells, engine or NumpyEngine()))
    return join(parts)


def families_in(kind):
    return kind.replace(" and ", ", ").split(", ")


@pytest.fixture(params=KINDS)
def operator(request, engine):
    X = np.random.default_rng(0).normal(size=(60, 4))
    parts = []
    for seed, kind in enumerate(families_in(request.param)):
        family = Stumps() if kind == "stumps" else Ferns(depth=3)
        maps, codes = family.fit_codes(X, np.ones(60), 25, seed, engine)
        parts.append(MapOperator(codes, maps.cells, engine))
    return join(parts)


def columns_for(operator, n_columns, seed=0):
    """Return weights of all columns, zero where there is no map."""
    weights = np.random.default_rng(seed).normal(size=(operator.n_columns, n_columns))
    return weights * operator.spread(operator.is_map)[:, None]


def kernel_weights_for(operator, seed=0):
    return np.random.default_rng(seed).random(operator.n_slots) + 0.1


def used_columns(operator):
    """Return the matrix without the columns that are no map."""
    return operator.dense()[:, operator.spread(operator.is_map)]


# --- The matrix ---


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_forward_is_the_product_with_the_matrix(operator, n_columns):
    weights = columns_for(operator, n_columns)
    expected = operator.dense() @ weights
    np.testing.assert_allclose(operator.forward(weights), expected, atol=1e-10)


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_adjoint_is_the_product_with_the_transpose(operator, n_columns):
    residuals = np.random.default_rng(1).normal(size=(60, n_columns))
    pull, total = operator.adjoint_and_total(residuals)
    np.testing.assert_allclose(pull, operator.dense().T @ residuals, atol=1e-10)
    np.testing.assert_array_equal(pull, operator.adjoint(residuals))
    np.testing.assert_allclose(total, residuals.sum(axis=0), atol=1e-10)


@given(
    st.sampled_from(KINDS),
    st.lists(st.integers(2, 6), min_size=1, max_size=5),
    st.integers(1, 20),
    st.integers(0, 2**32),
)
def test_adjointness(kind, n_cells, n_rows, seed):
    generator = np.random.default_rng(seed)
    operator = random_operator(families_in(kind), n_cells, n_rows, generator)
    weights, residuals = columns_for(operator, 2, seed), generator.normal(size=(n_rows, 2))
    forward = (operator.forward(weights) * residuals).sum()
    adjoint = (weights * operator.adjoint(residuals)).sum()
    np.testing.assert_allclose(forward, adjoint, atol=1e-9)


def test_columns_of_ferns_are_indicators(engine, make_codes):
    codes = make_codes()
    operator = MapOperator(codes, Cells(codes.offsets), engine)
    dense = operator.dense()
    for group in range(codes.n_groups):
        for row in range(codes.n_rows):
            part = dense[row, codes.offsets[group] : codes.offsets[group + 1]]
            assert np.flatnonzero(part).tolist() == [codes.values[group, row]]
            assert part.sum() == 1.0


def test_integers_are_added_exactly(operator):
    integers = np.random.default_rng(1).integers(-(2**40), 2**40, size=(60, 2))
    expected = operator.dense().astype(np.int64).T @ integers
    np.testing.assert_array_equal(operator.adjoint_of_integers(integers), expected)


def test_mass_is_the_sum_over_the_rows_that_say_yes(operator):
    integers = np.random.default_rng(1).integers(-(2**40), 2**40, size=(60, 2))
    used = operator.spread(operator.is_map)
    expected = (used_columns(operator) > 0).astype(np.int64).T @ integers
    np.testing.assert_array_equal(operator.mass(integers)[used], expected)


def test_gather_adds_up_tables(operator):
    tables = np.random.default_rng(1).normal(size=(operator.n_columns, 3))
    parts = operator.parts if isinstance(operator, JointOperator) else [operator]
    expected, start = np.zeros((60, 3)), 0
    for part in parts:
        codes = part.plain_codes
        for group in range(codes.n_groups):
            expected += tables[start + codes.offsets[group] + codes.values[group].astype(int)]
        start += codes.n_cells
    np.testing.assert_allclose(operator.gather(tables), expected, atol=1e-10)


# --- Kernel weights ---


def test_collect_is_the_transpose_of_spread(operator):
    generator = np.random.default_rng(0)
    weights = generator.normal(size=operator.n_slots) * operator.is_map
    values = columns_for(operator, 1)[:, 0]
    spread, collected = operator.spread(weights), operator.collect(values)
    assert spread.shape == (operator.n_columns,)
    assert collected.shape == (operator.n_slots,)
    np.testing.assert_allclose(spread @ values, weights @ collected, atol=1e-12)


def test_matrices_are_spread_and_collected_column_by_column(operator):
    weights = np.random.default_rng(0).normal(size=(operator.n_slots, 3))
    values = columns_for(operator, 3)
    spread, collected = operator.spread(weights), operator.collect(values)
    for column in range(3):
        np.testing.assert_array_equal(spread[:, column], operator.spread(weights[:, column]))
        np.testing.assert_allclose(
            collected[:, column], operator.collect(values[:, column]), atol=1e-12
        )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 2**32))
def test_cells_spread_and_collect(n_cells, seed):
    generator = np.random.default_rng(seed)
    cells = Cells(np.concatenate([[0], np.cumsum(n_cells)]).astype(np.int64))
    matrix = np.zeros((cells.n_cells, cells.n_slots))
    matrix[np.arange(cells.n_cells), cells.group] = 1.0
    weights, values = generator.normal(size=cells.n_slots), generator.normal(size=cells.n_cells)
    np.testing.assert_array_equal(cells.spread(weights), matrix @ weights)
    np.testing.assert_allclose(cells.collect(values), matrix.T @ values, atol=1e-12)
    np.testing.assert_allclose(cells.penalty(np.exp(weights)), 1 / (matrix @ np.exp(weights)))


def test_gram_is_the_matrix_times_itself(operator):
    weights = kernel_weights_for(operator)
    Z = operator.dense()
    expected = Z @ np.diag(1.0 / operator.penalty(weights)) @ Z.T
    gram = operator.gram(weights)
    np.testing.assert_allclose(gram, expected, atol=1e-10)
    np.testing.assert_array_equal(gram, gram.T)


def test_gram_of_equal_weights(operator):
    weights = np.full(operator.n_slots, 0.01)
    Z = operator.dense()
    expected = Z @ np.diag(1.0 / operator.penalty(weights)) @ Z.T
    np.testing.assert_allclose(operator.gram(weights), expected, atol=1e-10)


def test_products_are_those_of_the_columns(operator):
    curvature = np.random.default_rng(1).random((60, 2))
    total, mean, diagonal, neighbour = operator.products(curvature)
    Z, D = operator.dense(), curvature
    np.testing.assert_allclose(total, D.sum(axis=0))
    np.testing.assert_allclose(mean, Z.T @ D, atol=1e-10)
    np.testing.assert_allclose(diagonal, (Z**2).T @ D, atol=1e-10)
    expected = np.zeros((operator.n_columns, 2))
    products = (Z[:, 1:] * Z[:, :-1]).T @ D
    expected[1:] = np.where(operator.is_chained[1:, None], products, 0.0)
    np.testing.assert_allclose(neighbour, expected, atol=1e-10)


def test_cells_of_a_fern_are_marked(operator):
    parts = operator.parts if isinstance(operator, JointOperator) else [operator]
    expected = [isinstance(part.cells, Cells) for part in parts for _ in range(part.n_columns)]
    np.testing.assert_array_equal(operator.is_cell, expected)
    assert not (operator.is_cell & operator.is_chained).any()


def test_distance_is_the_weight_of_maps_that_differ(engine, make_codes):
    codes, others = make_codes(30), make_codes(20, seed=1)
    cells = Cells(codes.offsets)
    weights = np.random.default_rng(0).random(5)
    differ = codes.values[:, :, None] != others.values[:, None, :]
    np.testing.assert_allclose(
        cells.distance(codes, others, weights, engine),
        np.tensordot(weights, differ, axes=1),
        atol=1e-12,
    )
    own = cells.distance(codes, codes, weights, engine)
    np.testing.assert_allclose(np.diag(own), 0.0, atol=1e-12)


def test_active_columns_are_those_of_the_matrix(operator):
    parts = operator.parts if isinstance(operator, JointOperator) else [operator]
    for part in parts:
        columns, n_columns = part.cells.active_columns(part.plain_codes)
        active = np.zeros((60, n_columns))
        active[np.arange(60)[:, None], columns] = 1.0
        Z = used_columns(part)
        if isinstance(part.cells, Cells):
            np.testing.assert_array_equal(active, Z)
        else:
            np.testing.assert_array_equal(active[:, 0::2], Z > 0)
            np.testing.assert_array_equal(active[:, 1::2], Z < 0)


# --- Parts of the rows and of the maps ---


@pytest.mark.parametrize("rows", [np.array([5, 0, 59, 5]), np.array([], dtype=np.intp)])
def test_take_is_indexing(operator, rows):
    taken, narrow = operator.take(rows), operator.take_narrow(rows)
    assert taken.n_rows == narrow.n_rows == rows.size
    np.testing.assert_array_equal(taken.dense(), operator.dense()[rows])
    weights = columns_for(operator, 2)
    expected = operator.dense()[rows] @ weights
    np.testing.assert_allclose(taken.forward(weights), expected, atol=1e-10)
    np.testing.assert_allclose(narrow.forward(weights), expected, atol=1e-10)


def test_a_narrow_operator_gives_the_same(operator):
    weights, narrowed = columns_for(operator, 1), operator.narrowed()
    expected = operator.forward(weights)
    np.testing.assert_array_equal(narrowed.forward(weights), expected)
    operator.forget_narrow()
    np.testing.assert_array_equal(operator.forward(weights), expected)


@pytest.mark.parametrize("share_kept", [0.0, 0.2, 0.8, 1.0])
def test_keep_maps_keeps_their_columns(operator, share_kept):
    kept = np.random.default_rng(3).random(operator.n_slots) < share_kept
    kept &= operator.is_map
    part = operator.keep_maps(kept)
    assert part.is_map.sum() == kept.sum()
    expected = operator.dense()[:, operator.spread(kept)]
    np.testing.assert_array_equal(used_columns(part), expected)
    for n_columns in (1, 3):
        weights = columns_for(part, n_columns)
        np.testing.assert_allclose(part.forward(weights), part.dense() @ weights, atol=1e-10)
        residuals = np.random.default_rng(1).normal(size=(60, n_columns))
        np.testing.assert_allclose(part.adjoint(residuals), part.dense().T @ residuals, atol=1e-10)
    values = columns_for(part, 1)
    assert part.collect(values).shape == (part.n_slots, 1)
    gram_weights = kernel_weights_for(part)
    expected = part.dense() @ np.diag(1.0 / part.penalty(gram_weights)) @ part.dense().T
    np.testing.assert_allclose(part.gram(gram_weights), expected, atol=1e-10)


def test_all_maps_of_one_family_may_go(engine):
    generator = np.random.default_rng(0)
    operator = random_operator(["stumps", "ferns"], [3, 4], 30, generator, engine)
    stumps = np.arange(operator.n_slots) < operator.parts[0].n_slots
    for gone in (stumps, ~stumps):
        part = operator.keep_maps(operator.is_map & ~gone)
        expected = operator.dense()[:, operator.spread(operator.is_map & ~gone)]
        np.testing.assert_array_equal(used_columns(part), expected)
        weights = columns_for(part, 1)
        np.testing.assert_allclose(part.forward(weights), part.dense() @ weights, atol=1e-10)
        residuals = generator.normal(size=(30, 1))
        np.testing.assert_allclose(part.adjoint(residuals), part.dense().T @ residuals, atol=1e-10)
        _, mean, _, _ = part.products(np.ones((30, 1)))
        np.testing.assert_allclose(mean[:, 0], part.dense().sum(axis=0), atol=1e-10)


# --- Determinism ---


def test_the_order_of_the_rows_does_not_change_the_bits(operator):
    order = np.random.default_rng(5).permutation(60)
    residuals = np.random.default_rng(1).normal(size=(60, 2))
    np.testing.assert_array_equal(
        operator.take(order).adjoint(residuals[order]), operator.adjoint(residuals)
    )
    weights = kernel_weights_for(operator)
    np.testing.assert_array_equal(
        operator.take(order).gram(weights), operator.gram(weights)[np.ix_(order, order)]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_threads_gives_the_same_bits(make_numba_engine, kind):
    results = []
    for engine in (NumpyEngine(), *map(make_numba_engine, (1, 2, 5))):
        generator = np.random.default_rng(0)
        operator = random_operator(families_in(kind), [3, 5, 2, 9], 200, generator, engine)
        residuals = generator.normal(size=(200, 2))
        results.append(
            [
                operator.forward(columns_for(operator, 3)),
                operator.adjoint(residuals),
                operator.gram(kernel_weights_for(operator)),
                *operator.products(np.abs(residuals[:, :1]))[1:],
            ]
        )
    for other in results[1:]:
        for left, right in zip(results[0], other, strict=True):
            assert left.tobytes() == right.tobytes()


def test_joining_one_operator_is_that_operator(make_codes):
    codes = make_codes()
    operator = MapOperator(codes, Cells(codes.offsets), NumpyEngine())
    assert join([operator]) is operator
    assert isinstance(join([operator, operator]), JointOperator)
