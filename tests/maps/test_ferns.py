"""Ferns: their cells, how they are drawn, and the kernel they have in the limit."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from mbkl import MBKLClassifier
from mbkl.engine.rows import as_rows
from mbkl.engine.twins import TWINS
from mbkl.maps import Ferns
from mbkl.maps.families import MapSet

EVERY_THRESHOLDS = pytest.mark.parametrize("thresholds", ["mixed", "uniform", "quantile"])


def sample(n_rows=120, n_features=4, missing=0.0, seed=0):
    generator = np.random.default_rng(seed)
    # Few digits, so that the values are the same in float32 and float64.
    X = np.round(generator.normal(size=(n_rows, n_features)) * 64) / 64
    X[generator.random(X.shape) < missing] = np.nan
    return X


def rows_of(X, loops=TWINS):
    """Return the rows of a matrix, dense or sparse."""
    return replace(as_rows(X), loops=loops)


def fit(X, n_maps=40, seed=0, weights=None, loops=TWINS, **parameters):
    weights = np.ones(X.shape[0]) if weights is None else weights
    return Ferns(**parameters).fit_codes(rows_of(X, loops), weights, n_maps, seed)


def draw(X, n_maps=40, seed=0, weights=None, **parameters):
    """Draw ferns without dropping or renumbering any."""
    weights = np.ones(X.shape[0]) if weights is None else weights
    return Ferns(**parameters)._draw(rows_of(X), weights, n_maps, seed)


def raw_cell(maps, fern, row):
    """Return the cell of one row before renumbering, by the definition."""
    outcome = 0
    stumps = range(maps.offsets[fern], maps.offsets[fern + 1])
    for stump in stumps:
        outcome = 2 * outcome + int(row[maps.features[stump]] > maps.thresholds[stump])
    if 2 ** len(stumps) > maps.n_raw[fern]:
        n_bits = int(maps.n_raw[fern]).bit_length() - 1
        outcome = (outcome * int(maps.factors[fern])) % 2**64 >> (64 - n_bits)
    return outcome


def same_maps(left, right) -> bool:
    parts = ("features", "thresholds", "offsets", "factors", "n_raw", "numbers", "cell_offsets")
    return all(np.array_equal(getattr(left, part), getattr(right, part)) for part in parts)


# --- Cells ---


@EVERY_THRESHOLDS
@pytest.mark.parametrize(("depth", "max_cells"), [(1, 256), (4, 256), (9, 16), (64, 1024)])
def test_a_cell_is_the_joint_outcome_of_the_stumps(loops, thresholds, depth, max_cells):
    X = sample(missing=0.1)
    family = Ferns(depth=depth, distribution="fixed", thresholds=thresholds, max_cells=max_cells)
    maps, codes = family.fit_codes(rows_of(X, loops), np.ones(len(X)), 12, 0)
    for fern in range(maps.n_maps):
        cells = [raw_cell(maps, fern, row) for row in X]
        # Seen cells are numbered in their order, without gaps.
        numbers = {cell: number for number, cell in enumerate(sorted(set(cells)))}
        np.testing.assert_array_equal(codes.values[fern], [numbers[cell] for cell in cells])


def test_new_rows_are_coded_as_in_training(loops):
    X = sample(missing=0.1)
    maps, codes = fit(X, depth=7, max_cells=32)
    np.testing.assert_array_equal(maps.codes(rows_of(X, loops)).values, codes.values)
    np.testing.assert_array_equal(maps.codes(rows_of(X[::3], loops)).values, codes.values[:, ::3])


def test_a_value_at_the_threshold_is_on_the_low_side(loops):
    maps, _ = fit(sample(n_features=1), n_maps=1, depth=1, distribution="fixed")
    threshold = maps.thresholds[0]
    new = np.array([[threshold], [np.nextafter(np.float32(threshold), np.float32(np.inf))]])
    np.testing.assert_array_equal(maps.codes(rows_of(new, loops)).values, [[0, 1]])


def test_missing_values_are_on_the_low_side(loops):
    maps, _ = fit(sample(n_features=1), n_maps=30, depth=1, distribution="fixed")
    assert np.isfinite(maps.thresholds).all()
    new = np.array([[np.nan], [-1e9]])
    assert not maps.codes(rows_of(new, loops)).values.any()


@EVERY_THRESHOLDS
def test_a_threshold_of_minus_infinity_parts_missing_values(loops, thresholds):
    X = sample(400, 1, missing=0.4)
    maps, codes = fit(X, 300, thresholds=thresholds, depth=1, distribution="fixed")
    asks = np.isneginf(maps.thresholds)
    assert asks.mean() == pytest.approx(0.4, abs=0.1)
    np.testing.assert_array_equal(codes.values[asks], [~np.isnan(X[:, 0])] * asks.sum())
    np.testing.assert_array_equal(maps.codes(rows_of(X, loops)).values, codes.values)


def test_a_column_that_is_missing_or_one_value_is_drawn():
    """Whether the value is there may be all there is to learn."""
    X = sample(200, 2)
    X[:, 0] = np.where(np.arange(200) % 2, np.nan, 1.0)
    assert (draw(X, 100).features == 0).any()


def test_idle_ferns_are_dropped():
    """Two rows whose outcomes are hashed to the same of two cells are not parted."""
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    maps, codes = fit(X, 200, depth=10, distribution="fixed", max_cells=2)
    assert maps.n_maps == codes.n_groups
    assert 60 < maps.n_maps < 140
    assert (codes.values[:, 0] != codes.values[:, 1]).all()


@pytest.mark.parametrize("X", [np.ones((6, 3)), np.full((6, 3), np.nan)], ids=["ones", "missing"])
def test_columns_without_variation_leave_no_ferns(loops, X):
    maps, codes = Ferns().fit_codes(rows_of(X, loops), np.ones(6), 20, 0)
    assert maps.n_maps == maps.n_groups == codes.n_groups == 0
    assert maps.cells.n_cells == 0
    assert maps.codes(rows_of(X, loops)).values.shape == (0, 6)
    np.testing.assert_array_equal(maps.score(rows_of(X, loops), np.empty((0, 2))), np.zeros((6, 2)))
    assert maps.column_names(["a", "b", "c"]) == []


def test_cells_never_seen_share_the_last_number(loops):
    X = sample(15)
    maps, codes = fit(X, depth=6, distribution="fixed")
    n_seen = codes.values.max(axis=1) + 1
    np.testing.assert_array_equal(np.diff(maps.cell_offsets), n_seen + 1)
    new = 3 * sample(300, seed=1)
    new_codes = maps.codes(rows_of(new, loops)).values
    for fern in range(maps.n_maps):
        seen = {raw_cell(maps, fern, row) for row in X}
        unseen = [raw_cell(maps, fern, row) not in seen for row in new]
        np.testing.assert_array_equal(new_codes[fern] == n_seen[fern], unseen)


@pytest.mark.parametrize("theta", ["ones", "learned"])
def test_cells_never_seen_add_nothing_to_a_score(theta):
    X = sample(60, 3)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    family = Ferns(depth=12, distribution="fixed", max_cells=1024)
    model = MBKLClassifier(maps=family, n_maps=50, theta=theta, random_state=0).fit(X, y)
    (maps,) = model.maps_.families
    last = maps.cell_offsets[1:] - 1
    shared = np.diff(maps.cell_offsets) < maps.n_raw
    assert shared.any()
    assert not model.predictor_.tables[0][last[shared]].any()


def test_scores_are_sums_of_table_entries(loops):
    X = sample(missing=0.1)
    maps, codes = fit(X)
    tables = np.random.default_rng(0).normal(size=(maps.cells.n_cells, 3))
    expected = sum(
        tables[maps.cell_offsets[fern] + codes.values[fern]] for fern in range(maps.n_maps)
    )
    np.testing.assert_allclose(maps.score(rows_of(X, loops), tables), expected, atol=1e-12)


def test_a_large_input_is_scored_in_parts(monkeypatch, loops):
    X = sample(100)
    maps, codes = fit(X)
    tables = np.random.default_rng(0).normal(size=(maps.cells.n_cells, 2))
    whole = maps.score(rows_of(X, loops), tables)
    monkeypatch.setattr("mbkl.engine.rows._CODES_AT_ONCE", 70)
    monkeypatch.setattr("mbkl.engine.rows._SPARSE_VALUES_AT_ONCE", 70)
    np.testing.assert_array_equal(maps.score(rows_of(X, loops), tables), whole)
    np.testing.assert_array_equal(
        maps.codes(rows_of(sparse.csr_array(X), loops)).values, codes.values
    )


def test_select_keeps_some_ferns(loops):
    X = sample(missing=0.1)
    maps, codes = fit(X)
    kept = np.arange(maps.n_maps) % 3 == 1
    part = maps.select(kept)
    np.testing.assert_array_equal(part.codes(rows_of(X, loops)).values, codes.values[kept])
    np.testing.assert_array_equal(np.diff(part.cell_offsets), np.diff(maps.cell_offsets)[kept])
    assert same_maps(maps.select(np.ones(maps.n_maps, dtype=bool)), maps)
    assert maps.select(np.zeros(maps.n_maps, dtype=bool)).n_maps == 0


@pytest.mark.parametrize("rates", [None, np.array([0.7, 0.1, 0.1, 0.1])])
def test_all_ferns_weigh_the_same_before_any_are_learned(rates):
    maps, _ = fit(sample())
    np.testing.assert_array_equal(maps.prior(rates), np.ones(maps.n_maps))


def test_a_fern_is_no_stump():
    maps, _ = fit(sample())
    assert maps.stump_features.size == maps.stump_thresholds.size == 0
    assert not maps.is_ordered
    np.testing.assert_array_equal(maps.group_features, -np.ones(maps.n_groups))
    features, thresholds = zip(*maps.ferns, strict=True)
    np.testing.assert_array_equal(np.concatenate(features), maps.features)
    np.testing.assert_array_equal(np.concatenate(thresholds), maps.thresholds)


def test_codes_of_few_rows_are_read_a_few_times_only():
    maps, _ = fit(sample())
    assert MapSet((maps,)).n_codes(100) == 0
    assert MapSet((maps,)).n_codes(10_000) == 10_000 * maps.n_maps


def test_a_name_for_every_cell():
    maps, _ = fit(sample(), 5)
    names = maps.column_names(["a", "b", "c", "d"])
    assert len(names) == len(set(names)) == maps.cells.n_cells
    assert names[0] == "fern 0 cell 0"


# --- Drawing ---


@EVERY_THRESHOLDS
@pytest.mark.parametrize("distribution", ["poisson", "fixed"])
def test_fewer_ferns_are_the_first_of_more(thresholds, distribution):
    X = sample(missing=0.1)
    options = {"thresholds": thresholds, "distribution": distribution}
    few, many = draw(X, 20, **options), draw(X, 40, **options)
    n_stumps = few.features.size
    np.testing.assert_array_equal(few.features, many.features[:n_stumps])
    np.testing.assert_array_equal(few.thresholds, many.thresholds[:n_stumps])
    np.testing.assert_array_equal(few.offsets, many.offsets[:21])
    np.testing.assert_array_equal(few.factors, many.factors[:20])


def test_another_seed_draws_other_ferns():
    X = sample()
    assert same_maps(fit(X, seed=1)[0], fit(X, seed=1)[0])
    assert not same_maps(fit(X, seed=1)[0], fit(X, seed=2)[0])


@pytest.mark.parametrize("depth", [1, 3, 6.0, 64])
def test_fixed_depths_are_all_the_same(depth):
    maps = draw(sample(), 50, depth=depth, distribution="fixed")
    np.testing.assert_array_equal(np.diff(maps.offsets), int(depth))


@pytest.mark.parametrize("depth", [0.1, 1, 6.5, 30])
def test_poisson_depths_have_the_mean_of_those_above_zero(depth):
    depths = np.diff(draw(sample(), 4000, depth=depth).offsets)
    assert depths.min() >= 1
    some = 1.0 - np.exp(-depth)
    mean = depth / some
    variance = (depth + depth**2) / some - mean**2
    assert abs(depths.mean() - mean) < 4 * np.sqrt(variance / 4000)
    assert depths.var() == pytest.approx(variance, rel=0.2)


@pytest.mark.parametrize("max_cells", [2, 8, 256, 65_536])
def test_cells_are_bounded(max_cells):
    X = sample(500)
    maps, codes = fit(X, 20, depth=20, distribution="fixed", max_cells=max_cells)
    np.testing.assert_array_equal(maps.n_raw, max_cells)
    assert np.diff(maps.cell_offsets).max() <= max_cells
    assert (codes.values.max(axis=1) < np.diff(maps.cell_offsets)).all()


def test_hashing_adds_its_share_to_the_kernel():
    """Rows in different cells meet by chance in one of the cells that are left."""
    X = sample(60)
    options = {"depth": 40, "distribution": "fixed"}
    maps, codes = fit(X, 400, max_cells=16, **options)
    apart = np.triu(np.ones((60, 60), dtype=bool), 1)
    few = TWINS.agreement(codes.values, codes.values, np.full(maps.n_maps, 1 / maps.n_maps))[
        apart
    ].mean()
    maps, codes = fit(X, 400, max_cells=4096, **options)
    many = TWINS.agreement(codes.values, codes.values, np.full(maps.n_maps, 1 / maps.n_maps))[
        apart
    ].mean()
    assert few - many == pytest.approx((1 - many) / 16, rel=0.1)


@EVERY_THRESHOLDS
def test_constant_columns_are_never_drawn(thresholds):
    X = sample(100, 5)
    X[:, 0], X[:, 3], X[:, 4] = 7.0, 0.0, np.nan
    maps = draw(X, 200, thresholds=thresholds)
    np.testing.assert_array_equal(np.unique(maps.features), [1, 2])


def test_features_are_drawn_at_their_rates():
    rates = np.array([5.0, 0.0, 1.0, 4.0])
    features = draw(sample(), 2000, rates=rates).features
    counts = np.bincount(features, minlength=4)
    expected = rates / rates.sum()
    assert counts[1] == 0
    error = np.sqrt(expected * (1 - expected) / features.size)
    assert (np.abs(counts / features.size - expected) <= 4 * error).all()


def test_equal_rates_are_the_default():
    X = sample()
    assert same_maps(draw(X), draw(X, rates=np.full(4, 2.5)))
    counts = np.bincount(draw(X, 2000).features, minlength=4)
    np.testing.assert_allclose(counts / counts.sum(), 0.25, atol=0.02)


def test_thresholds_lie_inside_the_range():
    X = sample()
    for thresholds in ("mixed", "uniform", "quantile"):
        maps = draw(X, 200, thresholds=thresholds)
        assert (maps.thresholds >= X.min(axis=0)[maps.features]).all()
        assert (maps.thresholds < X.max(axis=0)[maps.features]).all()


def test_uniform_and_quantile_thresholds_differ_on_skewed_data():
    X = np.exp(3 * sample(500, 1))
    share_below_median = {
        kind: (draw(X, 300, thresholds=kind).thresholds < np.median(X)).mean()
        for kind in ("uniform", "mixed", "quantile")
    }
    assert share_below_median["uniform"] < 0.05
    assert share_below_median["quantile"] == pytest.approx(0.5, abs=0.06)
    assert share_below_median["mixed"] == pytest.approx(0.25, abs=0.06)


def test_quantile_thresholds_do_not_see_monotone_transformations():
    X = sample(80)
    _, codes = fit(X, thresholds="quantile")
    _, same = fit(X**3 + X, thresholds="quantile")
    np.testing.assert_array_equal(codes.values, same.values)


# --- The same data in another form ---


@EVERY_THRESHOLDS
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_is_dense(loops, thresholds, form):
    X = sample(missing=0.1)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    family = Ferns(thresholds=thresholds, depth=4)
    maps, codes = family.fit_codes(rows_of(X, loops), np.ones(120), 40, 0)
    same, same_codes = family.fit_codes(rows_of(form(X), loops), np.ones(120), 40, 0)
    assert same_maps(same, maps)
    np.testing.assert_array_equal(same_codes.values, codes.values)
    tables = np.random.default_rng(0).normal(size=(maps.cells.n_cells, 2))
    np.testing.assert_array_equal(
        maps.score(rows_of(form(X), loops), tables), maps.score(rows_of(X, loops), tables)
    )


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
def test_stored_zeros_are_zeros(form):
    X = sample()
    X[::2] = 0.0
    stored = form(np.where(X == 0, 9.0, X))
    stored.data[stored.data == 9.0] = 0.0
    assert stored.nnz > form(X).nnz
    maps, codes = fit(form(X))
    same, same_codes = fit(stored)
    assert same_maps(same, maps)
    np.testing.assert_array_equal(same_codes.values, codes.values)


@EVERY_THRESHOLDS
def test_single_precision_is_double_precision(loops, thresholds):
    X = sample(missing=0.1)
    family = Ferns(thresholds=thresholds)
    maps, codes = family.fit_codes(rows_of(X, loops), np.ones(120), 60, 0)
    same, same_codes = family.fit_codes(rows_of(X.astype(np.float32), loops), np.ones(120), 60, 0)
    assert same_maps(same, maps)
    np.testing.assert_array_equal(same_codes.values, codes.values)
    assert (maps.thresholds == maps.thresholds.astype(np.float32)).all()


@EVERY_THRESHOLDS
@pytest.mark.parametrize("n_rows", [150, 1500], ids=["all rows", "a sample"])
def test_the_order_of_the_rows_does_not_matter(thresholds, n_rows):
    X = sample(n_rows, missing=0.1)
    generator = np.random.default_rng(1)
    weights, order = generator.random(n_rows) + 0.5, generator.permutation(n_rows)
    maps, codes = fit(X, weights=weights, thresholds=thresholds)
    same, same_codes = fit(X[order], weights=weights[order], thresholds=thresholds)
    assert same_maps(same, maps)
    np.testing.assert_array_equal(same_codes.values, codes.values[:, order])


@EVERY_THRESHOLDS
@pytest.mark.parametrize("n_rows", [150, 1500], ids=["all rows", "a sample"])
def test_a_weight_is_a_repetition(thresholds, n_rows):
    X = sample(n_rows, missing=0.1)
    times = np.random.default_rng(1).integers(1, 4, size=n_rows)
    weighted, _ = fit(X, weights=times.astype(float), thresholds=thresholds)
    repeated, _ = fit(np.repeat(X, times, axis=0), thresholds=thresholds)
    assert same_maps(weighted, repeated)


def test_weights_move_quantiles():
    X = np.arange(200.0)[:, None]
    weights = np.where(X[:, 0] < 20, 100.0, 1.0)
    maps = draw(X, 200, weights=weights, thresholds="quantile")
    assert (maps.thresholds < 20).mean() > 0.8


# --- The kernel in the limit ---


def agreement_of_pairs(X, n_maps, **parameters):
    """Return the share of ferns that agree for all pairs; idle ferns always do."""
    maps, codes = fit(X, n_maps, thresholds="uniform", max_cells=65_536, **parameters)
    agreed = TWINS.agreement(codes.values, codes.values, np.ones(maps.n_maps))
    return (agreed + n_maps - maps.n_maps) / n_maps


def uniform_sample(n_rows=12, n_features=3):
    X = np.random.default_rng(0).random((n_rows, n_features))
    X[0], X[1] = 0.0, 1.0  # so that the range is known
    return X


def assert_within_errors(observed, expected, n_draws):
    error = np.sqrt(expected * (1 - expected) / n_draws)
    assert (np.abs(observed - expected) <= 4 * error + 1e-6).all()


@pytest.mark.parametrize("depth", [0.5, 2.0, 6.0])
def test_poisson_ferns_have_the_laplace_kernel(depth):
    X = uniform_sample()
    distance = np.abs(X[:, None] - X).mean(axis=2)
    # Without the ferns of no stump, which all rows share.
    none = np.exp(-depth)
    expected = (np.exp(-depth * distance) - none) / (1 - none)
    observed = agreement_of_pairs(X, 4000, depth=depth)
    assert_within_errors(observed, np.clip(expected, 0, 1), 4000)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_ferns_of_fixed_depth_have_a_power_of_the_stump_kernel(depth):
    X = uniform_sample()
    stumps = 1 - np.abs(X[:, None] - X).mean(axis=2)
    observed = agreement_of_pairs(X, 4000, depth=depth, distribution="fixed")
    assert_within_errors(observed, np.clip(stumps, 0, 1) ** depth, 4000)


def test_rates_stretch_the_distance():
    X, rates = uniform_sample(), np.array([6.0, 3.0, 1.0])
    stumps = 1 - np.abs(X[:, None] - X) @ (rates / rates.sum())
    observed = agreement_of_pairs(X, 4000, depth=3, distribution="fixed", rates=rates)
    assert_within_errors(observed, np.clip(stumps, 0, 1) ** 3, 4000)


# --- Bad parameters ---

BAD = [
    ({"depth": 0}, "depth"),
    ({"depth": -1.0}, "depth"),
    ({"depth": 65}, "depth"),
    ({"depth": np.nan}, "depth"),
    ({"depth": 2.5, "distribution": "fixed"}, "depth"),
    ({"distribution": "normal"}, "distribution"),
    ({"thresholds": "median"}, "thresholds"),
    ({"max_cells": 1}, "max_cells"),
    ({"max_cells": 0}, "max_cells"),
    ({"max_cells": 100}, "max_cells"),
    ({"max_cells": 4.7}, "max_cells"),
    ({"max_cells": 131_072}, "max_cells"),
    ({"rates": [1.0, 1.0]}, "rates"),
    ({"rates": np.ones((4, 1))}, "rates"),
    ({"rates": [1.0, -1.0, 1.0, 1.0]}, "rates"),
    ({"rates": np.zeros(4)}, "rates"),
    ({"rates": [np.nan, 1.0, 1.0, 1.0]}, "rates"),
    ({"rates": [np.inf, 1.0, 1.0, 1.0]}, "rates"),
]


@pytest.mark.parametrize(("parameters", "name"), BAD)
def test_bad_parameters_are_named(parameters, name):
    with pytest.raises(ValueError, match=name):
        fit(sample(), **parameters)


def test_a_family_can_be_cloned():
    family = Ferns(depth=3, max_cells=16, rates=(1.0, 2.0))
    assert clone(family).get_params() == family.get_params()
