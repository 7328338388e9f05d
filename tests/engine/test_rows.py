"""Rows of X: read block by block, drawn from, and coded; neither order nor format matters."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mbkl.engine.rows import (
    ArrayRows,
    BlockRows,
    FloatRows,
    SomeRows,
    SparseRows,
    as_rows,
    blocks_of,
    first_by_hash,
    steps,
)
from mbkl.maps import Ferns, Stumps


class Source:
    """What reads rows from elsewhere: here from an array."""

    def __init__(self, X):
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    def blocks(self, step):
        yield from ArrayRows(self._X).blocks(step)


def some_values(n_rows=30, n_features=2):
    return np.random.default_rng(0).normal(size=(n_rows, n_features))


FORMS = {
    "array": ArrayRows,
    "some": lambda X: SomeRows(ArrayRows(np.repeat(X, 2, axis=0)), 2 * np.arange(len(X))),
    "numbers": FloatRows,
    "blocks": lambda X: BlockRows(Source(X)),
}
EVERY_FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


# --- Blocks ---


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 12))
def test_cutting_anew_loses_nothing(lengths, step):
    values = np.arange(sum(lengths))[:, None]
    pieces = np.split(values, np.cumsum(lengths)[:-1]) if lengths else []
    blocks = list(blocks_of(pieces, step))
    assert all(rows.stop - rows.start == len(block) for rows, block in blocks)
    assert all(len(block) == step for _, block in blocks[:-1])
    joined = np.concatenate([block for _, block in blocks]) if blocks else values
    np.testing.assert_array_equal(joined, values)


@given(st.integers(0, 30), st.integers(0, 12))
def test_steps_cover_a_range(length, step):
    covered = [number for part in steps(length, step) for number in range(length)[part]]
    assert covered == list(range(length))


@EVERY_FORM
@pytest.mark.parametrize("step", [1, 7, 100])
def test_blocks_are_all_rows_in_order(form, step):
    X = some_values()
    rows = form(X)
    assert rows.shape == X.shape
    assert rows.dtype == X.dtype
    blocks = list(rows.blocks(step))
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), X)
    assert [own.start for own, _ in blocks] == list(range(0, 30, step))


@EVERY_FORM
def test_column_ranges_leave_out_missing_values(form, monkeypatch):
    monkeypatch.setattr("mbkl.engine.rows._VALUES_AT_ONCE", 10)
    X = some_values(n_features=3)
    X[4, 1] = np.nan
    X[:, 2] = np.nan
    low, high, missing = form(X).column_ranges()
    np.testing.assert_array_equal(low[:2], np.nanmin(X[:, :2], axis=0))
    np.testing.assert_array_equal(high[:2], np.nanmax(X[:, :2], axis=0))
    assert np.isnan([low[2], high[2]]).all()
    np.testing.assert_array_equal(missing, [False, True, True])


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
def test_column_ranges_of_a_sparse_matrix_count_its_zeros(form):
    X = np.abs(some_values(n_features=3)) + 1.0
    X[::2, 0] = 0.0
    X[4, 1] = np.nan
    low, high, missing = SparseRows(form(X)).column_ranges()
    np.testing.assert_array_equal(low, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(high, np.nanmax(X, axis=0))
    np.testing.assert_array_equal(missing, [False, True, False])


# --- Some of the rows ---


@pytest.mark.parametrize("step", [1, 3, 100])
def test_some_rows_are_those_of_the_matrix(step):
    X, rows = some_values(), np.array([0, 5, 6, 17, 29])
    for whole in (ArrayRows(X), BlockRows(Source(X))):
        part = SomeRows(whole, rows)
        assert part.shape == (5, 2)
        assert part.in_files == whole.in_files
        blocks = [block for _, block in part.blocks(step)]
        np.testing.assert_array_equal(np.concatenate(blocks), X[rows])


@EVERY_FORM
def test_rows_are_taken_in_the_given_order(form, monkeypatch):
    monkeypatch.setattr("mbkl.engine.rows._VALUES_AT_ONCE", 10)
    X, wanted = some_values(), np.array([7, 3, 3, 29, 0])
    np.testing.assert_array_equal(form(X).take(wanted), X[wanted])


def test_rows_of_a_sparse_matrix_are_taken_as_an_array():
    X, wanted = some_values(), np.array([7, 3, 3, 29, 0])
    np.testing.assert_array_equal(SparseRows(sparse.csr_array(X)).take(wanted), X[wanted])


@EVERY_FORM
def test_a_part_of_the_rows_has_their_values(form):
    X, rows = some_values(), np.array([0, 5, 6, 17, 29])
    part = form(X).some(rows)
    np.testing.assert_array_equal(part.in_memory().X, X[rows])
    np.testing.assert_array_equal(part.some(np.array([1, 4])).in_memory().X, X[[5, 29]])


def test_a_part_of_a_sparse_matrix_is_sparse():
    X, rows = some_values(), np.array([0, 5, 6, 17, 29])
    part = SparseRows(sparse.csr_array(X)).some(rows)
    np.testing.assert_array_equal(part.X.toarray(), X[rows])
    np.testing.assert_array_equal(part.block(slice(1, 3)).X.toarray(), X[[5, 6]])


@pytest.mark.parametrize(
    ("kind", "form"), [(ArrayRows, np.asarray), (SparseRows, sparse.csr_array)]
)
def test_rows_in_memory_keep_their_loops(make_compiled, kind, form):
    loops, X = make_compiled(1), some_values()
    rows = kind(form(X), loops)
    parts = (rows.in_memory(), rows.some(np.arange(3)), rows.block(slice(3)), rows.with_columns(X))
    assert all(part.loops is loops for part in parts)
    assert isinstance(rows.with_columns(X), ArrayRows)
    assert rows.in_memory() is rows


# --- Where the rows are ---


def test_only_rows_that_are_in_memory_take_none():
    X = np.zeros((10, 4), dtype=np.float32)
    assert ArrayRows(X).bytes_to_copy == 0
    assert SparseRows(sparse.csr_array(X)).bytes_to_copy == 0
    assert BlockRows(Source(X)).bytes_to_copy == 160
    assert FloatRows(X.astype(np.uint8)).bytes_to_copy == 160


def test_some_rows_of_an_array_are_a_copy_of_their_size():
    whole = ArrayRows(np.zeros((10, 4)))
    assert SomeRows(whole, np.array([1, 5, 6])).bytes_to_copy == 3 * 4 * 8


def test_only_rows_that_another_object_reads_may_be_more_than_memory_holds():
    X = np.zeros((10, 4))
    files = BlockRows(Source(X))
    assert files.in_files
    assert SomeRows(files, np.array([1, 2])).in_files
    assert not files.in_memory().in_files
    assert not any(rows.in_files for rows in (ArrayRows(X), FloatRows(X), as_rows(X)))


def test_only_sparse_matrices_cannot_be_read_by_blocks():
    X = np.zeros((10, 4))
    assert not SparseRows(sparse.csr_array(X)).reads_blocks
    assert all(form(X).reads_blocks for form in FORMS.values())


def test_rows_are_recognised():
    X = some_values()
    assert isinstance(as_rows(X), ArrayRows)
    assert isinstance(as_rows(Source(X)), BlockRows)
    for form in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix):
        assert isinstance(as_rows(form(X)), SparseRows)
    rows = FloatRows(X)
    assert as_rows(rows) is rows


# --- Numbers of other types ---


@pytest.mark.parametrize(
    ("dtype", "read_as"),
    [
        (np.uint8, np.float32),
        (np.int16, np.float32),
        (np.bool_, np.float32),
        (np.int32, np.float64),
        (np.int64, np.float64),
        (np.float32, np.float32),
        (np.float64, np.float64),
    ],
)
def test_numbers_are_read_as_the_smallest_floating_point(dtype, read_as):
    X = np.arange(12).reshape(6, 2).astype(dtype)
    rows = FloatRows(X)
    assert rows.dtype == read_as
    for own, block in rows.blocks(4):
        assert block.dtype == read_as
        np.testing.assert_array_equal(block, X[own])


def test_infinite_values_are_refused_where_they_are_read():
    X = some_values()
    X[20, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinite values; remove or clip"):
        list(FloatRows(X).blocks(7))


# --- Codes ---


@pytest.mark.parametrize("family", [Stumps(), Ferns(depth=3)], ids=repr)
def test_codes_are_made_by_the_loops_of_the_rows(loops, family):
    X = some_values(60, 4)
    for rows in (as_rows(X), as_rows(sparse.csr_array(X))):
        _, codes = family.fit_codes(replace(rows, loops=loops), np.ones(60), 20, 0)
        assert codes.loops is loops


def test_ferns_of_a_sparse_matrix_are_coded_in_parts(loops, monkeypatch):
    X = some_values(60, 4)
    maps, codes = Ferns(depth=3).fit_codes(ArrayRows(X, loops), np.ones(60), 20, 0)
    monkeypatch.setattr("mbkl.engine.rows._SPARSE_VALUES_AT_ONCE", 30)
    for form in (sparse.csr_array, sparse.csc_array):
        found = SparseRows(form(X), loops).bin_ferns(maps)
        np.testing.assert_array_equal(found.values, codes.values)


# --- Samples ---


def rows_with_repeats(n_rows=300, seed=0):
    generator = np.random.default_rng(seed)
    # A coarse grid: many rows are equal, and many values zero.
    X = generator.integers(-1, 3, size=(n_rows, 3)) / 4
    X[generator.random(X.shape) < 0.1] = np.nan
    return X, generator.integers(2, size=n_rows), generator.random(n_rows) + 0.5


def assert_same(left, right):
    np.testing.assert_array_equal(left.X, right.X)
    np.testing.assert_array_equal(left.y, right.y)
    np.testing.assert_array_equal(left.weights, right.weights)


def as_dict(X, y, weights):
    """Add up the weights of equal rows, by the definition."""
    masses: dict = {}
    for row, label, weight in zip(X, y, weights, strict=True):
        key = (*("missing" if np.isnan(value) else float(value) for value in row), int(label))
        masses[key] = masses.get(key, 0.0) + weight
    return masses


@pytest.mark.parametrize("n_rows", [10, 1000])
def test_the_order_of_the_rows_does_not_matter(n_rows):
    X, y, weights = rows_with_repeats()
    expected = ArrayRows(X).sample(y, weights, n_rows, 0)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        assert_same(ArrayRows(X[order]).sample(y[order], weights[order], n_rows, 0), expected)


def test_the_order_of_nearly_equal_rows_does_not_matter():
    """Values that single precision cannot tell apart count as equal."""
    X = np.array([[1.0], [1.0 + 1e-12], [2.0]])
    y, weights = np.zeros(3, dtype=int), np.ones(3)
    expected = ArrayRows(X).sample(y, weights, 10, 0)
    assert expected.weights.tolist().count(2.0) == 1
    order = [1, 0, 2]
    assert_same(ArrayRows(X[order]).sample(y[order], weights[order], 10, 0), expected)


def test_equal_rows_are_merged_with_their_weights():
    X, y, weights = rows_with_repeats()
    sample = ArrayRows(X).sample(y, weights, 1000, 0)
    expected = as_dict(X, y, weights)
    found = as_dict(sample.X, sample.y, sample.weights)
    assert len(sample.y) == len(expected) == len(found)
    assert found.keys() == expected.keys()
    for key, mass in expected.items():
        assert found[key] == pytest.approx(mass)


def test_a_weight_is_a_repetition():
    X, y, _ = rows_with_repeats()
    times = np.random.default_rng(1).integers(1, 4, size=len(X))
    weighted = ArrayRows(X).sample(y, times.astype(float), 40, 0)
    repeated = ArrayRows(np.repeat(X, times, axis=0)).sample(
        np.repeat(y, times), np.ones(times.sum()), 40, 0
    )
    assert_same(weighted, repeated)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_is_dense(form):
    X, y, weights = rows_with_repeats()
    expected = ArrayRows(X).sample(y, weights, 50, 0)
    assert_same(as_rows(form(X)).sample(y, weights, 50, 0), expected)
    assert_same(as_rows(form(X.astype(np.float32))).sample(y, weights, 50, 0), expected)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
def test_stored_zeros_are_zeros(form):
    X, y, weights = rows_with_repeats()
    stored = form(np.where(X == 0, 9.0, X))
    stored.data[stored.data == 9.0] = 0.0
    assert stored.nnz > form(X).nnz
    assert_same(as_rows(stored).sample(y, weights, 50, 0), ArrayRows(X).sample(y, weights, 50, 0))


def test_entries_stored_twice_are_added_up():
    X = sparse.csr_array(([1.0, 1.0, 2.0], [0, 0, 0], [0, 2, 3]), shape=(2, 2))
    sample = as_rows(X).sample(np.zeros(2, dtype=int), np.ones(2), 10, 0)
    np.testing.assert_array_equal(sample.X, [[2.0, 0.0]])
    np.testing.assert_array_equal(sample.weights, [2.0])
    assert X.nnz == 3  # the caller's matrix stays as it is


def test_single_precision_is_double_precision():
    X, y, weights = rows_with_repeats()
    same = ArrayRows(X.astype(np.float32)).sample(y, weights, 50, 0)
    assert same.X.dtype == np.float32
    assert_same(same, ArrayRows(X).sample(y, weights, 50, 0))


def test_zeros_of_either_sign_are_equal():
    X = np.array([[0.0, 1.0], [-0.0, 1.0]])
    sample = ArrayRows(X).sample(np.zeros(2, dtype=int), np.ones(2), 10, 0)
    np.testing.assert_array_equal(sample.weights, [2.0])


def test_missing_values_are_equal():
    other = np.array([0x7FF8_0000_0000_0001], dtype=np.uint64).view(np.float64)[0]
    X = np.array([[np.nan], [-np.nan], [other], [0.0]])
    sample = ArrayRows(X).sample(np.zeros(4, dtype=int), np.ones(4), 10, 0)
    assert sorted(sample.weights) == [1.0, 3.0]


def test_classes_are_not_merged():
    sample = ArrayRows(np.ones((4, 1))).sample(np.array([0, 1, 0, 2]), np.ones(4), 10, 0)
    assert sorted(sample.y) == [0, 1, 2]
    assert sample.weights[sample.y == 0] == 2.0


@pytest.mark.parametrize("n_rows", [1, 7, 40])
def test_there_are_at_most_so_many_different_rows(n_rows):
    X, y, weights = rows_with_repeats()
    sample = ArrayRows(X).sample(y, weights, n_rows, 0)
    assert sample.X.shape == (n_rows, 3)
    assert sample.y.shape == sample.weights.shape == (n_rows,)
    # A smaller sample is a part of a larger one.
    larger = ArrayRows(X).sample(y, weights, n_rows + 5, 0)
    np.testing.assert_array_equal(larger.X[:n_rows], sample.X)


def test_another_seed_draws_other_rows():
    X = np.random.default_rng(0).normal(size=(100, 2))
    y, weights = np.zeros(100, dtype=int), np.ones(100)
    left, right = (ArrayRows(X).sample(y, weights, 20, seed) for seed in (0, 1))
    assert not np.array_equal(left.X, right.X)


def test_rows_are_drawn_without_preference():
    X = np.sort(np.random.default_rng(0).random((2000, 1)), axis=0)
    sample = ArrayRows(X).sample(np.zeros(2000, dtype=int), np.ones(2000), 500, 0)
    assert sample.X.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 500))


def test_keys_in_parts_are_the_same(monkeypatch):
    X, y, _ = rows_with_repeats()
    whole = ArrayRows(X).keys(y, 0)
    monkeypatch.setattr("mbkl.engine.rows._VALUES_AT_ONCE", 10)
    np.testing.assert_array_equal(ArrayRows(X).keys(y, 0), whole)
    np.testing.assert_array_equal(SparseRows(sparse.csr_array(X)).keys(y, 0), whole)
    np.testing.assert_array_equal(BlockRows(Source(X)).keys(y, 0), whole)


def test_the_first_rows_by_hash_are_a_fair_part_of_repeated_rows():
    generator = np.random.default_rng(0)
    X = generator.integers(2, size=(20_000, 2)).astype(float)
    y = generator.integers(2, size=20_000)
    rows = first_by_hash(X, y, 2_000, seed=0)
    assert rows.size == np.unique(rows).size == 2_000
    kinds, counts = np.unique(np.column_stack([X, y])[rows], axis=0, return_counts=True)
    assert len(kinds) == 8
    assert counts.min() > 150


def test_the_first_rows_by_hash_do_not_depend_on_the_order():
    generator = np.random.default_rng(1)
    X = generator.integers(5, size=(500, 2)).astype(float)
    y = np.zeros(500, dtype=int)
    order = generator.permutation(500)
    left, right = first_by_hash(X, y, 100, 0), first_by_hash(X[order], y, 100, 0)
    kinds = [np.unique(part, axis=0, return_counts=True) for part in (X[left], X[order][right])]
    np.testing.assert_array_equal(kinds[0][0], kinds[1][0])
    np.testing.assert_array_equal(kinds[0][1], kinds[1][1])


def test_values_are_a_sample_of_many_rows_or_all_of_a_sparse_matrix():
    X, _, weights = rows_with_repeats()
    values, mass = ArrayRows(X).values(weights, 20, 0)
    sample = ArrayRows(X).sample(None, weights, 20, 0)
    np.testing.assert_array_equal(values, sample.X)
    np.testing.assert_array_equal(mass, sample.weights)
    stored = sparse.csr_array(X)
    assert SparseRows(stored).values(weights, 20, 0) == (stored, weights)
