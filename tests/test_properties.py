"""Laws that hold for any data."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mbkl import MBKernel, MBKLClassifier
from mbkl.maps import Stumps

LOSSES = st.sampled_from(["squared_hinge", "hinge", "logistic"])
THETAS = st.sampled_from(["learned", "ones", "reweighted", "alignment"])
FAMILIES = st.builds(
    Stumps,
    thresholds=st.sampled_from(["uniform", "quantile"]),
    draw=st.sampled_from(["random", "stratified"]),
)
few_examples = settings(max_examples=15)


@st.composite
def problems(draw):
    """Draw rows with ties and missing values, classes and whole weights."""
    n_rows, n_features = draw(st.integers(6, 24)), draw(st.integers(1, 4))
    n_classes, seed = draw(st.integers(2, 3)), draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    X = generator.integers(-4, 5, size=(n_rows, n_features)) / 4
    X[:, 0] = np.arange(n_rows) % 3
    X[generator.random(X.shape) < 0.05] = np.nan
    y = generator.permutation(np.arange(n_rows) % n_classes)
    weights = generator.integers(0, 4, size=n_rows)
    weights[: 2 * n_classes] = 1
    y[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes
    assume(np.nanstd(X[weights > 0, 0]) > 0)
    return X, y, weights


# Of the model, for stumps and for maps that are chosen on a sample.
STUMPS = st.fixed_dictionaries(
    {"loss": LOSSES, "theta": THETAS, "maps": FAMILIES, "C": st.sampled_from([0.1, 1.0, 10.0])}
)
CHOSEN = st.fixed_dictionaries(
    {"loss": LOSSES, "theta": THETAS, "maps": st.just("auto"), "C": st.sampled_from(["auto", 1.0])}
)
both_forms = pytest.mark.parametrize(
    "settings_of_the_model", [STUMPS, CHOSEN], ids=["stumps", "auto"]
)


def fit(X, y, weights=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MBKLClassifier(**{"n_maps": 30, "random_state": 0, **parameters}).fit(X, y, weights)


def same_bits(first, second, names=("coef_", "intercept_", "theta_", "stump_thresholds_")):
    return all(getattr(first, n).tobytes() == getattr(second, n).tobytes() for n in names)


@both_forms
@few_examples
@given(problems(), st.data(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(settings_of_the_model, problem, data, random):
    parameters = data.draw(settings_of_the_model)
    X, y, weights = problem
    order = list(range(len(y)))
    random.shuffle(order)
    first = fit(X, y, weights, **parameters)
    second = fit(X[order], y[order], weights[order], **parameters)
    assert same_bits(first, second)
    assert (
        first.decision_function(X[order]).tobytes() == second.decision_function(X[order]).tobytes()
    )


@both_forms
@few_examples
@given(problems(), st.data())
def test_a_whole_weight_is_a_number_of_repetitions(settings_of_the_model, problem, data):
    parameters = data.draw(settings_of_the_model)
    X, y, weights = problem
    rows = np.repeat(np.arange(len(y)), weights)
    assert same_bits(fit(X, y, weights, **parameters), fit(X[rows], y[rows], **parameters))


@both_forms
@few_examples
@given(problems(), st.data())
def test_a_weight_of_zero_is_absence(settings_of_the_model, problem, data):
    parameters = data.draw(settings_of_the_model)
    X, y, weights = problem
    present = weights > 0
    first = fit(X, y, present.astype(float), **parameters)
    assert same_bits(first, fit(X[present], y[present], **parameters))


@both_forms
@few_examples
@given(problems(), st.data(), st.sampled_from([2.0**-20, 0.5, 8.0]))
def test_the_unit_of_the_weights_does_not_matter(settings_of_the_model, problem, data, unit):
    parameters = data.draw(settings_of_the_model)
    assume(parameters["C"] != "auto")  # a cost per row, where a weight of two is two rows
    X, y, weights = problem
    first = fit(X, y, weights, **parameters)
    second = fit(X, y, unit * weights, **parameters)
    assert same_bits(first, second)


@both_forms
@few_examples
@given(problems(), st.data(), st.integers(-20, 20))
def test_the_unit_of_a_feature_does_not_matter(settings_of_the_model, problem, data, power):
    parameters = data.draw(settings_of_the_model)
    X, y, _ = problem
    first = fit(X, y, **parameters)
    second = fit(X * 2.0**power, y, **parameters)
    if parameters["maps"] == "auto":
        # The order of the rows of a sample is a hash of their values: sums are rounded differently,
        # those of the choice of maps in single precision.
        scores = second.decision_function(X * 2.0**power)
        np.testing.assert_allclose(first.decision_function(X), scores, atol=1e-4)
    else:
        assert same_bits(first, second, ("coef_", "intercept_", "theta_"))
    np.testing.assert_array_equal(first.stump_thresholds_ * 2.0**power, second.stump_thresholds_)


@few_examples
@given(problems(), st.sampled_from(["random", "stratified"]))
def test_monotone_transforms_do_not_matter_to_quantile_maps(problem, draw):
    X, y, _ = problem
    family = Stumps(thresholds="quantile", draw=draw)
    first = fit(X, y, maps=family)
    second = fit(np.exp2(4 * X), y, maps=family)
    assert same_bits(first, second, ("coef_", "intercept_", "theta_"))
    np.testing.assert_array_equal(first.predict(X), second.predict(np.exp2(4 * X)))


@few_examples
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_columns_does_not_matter_to_the_optimum(problem, random):
    """So many maps that every gap between values has one: only the draw depends on it."""
    X, y, _ = problem
    order = list(range(X.shape[1]))
    random.shuffle(order)
    many = {"n_maps": 2000, "tol": 1e-6, "maps": Stumps(draw="stratified")}
    first, second = fit(X, y, **many), fit(X[:, order], y, **many)
    np.testing.assert_allclose(first.objective_[0], second.objective_[0], rtol=1e-5)


@both_forms
@few_examples
@given(problems(), st.data())
def test_float32_rows_give_the_same_bits(settings_of_the_model, problem, data):
    parameters = data.draw(settings_of_the_model)
    X, y, _ = problem
    assert same_bits(fit(X, y, **parameters), fit(X.astype(np.float32), y, **parameters))


@few_examples
@given(problems(), THETAS)
def test_two_classes_can_change_places(problem, theta):
    X, y, _ = problem
    y = (y == 0).astype(int)
    first, second = fit(X, y, theta=theta, tol=1e-7), fit(X, 1 - y, theta=theta, tol=1e-7)
    np.testing.assert_allclose(first.objective_, second.objective_, rtol=1e-5)
    scores = first.decision_function(X)
    np.testing.assert_allclose(
        scores, -second.decision_function(X), atol=0.02 + 0.02 * abs(scores).max()
    )


@both_forms
@few_examples
@given(problems(), st.data())
def test_certificates_hold(settings_of_the_model, problem, data):
    parameters = data.draw(settings_of_the_model)
    X, y, weights = problem
    model = fit(X, y, weights, **parameters)
    assert not (model.gap_ < 0).any()  # NaN for a step not run
    assert not (model.gap_ > model.tol).any()


@few_examples
@given(problems(), THETAS, FAMILIES)
def test_the_kernel_is_a_similarity(problem, theta, family):
    X, y, _ = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MBKernel(n_maps=30, theta=theta, maps=family, random_state=0).fit(X, y)
    K = model.kernel(X)
    assume(model.n_maps_)
    np.testing.assert_allclose(np.diag(K), 1)
    assert K.min() >= -1e-12
    assert K.max() <= 1 + 1e-12
    assert np.linalg.eigvalsh(K).min() > -1e-9
    phi = model.transform(X)
    np.testing.assert_allclose((phi @ phi.T).toarray(), K, atol=1e-12)


@both_forms
@few_examples
@given(problems(), st.data())
def test_predictions_are_labels_that_were_seen(settings_of_the_model, problem, data):
    parameters = data.draw(settings_of_the_model)
    X, y, _ = problem
    names = np.array(["red", "green", "blue"])[y]
    new = np.random.default_rng(0).normal(size=(20, X.shape[1])) * 10
    assert set(fit(X, names, **parameters).predict(new)) <= set(names)


def test_equal_rows_of_different_classes_can_be_learned():
    X = np.repeat(np.arange(4.0), 5)[:, None]
    y = np.arange(20) % 5 < 2
    assert fit(X, y).score(X, y) == pytest.approx(0.6)
