"""Visual words."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import parametrize_with_checks

from mbkl_paper.vision import Vocabulary
from mbkl_paper.vision.sparse_quantization import BinaryVocabulary


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)


EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": "Products are float32: the last digit of a distance "
    "depends on the place of its row in a block."
}


def expected_failures(estimator):
    soft = isinstance(estimator, Vocabulary) and estimator.coding == "soft"
    return EXPECTED_FAILURES if soft else {}


@parametrize_with_checks(
    [
        Vocabulary(n_words=2),
        Vocabulary(n_words=3, coding="soft", n_neighbors=2),
        BinaryVocabulary(n_words=2, n_ones=1),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_hard_codes_name_the_nearest_word(X):
    model = Vocabulary(10, random_state=0).fit(X)
    assert model.words_.shape == (10, 6)
    assert model.words_.dtype == np.float32
    codes = model.transform(X).toarray()
    for row, code in zip(X, codes):
        distances = [np.sum((row.astype(float) - word) ** 2) for word in model.words_]
        np.testing.assert_array_equal(np.flatnonzero(code), [np.argmin(distances)])
        assert code.sum() == 1


def test_soft_codes_fall_with_the_distance(X):
    model = Vocabulary(10, coding="soft", n_neighbors=3, sharpness=2.0, random_state=0).fit(X)
    codes = model.transform(X).toarray()
    for row, code in zip(X, codes):
        distances = np.sum((row.astype(float) - model.words_) ** 2, axis=1)
        nearest = np.argsort(distances)[:3]
        expected = np.zeros(10)
        expected[nearest] = np.exp(-2.0 / model.spread_ * distances[nearest])
        np.testing.assert_allclose(code, expected / expected.sum(), atol=1e-4)


def test_the_spread_is_the_mean_distance_of_the_training_data(X):
    model = Vocabulary(10, random_state=0).fit(X)
    distances = ((X[:, None] - model.words_) ** 2).sum(axis=2).min(axis=1)
    assert model.spread_ == pytest.approx(distances.mean(), rel=1e-4)


def test_words_are_better_than_rows_drawn_at_random(X):
    model = Vocabulary(10, random_state=0).fit(X)
    drawn = ((X[:, None] - X[:10]) ** 2).sum(axis=2).min(axis=1).mean()
    assert model.spread_ < 0.8 * drawn


def test_principal_components(X):
    model = Vocabulary(10, n_components=3, random_state=0).fit(X)
    assert model.words_.shape == (10, 3)
    reduced = PCA(3, svd_solver="covariance_eigh").fit(X).transform(X)
    nearest = ((reduced[:, None] - model.words_) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.transform(X).indices, nearest)


def test_more_neighbours_than_words(X):
    codes = Vocabulary(2, coding="soft", n_neighbors=9, random_state=0).fit_transform(X)
    assert codes.shape == (300, 2)
    np.testing.assert_allclose(codes.sum(axis=1), 1, rtol=1e-5)


def test_equal_descriptors_have_a_defined_code():
    X = np.ones((20, 3), dtype=np.float32)
    codes = Vocabulary(1, coding="soft", random_state=0).fit_transform(X)
    np.testing.assert_array_equal(codes.toarray(), 1)


@pytest.mark.parametrize("model", [Vocabulary(10), BinaryVocabulary(10, n_ones=2)])
def test_the_seed_decides(X, model):
    model.set_params(max_descriptors=50)
    words = [model.set_params(random_state=seed).fit(X).words_ for seed in (0, 0, 1)]
    assert words[0].tobytes() == words[1].tobytes()
    assert words[0].tobytes() != words[2].tobytes()


@pytest.mark.parametrize("model", [Vocabulary(500), BinaryVocabulary(500, n_ones=2)])
def test_too_few_descriptors(X, model):
    with pytest.raises(ValueError, match=r"n_words=500 words .* n_samples = 300"):
        model.fit(X)
    with pytest.raises(ValueError, match="max_descriptors"):
        model.set_params(n_words=100, max_descriptors=50).fit(X)


def test_too_many_ones(X):
    with pytest.raises(ValueError, match=r"n_ones=6 must be smaller .* n_features = 6"):
        BinaryVocabulary(10, n_ones=6).fit(X)


def test_binary_words_and_codes_by_sorting(X):
    model = BinaryVocabulary(20, n_ones=2, n_neighbors=4, random_state=0).fit(X)
    assert set(np.unique(model.words_)) == {0, 1}
    np.testing.assert_array_equal(model.words_.sum(axis=1), 2)
    codes = model.transform(X).toarray()
    for row, code in zip(X, codes):
        binary = np.zeros(6)
        binary[np.argsort(-row, kind="stable")[:2]] = 1
        hamming = (binary != model.words_).sum(axis=1)
        expected = np.zeros(20)
        expected[np.argsort(hamming, kind="stable")[:4]] = 1
        np.testing.assert_array_equal(code, expected)
