import numpy as np
import pytest

from mbkl import MBKLClassifier
from mbkl.explain import attribution, fern_games
from mbkl.explain.attribution import contributions
from mbkl.maps import Ferns

ADDITIVE = ["stumps", "learned stumps"]
FERNS = ["ferns", "deep ferns", "auto", "list"]
PROJECTIONS = ["projections", "sparse projections", "chi2 projections", "everything"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*ADDITIVE, *FERNS])
def test_shares_are_shapley_values_of_the_whole_model(fitted, plain_shapley, name, n_classes):
    model, X = fitted(name, n_classes)
    background = X[10:30]
    shares = contributions(model.predictor_, X[:3], background)
    for row in range(3):
        expected = plain_shapley(model, X[row], background)
        np.testing.assert_allclose(shares[row], expected, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*ADDITIVE, *FERNS, *PROJECTIONS])
def test_shares_sum_to_the_scores(fitted, name, n_classes):
    model, X = fitted(name, n_classes)
    scores = model.predictor_.scores(X)
    baseline = model.predictor_.scores(X[:20]).mean(axis=0)
    shares = contributions(model.predictor_, X, X[:20])
    assert shares.shape == (*X.shape, scores.shape[1])
    np.testing.assert_allclose(baseline + shares.sum(axis=1), scores, rtol=1e-9, atol=1e-9)


def test_ferns_of_many_features(make_data):
    X, y = make_data(n_features=30, n_classes=3)
    model = MBKLClassifier(maps=Ferns(depth=40), n_maps=40, random_state=0).fit(X, y)
    assert max(np.unique(features).size for features in model.fern_features_) > 20
    scores = model.predictor_.scores(X)
    shares = contributions(model.predictor_, X, X[:10])
    baseline = scores[:10].mean(axis=0)
    np.testing.assert_allclose(baseline + shares.sum(axis=1), scores, rtol=1e-9, atol=1e-9)


def test_blocks_do_not_matter(fitted, monkeypatch):
    model, X = fitted("auto")
    whole = contributions(model.predictor_, X, X[:20])
    monkeypatch.setattr(fern_games, "_FERNS_AT_ONCE", 17)
    monkeypatch.setattr(fern_games, "_ENTRIES_AT_ONCE", 2_000)
    monkeypatch.setattr(attribution, "_ROWS_AT_ONCE", 31)
    pieces = contributions(model.predictor_, X, X[:20])
    np.testing.assert_allclose(pieces, whole, atol=1e-12)


def test_a_feature_that_no_map_asks_about_gets_nothing(make_data):
    X, y = make_data(n_features=5)
    X[:, 2] = 1.0
    for maps in ("auto", "stumps"):
        model = MBKLClassifier(maps=maps, n_maps=50, random_state=0).fit(X, y)
        assert not contributions(model.predictor_, X, X[:9])[:, 2].any()


def test_projections_share_by_the_way_along_them(fitted):
    """The plain way: one row, one background row, one projection after the other."""
    model, X = fitted("projections")
    part, tables = model.predictor_.maps.families[0], model.predictor_.tables[0]
    edges, expected = part.stumps.edges, np.zeros((4, 3))
    for z in X[10:13]:
        x = np.where(np.isnan(X[0]), part.centre, X[0])
        z = np.where(np.isnan(z), part.centre, z)
        for projection in range(part.n_groups):
            way = part.directions[:, projection] * (x - z) / part.scale
            table = tables[edges.cell_offsets[projection] : edges.cell_offsets[projection + 1]]
            thresholds = edges.thresholds[edges.offsets[projection] : edges.offsets[projection + 1]]
            cell = [(part.project(row[None])[0, projection] > thresholds).sum() for row in (x, z)]
            share = way / way.sum()
            expected += np.outer(share, table[cell[0]] - table[cell[1]]) / 3
    shares = contributions(model.predictor_, X[:1], X[10:13])
    np.testing.assert_allclose(shares[0], expected, atol=1e-9)


def test_a_row_among_copies_of_itself_has_nothing_to_explain(fitted):
    for name in ("auto", "everything"):
        model, X = fitted(name)
        shares = contributions(model.predictor_, X[:1], np.repeat(X[:1], 5, axis=0))
        np.testing.assert_allclose(shares, 0.0, atol=1e-12)


def test_centred_entries_have_mean_zero(fitted):
    model, X = fitted("list")
    for part, tables in zip(model.predictor_.maps.families, model.predictor_.tables):
        entries = attribution.centred_entries(part, tables, X, X)
        np.testing.assert_allclose(entries.mean(axis=1), 0.0, atol=1e-12)
