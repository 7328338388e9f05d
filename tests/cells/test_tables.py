"""Maps and tables: the operator against the matrix it stands for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.learn.operator import MapOperator
from mbkl.learn.tables import Ladder


def sample(n_rows=50, n_features=4, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, n_features))
    return np.where(generator.random(X.shape) < 0.5, 0.0, X)


@pytest.fixture(params=[np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def operator(request, engine, make_operator):
    X = sample()
    X[:, 2] *= np.random.default_rng(1).random(50) < 0.1  # sparse enough to stay so
    return make_operator(request.param(X), engine=engine)


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


def test_the_matrix_holds_the_signs_of_all_maps(make_operator):
    from mbkl.maps import Stumps

    X = sample()
    maps, codes = Stumps().fit_codes(X, np.ones(50), 60, 0, NumpyEngine())
    operator = MapOperator(codes, Ladder(codes.offsets), NumpyEngine())
    sides = np.where(X[:, maps.stump_features] > maps.edges.thresholds, 1.0, -1.0)
    np.testing.assert_array_equal(operator.dense()[:, operator.is_map], sides)
    assert not operator.dense()[:, ~operator.is_map].any()


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 20), st.integers(0, 2**32)
)
def test_adjointness(n_cells, n_rows, seed):
    generator = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(n_cells)]).astype(np.int64)
    values = np.array([generator.integers(count, size=n_rows) for count in n_cells], dtype=np.uint8)
    from mbkl.engine.codes import DenseCodes

    operator = MapOperator(DenseCodes(values, offsets), Ladder(offsets), NumpyEngine())
    jumps = columns_for(operator, 1, seed)
    residuals = generator.normal(size=(n_rows, 1))
    left = (operator.forward(jumps) * residuals).sum()
    right = (jumps * operator.adjoint(residuals)).sum()
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 2**32))
def test_tables_follow_their_definition(n_cells, seed):
    ladder = Ladder(np.concatenate([[0], np.cumsum(n_cells)]).astype(np.int64))
    jumps = np.random.default_rng(seed).normal(size=(ladder.n_cells, 2))
    jumps[~ladder.is_jump] = 0
    tables = ladder.tables(jumps)
    for first, last in zip(ladder.offsets[:-1], ladder.offsets[1:]):
        for cell in range(first, last):
            expected = jumps[first : cell + 1].sum(axis=0) - jumps[cell + 1 : last].sum(axis=0)
            np.testing.assert_allclose(tables[cell], expected, atol=1e-12)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 2**32))
def test_gradient_is_exact_where_sums_wrap_around(n_cells, seed):
    ladder = Ladder(np.concatenate([[0], np.cumsum(n_cells)]).astype(np.int64))
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


def test_no_groups(engine, make_codes):
    codes = make_codes(n_rows=5, n_cells=())
    operator = MapOperator(codes, Ladder(codes.offsets), engine)
    np.testing.assert_array_equal(operator.forward(np.empty((0, 2))), np.zeros((5, 2)))
    assert operator.adjoint(np.ones((5, 2))).shape == (0, 2)
    assert operator.dense().shape == (5, 0)
