"""Maps and tables: the operator against the matrix it stands for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mbkl.cells import FreeCells, Ladder, operator_of
from mbkl.engine.arrays import offsets_of
from mbkl.engine.codes import DenseCodes, coarsening
from mbkl.engine.rows import ArrayRows
from mbkl.maps import Stumps


def sample(n_rows=50, n_features=4, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, n_features))
    return np.where(generator.random(X.shape) < 0.5, 0.0, X)


@pytest.fixture(params=[np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def operator(request, loops, make_operator):
    X = sample()
    X[:, 2] *= np.random.default_rng(1).random(50) < 0.1  # sparse enough to stay so
    return make_operator(request.param(X), loops=loops)


def columns_for(operator, n_columns, seed=0):
    jumps = np.random.default_rng(seed).normal(size=(operator.n_columns, n_columns))
    return jumps * operator.is_map[:, None]


@pytest.mark.parametrize("n_columns", [1, 3])
def test_forward_is_the_product_with_the_matrix(operator, n_columns):
    jumps = columns_for(operator, n_columns)
    np.testing.assert_allclose(operator.forward(jumps), operator.dense() @ jumps, atol=1e-10)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_adjoint_is_the_product_with_the_transpose(operator, n_columns):
    residuals = np.random.default_rng(1).normal(size=(operator.n_rows, n_columns))
    expected = operator.dense().T @ residuals
    np.testing.assert_allclose(operator.adjoint(residuals), expected, atol=1e-10)


def test_the_matrix_holds_the_signs_of_all_maps():
    X = sample()
    maps, codes = Stumps().fit_codes(ArrayRows(X), np.ones(50), 60, 0)
    operator = operator_of(codes, Ladder(codes.offsets))
    sides = np.where(X[:, maps.stump_features] > maps.edges.thresholds, 1.0, -1.0)
    np.testing.assert_array_equal(operator.dense()[:, operator.is_map], sides)
    assert not operator.dense()[:, ~operator.is_map].any()


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 20), st.integers(0, 2**32)
)
def test_adjointness(n_cells, n_rows, seed):
    generator = np.random.default_rng(seed)
    offsets = offsets_of(n_cells)
    values = np.array([generator.integers(count, size=n_rows) for count in n_cells], dtype=np.uint8)
    operator = operator_of(DenseCodes(values, offsets), Ladder(offsets))
    jumps = columns_for(operator, 1, seed)
    residuals = generator.normal(size=(n_rows, 1))
    left = (operator.forward(jumps) * residuals).sum()
    right = (jumps * operator.adjoint(residuals)).sum()
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 2**32))
def test_tables_follow_their_definition(n_cells, seed):
    ladder = Ladder(offsets_of(n_cells))
    jumps = np.random.default_rng(seed).normal(size=(ladder.n_cells, 2))
    jumps[~ladder.is_jump] = 0
    tables = ladder.tables(jumps)
    for first, last in zip(ladder.offsets[:-1], ladder.offsets[1:]):
        for cell in range(first, last):
            expected = jumps[first : cell + 1].sum(axis=0) - jumps[cell + 1 : last].sum(axis=0)
            np.testing.assert_allclose(tables[cell], expected, atol=1e-12)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 2**32))
def test_gradient_is_exact_where_sums_wrap_around(n_cells, seed):
    ladder = Ladder(offsets_of(n_cells))
    generator = np.random.default_rng(seed)
    n_rows, largest = 8, 2**58
    rows = [int(value) for value in generator.integers(-largest, largest, size=n_rows)]
    sums = np.zeros((ladder.n_cells, 1), dtype=np.int64)
    expected = np.zeros(ladder.n_cells, dtype=np.int64)
    for first, last in zip(ladder.offsets[:-1], ladder.offsets[1:]):
        codes = generator.integers(first, last, size=n_rows)
        for code, value in zip(codes, rows):
            sums[code] += value
        for cell in range(first + 1, last):
            expected[cell] = sum(v if code >= cell else -v for code, v in zip(codes, rows))
    np.testing.assert_array_equal(ladder.gradient(sums)[:, 0], expected)


def test_the_adjoint_does_not_depend_on_the_order_of_the_rows(operator):
    residuals = np.random.default_rng(2).normal(size=(operator.n_rows, 2))
    order = np.random.default_rng(3).permutation(operator.n_rows)
    shuffled = operator.take(order).adjoint(residuals[order])
    assert shuffled.tobytes() == operator.adjoint(residuals).tobytes()


def test_take_selects_rows(operator):
    rows = np.array([3, 1, 1, 40])
    np.testing.assert_array_equal(operator.take(rows).dense(), operator.dense()[rows])


def test_chain_holds_products_of_columns(operator):
    weights = np.random.default_rng(5).random((operator.n_rows, 1))
    total, *columns = operator.products(weights)
    mean, diagonal, neighbour = (column[:, 0] for column in columns)
    Z = operator.dense()
    gram = Z.T @ (weights * Z)
    is_pair = operator.is_map[1:] & operator.is_map[:-1]
    assert total == pytest.approx(weights.sum())
    np.testing.assert_allclose(mean, Z.T @ weights[:, 0], atol=1e-10)
    np.testing.assert_allclose(diagonal, np.diag(gram), atol=1e-10)
    np.testing.assert_allclose(neighbour[1:], np.where(is_pair, np.diag(gram, 1), 0), atol=1e-10)
    assert neighbour[0] == 0


def test_no_groups(loops, make_codes):
    codes = replace(make_codes(n_rows=5, n_cells=()), loops=loops)
    operator = operator_of(codes, Ladder(codes.offsets))
    np.testing.assert_array_equal(operator.forward(np.empty((0, 2))), np.zeros((5, 2)))
    assert operator.adjoint(np.ones((5, 2))).shape == (0, 2)
    assert operator.dense().shape == (5, 0)


# --- What both kinds of cells have in common ---


KINDS = pytest.mark.parametrize("kind", [Ladder, FreeCells])


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 2**32))
def test_free_cells_spread_and_collect(n_cells, seed):
    generator = np.random.default_rng(seed)
    cells = FreeCells(offsets_of(n_cells))
    matrix = np.zeros((cells.n_cells, cells.n_slots))
    matrix[np.arange(cells.n_cells), cells.group] = 1.0
    weights, values = generator.normal(size=cells.n_slots), generator.normal(size=cells.n_cells)
    np.testing.assert_array_equal(cells.spread(weights), matrix @ weights)
    np.testing.assert_allclose(cells.collect(values), matrix.T @ values, atol=1e-12)
    np.testing.assert_allclose(cells.penalty(np.exp(weights)), 1 / (matrix @ np.exp(weights)))


@KINDS
def test_distance_is_the_weight_of_maps_that_differ(loops, make_codes, kind):
    codes, others = (replace(make_codes(n, seed=n), loops=loops) for n in (30, 20))
    cells = kind(codes.offsets)
    weights = np.random.default_rng(0).random(cells.n_slots) * cells.is_map
    if kind is FreeCells:
        differ = codes.values[:, :, None] != others.values[:, None, :]
    else:
        left, right = cells.columns(codes).T, cells.columns(others).T
        differ = left[:, :, None] != right[:, None, :]
    np.testing.assert_allclose(
        cells.distance(codes, others, weights), np.tensordot(weights, differ, axes=1), atol=1e-12
    )
    own = cells.distance(codes, codes, weights)
    np.testing.assert_allclose(np.diag(own), 0.0, atol=1e-12)
    assert (own >= 0).all()


@KINDS
def test_signed_maps_are_columns_times_signs(make_codes, kind):
    codes = make_codes(30)
    cells = kind(codes.offsets)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=cells.n_cells)
    expected = cells.columns(codes) * signs
    if kind is FreeCells:  # a row is in one cell of each group
        expected = np.add.reduceat(expected, cells.offsets[:-1], axis=1)
    np.testing.assert_array_equal(cells.signed(codes, signs), expected)


@KINDS
def test_lines_of_pairs_are_those_of_the_signed_maps(make_codes, kind):
    torch = pytest.importorskip("torch", reason="Torch is not installed.")
    codes = make_codes(30)
    cells, generator = kind(codes.offsets), np.random.default_rng(0)
    signs = generator.choice([-1.0, 1.0], size=(cells.n_cells, 3))
    rows, classes = generator.integers(30, size=50), generator.integers(3, size=50)
    slots = np.flatnonzero(cells.is_map)
    lines = cells.signed_lines(
        torch.as_tensor(codes.values[:, rows]),
        torch.as_tensor(classes),
        torch.as_tensor(signs),
        slots,
    )
    by_class = np.stack([cells.signed(codes, signs[:, column]) for column in range(3)])
    np.testing.assert_array_equal(lines.float().numpy(), by_class[classes, rows][:, slots].T)
    everywhere = lines.new_zeros((cells.n_slots, 50))
    everywhere[torch.as_tensor(slots)] = lines
    kept = generator.random(cells.n_slots) < 0.5
    some, fewer = cells.keep_lines(everywhere, kept)
    expected = everywhere[torch.as_tensor(kept & cells.is_map)]
    assert torch.equal(some[torch.as_tensor(fewer.is_map)], expected)
    assert fewer.n_slots == len(some)


@KINDS
def test_keeping_maps_keeps_their_columns(loops, make_codes, kind):
    codes = replace(make_codes(30), loops=loops)
    cells = kind(codes.offsets)
    kept = (np.random.default_rng(0).random(cells.n_slots) < 0.5) & cells.is_map
    some_codes, some = cells.keep(codes, kept)
    assert isinstance(some, kind)
    assert some_codes.loops is loops
    found = some.columns(some_codes)[:, some.spread(some.is_map)]
    np.testing.assert_array_equal(found, cells.columns(codes)[:, cells.spread(kept)])


def test_joined_cells_are_those_between_kept_maps(make_codes):
    codes = make_codes(30)
    ladder = Ladder(codes.offsets)
    kept = np.arange(ladder.n_slots) % 3 == 1
    _, some = ladder.keep(codes, kept)
    plan = coarsening(codes.offsets, kept[ladder.is_map])
    np.testing.assert_array_equal(some.offsets, plan.offsets)
