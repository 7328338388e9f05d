"""Comparing all rows, and ferns: both engines give the same bits on any number of threads."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mbkl.engine.codes import DenseCodes
from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.maps.ferns import Ferns

THREADS = [1, 2, 3, 7]
# Around the blocks of the kernels: 8 rows by 512 others, 256 rows of ferns.
N_ROWS = [1, 2, 8, 9, 130, 600]
WEIGHTS = {
    "equal": lambda n: np.full(n, 0.1),
    "unequal": lambda n: np.random.default_rng(1).random(n),
    "some zero": lambda n: np.where(np.arange(n) % 3, 0.3, 0.0),
    "all zero": np.zeros,
}
EVERY_WEIGHTS = pytest.mark.parametrize("kind", WEIGHTS)
EVERY_TYPE = pytest.mark.parametrize(
    ("dtype", "n_cells"), [(np.uint8, (3, 256, 2, 9)), (np.uint16, (3, 300, 2, 9))]
)


def assert_same_bits(left, right):
    assert left.dtype == right.dtype
    assert left.shape == right.shape
    np.testing.assert_array_equal(left, right)
    assert left.tobytes() == right.tobytes()


@EVERY_WEIGHTS
@EVERY_TYPE
def test_agreement_is_the_weight_of_equal_codes(engine, make_codes, dtype, n_cells, kind):
    codes = make_codes(40, n_cells, dtype)
    others = make_codes(25, n_cells, dtype, seed=1)
    weights = WEIGHTS[kind](4)
    equal = codes.values[:, :, None] == others.values[:, None, :]
    expected = np.tensordot(weights, equal, axes=1)
    np.testing.assert_allclose(engine.agreement(codes, others, weights), expected, atol=1e-12)


@EVERY_WEIGHTS
@EVERY_TYPE
@pytest.mark.parametrize("n_rows", N_ROWS)
def test_agreement_has_the_same_bits(make_numba_engine, make_codes, dtype, n_cells, n_rows, kind):
    codes = make_codes(n_rows, n_cells, dtype)
    weights = WEIGHTS[kind](4)
    for others in (codes, make_codes(70, n_cells, dtype, seed=1)):
        expected = NumpyEngine().agreement(codes, others, weights)
        for n_threads in THREADS:
            result = make_numba_engine(n_threads).agreement(codes, others, weights)
            assert_same_bits(result, expected)


def test_agreement_with_itself_is_symmetric(engine, make_codes):
    codes = make_codes(530)
    for weigh in WEIGHTS.values():
        result = engine.agreement(codes, codes, weigh(5))
        assert_same_bits(result, np.ascontiguousarray(result.T))
        # The same codes in another array are no reason for another result.
        copied = DenseCodes(codes.values.copy(), codes.offsets)
        assert_same_bits(engine.agreement(codes, copied, weigh(5)), result)


@EVERY_WEIGHTS
def test_agreement_of_many_groups_has_the_same_bits(make_numba_engine, kind):
    """More groups than 16 bits can count."""
    n_groups = 2**16 + 3
    values = np.random.default_rng(0).integers(2, size=(n_groups, 4)).astype(np.uint8)
    values[:, 3] = values[:, 0]
    codes = DenseCodes(values, 2 * np.arange(n_groups + 1))
    weights = WEIGHTS[kind](n_groups)
    expected = NumpyEngine().agreement(codes, codes, weights)
    np.testing.assert_allclose(expected[0, 3], weights.sum(), rtol=1e-9)
    assert_same_bits(make_numba_engine(2).agreement(codes, codes, weights), expected)


@EVERY_WEIGHTS
def test_agreement_of_no_rows(engine, make_codes, kind):
    codes = make_codes(6)
    none = engine.take(codes, np.array([], dtype=np.intp))
    weights = WEIGHTS[kind](5)
    assert engine.agreement(none, codes, weights).shape == (0, 6)
    assert engine.agreement(codes, none, weights).shape == (6, 0)
    assert engine.agreement(none, none, weights).shape == (0, 0)


def test_no_groups_do_not_agree(engine, make_codes):
    codes = make_codes(5, n_cells=())
    np.testing.assert_array_equal(engine.agreement(codes, codes, np.empty(0)), np.zeros((5, 5)))
    np.testing.assert_array_equal(
        engine.city_block(np.empty((0, 5)), np.empty((0, 4))), np.zeros((5, 4))
    )


def test_city_block_is_the_usual_distance(engine):
    generator = np.random.default_rng(0)
    left, right = generator.normal(size=(6, 50)), generator.normal(size=(6, 33))
    for other in (left, right):
        expected = cdist(left.T, other.T, metric="cityblock")
        np.testing.assert_allclose(engine.city_block(left, other), expected, atol=1e-12)


@pytest.mark.parametrize("n_rows", N_ROWS)
def test_city_block_has_the_same_bits(make_numba_engine, n_rows):
    generator = np.random.default_rng(0)
    left, right = generator.normal(size=(5, n_rows)), generator.normal(size=(5, 70))
    for other in (left, right):
        expected = NumpyEngine().city_block(left, other)
        for n_threads in THREADS:
            assert_same_bits(make_numba_engine(n_threads).city_block(left, other), expected)


def test_city_block_of_no_rows(engine):
    none, some = np.empty((3, 0)), np.ones((3, 4))
    assert engine.city_block(none, some).shape == (0, 4)
    assert engine.city_block(some, none).shape == (4, 0)
    assert engine.city_block(none, none).shape == (0, 0)


def test_a_distance_to_oneself_is_exactly_zero(engine):
    positions = np.random.default_rng(0).normal(size=(40, 20))
    assert not np.diag(engine.city_block(positions, positions)).any()


def values_with_gaps(n_rows, n_features=5):
    generator = np.random.default_rng(0)
    # Few digits, so that float32 holds the values, and ties with the thresholds.
    X = np.round(generator.normal(size=(n_rows, n_features)) * 4) / 4
    X[generator.random(X.shape) < 0.15] = np.nan
    return X


LAYOUTS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "column-major": np.asfortranarray,
    "column-major float32": lambda X: np.asfortranarray(X.astype(np.float32)),
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}
FERNS = {
    "one stump": Ferns(depth=1, distribution="fixed"),
    "two cells": Ferns(depth=5, max_cells=2),
    "a byte": Ferns(depth=6, max_cells=256),
    "two bytes": Ferns(depth=12, distribution="fixed", max_cells=1024),
    "deep": Ferns(depth=64, distribution="fixed", max_cells=512),
}
EVERY_FERNS = pytest.mark.parametrize("family", FERNS.values(), ids=FERNS)


def cells_of(engine, X, ferns):
    out = np.empty((ferns.n_maps, X.shape[0]), dtype=ferns.numbers.dtype)
    engine.bin_ferns(X, ferns, out)
    return out


@EVERY_FERNS
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ferns_have_the_same_cells(make_numba_engine, family, layout):
    X = values_with_gaps(300)
    ferns, codes = family.fit_codes(X, np.ones(300), 30, 0, NumpyEngine())
    X = LAYOUTS[layout](X)
    expected = cells_of(NumpyEngine(), X, ferns)
    assert_same_bits(expected, codes.values)
    for n_threads in THREADS:
        assert_same_bits(cells_of(make_numba_engine(n_threads), X, ferns), expected)


@EVERY_FERNS
@pytest.mark.parametrize("n_rows", [0, 1, 255, 256, 257, 1000])
def test_new_rows_have_the_same_cells(make_numba_engine, family, n_rows):
    ferns, _ = family.fit_codes(values_with_gaps(60), np.ones(60), 20, 0, NumpyEngine())
    X = 2 * values_with_gaps(n_rows)
    expected = cells_of(NumpyEngine(), X, ferns)
    for n_threads in THREADS:
        assert_same_bits(cells_of(make_numba_engine(n_threads), X, ferns), expected)


@pytest.mark.parametrize("max_cells", 2 ** np.arange(1, 11))
def test_ferns_are_fitted_the_same(make_numba_engine, max_cells):
    X, weights = values_with_gaps(200), np.random.default_rng(1).random(200) + 0.5
    family = Ferns(depth=8, max_cells=max_cells)
    maps, codes = family.fit_codes(X, weights, 40, 3, NumpyEngine())
    for n_threads in THREADS:
        same_maps, same_codes = family.fit_codes(X, weights, 40, 3, make_numba_engine(n_threads))
        assert_same_bits(same_codes.values, codes.values)
        for part in ("features", "thresholds", "offsets", "factors", "n_raw", "numbers"):
            assert_same_bits(getattr(same_maps, part), getattr(maps, part))
        assert_same_bits(same_maps.cell_offsets, maps.cell_offsets)


@EVERY_TYPE
@pytest.mark.parametrize("groups", [[0, 1, 2, 3], [2, 0], [1, 1], []])
def test_renumber_looks_up_the_kept_groups(make_numba_engine, make_codes, dtype, n_cells, groups):
    codes = make_codes(90, n_cells, dtype)
    groups = np.array(groups, dtype=np.intp)
    for new_dtype in (np.uint8, np.uint16):
        numbers = np.random.default_rng(2).integers(256, size=codes.n_cells).astype(new_dtype)
        expected = np.empty((groups.size, 90), dtype=new_dtype)
        for position, group in enumerate(groups):
            for row in range(90):
                cell = codes.offsets[group] + codes.values[group, row]
                expected[position, row] = numbers[cell]
        for engine in (NumpyEngine(), *map(make_numba_engine, THREADS)):
            out = np.empty_like(expected)
            engine.renumber(codes, groups, numbers, out)
            assert_same_bits(out, expected)
