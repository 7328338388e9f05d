"""From values to codes: by any loops, dense and sparse, against np.searchsorted."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mbkl.engine.codes import DenseCodes, SparseCodes
from mbkl.engine.rows import as_rows
from mbkl.engine.twins import TWINS
from mbkl.maps.stumps import BinEdges

LARGEST = float(np.finfo(np.float32).max)
THRESHOLDS = {
    "one": [0.5],
    "even": np.linspace(-2, 2, 30),
    "equal": [0.5, 0.5, 0.5],
    "some equal": [-1.0, 0.0, 0.0, 0.0, 2.0],
    "widest": [-LARGEST, -1.0, 0.0, 1.0, LARGEST],
    "smallest": [0.0, 1e-45, 2e-45, 3e-45],
    "one ulp": [1.0, float(np.nextafter(np.float32(1), np.float32(2)))],
    "clustered": [*np.linspace(0, 1e-6, 50), 1e6],
    "only missing": [-np.inf],
    "missing and others": [-np.inf, -1.0, 0.25, 3.0],
    "two bytes": np.linspace(-3, 3, 700),
}
SPARSE_FORMATS = [sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix]


def edges_of(*groups) -> BinEdges:
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    return BinEdges(np.concatenate(groups).astype(np.float64), offsets.astype(np.int64))


def bin_columns(X, features, edges, loops=TWINS):
    """Return the codes of some columns of a matrix, dense or sparse."""
    return replace(as_rows(X), loops=loops).bin(features, edges)


def sorted_float32(values):
    """Return thresholds as they are drawn: numbers of float32."""
    return np.sort(np.asarray(values, dtype=np.float32)).astype(float)


def expected_codes(X, features, groups):
    with np.errstate(over="ignore"):
        X = X.astype(np.float32).astype(float)
    codes = np.array([np.searchsorted(g, X[:, f]) for f, g in zip(features, groups)])
    return np.where(np.isnan(X[:, features].T), 0, codes)


def awkward_values(thresholds):
    """Return values on, just beside, between and far from the thresholds."""
    finite = np.array([value for value in thresholds if np.isfinite(value)] or [0.0])
    beside = [np.nextafter(finite, -np.inf), finite, np.nextafter(finite, np.inf)]
    beside += [np.nextafter(np.float32(finite), np.float32(end)) for end in (-np.inf, np.inf)]
    between = (finite[1:] + finite[:-1]) / 2
    far = [-1.7e308, -LARGEST, -1.0, -0.0, 0.0, 1.0, LARGEST, 1.7e308, np.nan]
    return np.concatenate([*beside, between, far])


@pytest.fixture(scope="module")
def compiled():
    from mbkl.engine.compiled import Compiled

    return Compiled(1)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_codes_count_thresholds_below_the_value(loops, name):
    thresholds = sorted_float32(THRESHOLDS[name])
    X = awkward_values(thresholds)[:, None]
    codes = bin_columns(X, np.array([0]), edges_of(thresholds), loops)
    np.testing.assert_array_equal(codes.values, expected_codes(X, [0], [thresholds]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_groups_at_once(loops, dtype):
    groups = [sorted_float32(values) for values in THRESHOLDS.values()]
    X = np.random.default_rng(0).normal(size=(90, len(groups) + 2)).astype(dtype)
    X[::7] = np.nan
    features = np.random.default_rng(1).permutation(len(groups) + 2)[: len(groups)]
    codes = bin_columns(X, features, edges_of(*groups), loops)
    assert codes.values.dtype == np.uint16
    np.testing.assert_array_equal(codes.values, expected_codes(X, features, groups))


def test_a_value_on_a_threshold_is_not_above_it(loops):
    X = np.array([[0.0], [1.0], [2.0]])
    codes = bin_columns(X, np.array([0]), edges_of([1.0]), loops)
    np.testing.assert_array_equal(codes.values, [[0, 0, 1]])


def test_missing_values_are_below_all_thresholds(loops):
    X = np.array([[np.nan], [-LARGEST], [5.0]])
    codes = bin_columns(X, np.array([0]), edges_of([-np.inf, 0.0]), loops)
    np.testing.assert_array_equal(codes.values, [[0, 1, 2]])


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40),
    st.lists(st.floats(allow_infinity=False), min_size=1, max_size=40),
)
def test_compiled_search_is_exact_for_any_numbers(compiled, thresholds, values):
    thresholds, X = np.sort(thresholds), np.array(values)[:, None]
    codes = bin_columns(X, np.array([0]), edges_of(thresholds), compiled)
    np.testing.assert_array_equal(codes.values, expected_codes(X, [0], [thresholds]))


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(np.asfortranarray, id="column-major"),
        pytest.param(lambda X: np.repeat(X, 2, axis=0)[::2], id="every second row"),
        pytest.param(lambda X: np.repeat(X, 2, axis=1)[:, ::2], id="every second column"),
        pytest.param(lambda X: X[::-1][::-1], id="negative strides"),
    ],
)
def test_memory_layout_does_not_matter(loops, prepare):
    X = np.random.default_rng(2).normal(size=(50, 3))
    edges = edges_of(np.linspace(-1, 1, 5), np.linspace(0, 1, 9))
    features = np.array([0, 2])
    expected = bin_columns(X, features, edges, loops).values
    np.testing.assert_array_equal(bin_columns(prepare(X), features, edges, loops).values, expected)


def test_read_only_values_are_binned(loops):
    X = np.random.default_rng(2).normal(size=(50, 1))
    X.flags.writeable = False
    thresholds = np.linspace(-1, 1, 5)
    codes = bin_columns(X, np.array([0]), edges_of(thresholds), loops)
    np.testing.assert_array_equal(codes.values, expected_codes(X, [0], [thresholds]))


def sparse_values(density=0.1, n_rows=80, n_features=5):
    generator = np.random.default_rng(3)
    X = generator.normal(size=(n_rows, n_features))
    X[generator.random(X.shape) > density] = 0.0
    X[0] = np.nan
    X[1, 0] = np.inf
    return X


SPARSE_GROUPS = [
    np.linspace(-1, 1, 5),
    np.array([0.0]),
    np.array([-np.inf, 0.5]),
    np.linspace(-1, 1, 300),
]
SPARSE_FEATURES = np.array([0, 1, 3, 4])


@pytest.mark.parametrize("make", SPARSE_FORMATS)
def test_sparse_codes_equal_dense_codes(loops, make):
    X, edges = sparse_values(), edges_of(*SPARSE_GROUPS)
    dense = bin_columns(X, SPARSE_FEATURES, edges, loops)
    codes = bin_columns(make(X), SPARSE_FEATURES, edges, loops)
    assert isinstance(codes, SparseCodes)
    np.testing.assert_array_equal(codes.dense().values, dense.values)
    np.testing.assert_array_equal(codes.offsets, dense.offsets)


def test_zeros_are_not_stored():
    X, edges = sparse_values(), edges_of(*SPARSE_GROUPS)
    codes = bin_columns(sparse.csr_array(X), SPARSE_FEATURES, edges)
    assert codes.entries[0].size <= np.count_nonzero(X[:, SPARSE_FEATURES])


def test_full_matrices_get_dense_codes():
    X, edges = sparse_values(density=1.0), edges_of(*SPARSE_GROUPS)
    codes = bin_columns(sparse.csr_array(X), SPARSE_FEATURES, edges)
    assert isinstance(codes, DenseCodes)
    expected = bin_columns(X, SPARSE_FEATURES, edges)
    np.testing.assert_array_equal(codes.values, expected.values)


@pytest.mark.parametrize("make", SPARSE_FORMATS)
def test_explicit_zeros_are_zeros(make):
    X, edges = sparse_values(), edges_of(*SPARSE_GROUPS)
    stored = make(np.where(X == 0, 7.0, X))
    stored.data[stored.data == 7.0] = 0.0
    codes = bin_columns(stored, SPARSE_FEATURES, edges)
    expected = bin_columns(X, SPARSE_FEATURES, edges)
    np.testing.assert_array_equal(codes.dense().values, expected.values)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_repeated_entries_are_added_up_and_left_as_they_are(make):
    data, indices, indptr = [1.0, -3.0, 2.0], [0, 0, 1], [0, 2, 3]
    X = make((np.array(data), np.array(indices), np.array(indptr)), shape=(2, 2))
    dense = X.toarray()
    edges, features = edges_of([-2.5, -1.5, 0.5], [0.5, 1.5]), np.array([0, 1])
    codes = bin_columns(X, features, edges)
    expected = bin_columns(dense, features, edges)
    np.testing.assert_array_equal(codes.dense().values, expected.values)
    np.testing.assert_array_equal(X.data, data)


def test_no_group_gives_no_codes(loops):
    X, edges = np.zeros((6, 2)), BinEdges(np.empty(0), np.zeros(1, dtype=np.int64))
    for values in (X, sparse.csr_array(X)):
        codes = bin_columns(values, np.empty(0, dtype=np.intp), edges, loops)
        assert (codes.n_groups, codes.n_rows, codes.n_cells) == (0, 6, 0)
