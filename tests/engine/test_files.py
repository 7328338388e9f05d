"""Codes in files: those of memory to the bit, in every operation."""

import os

import numpy as np
import pytest

from mbkl.engine import files
from mbkl.engine.codes import DenseCodes, coarsening
from mbkl.engine.files import DiskArray, FileCodes, FileRows
from mbkl.engine.rows import ArrayRows, BlockRows, SomeRows
from mbkl.maps import Ferns, Stumps

# Enough for groups to be joined.
N_ROWS = 600

# --- Arrays in files ---


def filled(folder, values, block_rows):
    array = DiskArray(folder, values.shape, values.dtype, block_rows)
    for rows in array.block_slices():
        array.write(rows, values[:, rows])
    return array


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("block_rows", [1, 7, 20, 100])
def test_blocks_are_what_was_written(tmp_path, dtype, block_rows):
    values = np.random.default_rng(0).integers(200, size=(3, 20)).astype(dtype)
    array = filled(tmp_path, values, block_rows)
    blocks = list(array.blocks())
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks], axis=1), values)
    assert [rows.start for rows, _ in blocks] == list(range(0, 20, block_rows))
    assert (array.shape, array.dtype) == (values.shape, values.dtype)


def test_nothing_is_left_in_the_folder(tmp_path):
    array = filled(tmp_path, np.zeros((2, 5), np.uint8), 2)
    assert os.listdir(tmp_path) == []
    del array


def test_empty_arrays(tmp_path):
    for shape in ((0, 5), (3, 0)):
        array = filled(tmp_path, np.zeros(shape, np.uint8), 2)
        assert sum(block.size for _, block in array.blocks()) == 0


def test_a_file_that_ends_too_early_is_an_error(tmp_path):
    array = DiskArray(tmp_path, (2, 5), np.dtype(np.uint8), 5)
    with pytest.raises(OSError, match="ends too early"):
        array.read(slice(0, 5))


def test_values_of_another_type_are_converted(tmp_path):
    array = DiskArray(tmp_path, (1, 2), np.dtype(np.uint8), 2)
    array.write(slice(0, 2), np.array([[1, 2]], dtype=np.int64))
    np.testing.assert_array_equal(array.read(slice(0, 2)), [[1, 2]])


# --- Codes ---


@pytest.fixture
def rows(tmp_path, monkeypatch, loops, make_data):
    """The same rows, whose codes are made in memory and in files."""
    monkeypatch.setattr(files, "FEW_ROWS_OF_A_FILE", 5)
    in_memory = ArrayRows(make_data(N_ROWS, 4)[0], loops)
    return in_memory, FileRows(in_memory, loops, tmp_path, block_rows=16)


@pytest.fixture
def codes(rows):
    """The same codes in memory and in a file."""
    both = [Stumps().fit_codes(own, np.ones(N_ROWS), 20, 0)[1] for own in rows]
    assert isinstance(both[0], DenseCodes)
    assert isinstance(both[1], FileCodes)
    return both


def assert_same_codes(in_memory, in_file):
    expected, found = in_memory, in_file.dense()
    assert found.values.dtype == expected.values.dtype
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(in_file.offsets, in_memory.offsets)
    assert in_file.n_rows == in_memory.n_rows


@pytest.mark.parametrize("n_columns", [1, 3])
def test_the_two_hot_operations(codes, n_columns):
    generator = np.random.default_rng(0)
    tables = generator.normal(size=(codes[0].n_cells, n_columns))
    residuals = generator.integers(-100, 100, size=(N_ROWS, n_columns))
    in_memory, in_file = codes
    assert in_file.gather(tables).tobytes() == in_memory.gather(tables).tobytes()
    np.testing.assert_array_equal(in_file.histogram(residuals), in_memory.histogram(residuals))
    np.testing.assert_array_equal(in_file.counts(), in_memory.counts())


def test_the_dense_form_is_that_in_memory(codes):
    in_memory, in_file = codes
    assert isinstance(in_file.dense(), DenseCodes)
    assert in_file.dense().loops is in_memory.loops
    assert_same_codes(in_memory, in_file)


@pytest.mark.parametrize("taken", [[3, 1], [99, 0, 550] * 20, np.arange(0, N_ROWS, 2)])
def test_many_rows_are_taken_into_a_file_and_few_into_memory(codes, taken):
    numbers = np.asarray(taken)
    taken = [own.take(numbers) for own in codes]
    assert isinstance(taken[1], FileCodes if numbers.size > 16 else DenseCodes)
    assert_same_codes(*taken)
    again = [own.take(np.array([1, 0])) for own in taken]
    assert isinstance(again[1], DenseCodes)
    assert_same_codes(*again)


def test_fewer_boundaries_and_fewer_groups(codes):
    keep = np.random.default_rng(0).random(codes[0].n_cells - codes[0].n_groups) < 0.5
    plan = coarsening(codes[0].offsets, keep)
    assert_same_codes(*(own.coarsen(plan) for own in codes))
    assert_same_codes(*(own.keep_groups(np.array([2, 0])) for own in codes))


# --- Rows ---


@pytest.mark.parametrize(
    "family", [Stumps(), Stumps(thresholds="quantile"), Ferns(depth=3)], ids=repr
)
@pytest.mark.parametrize("kind", ["array", "blocks", "some"])
def test_maps_and_codes_are_the_same(rows, family, kind, tmp_path):
    in_memory, in_files = rows
    if kind == "blocks":
        in_files = FileRows(BlockRows(in_memory), in_memory.loops, tmp_path, block_rows=16)
    elif kind == "some":
        chosen = np.arange(0, N_ROWS, 3)
        some = SomeRows(in_memory, chosen)
        in_files = FileRows(some, in_memory.loops, tmp_path, block_rows=16)
        in_memory = in_memory.some(chosen)
    weights = np.random.default_rng(1).random(in_memory.shape[0]) + 0.5
    maps, codes = family.fit_codes(in_memory, weights, 30, 0)
    same_maps, same_codes = family.fit_codes(in_files, weights, 30, 0)
    assert isinstance(same_codes, FileCodes)
    assert_same_codes(codes, same_codes)
    assert same_maps.n_maps == maps.n_maps
    if isinstance(family, Ferns):
        np.testing.assert_array_equal(same_maps.numbers, maps.numbers)
        np.testing.assert_array_equal(same_maps.thresholds, maps.thresholds)
    else:
        np.testing.assert_array_equal(same_maps.edges.thresholds, maps.edges.thresholds)
        np.testing.assert_array_equal(same_maps.multiplicity, maps.multiplicity)


def test_rows_are_read_from_their_source(rows):
    in_memory, in_files = rows
    assert in_files.shape == in_memory.shape
    assert in_files.dtype == in_memory.dtype
    blocks = [block for _, block in in_files.blocks(7)]
    np.testing.assert_array_equal(np.concatenate(blocks), in_memory.X)
    np.testing.assert_array_equal(in_files.take(np.array([9, 3])), in_memory.X[[9, 3]])
    for found, expected in zip(in_files.column_ranges(), in_memory.column_ranges(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_folder_stays_empty(tmp_path, codes):
    codes[1].take(np.arange(N_ROWS))
    assert os.listdir(tmp_path) == []
