import os

import numpy as np
import pytest

from mbkl.engine.disk_array import DiskArray


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
    assert array.nbytes == values.nbytes


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
