import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.engine.row_blocks import SomeRows, blocks_of, row_blocks, take_rows


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 12))
def test_cutting_anew_loses_nothing(lengths, step):
    values = np.arange(sum(lengths))[:, None]
    pieces = np.split(values, np.cumsum(lengths)[:-1]) if lengths else []
    blocks = list(blocks_of(pieces, step))
    assert all(rows.stop - rows.start == len(block) for rows, block in blocks)
    assert all(len(block) == step for _, block in blocks[:-1])
    joined = np.concatenate([block for _, block in blocks]) if blocks else values
    np.testing.assert_array_equal(joined, values)


@pytest.mark.parametrize("step", [1, 3, 100])
def test_some_rows_are_those_of_the_matrix(step):
    X = np.random.default_rng(0).normal(size=(30, 2))
    rows = np.array([0, 5, 6, 17, 29])
    part = SomeRows(X, rows)
    assert part.shape == (5, 2)
    blocks = [block for _, block in row_blocks(part, step)]
    np.testing.assert_array_equal(np.concatenate(blocks), X[rows])


def test_rows_are_taken_in_the_given_order():
    X = np.random.default_rng(0).normal(size=(30, 2))
    wanted = np.array([7, 3, 3, 29, 0])
    np.testing.assert_array_equal(take_rows(X, wanted), X[wanted])
    np.testing.assert_array_equal(take_rows(SomeRows(X, np.arange(30)), wanted), X[wanted])
