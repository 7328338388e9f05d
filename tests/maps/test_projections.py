"""Stumps on projections, against projections computed by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import AdditiveChi2Sampler

from mbkl.engine.rows import as_rows
from mbkl.engine.twins import TWINS
from mbkl.maps import Projections


def sample(n_rows=90, n_features=5, missing=0.0, seed=0):
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(2.0, 3.0, size=(n_rows, n_features)) * 64) / 64
    X[generator.random(X.shape) < missing] = np.nan
    return X


def rows_of(X, loops=TWINS):
    """Return the rows of a matrix, dense or sparse."""
    return replace(as_rows(X), loops=loops)


def fit(X, n_maps=64, seed=0, weights=None, loops=TWINS, **parameters):
    weights = np.ones(X.shape[0]) if weights is None else weights
    return Projections(**parameters).fit_codes(rows_of(X, loops), weights, n_maps, seed)


def codes_by_hand(maps, projected):
    """Count for each projection the thresholds below each row."""
    offsets, thresholds = maps.stumps.edges.offsets, maps.stumps.edges.thresholds
    return np.array(
        [
            (projected[:, [group]] > thresholds[offsets[group] : offsets[group + 1]]).sum(axis=1)
            for group in range(maps.n_groups)
        ]
    )


def dense_directions(maps):
    directions = maps.directions
    return directions.toarray() if sparse.issparse(directions) else directions


@pytest.mark.parametrize("directions", ["gaussian", "sparse"])
def test_maps_are_stumps_on_the_projections(loops, directions):
    X = sample()
    maps, codes = fit(X, loops=loops, directions=directions)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    projected = (scaled @ dense_directions(maps)).astype(np.float32)
    np.testing.assert_allclose(maps.project(X), projected, atol=1e-5)
    expected = codes_by_hand(maps, maps.project(X))
    np.testing.assert_array_equal(codes.dense().values, expected)
    np.testing.assert_array_equal(maps.codes(rows_of(X, loops)).dense().values, expected)
    assert maps.n_groups == dense_directions(maps).shape[1] == 64 // 16


def test_weights_count_in_the_scaling():
    X, times = sample(), np.random.default_rng(1).integers(1, 4, size=90)
    weighted, _ = fit(X, weights=times.astype(float))
    repeated, _ = fit(np.repeat(X, times, axis=0))
    np.testing.assert_array_equal(weighted.centre, repeated.centre)
    np.testing.assert_array_equal(weighted.scale, repeated.scale)
    np.testing.assert_allclose(weighted.centre, np.average(X, axis=0, weights=times))


def test_the_unit_of_a_feature_does_not_matter():
    X = sample()
    _, codes = fit(X)
    _, same = fit(X * [2.0, 1024.0, 0.25, 1.0, 8.0])
    np.testing.assert_array_equal(codes.dense().values, same.dense().values)


def test_constant_features_are_no_trouble():
    X = sample()
    X[:, 1] = 5.0
    maps, _ = fit(X)
    assert maps.scale[1] == 1.0
    changed = X.copy()
    assert np.isfinite(maps.project(changed)).all()
    maps, codes = fit(np.ones((8, 3)))
    assert maps.n_maps == codes.n_groups == 0
    assert maps.codes(rows_of(np.ones((4, 3)))).n_groups == 0


@pytest.mark.parametrize("n_features", [1, 9, 30])
def test_sparse_directions_join_few_features(n_features):
    maps, _ = fit(sample(n_features=n_features), directions="sparse", n_projections=6)
    directions = dense_directions(maps)
    assert set(np.unique(directions)) <= {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(
        np.abs(directions).sum(axis=0), max(1, round(np.sqrt(n_features)))
    )


@pytest.mark.parametrize("directions", ["gaussian", "sparse"])
def test_fewer_directions_are_the_first_of_more(directions):
    few = fit(sample(), directions=directions, n_projections=3)[0]
    many = fit(sample(), directions=directions, n_projections=8)[0]
    np.testing.assert_array_equal(dense_directions(many)[:, :3], dense_directions(few))


def test_the_order_of_the_rows_does_not_matter():
    X, order = sample(missing=0.1), np.random.default_rng(1).permutation(90)
    maps, codes = fit(X)
    same, same_codes = fit(X[order])
    np.testing.assert_array_equal(same.stumps.edges.thresholds, maps.stumps.edges.thresholds)
    np.testing.assert_array_equal(same_codes.dense().values, codes.dense().values[:, order])


def test_single_precision_is_double_precision():
    X = sample(missing=0.1)
    maps, codes = fit(X)
    same, same_codes = fit(X.astype(np.float32))
    np.testing.assert_array_equal(same.stumps.edges.thresholds, maps.stumps.edges.thresholds)
    np.testing.assert_array_equal(same_codes.dense().values, codes.dense().values)


# --- Missing values ---


def test_missing_values_count_as_the_centre():
    X = sample(missing=0.2)
    maps, _ = fit(X)
    np.testing.assert_allclose(maps.centre, np.nanmean(X, axis=0))
    np.testing.assert_allclose(maps.scale, np.nanstd(X, axis=0))
    filled = np.where(np.isnan(X), maps.centre, X)
    np.testing.assert_array_equal(maps.project(X), maps.project(filled))


def test_a_column_without_values_counts_nothing():
    X = sample()
    X[:, 2] = np.nan
    maps, _ = fit(X)
    without = X.copy()
    without[:, 2] = 0.0
    projected = maps.project(X)
    assert np.isfinite(projected).all()
    np.testing.assert_allclose(projected, maps.project(without), atol=1e-6)


# --- The chi2 map ---


def test_chi2_projects_the_explicit_map(loops):
    X = np.abs(sample(missing=0.1))
    maps, codes = fit(X, input_map="chi2", loops=loops)
    scaled = np.nan_to_num(X / np.nanmax(X, axis=0))
    mapped = AdditiveChi2Sampler(sample_steps=2).fit_transform(scaled)
    np.testing.assert_allclose(
        maps.project(X), (mapped @ maps.directions).astype(np.float32), atol=1e-5
    )
    expected = codes_by_hand(maps, maps.project(X))
    np.testing.assert_array_equal(codes.dense().values, expected)


def test_chi2_of_sparse_is_chi2_of_dense():
    X = np.abs(sample())
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    maps, codes = fit(X, input_map="chi2")
    same, same_codes = fit(sparse.csr_array(X), input_map="chi2")
    np.testing.assert_array_equal(same.scale, maps.scale)
    np.testing.assert_array_equal(same_codes.dense().values, codes.dense().values)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_chi2_needs_values_of_at_least_zero(form):
    X = np.abs(sample())
    X[3, 2] = -0.5
    with pytest.raises(ValueError, match=r"input_map='chi2'.*column 2"):
        fit(form(X), input_map="chi2")


def test_new_negative_values_count_as_zero_in_chi2():
    X = np.abs(sample())
    maps, _ = fit(X, input_map="chi2")
    new = sample(seed=1)
    assert (new < 0).any()
    np.testing.assert_array_equal(maps.project(new), maps.project(np.maximum(new, 0.0)))


# --- Sparse input ---


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
@pytest.mark.parametrize("directions", ["gaussian", "sparse"])
def test_sparse_rows_are_scaled_but_not_centred(loops, form, directions):
    X = sample()
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    maps, codes = fit(form(X), loops=loops, directions=directions)
    np.testing.assert_array_equal(maps.centre, 0.0)
    np.testing.assert_allclose(maps.scale, np.sqrt((X**2).mean(axis=0)))
    expected = ((X / maps.scale) @ dense_directions(maps)).astype(np.float32)
    np.testing.assert_allclose(maps.project(form(X)), expected, atol=1e-5)
    # Rows to predict may be dense.
    np.testing.assert_array_equal(maps.project(X), maps.project(form(X)))
    np.testing.assert_array_equal(
        maps.codes(rows_of(X, loops)).dense().values, codes.dense().values
    )


def test_entries_stored_twice_are_added_up():
    X = sparse.csr_array(([1.0, 2.0, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    maps, _ = fit(X)
    np.testing.assert_allclose(maps.scale, fit(sparse.csr_array(X.toarray()))[0].scale)


def test_rows_in_parts_are_projected_the_same(monkeypatch):
    X = sample()
    maps, _ = fit(X)
    whole = maps.project(X)
    monkeypatch.setattr("mbkl.maps.projections._VALUES_AT_ONCE", 60)
    np.testing.assert_allclose(maps.project(X), whole, atol=1e-6)
    np.testing.assert_allclose(maps.project(sparse.csr_array(X)), whole, atol=1e-6)


# --- Using the maps ---


def test_scores_are_sums_of_table_entries(loops):
    X = sample()
    maps, codes = fit(X)
    tables = np.random.default_rng(0).normal(size=(maps.cells.n_cells, 2))
    values = codes.dense().values.astype(int)
    expected = sum(
        tables[maps.cells.offsets[group] + values[group]] for group in range(maps.n_groups)
    )
    np.testing.assert_allclose(maps.score(rows_of(X, loops), tables), expected, atol=1e-12)


@pytest.mark.parametrize("directions", ["gaussian", "sparse"])
def test_select_drops_projections_without_stumps(directions):
    X = sample()
    maps, _ = fit(X, directions=directions)
    group = np.repeat(np.arange(maps.n_groups), np.diff(maps.stumps.edges.offsets))
    kept = (group != 1) & (np.arange(maps.n_maps) % 2 == 0)
    part = maps.select(kept)
    assert part.n_groups == maps.n_groups - 1
    assert part.n_maps == kept.sum()
    np.testing.assert_array_equal(
        dense_directions(part), np.delete(dense_directions(maps), 1, axis=1)
    )
    expected = codes_by_hand(part, np.delete(maps.project(X), 1, axis=1))
    np.testing.assert_array_equal(part.codes(rows_of(X)).dense().values, expected)
    # Selecting twice numbers the projections anew both times.
    again = part.select(np.arange(part.n_maps) >= np.diff(part.stumps.edges.offsets)[0])
    np.testing.assert_array_equal(dense_directions(again), dense_directions(part)[:, 1:])
    assert maps.select(np.zeros(maps.n_maps, dtype=bool)).n_groups == 0


def test_a_name_for_every_side():
    maps, _ = fit(sample())
    names = maps.column_names(list("abcde"))
    assert len(names) == len(set(names)) == 2 * maps.n_maps
    assert names[0].startswith("projection 0 > ")
    np.testing.assert_array_equal(maps.group_features, -1)


@pytest.mark.parametrize("rates", [None, np.full(5, 0.2)])
def test_stumps_weigh_as_often_as_they_were_drawn(rates):
    maps, _ = fit(np.round(sample() / 4), n_maps=600)
    assert maps.stumps.multiplicity.max() > 1
    np.testing.assert_array_equal(maps.prior(rates), maps.stumps.multiplicity)


def test_stumps_on_projections_have_no_feature():
    maps, _ = fit(sample())
    assert maps.stump_features.size == maps.stump_thresholds.size == 0
    assert maps.is_ordered
    assert maps.ferns == []


BAD = [
    ({"directions": "dense"}, "directions"),
    ({"input_map": "log"}, "input_map"),
    ({"n_projections": 0}, "n_projections"),
    ({"thresholds": "median"}, "thresholds"),
]


@pytest.mark.parametrize(("parameters", "name"), BAD)
def test_bad_parameters_are_named(parameters, name):
    with pytest.raises(ValueError, match=name):
        fit(sample(), **parameters)


def test_a_family_can_be_cloned():
    family = Projections(directions="sparse", n_projections=7)
    assert clone(family).get_params() == family.get_params()
