import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mbkl import MBKernel, MBKLClassifier
from mbkl.explain.rows import kernel_matrix


@pytest.mark.parametrize("maps", ["auto", "stumps", ["ferns", "projections"]])
def test_it_is_the_kernel_of_the_kernel_estimator(make_data, maps):
    X, y = make_data(n_classes=3)
    classifier = MBKLClassifier(maps=maps, n_maps=60, random_state=0).fit(X, y)
    kernel = MBKernel(maps=maps, n_maps=60, random_state=0).fit(X, y)
    np.testing.assert_allclose(kernel_matrix(classifier, X), kernel.kernel(X), atol=1e-12)
    np.testing.assert_allclose(kernel_matrix(kernel, X), kernel.kernel(X), atol=1e-12)


def test_equal_weights_count_maps(make_data):
    X, y = make_data()
    model = MBKLClassifier(maps="stumps", theta="learned", n_maps=60, random_state=0).fit(X, y)
    drawn = model.predictor_.maps.families[0].multiplicity
    sides = X[:, model.stump_features_] > model.stump_thresholds_
    expected = (sides[:, None] == sides[None]) @ drawn / drawn.sum()
    np.testing.assert_allclose(kernel_matrix(model, X, equal_weights=True), expected)


def test_use_before_fit_is_an_error():
    with pytest.raises(NotFittedError):
        kernel_matrix(MBKLClassifier(), np.zeros((2, 2)))
