import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mbkl import MBKernel, MBKLClassifier
from mbkl.explain.rows import kernel_matrix, rows_between_thresholds, some_rows


def test_rows_do_not_depend_on_their_order():
    X = np.random.default_rng(0).normal(size=(50, 3))
    chosen = some_rows(X, 10)
    again = some_rows(X[::-1], 10)
    np.testing.assert_array_equal(np.sort(chosen, axis=0), np.sort(again, axis=0))
    assert {tuple(row) for row in chosen} <= {tuple(row) for row in X}


def test_sparse_rows_are_the_same():
    X = np.random.default_rng(0).integers(3, size=(50, 4)).astype(float)
    np.testing.assert_array_equal(some_rows(sparse.csr_array(X), 10), some_rows(X, 10))


def test_made_up_rows_fill_all_intervals_equally(fitted):
    model, _ = fitted("stumps")
    part = model.predictor_.maps.families[0]
    sizes = np.diff(part.edges.offsets) + 1
    n_rows = int(np.lcm.reduce(sizes)) if np.lcm.reduce(sizes) < 5_000 else 5_000
    rows = rows_between_thresholds(model.predictor_.maps, 4, n_rows)
    assert np.isnan(rows[:, 1]).any()
    assert np.isfinite(rows[:, 0]).all()
    for group, feature in enumerate(part.features):
        thresholds = part.edges.thresholds[
            part.edges.offsets[group] : part.edges.offsets[group + 1]
        ]
        cells = (rows[:, feature, None] > thresholds).sum(axis=1)
        counts = np.bincount(cells, minlength=sizes[group])
        assert np.ptp(counts) <= 1


def test_made_up_rows_of_projections_vary(fitted):
    model, X = fitted("projections")
    rows = rows_between_thresholds(model.predictor_.maps, 4, 500)
    np.testing.assert_allclose(rows.mean(axis=0), np.nanmean(X, axis=0), atol=0.3)
    np.testing.assert_allclose(rows.std(axis=0), np.nanstd(X, axis=0), rtol=0.2)


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
