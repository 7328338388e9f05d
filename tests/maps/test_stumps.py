"""Random decision stumps: how they are drawn and merged, and the kernel they tend to."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mbkl.cells import operator_of
from mbkl.engine.rows import as_rows
from mbkl.engine.twins import TWINS
from mbkl.maps import Stumps
from mbkl.maps.stumps import StumpMaps, no_stumps

FAMILIES = [
    Stumps(thresholds=thresholds, draw=draw)
    for thresholds in ("uniform", "quantile")
    for draw in ("random", "stratified")
]
EVERY_FAMILY = pytest.mark.parametrize(
    "family", FAMILIES, ids=lambda family: f"{family.thresholds}-{family.draw}"
)
EVERY_DRAW = pytest.mark.parametrize("draw", ["random", "stratified"])


def rows_of(X, loops=TWINS):
    """Return the rows of a matrix, dense or sparse."""
    return replace(as_rows(X), loops=loops)


def fit(family, X, n_maps=50, seed=0, weights=None):
    weights = np.ones(X.shape[0]) if weights is None else np.asarray(weights, float)
    return family.fit_codes(as_rows(X), weights, n_maps, seed)


def normal(n_rows=60, n_features=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def drawn_stumps(family, X, n_maps, seed):
    """Return features and thresholds of all stumps drawn uniformly, before merging."""
    features, shares = family._draw(n_maps, X.shape[1], seed)
    low, high = X.min(axis=0)[features], X.max(axis=0)[features]
    thresholds = low * (1 - shares) + high * shares
    return features, thresholds.astype(np.float32).astype(float)


@EVERY_FAMILY
def test_codes_count_thresholds_strictly_below(family):
    X = np.round(normal() * 4) / 4  # many ties
    maps, codes = fit(family, X)
    offsets = maps.edges.offsets
    for group, feature in enumerate(maps.features):
        thresholds = maps.edges.thresholds[offsets[group] : offsets[group + 1]]
        expected = (X[:, [feature]].astype(np.float32) > thresholds).sum(axis=1)
        np.testing.assert_array_equal(codes.values[group], expected)


@EVERY_FAMILY
def test_codes_of_new_rows_match_those_of_the_fit(loops, family):
    X = normal()
    maps, codes = fit(family, X)
    np.testing.assert_array_equal(maps.codes(rows_of(X, loops)).values, codes.values)


def test_a_tie_is_not_above():
    X = np.array([[0.0], [1.0]])
    maps, _ = fit(Stumps(), X, n_maps=1)
    at_threshold = np.array([[maps.edges.thresholds[0]]])
    assert maps.codes(rows_of(at_threshold)).values[0, 0] == 0
    above = np.nextafter(np.float32(at_threshold), np.float32(np.inf))
    assert maps.codes(rows_of(above)).values[0, 0] == 1


@EVERY_FAMILY
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_thresholds_are_float32_numbers(family, scale):
    maps, _ = fit(family, normal() * scale)
    thresholds = maps.edges.thresholds
    assert thresholds.size
    np.testing.assert_array_equal(thresholds, thresholds.astype(np.float32).astype(float))


@EVERY_FAMILY
def test_float32_and_float64_values_fall_in_the_same_cells(family):
    X = normal().astype(np.float32)
    maps, codes = fit(family, X)
    maps_64, codes_64 = fit(family, X.astype(np.float64))
    np.testing.assert_array_equal(codes.values, codes_64.values)
    np.testing.assert_array_equal(maps.edges.thresholds, maps_64.edges.thresholds)
    np.testing.assert_array_equal(maps.codes(rows_of(X.astype(np.float64))).values, codes.values)


@EVERY_DRAW
@pytest.mark.parametrize("n_features", [1, 3, 7])
def test_a_draw_is_the_beginning_of_a_larger_one(draw, n_features):
    family = Stumps(draw=draw)
    features, shares = family._draw(40, n_features, 5)
    more_features, more_shares = family._draw(80, n_features, 5)
    np.testing.assert_array_equal(features, more_features[:40])
    np.testing.assert_array_equal(shares, more_shares[:40])


@EVERY_FAMILY
def test_maps_of_a_draw_are_among_those_of_a_larger_one(family):
    # So many rows that no two stumps are merged.
    X = np.random.default_rng(0).random((4000, 3))
    few, _ = fit(family, X, n_maps=8)
    many, _ = fit(family, X, n_maps=16)
    pairs_few = set(zip(few.stump_features, few.edges.thresholds))
    pairs_many = set(zip(many.stump_features, many.edges.thresholds))
    assert len(pairs_few) == 8
    assert len(pairs_many) == 16
    assert pairs_few < pairs_many


@EVERY_DRAW
def test_different_seeds_draw_different_stumps(draw):
    first, _ = fit(Stumps(draw=draw), normal(), seed=1)
    second, _ = fit(Stumps(draw=draw), normal(), seed=2)
    assert not np.array_equal(first.edges.thresholds, second.edges.thresholds)


@EVERY_DRAW
def test_features_are_drawn_evenly(draw):
    features, shares = Stumps(draw=draw)._draw(6000, 6, 0)
    counts = np.bincount(features, minlength=6)
    assert counts.min() > 850
    assert counts.max() < 1150
    assert 0 <= shares.min() < 0.01
    assert 0.99 < shares.max() < 1


def test_a_stratified_draw_takes_the_features_in_turn():
    features, _ = Stumps(draw="stratified")._draw(20, 6, 0)
    for start in (0, 6, 12):
        np.testing.assert_array_equal(np.sort(features[start : start + 6]), np.arange(6))


def test_a_stratified_draw_spreads_thresholds_evenly():
    features, shares = Stumps(draw="stratified")._draw(64, 2, 0)
    for feature in (0, 1):
        strata = np.floor(np.sort(shares[features == feature]) * 32)
        gaps = np.diff(np.sort(shares[features == feature]))
        assert len(strata) == 32
        np.testing.assert_allclose(gaps, 1 / 32)


@EVERY_DRAW
@pytest.mark.parametrize("n_maps", [1, 30, 300])
def test_stumps_that_split_the_rows_identically_are_merged(draw, n_maps):
    X = np.round(normal(n_rows=25) * 2) / 2
    family = Stumps(draw=draw)
    drawn = Counter(
        (feature, tuple(X[:, feature] > threshold))
        for feature, threshold in zip(*drawn_stumps(family, X, n_maps, seed=3))
    )
    useful = {key: count for key, count in drawn.items() if len(set(key[1])) == 2}
    maps, _ = fit(family, X, n_maps, seed=3)
    found = {
        (feature, tuple(X[:, feature] > threshold)): count
        for feature, threshold, count in zip(
            maps.stump_features, maps.edges.thresholds, maps.multiplicity
        )
    }
    assert found == useful


@EVERY_FAMILY
def test_no_feature_has_more_maps_than_gaps_between_its_values(family):
    X = np.round(normal())
    maps, _ = fit(family, X, n_maps=5000)
    for feature, count in zip(maps.features, np.diff(maps.edges.offsets)):
        assert count == np.unique(X[:, feature]).size - 1


@EVERY_DRAW
def test_a_merged_stump_lies_well_inside_the_gap(draw):
    maps, _ = fit(Stumps(draw=draw), np.array([[0.0], [1.0]]), n_maps=999)
    np.testing.assert_allclose(maps.edges.thresholds, 0.5, atol=0.1)
    np.testing.assert_array_equal(maps.multiplicity, 999)


def test_merging_does_not_change_the_kernel():
    X = np.round(normal(n_rows=30) * 2) / 2
    features, thresholds = drawn_stumps(Stumps(), X, 400, seed=0)
    sides = X[:, features] > thresholds
    agree = (sides[:, None] == sides[None]).sum(axis=2)
    maps, _ = fit(Stumps(), X, n_maps=400)
    merged = X[:, maps.stump_features] > maps.edges.thresholds
    agree_merged = ((merged[:, None] == merged[None]) * maps.multiplicity).sum(axis=2)
    # Stumps with all rows on one side agree on all pairs and are dropped.
    np.testing.assert_array_equal(agree - 400, agree_merged - maps.multiplicity.sum())


@EVERY_DRAW
@pytest.mark.parametrize(
    "transform", [np.exp, lambda X: X**3, lambda X: 100 * X - 7], ids=["exp", "cube", "line"]
)
def test_quantile_maps_do_not_change_under_monotone_transforms(draw, transform):
    X, family = normal(), Stumps(thresholds="quantile", draw=draw)
    maps, codes = fit(family, X)
    transformed, transformed_codes = fit(family, transform(X))
    np.testing.assert_array_equal(codes.values, transformed_codes.values)
    np.testing.assert_array_equal(maps.multiplicity, transformed.multiplicity)
    np.testing.assert_array_equal(maps.features, transformed.features)


def test_an_outlier_does_not_move_quantile_maps():
    X = normal(n_features=1)
    X[X.argmax()] = 1e20
    maps, _ = fit(Stumps(thresholds="quantile"), X)
    assert np.median(maps.edges.thresholds) < 3
    uniform, _ = fit(Stumps(), X)
    assert uniform.n_maps == 1


@EVERY_FAMILY
def test_a_weight_is_a_number_of_repetitions(family):
    X = np.round(normal(n_rows=30) * 8) / 8
    weights = np.random.default_rng(1).integers(1, 5, size=30)
    weighted, _ = fit(family, X, weights=weights)
    repeated, _ = fit(family, np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(weighted.edges.thresholds, repeated.edges.thresholds)
    np.testing.assert_array_equal(weighted.stump_features, repeated.stump_features)
    np.testing.assert_array_equal(weighted.multiplicity, repeated.multiplicity)


@EVERY_FAMILY
def test_constant_and_missing_columns_have_no_map(family):
    X = normal(n_features=4)
    X[:, 1] = 3.5
    X[:, 3] = np.nan
    maps, codes = fit(family, X)
    np.testing.assert_array_equal(maps.features, [0, 2])
    assert codes.n_groups == 2


@EVERY_FAMILY
@pytest.mark.parametrize("value", [0.0, 7.0, np.nan])
def test_a_constant_matrix_has_no_map(family, value):
    maps, codes = fit(family, np.full((10, 3), value))
    assert (maps.n_maps, codes.n_groups, codes.n_rows) == (0, 0, 10)


@EVERY_FAMILY
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_missing_values_have_a_cell_of_their_own(family, make):
    X = np.where(np.abs(normal()) < 1, 0.0, normal())
    X[::4, 1] = np.nan
    maps, codes = fit(family, make(X))
    values = codes.dense().values
    group = int(np.flatnonzero(maps.features == 1)[0])
    assert maps.edges.thresholds[maps.edges.offsets[group]] == -np.inf
    np.testing.assert_array_equal(values[group] == 0, np.isnan(X[:, 1]))
    assert np.isneginf(maps.edges.thresholds).sum() == 1


@EVERY_FAMILY
def test_presence_alone_can_be_a_map(family):
    X = np.full((8, 1), 5.0)
    X[:3] = np.nan
    maps, codes = fit(family, X)
    np.testing.assert_array_equal(maps.edges.thresholds, [-np.inf])
    np.testing.assert_array_equal(codes.values, [[0, 0, 0, 1, 1, 1, 1, 1]])


@EVERY_FAMILY
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_and_dense_matrices_give_the_same_maps(family, make, dtype):
    X = np.where(np.abs(normal(n_features=5)) < 1, 0.0, normal(n_features=5)).astype(dtype)
    maps, codes = fit(family, X)
    sparse_maps, sparse_codes = fit(family, make(X))
    np.testing.assert_array_equal(maps.edges.thresholds, sparse_maps.edges.thresholds)
    np.testing.assert_array_equal(maps.stump_features, sparse_maps.stump_features)
    np.testing.assert_array_equal(maps.multiplicity, sparse_maps.multiplicity)
    np.testing.assert_array_equal(sparse_codes.dense().values, codes.values)


@EVERY_DRAW
def test_a_full_sparse_column_has_no_zero_value(draw):
    X = np.random.default_rng(0).uniform(1, 2, size=(30, 2))
    weights = np.random.default_rng(1).uniform(0.1, 1, size=30)
    family = Stumps(thresholds="quantile", draw=draw)
    dense, _ = fit(family, X, weights=weights)
    stored, _ = fit(family, sparse.csc_array(X), weights=weights)
    np.testing.assert_array_equal(dense.edges.thresholds, stored.edges.thresholds)


@EVERY_FAMILY
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_repeated_sparse_entries_are_added_up(family, make):
    X = np.where(np.abs(normal()) < 1, 0.0, normal())
    expected, expected_codes = fit(family, X)
    maps, codes = fit(family, in_two_halves(make(X)))
    np.testing.assert_array_equal(maps.edges.thresholds, expected.edges.thresholds)
    np.testing.assert_array_equal(codes.dense().values, expected_codes.values)


def in_two_halves(X):
    """Store each entry as two entries of half its value."""
    halves = (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr)
    return type(X)(halves, shape=X.shape)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_huge_float32_values_are_not_taken_for_missing(make):
    X = np.repeat(np.array([3e38, -3e38, 0.0], dtype=np.float32), 400)[:, None]
    X = np.random.default_rng(0).permutation(X)
    maps, _ = fit(Stumps(), make(X))
    assert np.isfinite(maps.edges.thresholds).all()
    assert maps.n_maps == 2


def agreement(family, X, n_maps, seed):
    """Return for each pair of rows the share of drawn maps on which they agree."""
    maps, codes = fit(family, X, n_maps, seed)
    Z = operator_of(codes, maps.cells).dense()[:, maps.cells.is_map]
    disagree = maps.multiplicity.sum() - (Z * maps.multiplicity) @ Z.T
    return 1 - disagree / 2 / n_maps


def limit_kernel(X):
    spans = np.ptp(X, axis=0)
    return 1 - (np.abs(X[:, None] - X[None]) / spans).mean(axis=2)


@pytest.mark.parametrize("seed", range(4))
def test_uniform_stumps_tend_to_the_range_normalised_distance(seed):
    X = normal(n_rows=20)
    limit = limit_kernel(X)
    deviation = np.sqrt(limit * (1 - limit) / 3000)
    error = np.abs(agreement(Stumps(), X, 3000, seed) - limit)
    assert (error <= 4 * deviation + 1e-12).all()


@pytest.mark.parametrize("seed", range(4))
def test_quantile_stumps_tend_to_the_distance_of_ranks(seed):
    X = normal(n_rows=20)
    ranks = X.argsort(axis=0).argsort(axis=0) / 19  # no threshold beyond the largest value
    limit = 1 - np.abs(ranks[:, None] - ranks[None]).mean(axis=2)
    deviation = np.sqrt(limit * (1 - limit) / 3000)
    error = np.abs(agreement(Stumps(thresholds="quantile"), X, 3000, seed) - limit)
    assert (error <= 4 * deviation + 1e-12).all()


def test_a_stratified_draw_is_nearer_the_limit():
    X = normal(n_rows=20, n_features=4)
    limit = limit_kernel(X)

    def deviation(draw):
        errors = [agreement(Stumps(draw=draw), X, 400, seed) - limit for seed in range(6)]
        return np.sqrt(np.mean(np.square(errors)))

    assert deviation("stratified") < 0.5 * deviation("random")


def test_selecting_maps_keeps_them_and_drops_empty_groups():
    maps, _ = fit(Stumps(), normal())
    kept = (np.arange(maps.n_maps) % 3 == 0) & (maps.stump_features != 1)
    selected = maps.select(kept)
    assert isinstance(selected, StumpMaps)
    np.testing.assert_array_equal(selected.features, [0, 2])
    np.testing.assert_array_equal(selected.stump_features, maps.stump_features[kept])
    np.testing.assert_array_equal(selected.edges.thresholds, maps.edges.thresholds[kept])
    np.testing.assert_array_equal(selected.multiplicity, maps.multiplicity[kept])


@EVERY_FAMILY
def test_stumps_weigh_as_often_as_they_were_drawn(family):
    maps, _ = fit(family, np.round(normal() * 2) / 2, n_maps=300)
    assert maps.multiplicity.max() > 1
    np.testing.assert_array_equal(maps.prior(), maps.multiplicity)


@EVERY_FAMILY
def test_the_rate_of_a_feature_is_divided_among_its_stumps(family):
    maps, _ = fit(family, np.round(normal() * 2) / 2, n_maps=300)
    rates = np.array([0.5, 0.0, 0.2])
    prior = maps.prior(rates)
    np.testing.assert_allclose(np.bincount(maps.stump_features, prior), rates)
    first = maps.stump_features == 0
    own = maps.multiplicity[first]
    np.testing.assert_allclose(prior[first], 0.5 * own / own.sum())


@EVERY_FAMILY
def test_scores_are_sums_of_table_entries(loops, family):
    X = normal()
    maps, codes = fit(family, X)
    tables = np.random.default_rng(0).normal(size=(maps.cells.n_cells, 3))
    expected = sum(
        tables[codes.offsets[group] + codes.values[group]] for group in range(maps.n_groups)
    )
    for form in (np.asarray, sparse.csr_array):
        scores = maps.score(rows_of(form(X), loops), tables)
        np.testing.assert_allclose(scores, expected, atol=1e-12)


def test_stumps_are_ordered_and_no_ferns():
    maps, codes = fit(Stumps(), normal())
    assert maps.is_ordered
    assert maps.ferns == []
    np.testing.assert_array_equal(maps.group_features, maps.features)
    np.testing.assert_array_equal(maps.stump_thresholds, maps.edges.thresholds)
    np.testing.assert_array_equal(maps.cells.offsets, codes.offsets)


def test_either_side_of_a_stump_has_a_name():
    X = normal()
    X[0, 1] = np.nan
    maps, _ = fit(Stumps(), X)
    names = maps.column_names(["a", "b", "c"])
    assert len(names) == len(set(names)) == 2 * maps.n_maps
    assert names[0].startswith("a > ")
    assert names[1].startswith("a <= ")
    assert "b missing" in names


def test_no_stumps_are_no_trouble():
    maps, X = no_stumps(), normal()
    assert (maps.n_maps, maps.n_groups, maps.cells.n_cells) == (0, 0, 0)
    assert maps.codes(rows_of(X)).n_groups == 0
    np.testing.assert_array_equal(maps.score(rows_of(X), np.empty((0, 2))), np.zeros((60, 2)))
    assert maps.prior().size == maps.prior(np.ones(3)).size == 0


@pytest.mark.parametrize("name", ["thresholds", "draw"])
def test_unknown_choices_are_named(name):
    with pytest.raises(ValueError, match=rf"'{name}' .* must be .*'sideways'"):
        fit(Stumps(**{name: "sideways"}), normal())


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_values_beyond_float32_are_refused(make, sign):
    X = normal()
    X[5, 2] = sign * 1e39
    with pytest.raises(ValueError, match="float32 in column 2"):
        fit(Stumps(), make(X))


def test_columns_that_float32_cannot_resolve_are_ignored_with_a_warning():
    X = normal()
    X[:, 1] = 1 + 1e-12 * np.arange(60)
    with pytest.warns(UserWarning, match="Column 1 of X varies by less than float32"):
        maps, _ = fit(Stumps(), X)
    np.testing.assert_array_equal(maps.features, [0, 2])
