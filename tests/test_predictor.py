"""The fast path of prediction."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mbkl import MBKLClassifier
from mbkl.engine.twins import TWINS


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def model(request, form, make_data):
    X, y = make_data(n_classes=request.param)
    return form(MBKLClassifier, n_maps=80, random_state=0).fit(X, y)


def rows(n_rows, seed=0):
    X = 2 * np.random.default_rng(seed).normal(size=(n_rows, 4))
    X[::9, 1] = np.nan
    return X


@pytest.mark.parametrize("n_rows", [1, 2, 1024, 1025, 3000])
def test_scores_are_those_of_the_classifier(model, n_rows):
    X = rows(n_rows)
    scores = model.predictor_.scores(X)
    assert scores.shape == (n_rows, model.intercept_.size)
    assert scores.tobytes() == model.decision_function(X).tobytes()


def test_a_batch_is_its_rows_one_by_one(model):
    X = rows(1500)
    batch = model.predictor_.scores(X)
    for row in (0, 1, 9, 1023, 1024, 1499):
        assert model.predictor_.scores(X[row : row + 1]).tobytes() == batch[row : row + 1].tobytes()


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_loops_give_the_same_bits(model, use_loops, make_compiled, n_threads):
    X = rows(1500)
    use_loops(TWINS)
    expected = model.predictor_.scores(X)
    use_loops(make_compiled(n_threads))
    assert model.predictor_.scores(X).tobytes() == expected.tobytes()
    assert model.predictor_.scores(X[:1]).tobytes() == expected[:1].tobytes()


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_sparse_rows(model, make):
    X = rows(1500)
    X[np.abs(X) < 1.5] = 0.0
    np.testing.assert_allclose(
        model.predictor_.scores(make(X)), model.predictor_.scores(X), atol=1e-12
    )


@pytest.mark.parametrize("order", ["C", "F"])
def test_float32_rows(model, order):
    X = rows(1500).astype(np.float32)
    expected = model.predictor_.scores(X.astype(np.float64))
    assert model.predictor_.scores(np.asarray(X, order=order)).tobytes() == expected.tobytes()


def test_read_only_rows(model):
    X = rows(20)
    expected = model.predictor_.scores(X)
    X.flags.writeable = False
    assert model.predictor_.scores(X).tobytes() == expected.tobytes()


def test_a_predictor_can_be_sent_away_alone(model):
    X = rows(50)
    copy = pickle.loads(pickle.dumps(model.predictor_))
    assert copy.scores(X).tobytes() == model.predictor_.scores(X).tobytes()


def test_the_intercept_is_added_last(model):
    X = rows(20)
    shifted = replace(model.predictor_, intercept=model.intercept_ + 1)
    np.testing.assert_allclose(shifted.scores(X), model.predictor_.scores(X) + 1)


@pytest.mark.filterwarnings("ignore:C_kernel=1e-09 is too small")
@pytest.mark.parametrize("n_rows", [1, 2000])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_model_without_maps_is_its_intercept(paper, make_data, n_rows, make):
    X, y = make_data(n_classes=3)
    model = paper(MBKLClassifier, C=1e-9, random_state=0).fit(X, y)
    assert model.n_maps_ == 0
    scores = model.predictor_.scores(make(rows(n_rows)))
    np.testing.assert_array_equal(scores, np.tile(model.intercept_, (n_rows, 1)))


def test_infinities_are_an_error_for_estimators_alone(model):
    X = rows(9)
    X[5, 2] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.predict(X)
    assert len(model.predictor_.scores(X)) == 9
