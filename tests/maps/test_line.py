"""A straight line as tables of stumps."""

import numpy as np
import pytest
from scipy import sparse

from mbkl.engine.rows import ArrayRows, Sample, as_rows
from mbkl.maps.choose import Slopes, choose_kernel
from mbkl.maps.line import line_of
from mbkl.maps.numbers import Numbers


def on_line(X, slopes, n_levels=None, rows=ArrayRows):
    line, codes = line_of(rows(X), np.ones(X.shape[0]), slopes, 0, n_levels)
    return codes.gather(line.tables)


def test_whole_numbers_are_exactly_on_the_line():
    X = np.random.default_rng(0).integers(0, 5, size=(200, 3)).astype(np.float32)
    slopes = Slopes(np.array([[1.0], [-2.0], [0.5]]), X.mean(axis=0))
    found = on_line(X, slopes) - X @ slopes.values
    assert np.ptp(found) < 1e-6


def test_other_numbers_are_nearly_on_it():
    X = np.random.default_rng(0).normal(size=(2_000, 2)).astype(np.float32)
    slopes = Slopes(np.array([[1.0, 0.0], [-2.0, 3.0]]), np.zeros(2))
    away = on_line(X, slopes) - X @ slopes.values
    assert (away.std(axis=0) < 0.03).all()


def test_missing_values_are_at_the_centre():
    X = np.array([[0.0], [1.0], [4.0], [np.nan]])
    found = on_line(X, Slopes(np.array([[2.0]]), np.array([3.0]))).ravel()
    np.testing.assert_allclose(found - found[0], [0.0, 2.0, 8.0, 6.0])


def test_zeros_of_sparse_rows_count():
    X = sparse.csr_array(np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]]))
    found = on_line(X, Slopes(np.array([[1.0], [1.0]]), np.zeros(2)), rows=as_rows).ravel()
    np.testing.assert_allclose(found - found[2], [2.0, 1.0, 0.0])


def test_categories_have_no_slope():
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.integers(0, 3, 300), generator.normal(size=300)])
    numbers, y = Numbers.of(X[:, 0] + X[:, 1], np.ones(300), "squared_error")
    sample, n_levels = Sample(X, y, np.ones(300)), np.array([3, 0])
    choice = choose_kernel(sample, len(y), 300, numbers, n_levels, with_line=True)
    assert choice.slopes.values[0] == 0
    assert choice.slopes.values[1] * numbers.unit == pytest.approx(1.0, abs=0.1)
    assert np.ptp(on_line(X[:, :1], Slopes(np.zeros((1, 1)), np.zeros(1)))) == 0


@pytest.mark.parametrize("is_linear", [True, False])
def test_the_kernel_says_whether_a_line_suits_it(is_linear):
    X = np.random.default_rng(0).normal(size=(300, 5))
    truth = X.sum(axis=1) if is_linear else np.sign(X[:, 0] * X[:, 1])
    numbers, y = Numbers.of(truth, np.ones(300), "squared_error")
    choice = choose_kernel(Sample(X, y, np.ones(300)), len(y), 300, numbers, with_line=True)
    assert (choice.slopes is not None) == is_linear


def test_steep_slopes_that_cancel_each_other_are_no_line():
    generator = np.random.default_rng(0)
    curves = np.cumsum(generator.normal(size=(4, 60)), axis=1)
    shares = generator.normal(size=(150, 4)) * [1.0, 0.1, 0.03, 0.01]
    numbers, y = Numbers.of(shares[:, 3], np.ones(150), "squared_error")
    sample = Sample(shares @ curves, y, np.ones(150))
    assert choose_kernel(sample, len(y), 150, numbers, with_line=True).slopes is None
