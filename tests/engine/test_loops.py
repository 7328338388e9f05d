"""Compiled loops give the bits of their twins, on any number of threads."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mbkl.engine.codes import coarsening
from mbkl.engine.rows import ArrayRows
from mbkl.engine.twins import MOST_PACKED, TWINS
from mbkl.maps.ferns import Ferns
from mbkl.maps.growing_rows import Levels
from mbkl.maps.stumps import BinEdges

THREADS = [1, 2, 3, 7]
EVERY_THREADS = pytest.mark.parametrize("n_threads", THREADS)
# Around the blocks of the loops: 8 rows by 512 others, 256 rows of ferns.
N_ROWS = [1, 2, 8, 9, 130, 600]
CELLS_BY_TYPE = [
    (np.uint8, (3, 256, 2, 9, 4)),
    (np.uint16, (300, 2, 65_536)),
    (np.uint32, (2, 70_000, 5)),
]
SHAPES = [
    pytest.param(130, (3, 5, 2, 9, 4), id="five groups"),
    pytest.param(5000, (3, 5, 2, 9), id="several blocks of rows"),
    pytest.param(3, (2,) * 11, id="fewer rows than groups"),
    pytest.param(1, (4, 2, 3), id="one row"),
    pytest.param(40, (7,), id="one group"),
]
WEIGHTS = {
    "equal": lambda n: np.full(n, 0.1),
    "unequal": lambda n: np.random.default_rng(1).random(n),
    "some zero": lambda n: np.where(np.arange(n) % 3, 0.3, 0.0),
    "all zero": np.zeros,
}
EVERY_WEIGHTS = pytest.mark.parametrize("kind", WEIGHTS)


def assert_same_bits(left, right):
    assert left.dtype == right.dtype
    assert left.shape == right.shape
    np.testing.assert_array_equal(left, right)
    assert left.tobytes() == right.tobytes()


def assert_same_codes(left, right):
    assert type(left) is type(right)
    assert_same_bits(left.values, right.values)
    assert_same_bits(left.offsets, right.offsets)


def tables_for(codes, n_columns, seed=1):
    return np.random.default_rng(seed).normal(size=(codes.n_cells, n_columns))


def residuals_for(codes, n_columns, seed=2):
    return np.random.default_rng(seed).integers(-(2**40), 2**40, size=(codes.n_rows, n_columns))


# --- Codes ---


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("n_columns", [1, 5])
@pytest.mark.parametrize(("dtype", "n_cells"), CELLS_BY_TYPE)
def test_operations_of_codes(make_codes, make_compiled, dtype, n_cells, n_columns, n_threads):
    twin = make_codes(300, n_cells, dtype)
    codes = replace(twin, loops=make_compiled(n_threads))
    tables, residuals = tables_for(codes, n_columns), residuals_for(codes, n_columns)
    rows = np.random.default_rng(4).integers(codes.n_rows, size=77)
    keep = np.random.default_rng(5).random(codes.n_cells - codes.n_groups) < 0.3
    plan = coarsening(codes.offsets, keep)
    assert_same_bits(codes.gather(tables), twin.gather(tables))
    assert_same_bits(codes.histogram(residuals), twin.histogram(residuals))
    assert_same_bits(codes.counts(), twin.counts())
    assert_same_codes(codes.take(rows), twin.take(rows))
    assert_same_codes(codes.coarsen(plan), twin.coarsen(plan))


@pytest.mark.parametrize(("n_rows", "n_cells"), SHAPES)
@pytest.mark.parametrize("n_columns", [1, 3, 6])
def test_passes_over_codes_of_any_shape(make_codes, make_compiled, n_rows, n_cells, n_columns):
    twin = make_codes(n_rows, n_cells)
    tables, residuals = tables_for(twin, n_columns), residuals_for(twin, n_columns)
    scores, sums = twin.gather(tables), twin.histogram(residuals)
    for n_threads in THREADS:
        codes = replace(twin, loops=make_compiled(n_threads))
        assert_same_bits(codes.gather(tables), scores)
        assert_same_bits(codes.histogram(residuals), sums)


@pytest.mark.parametrize(("dtype", "n_cells"), CELLS_BY_TYPE)
@pytest.mark.parametrize("new_dtype", [np.uint8, np.uint16])
def test_renumber(make_compiled, make_codes, dtype, n_cells, new_dtype):
    codes, groups = make_codes(90, n_cells, dtype), np.array([2, 0])
    numbers = np.random.default_rng(2).integers(256, size=codes.n_cells).astype(new_dtype)
    arguments = (codes.values, codes.offsets, groups, numbers)
    expected = TWINS.renumber(*arguments)
    for n_threads in THREADS:
        assert_same_bits(make_compiled(n_threads).renumber(*arguments), expected)


# --- Comparing all rows ---


@EVERY_WEIGHTS
@pytest.mark.parametrize(
    ("dtype", "n_cells"), [(np.uint8, (3, 256, 2, 9)), (np.uint16, (3, 300, 2, 9))]
)
@pytest.mark.parametrize("n_rows", N_ROWS)
def test_agreement(make_compiled, make_codes, dtype, n_cells, n_rows, kind):
    values, weights = make_codes(n_rows, n_cells, dtype).values, WEIGHTS[kind](4)
    for others in (values, make_codes(70, n_cells, dtype, seed=1).values):
        expected = TWINS.agreement(values, others, weights)
        for n_threads in THREADS:
            found = make_compiled(n_threads).agreement(values, others, weights)
            assert_same_bits(found, expected)


@EVERY_WEIGHTS
def test_agreement_of_many_groups(make_compiled, kind):
    """Many more groups than are counted at once."""
    n_groups = 2**16 + 3
    values = np.random.default_rng(0).integers(2, size=(n_groups, 4)).astype(np.uint8)
    values[:, 3] = values[:, 0]
    weights = WEIGHTS[kind](n_groups)
    expected = TWINS.agreement(values, values, weights)
    np.testing.assert_allclose(expected[0, 3], weights.sum(), rtol=1e-9)
    assert_same_bits(make_compiled(2).agreement(values, values, weights), expected)


@pytest.mark.parametrize("n_rows", N_ROWS)
def test_city_block(make_compiled, n_rows):
    generator = np.random.default_rng(0)
    left, right = generator.normal(size=(5, n_rows)), generator.normal(size=(5, 70))
    for other in (left, right):
        expected = TWINS.city_block(left, other)
        for n_threads in THREADS:
            assert_same_bits(make_compiled(n_threads).city_block(left, other), expected)


# --- Rows of X ---


@EVERY_THREADS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_thresholds", [1, 40, 400])
@pytest.mark.parametrize("n_rows", [5, 150])
def test_bin(make_compiled, n_threads, dtype, order, n_thresholds, n_rows):
    generator = np.random.default_rng(6)
    X = generator.normal(size=(n_rows, 4)).astype(dtype, order=order)
    X[generator.random(X.shape) < 0.1] = np.nan
    features = np.array([3, 0, 2])
    thresholds = np.sort(generator.normal(size=(3, n_thresholds)).astype(np.float32), axis=1)
    edges = BinEdges(
        thresholds.ravel().astype(np.float64), np.arange(4, dtype=np.int64) * n_thresholds
    )
    found = make_compiled(n_threads).bin(X, features, edges)
    assert_same_bits(found, TWINS.bin(X, features, edges))


@EVERY_THREADS
@pytest.mark.parametrize("n_columns", [1, 3, 6])
@pytest.mark.parametrize("n_rows", [1, 300])
def test_score(make_compiled, n_threads, n_columns, n_rows):
    generator = np.random.default_rng(7)
    X = generator.normal(size=(n_rows, 5))
    X[generator.random(X.shape) < 0.1] = np.nan
    features = np.array([4, 0, 2])
    groups = [np.linspace(-1, 1, 5), np.array([-np.inf, 0.0]), np.linspace(-2, 2, 300)]
    offsets = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    edges = BinEdges(np.concatenate(groups), offsets)
    tables = generator.normal(size=(edges.cell_offsets[-1], n_columns))
    expected = ArrayRows(X).bin(features, edges).gather(tables)
    assert_same_bits(ArrayRows(X).score(features, edges, tables), expected)
    rows = ArrayRows(X, make_compiled(n_threads))
    assert_same_bits(rows.score(features, edges, tables), expected)


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


@EVERY_FERNS
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ferns_have_the_same_cells(make_compiled, family, layout):
    X = values_with_gaps(300)
    ferns, codes = family.fit_codes(ArrayRows(X), np.ones(300), 30, 0)
    X = LAYOUTS[layout](X)
    expected = TWINS.bin_ferns(X, ferns)
    assert_same_bits(expected, codes.values)
    for n_threads in THREADS:
        assert_same_bits(make_compiled(n_threads).bin_ferns(X, ferns), expected)


@EVERY_FERNS
def test_ferns_on_categories_have_the_same_cells(make_compiled, family):
    generator = np.random.default_rng(0)
    n_levels = np.array([0, 3, 0, 400])
    X = generator.normal(size=(300, 4))
    X[:, [1, 3]] = generator.integers([3, 400], size=(300, 2))
    X[generator.random(X.shape) < 0.1] = np.nan
    ferns, codes = family.fit_codes(ArrayRows(X), np.ones(300), 30, 0, n_levels)
    X[:10, 1], X[5:15, 3] = 3, 12_345  # new levels
    expected = TWINS.bin_ferns(X, ferns)
    assert_same_bits(expected[:, 15:], codes.values[:, 15:])
    for n_threads in THREADS:
        assert_same_bits(make_compiled(n_threads).bin_ferns(X, ferns), expected)


@EVERY_FERNS
@pytest.mark.parametrize("n_rows", [0, 1, 255, 256, 257, 1000])
def test_new_rows_have_the_same_cells(make_compiled, family, n_rows):
    ferns, _ = family.fit_codes(ArrayRows(values_with_gaps(60)), np.ones(60), 20, 0)
    X = 2 * values_with_gaps(n_rows)
    expected = TWINS.bin_ferns(X, ferns)
    for n_threads in THREADS:
        assert_same_bits(make_compiled(n_threads).bin_ferns(X, ferns), expected)


@pytest.mark.parametrize("max_cells", 2 ** np.arange(1, 11))
def test_ferns_are_fitted_the_same(make_compiled, max_cells):
    X, weights = values_with_gaps(200), np.random.default_rng(1).random(200) + 0.5
    family = Ferns(depth=8, max_cells=max_cells)
    maps, codes = family.fit_codes(ArrayRows(X), weights, 40, 3)
    for n_threads in THREADS:
        rows = ArrayRows(X, make_compiled(n_threads))
        same_maps, same_codes = family.fit_codes(rows, weights, 40, 3)
        assert_same_codes(same_codes, codes)
        for part in ("features", "thresholds", "offsets", "factors", "n_raw", "numbers"):
            assert_same_bits(getattr(same_maps, part), getattr(maps, part))
        assert_same_bits(same_maps.cell_offsets, maps.cell_offsets)


# --- Growing ferns ---

GROWTH = pytest.mark.parametrize(
    ("n_rows", "n_columns", "n_cells"),
    [(1, 1, 1), (2, 3, 1), (70, 1, 4), (70, 8, 4), (131, 2, 64), (40_000, 1, 8), (40_000, 3, 8)],
)
FEW_THREADS = (1, 2, 3)


def packed_for(generator, n_rows, n_columns):
    """Return random packed residuals, of all sizes that are allowed."""
    gradient = generator.integers(-MOST_PACKED, MOST_PACKED, (n_rows, n_columns), endpoint=True)
    curvature = generator.integers(0, MOST_PACKED, (n_rows, n_columns), endpoint=True)
    return ((gradient << 16) + curvature).astype(np.int32)


def wide_for(generator, n_rows, n_columns):
    """Return random residuals of 64 bits, as levels are chosen by."""
    gradient, curvature = generator.integers([[[-4096]], [[0]]], 4096, (2, n_rows, n_columns))
    return (gradient << 32) + curvature


def cells_for(generator, n_rows, n_cells):
    """Return rows cell by cell, and where each cell begins; some cells are empty."""
    inner = np.sort(generator.integers(0, n_rows + 1, n_cells - 1))
    return generator.permutation(n_rows), np.array([0, *inner, n_rows])


@GROWTH
def test_residuals_are_packed_and_added_up_the_same(make_compiled, n_rows, n_columns, n_cells):
    generator = np.random.default_rng(n_rows)
    cells = generator.integers(n_cells, size=n_rows).astype(np.uint16)
    gradient = generator.normal(size=(n_rows, n_columns)).astype(np.float32)
    weights = generator.exponential(size=n_rows).astype(np.float32)
    units = (np.float32(2**13), np.float32(2**12))
    table = generator.normal(size=(n_cells, n_columns)).astype(np.float32)
    packed, scores = np.empty(gradient.shape, np.int32), gradient.copy()
    largest = TWINS.pack_residuals(gradient, gradient**2, weights, units, packed)
    TWINS.add_table(cells, table, scores)
    large = packed_for(generator, n_rows, n_columns)
    for n_threads in FEW_THREADS:
        loops = make_compiled(n_threads)
        same, same_scores = np.empty_like(packed), gradient.copy()
        assert loops.pack_residuals(gradient, gradient**2, weights, units, same) == largest
        loops.add_table(cells, table, same_scores)
        assert_same_bits(same, packed)
        # Losses of many classes have their residuals class by class.
        turned = np.asfortranarray(gradient)
        loops.pack_residuals(turned, turned**2, weights, units, same)
        assert_same_bits(same, packed)
        assert_same_bits(same_scores, scores)
        for residuals in (packed, large):
            expected = TWINS.histogram_packed(cells, residuals, n_cells)
            assert_same_bits(loops.histogram_packed(cells, residuals, n_cells), expected)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_rows_are_weighed_the_same(make_compiled, n_columns):
    generator = np.random.default_rng(n_columns)
    packed = packed_for(generator, 500, n_columns + 1)
    rows, columns = generator.permutation(500)[:300], np.arange(1, n_columns + 1)
    shares = generator.random(300) + 1e-3
    sizes = TWINS.sizes_of_residuals(packed, rows, columns)
    weighed = TWINS.weigh_residuals(packed, rows, columns, shares, 4)
    keys = generator.integers(2**64, size=500, dtype=np.uint64)
    drawn = TWINS.draw_rows(keys, rows, 2 * shares, 2**40 + 3)
    assert 150 < drawn[0].size < 300
    for n_threads in FEW_THREADS:
        loops = make_compiled(n_threads)
        assert_same_bits(loops.sizes_of_residuals(packed, rows, columns), sizes)
        assert_same_bits(loops.weigh_residuals(packed, rows, columns, shares, 4), weighed)
        found = loops.draw_rows(keys, rows, 2 * shares, 2**40 + 3)
        for left, right in zip(found, drawn, strict=True):
            assert_same_bits(left, right)


@pytest.mark.parametrize("n_rows", [0, 1, 255, 256, 257, 1_000])
@pytest.mark.parametrize("n_columns", [1, 3, 26])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e30])
def test_residuals_of_the_log_loss_are_the_same(make_compiled, n_rows, n_columns, scale):
    generator = np.random.default_rng(n_rows)
    scores = (scale * generator.normal(size=(n_rows, n_columns))).astype(np.float32)
    y = generator.integers(max(n_columns, 2), size=n_rows)
    weights = generator.exponential(size=n_rows).astype(np.float32)
    arguments = scores, y, weights, (np.float32(2**13), np.float32(2**14))
    expected, found = np.empty((2, n_rows, n_columns), np.int32)
    largest = TWINS.log_loss_residuals(*arguments, expected)
    assert make_compiled(1).log_loss_residuals(*arguments, found) == largest
    assert_same_bits(found, expected)


@pytest.mark.parametrize("depth", [0, 1, 6])
@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize(("ridges", "used"), [((0.7,), 0), ((0.7, 2.0, 9.0), 1)])
def test_newton_steps_are_the_same(make_compiled, depth, n_columns, ridges, used):
    sums = np.random.default_rng(depth).normal(size=(2 << depth, n_columns, 2)) ** 2
    expected = TWINS.newton_steps(sums, ridges, used)
    alone = TWINS.newton_steps(sums, ridges[used : used + 1])
    assert_same_bits(alone[0], expected[0])
    found = make_compiled(1).newton_steps(sums, ridges, used)
    for left, right in zip(found, expected, strict=True):
        assert_same_bits(left, right)


def test_merits_are_gains_and_sizes_of_steps():
    sums = np.random.default_rng(0).normal(size=(8, 2, 2)) ** 2
    steps, _, merits = TWINS.newton_steps(sums, (1.0, 5.0), 1)
    held_out = sums[4:]
    assert merits[1, 0] == pytest.approx(-(steps * held_out[..., 0]).sum())
    assert merits[1, 1] == pytest.approx((steps**2 * held_out[..., 1]).sum())


@pytest.mark.parametrize("n_rows", [1, 2, 130, 9_000])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 4])
@pytest.mark.parametrize("categories", [(), (1, 3, 4), (0, 1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("ridge", [0.5, 1e4])
def test_stumps_are_chosen_the_same(make_compiled, n_rows, n_columns, categories, ridge):
    generator = np.random.default_rng(n_rows)
    n_codes, depth = np.array([2, 256, 37, 16, 255]), 5
    codes = generator.integers(0, n_codes[:, None], (5, n_rows)).astype(np.uint8)
    asked = np.array([np.sort(generator.permutation(5)[:3]) for _ in range(depth)])
    shifts = generator.integers(0, 4, asked.shape)
    levels = asked, shifts, generator.integers(0, 2**shifts)
    is_category = np.isin(np.arange(5), categories)
    is_ranked = generator.random((depth, len(categories), 256)) < 0.5
    residuals = wide_for(generator, n_rows, n_columns)
    residuals[: n_rows // 8] = 0  # some levels have no curvature
    arguments = (codes, is_category, n_codes, Levels(*levels), is_ranked, residuals, ridge)
    expected = TWINS.choose_stumps(*arguments)
    for left, right in zip(make_compiled(1).choose_stumps(*arguments), expected, strict=True):
        assert_same_bits(left, right)


@pytest.mark.parametrize("n_rows", [1, 130, 40_000])
@pytest.mark.parametrize("depth", [0, 1, 14])
def test_rows_are_put_into_the_same_cells(make_compiled, make_codes, n_rows, depth):
    generator = np.random.default_rng(depth)
    values = make_codes(n_rows, (3, 256, 2, 9)).values
    features, cuts = generator.integers(4, size=depth), generator.integers(-1, 8, size=depth)
    members = generator.random((depth, 256)) < 0.5  # asked where there is no cut
    leading = generator.integers(2, size=n_rows).astype(np.uint8)
    expected = np.empty(n_rows, np.uint16)
    TWINS.fern_cells(values, features, cuts, members, leading, expected)
    rows = generator.integers(n_rows, size=50)
    for n_threads in FEW_THREADS:
        loops, found = make_compiled(n_threads), np.empty(n_rows, np.uint16)
        loops.fern_cells(values, features, cuts, members, leading, found)
        assert_same_bits(found, expected)
        groups = np.array([3, 1])
        taken = loops.take_some(values, groups, rows)
        assert_same_bits(taken, TWINS.take_some(values, groups, rows))


@pytest.mark.parametrize("n_rows", [0, 1, 2**14, 2**16 + 1, 2**20])
@pytest.mark.parametrize("n_columns", [1, 7])
def test_blocks_do_not_depend_on_the_threads(make_compiled, n_rows, n_columns):
    def bounds(start, stop):
        return start, stop

    expected = TWINS.over_blocks(bounds, n_rows, n_columns)
    assert (expected[0][0], expected[-1][1]) == (0, n_rows)
    assert all(left[1] == right[0] for left, right in pairwise(expected))
    for n_threads in FEW_THREADS:
        found = make_compiled(n_threads).over_blocks(bounds, n_rows, n_columns)
        assert found == expected
