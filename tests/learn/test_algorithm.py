"""The steps in their order: theta, how far it is shrunk, and the kernel matrices of it."""

from dataclasses import replace

import numpy as np
import pytest


@pytest.fixture
def learner(make_data, make_learner):
    X, y = make_data(60, 4, 3)
    return make_learner(X, y, n_maps=200)


def test_shrinkage_is_a_mean_of_learned_and_equal_weights(learner):
    learned = learner.learn_kernel(1.0).theta
    equal = learner.prior / learner.prior.sum()
    assert (learned == 0).any()
    for share in (0.0, 0.3, 1.0):
        settings = replace(learner.settings, theta_shrinkage=share)
        found = replace(learner, settings=settings).learn_kernel(1.0).theta
        np.testing.assert_allclose(found, (1 - share) * learned + share * equal)
        assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("theta", ["reweighted", "alignment"])
def test_other_weights_are_shrunk_too(learner, theta):
    learner = replace(learner, settings=replace(learner.settings, theta=theta))
    pure, equal = learner.learn_theta(1.0), learner.prior / learner.prior.sum()
    np.testing.assert_allclose(learner.shrunk(pure, 0.5).theta, (pure.theta + equal) / 2)


def test_nothing_learned_is_shrunk_to_equal_weights(learner):
    settings = replace(learner.settings, theta_shrinkage=0.5)
    learner = replace(learner, settings=settings)
    kernel = learner.learn_kernel(0.5 * learner.smallest_useful_C())
    np.testing.assert_allclose(kernel.theta, learner.prior / learner.prior.sum())


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_shared_matrices_change_no_solution(learner, share, power):
    settings = replace(learner.settings, theta_power=power, theta_shrinkage=share)
    learner = replace(learner, settings=settings)
    part = learner.with_gram().take(np.arange(40)).merged
    theta = part.learn_theta(1.0)
    kernel = part.shrunk(theta, share)
    own = part.with_gram(kernel)
    plain = learner.take(np.arange(40)).merged
    expected = plain.learn_classifier(plain.shrunk(theta, share), 1.0)
    np.testing.assert_allclose(
        own.learn_classifier(kernel, 1.0).objective, expected.objective, rtol=2e-3
    )


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_supports_alone_score_rows_as_weights_do(learner, C):
    learner = replace(learner, settings=replace(learner.settings, theta="ones")).with_gram()
    part, others = learner.take(np.arange(40)).merged, learner.take(np.arange(40, 60))
    kernel = part.learn_kernel(1.0)
    whole = part.learn_classifier(kernel, C)
    lean = part.learn_classifier(kernel, C, only_supports=True)
    assert lean.weights is None
    np.testing.assert_array_equal(lean.supports, whole.supports)
    expected = others.scores(whole)
    np.testing.assert_allclose(others.scores_beside(part, lean), expected, atol=1e-6)
    np.testing.assert_array_equal(others.scores_beside(part, whole), expected)
