"""MBKL as published: its steps one by one, and liblinear's solver."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from mbkl_paper.baselines import PublishedMBKL, cross_validate_costs
from mbkl_paper.baselines.l1_svm import l1_svm, relative_gap
from mbkl_paper.baselines.published import draw_pairs, initial_signs


@pytest.fixture(scope="module")
def columns(make_data):
    X, y = make_data(150, 6, 2, seed=1)
    generator = np.random.default_rng(0)
    features = generator.integers(0, 6, 200)
    thresholds = generator.uniform(X.min(axis=0)[features], X.max(axis=0)[features])
    maps = np.where(X[:, features] > thresholds, 1, -1).T.astype(np.int8)
    return np.vstack([maps, np.ones((1, 150), dtype=np.int8)]), np.where(y == 1, 1, -1)


def objective(columns, labels, weights, C):
    return np.abs(weights).sum() + C * (np.maximum(1 - labels * (weights @ columns), 0) ** 2).sum()


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_step_1_is_the_problem_of_liblinear(columns, C):
    values, labels = columns
    liblinear = LinearSVC(C=C, penalty="l1", dual=False, tol=1e-5, max_iter=20_000, random_state=0)
    liblinear.fit(values[:-1].T.astype(float), labels)
    theirs = np.append(liblinear.coef_, liblinear.intercept_)
    ours, _ = l1_svm(values, labels, C, tol=1e-5, max_iter=20_000)
    best = objective(values, labels, theirs, C)
    assert objective(values, labels, ours, C) == pytest.approx(best, rel=1e-3)


def test_step_1_ends_where_liblinear_ends(columns):
    values, labels = columns
    liblinear = LinearSVC(C=10, penalty="l1", dual=False, tol=0.01, random_state=0)
    liblinear.fit(values[:-1].T.astype(float), labels)
    ours, n_iter = l1_svm(values, labels, 10.0)
    assert (ours > 0).sum() == pytest.approx((liblinear.coef_ > 0).sum(), rel=0.3)
    assert n_iter == pytest.approx(liblinear.n_iter_, rel=0.5)


def test_too_few_sweeps_end_early(columns):
    assert l1_svm(*columns, 10.0, max_iter=2)[1] == 2


def test_the_table_of_step_0():
    maps = np.array(
        [[1, 1, 1, -1, -1, -1], [-1, -1, 1, 1, 1, 1], [1, 1, 1, 1, 1, -1], [1, 1, 1, 1, 1, 1]],
        dtype=np.int8,
    )
    labels = np.array([1, 1, 1, -1, -1, -1])[:, None]
    assert initial_signs(maps, labels, "median").ravel().tolist() == [1, -1, 0, 0]
    assert initial_signs(maps, labels, "printed").ravel().tolist() == [-1, 1, 0, 0]
    assert initial_signs(maps, labels, "balanced").ravel().tolist() == [1, -1, 1, 0]


def test_pairs_have_the_printed_numbers():
    y = np.repeat(np.arange(8), 30)
    pairs = draw_pairs(y, 8, 7, seed=0)
    assert pairs.rows.size == 1_920
    own = pairs.labels > 0
    np.testing.assert_array_equal(pairs.classes[own], y[pairs.rows[own]])
    assert (pairs.classes[~own] != y[pairs.rows[~own]]).all()
    assert np.unique(np.column_stack([pairs.rows, pairs.classes]), axis=0).shape[0] == 1_920
    assert draw_pairs(y % 2, 2, 7, seed=0).rows.size == 240


def test_step_2_has_the_kernel_of_both_sides(histograms):
    X, y = histograms(60, 5)
    model = PublishedMBKL(300, C=1.0, theta_power=1, tol=1e-6, random_state=0).fit(X, y)
    kept = model.theta_ > 0
    above = X[:, model.stump_features_[kept]] > model.stump_thresholds_[kept]
    both = np.hstack([above * model.theta_[kept], ~above * model.theta_[kept]])
    plain = LinearSVC(C=1.0, dual=False, tol=1e-8).fit(both, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(both), atol=1e-3)


def test_weights_that_are_not_positive_are_dropped(histograms):
    X, y = histograms(80, 6, 3)
    model = PublishedMBKL(500, C=10, init_rule="balanced", random_state=0).fit(X, y)
    assert model.n_dropped_ > 0
    assert (model.theta_ >= 0).all()
    assert model.n_maps_ == (model.theta_ > 0).sum() == model.coef_.shape[1]


def test_sparse_rows_are_the_same(histograms):
    X, y = histograms(60, 5, 3)
    dense = PublishedMBKL(200, random_state=0).fit(X, y)
    thin = PublishedMBKL(200, random_state=0).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        dense.decision_function(X), thin.decision_function(sparse.csr_matrix(X))
    )


@pytest.mark.parametrize("C_kernel", [None, 0.5])
def test_a_grid_of_costs_is_that_of_single_fits(histograms, C_kernel):
    X, y = histograms(60, 5)
    model = PublishedMBKL(200, C_kernel=C_kernel, random_state=0)
    split = [(np.arange(40), np.arange(40, 60))]
    found = cross_validate_costs(model, X, y, [0.1, 10.0], cv=split)[:, 0]
    single = [
        PublishedMBKL(200, C=C, C_kernel=C_kernel, random_state=0).fit(X[:40], y[:40])
        for C in (0.1, 10.0)
    ]
    np.testing.assert_allclose(found, [each.score(X[40:], y[40:]) for each in single])


def test_gap_of_liblinear_closes_with_its_tolerance():
    generator = np.random.default_rng(0)
    columns = generator.choice([-1, 1], size=(20, 60)).astype(np.int8)
    labels = np.where(columns[:3].sum(axis=0) > 0, 1, -1)
    gaps = []
    for tol in (1e-1, 1e-5):
        weights, _ = l1_svm(columns, labels, 0.1, tol=tol)
        gaps.append(relative_gap(columns, labels, 0.1, weights))
    assert gaps[0] > gaps[1]
    assert 0 <= gaps[1] < 1e-4
