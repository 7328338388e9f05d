"""Fourier kernel learning: the objective, its certificate, and what it selects."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from mbkl_paper.baselines import FourierMKL
from mbkl_paper.baselines.binary_codes import mean_squared_distance
from mbkl_paper.baselines.fourier import Losses, minimise_group_lasso


def problem(C, n_columns=9, n_problems=2, n_rows=40):
    generator = np.random.default_rng(0)
    features = generator.normal(size=(n_rows, n_columns)) + 1.0
    labels = np.where(features[:, :n_problems] + generator.normal(size=(n_rows, 1)) > 1, 1.0, -1.0)
    return features, Losses(labels, C)


def objective(weights, intercept, features, labels, C, n_groups):
    loss = np.maximum(0, 1 - labels * (features @ weights + intercept)) ** 2
    groups = weights.reshape(n_groups, -1)
    return np.sqrt((groups**2).sum(axis=1)).sum() + C * loss.sum()


@pytest.mark.parametrize("spread", [0.0, 0.3, 3.0])
def test_the_intercept_is_at_its_best(spread):
    generator = np.random.default_rng(0)
    labels = np.where(generator.random((31, 4)) < [0.1, 0.3, 0.6, 0.9], 1.0, -1.0)
    scores = spread * generator.normal(size=labels.shape) + 5.0
    found = Losses(labels, 0.7).best_intercept(scores)
    for column, score, intercept in zip(labels.T, scores.T, found, strict=True):
        one = Losses(column, 0.7)
        best = minimize_scalar(lambda b, one=one, score=score: one.total(score + b)).fun
        assert one.total(score + intercept) <= best + 1e-12


def test_rows_without_loss_leave_the_intercept_between_them():
    labels = np.array([[-1.0], [-1.0], [1.0]])
    losses, scores = Losses(labels, 1.0), np.array([[-5.0], [-3.0], [4.0]])
    assert losses.total(scores + losses.best_intercept(scores)) == 0.0


@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
def test_the_minimum_is_that_of_a_general_solver(C):
    features, losses = problem(C)
    found = minimise_group_lasso(features, losses, 3, None, 1e-6, 20_000)

    def general(packed):
        return objective(packed[:-2].reshape(9, 2), packed[-2:], features, losses.labels, C, 3)

    start = np.append(found.weights.ravel(), found.intercept) + 0.01
    best = min(minimize(general, s, method="BFGS").fun for s in (start, np.full(20, 0.05)))
    value = objective(found.weights, found.intercept, features, losses.labels, C, 3)
    assert found.gap <= 1e-6
    assert value <= best * (1 + 1e-5)
    assert value * (1 - 2e-6) <= best


def test_groups_without_weight_fulfil_their_condition():
    C = 0.02
    features, losses = problem(C, n_columns=40)
    found = minimise_group_lasso(features, losses, 20, None, 1e-7, 20_000)
    norms = np.linalg.norm(found.weights.reshape(20, -1), axis=1)
    support = losses.support(features @ found.weights + found.intercept)
    pulls = np.linalg.norm((features.T @ (losses.labels * support)).reshape(20, -1), axis=1)
    assert 0 < (norms == 0).sum() < 20
    assert pulls.max() < 1 + 1e-3
    np.testing.assert_allclose(pulls[norms > 1e-3], 1.0, atol=1e-2)


def test_a_start_saves_iterations():
    features, losses = problem(1.0)
    first = minimise_group_lasso(features, losses, 3, None, 1e-6, 20_000)
    second = minimise_group_lasso(features, losses, 3, first.weights, 1e-6, 20_000)
    assert second.n_iter < first.n_iter


def test_features_approximate_the_kernels(make_data):
    X, _ = make_data()
    model = FourierMKL((0.5, 2.0), n_components=4000, random_state=0)
    phi = model._learn_features(X)
    np.testing.assert_allclose(model.gammas_, np.array([0.5, 2.0]) / mean_squared_distance(X))
    for gamma, block in zip(model.gammas_, np.hsplit(phi, 2), strict=True):
        assert np.abs(block @ block.T - rbf_kernel(X, gamma=gamma)).max() < 0.1


def test_a_circle_needs_a_kernel():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.hypot(*X.T) > 1.1
    model = FourierMKL(n_components=100, C=1.0, random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.9
    assert model.gap_ <= 0.01
    assert model.kernel_weights_.shape == (4,)


def test_a_tiny_cost_selects_nothing(make_data):
    X, y = make_data(n_classes=3)
    model = FourierMKL(n_components=20, C=1e-6, random_state=0).fit(X, y)
    assert not model.coef_.any()
    assert not model.kernel_weights_.any()


def test_equal_rows_are_harmless():
    model = FourierMKL(n_components=10, random_state=0).fit(np.ones((6, 2)), [0, 1, 1] * 2)
    np.testing.assert_array_equal(model.predict(np.ones((1, 2))), [1])


def test_an_end_without_convergence_is_told(make_data):
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        FourierMKL(n_components=20, C=1e4, max_iter=3, random_state=0).fit(*make_data())


@pytest.mark.parametrize("wrong", [{"n_components": 0}, {"C": 0.0}, {"factors": (1.0, -1.0)}])
def test_wrong_parameters(make_data, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        FourierMKL(**wrong).fit(*make_data())
