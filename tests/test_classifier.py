"""MBKLClassifier: what a fitted model holds and how it takes part in scikit-learn."""

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV
from mbkl.maps import Ferns, Stumps

THETAS = ["learned", "ones", "reweighted", "alignment"]
LOSSES = ["squared_hinge", "hinge", "logistic"]


@pytest.fixture
def classifier(form):
    """The classifier in both forms, as a function of its parameters."""
    return partial(form, MBKLClassifier, n_maps=60, random_state=0)


@pytest.fixture
def paper_classifier(paper):
    """The classifier of the paper, as a function of its parameters."""
    return partial(paper, MBKLClassifier, n_maps=60, random_state=0)


@pytest.fixture
def same_model(bits_of):
    """Return a function that tells whether two models have the same bits."""
    return lambda first, second: bits_of(first) == bits_of(second)


def signed_maps(model, X):
    return np.where(X[:, model.stump_features_] > model.stump_thresholds_, 1.0, -1.0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("loss", LOSSES)
def test_attributes(paper_classifier, make_data, n_classes, theta, loss):
    X, y = make_data(n_classes=n_classes)
    model = paper_classifier(theta=theta, loss=loss).fit(X, y)
    n_columns = 1 if n_classes == 2 else n_classes
    np.testing.assert_array_equal(model.classes_, np.arange(n_classes))
    assert model.n_features_in_ == 4
    assert 0 < model.n_maps_ <= 60
    assert model.theta_.shape == (model.n_maps_,)
    assert model.theta_.min() > 0
    assert model.theta_.sum() == pytest.approx(1)
    assert model.coef_.shape == (n_columns, model.n_maps_)
    assert model.intercept_.shape == (n_columns,)
    assert model.stump_features_.shape == model.stump_thresholds_.shape == (model.n_maps_,)
    assert set(model.stump_features_) <= set(range(4))
    assert model.objective_.shape == model.gap_.shape == (2,)
    assert model.n_iter_ >= 1
    assert not (model.gap_ > model.tol).any()  # NaN for a step not run
    assert np.isnan(model.objective_[0]) == (theta != "learned")
    assert model.timings_["total"] >= max(model.timings_.values())
    assert {"binary maps", "classifier weights", "tables", "total"} <= set(model.timings_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("theta", THETAS)
def test_scores_are_sums_over_maps(paper_classifier, make_data, n_classes, theta):
    X, y = make_data(n_classes=n_classes)
    model = paper_classifier(theta=theta).fit(X, y)
    new = 3 * np.random.default_rng(1).normal(size=(50, 4))  # also outside the range of X
    expected = signed_maps(model, new) @ model.coef_.T + model.intercept_
    scores = model.decision_function(new)
    np.testing.assert_allclose(scores.reshape(50, -1), expected, atol=1e-10)
    best = (expected[:, 0] > 0) if n_classes == 2 else expected.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(new), best)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tables_hold_the_same_model(paper_classifier, make_data, n_classes):
    X, y = make_data(n_classes=n_classes)
    model = paper_classifier().fit(X, y)
    assert len(model.tables_) == len(model.table_features_)
    total = np.tile(model.intercept_, (len(X), 1))
    for feature, table in zip(model.table_features_, model.tables_):
        thresholds = model.stump_thresholds_[model.stump_features_ == feature]
        assert table.shape == (thresholds.size + 1, model.intercept_.size)
        total += table[np.searchsorted(thresholds, X[:, feature])]
    np.testing.assert_allclose(model.decision_function(X).reshape(len(X), -1), total, atol=1e-10)


def test_values_beyond_the_range_are_at_its_ends(classifier, make_data):
    X, y = make_data()
    model = classifier().fit(X, y)
    low, high = X.min(axis=0), X.max(axis=0)
    far = np.vstack([low - 1e6, high + 1e6, low - 1e300])
    np.testing.assert_array_equal(
        model.decision_function(far), model.decision_function(np.vstack([low, high, low]))
    )


def test_maps_of_zero_weight_do_not_matter(paper_classifier, make_data):
    X, y = make_data()
    model = paper_classifier(C=0.1).fit(X, y)
    assert model.n_maps_ < 60
    kept = signed_maps(model, X) @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), kept, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_of_the_second_step(paper_classifier, make_data, loss, n_classes):
    X, y = make_data(n_classes=n_classes)
    model = paper_classifier(loss=loss, C=0.3).fit(X, y)
    scores = signed_maps(model, X) @ model.coef_.T + model.intercept_
    labels = np.where(y[:, None] == (1 if n_classes == 2 else np.arange(n_classes)), 1, -1)
    margins = labels * scores
    losses = {
        "squared_hinge": np.maximum(0, 1 - margins) ** 2,
        "hinge": np.maximum(0, 1 - margins),
        "logistic": np.logaddexp(0, -margins),
    }[loss]
    penalty = (model.coef_**2 / model.theta_).sum()
    expected = penalty + 0.3 * 1000 * losses.mean(axis=0).sum()
    assert model.objective_[1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_theta_power_is_the_power_of_the_feature_map(paper_classifier, power):
    generator = np.random.default_rng(0)
    X = generator.random((600, 3))  # so many rows that no two of few maps are equal
    y = (X[:, 0] + X[:, 1] + 0.3 * generator.normal(size=600) > 1).astype(int)
    model = paper_classifier(theta_power=power, n_maps=15).fit(X, y)
    assert model.n_maps_ > 1
    weights = model.theta_ ** (2 * power)
    weights /= weights.sum()
    margins = (2 * y - 1) * (signed_maps(model, X) @ model.coef_[0] + model.intercept_[0])
    loss = 1000 * (np.maximum(0, 1 - margins) ** 2).mean()
    expected = (model.coef_[0] ** 2 / weights).sum() + loss
    assert model.objective_[1] == pytest.approx(expected, rel=1e-9)


def test_equal_weights_in_the_limit_are_the_range_normalised_distance(paper_classifier, make_data):
    X, y = make_data(n_rows=60)
    model = paper_classifier(
        theta="ones", maps=Stumps(draw="stratified"), n_maps=20_000, loss="hinge", C=1.0, tol=1e-5
    ).fit(X, y)
    spans = np.ptp(X, axis=0)
    K = 1 - (np.abs(X[:, None] - X[None]) / spans).mean(axis=2)
    svm = SVC(kernel="precomputed", C=1000 / 60, tol=1e-7).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(K), atol=0.03)


@pytest.mark.parametrize(
    ("loss", "n_classes"), [*((loss, 2) for loss in LOSSES), ("squared_hinge", 3)]
)
def test_many_rows_converge_too(classifier, loss, n_classes):
    """Beyond the reach of the dense solvers, whose work grows with the cube of the rows."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2200, 4))
    y = np.digitize(
        X[:, 0] + 0.5 * generator.normal(size=2200), np.linspace(-0.7, 0.7, n_classes - 1)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = classifier(loss=loss, n_maps=120).fit(X, y)
    assert not (model.gap_ > model.tol).any()  # NaN for a step not run
    assert model.score(X, y) > 0.6


def test_c_kernel_is_c_but_at_most_one_unless_given(paper_classifier, same_model, make_data):
    X, y = make_data()
    assert same_model(
        paper_classifier(C=0.5).fit(X, y), paper_classifier(C=0.5, C_kernel=0.5).fit(X, y)
    )
    assert same_model(
        paper_classifier(C=50).fit(X, y), paper_classifier(C=50, C_kernel=1.0).fit(X, y)
    )
    assert not same_model(
        paper_classifier(C=50).fit(X, y), paper_classifier(C=50, C_kernel=0.1).fit(X, y)
    )


def test_a_larger_c_fits_the_rows_better(classifier, make_data):
    X, y = make_data(spread=1.5)
    scores = [classifier(C=C, theta="ones").fit(X, y).score(X, y) for C in (1e-4, 1.0, 100.0)]
    assert scores == sorted(scores)
    assert scores[0] < scores[-1]


@pytest.mark.parametrize("rule", ["balanced", "median"])
def test_init_rules_learn(paper_classifier, make_data, rule):
    X, y = make_data()
    assert paper_classifier(init_rule=rule).fit(X, y).score(X, y) > 0.7


def test_the_median_rule_uses_fewer_maps_of_skewed_features(paper_classifier):
    generator = np.random.default_rng(0)
    X = generator.exponential(size=(200, 5)) ** 2
    y = (X[:, 0] + 0.1 * generator.random(200) > 0.5).astype(int)
    n_maps = {
        rule: paper_classifier(init_rule=rule, n_maps=300).fit(X, y).n_maps_
        for rule in ("balanced", "median")
    }
    assert n_maps["median"] < n_maps["balanced"]


@pytest.mark.parametrize(("n_features", "n_maps"), [(4, 2000), (558, 35_712), (10**6, 200_000)])
def test_the_usual_number_of_stumps(n_features, n_maps):
    assert Stumps().default_n_maps((100, n_features)) == n_maps


@pytest.mark.parametrize(("n_rows", "n_maps"), [(80, 2000), (10**5, 2000), (10**6, 400)])
def test_the_usual_number_of_ferns(n_rows, n_maps):
    assert Ferns().default_n_maps((n_rows, 4)) == n_maps


def test_a_name_is_its_family_and_the_usual_number(paper_classifier, same_model, make_data):
    X, y = make_data()
    given = paper_classifier(maps=Stumps(), n_maps=2000).fit(X, y)
    for maps in ("stumps", ["stumps"], [Stumps()]):
        assert same_model(given, paper_classifier(maps=maps, n_maps="auto").fit(X, y))


def test_the_defaults_are_stumps_and_ferns_that_suit_the_rows(same_model, make_data, choices):
    X, y = make_data()
    model = MBKLClassifier(n_maps=60, random_state=0).fit(X, y)
    (choice,) = choices
    stumps, ferns = model.maps_.families
    assert model.n_maps_ == stumps.n_maps + ferns.n_maps
    assert model.theta_[: stumps.n_maps].sum() == pytest.approx(choice.stump_share)
    C = choice.cost * len(y) / 1000
    given = MBKLClassifier(n_maps=60, C=C, random_state=0).fit(X, y)
    assert same_model(model, given)


def test_too_small_a_cost_warns_and_is_constant(paper_classifier, make_data):
    X, y = make_data()
    weights = np.where(y == 1, 3.0, 1.0)
    with pytest.warns(UserWarning, match=r"C_kernel=1e-07 is too small.*Set C_kernel above"):
        model = paper_classifier(C=1e-7).fit(X, y, weights)
    assert model.n_maps_ == 0
    assert (model.predict(X) == 1).all()
    assert len(model.tables_) == len(model.table_features_) == 0


def test_no_convergence_warns_with_the_tolerance(classifier, make_data):
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match=r"duality gap of .*tol=1e-09") as record:
        classifier(C=100.0, max_iter=1, tol=1e-9).fit(X, y)
    assert any("max_iter" in str(warning.message) for warning in record)


@pytest.mark.parametrize("max_iter", [1, 2])
def test_few_iterations_give_a_model_without_gaps(classifier, make_data, max_iter):
    X, y = make_data(n_classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = classifier(max_iter=max_iter).fit(X, y)
    assert np.isfinite(model.theta_).all()
    assert np.isfinite(model.decision_function(X)).all()
    assert model.n_maps_ > 0


@pytest.mark.parametrize(
    "labels", [["no", "yes"], ["b", "a", "c"], [-1, 1], [True, False], [2.0, 0.0], [10, 7, 3]]
)
def test_any_labels(classifier, make_data, labels):
    X, y = make_data(n_classes=len(labels))
    named = np.array(labels)[y]
    model = classifier().fit(X, named)
    np.testing.assert_array_equal(model.classes_, np.unique(named))
    assert model.predict(X).dtype == named.dtype
    assert model.score(X, named) > 0.7


def test_labels_are_only_names(classifier, same_model, make_data):
    X, y = make_data(n_classes=3)
    assert same_model(classifier().fit(X, y), classifier().fit(X, np.array(["a", "b", "c"])[y]))


def test_class_weights_are_factors_of_the_sample_weights(classifier, same_model, make_data):
    X, y = make_data(n_classes=3)
    factors = {0: 1.0, 1: 2.0, 2: 3.0}
    weighted = classifier(class_weight=factors).fit(X, y)
    assert same_model(weighted, classifier().fit(X, y, np.array([1.0, 2.0, 3.0])[y]))


def test_class_weights_of_named_classes(classifier, same_model, make_data):
    X, y = make_data()
    named = np.array(["no", "yes"])[y]
    first = classifier(class_weight={"no": 1.0, "yes": 4.0}).fit(X, named)
    assert same_model(first, classifier().fit(X, y, np.where(y == 1, 4.0, 1.0)))


def test_balanced_class_weights_give_all_classes_the_same_total(classifier, same_model, make_data):
    X, y = make_data()
    kept = (y == 0) | (np.arange(len(y)) % 8 == 1)
    X, y = X[kept], y[kept]
    counts = np.bincount(y)
    weights = (len(y) / (2 * counts))[y]
    balanced = classifier(class_weight="balanced").fit(X, y)
    assert same_model(balanced, classifier().fit(X, y, weights))
    assert not same_model(balanced, classifier().fit(X, y))


def test_balanced_class_weights_find_a_rare_class(classifier):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 2))
    y = (np.arange(400) < 25).astype(int)
    X[y == 1] += 1.0
    plain = classifier(theta="ones", C=0.01).fit(X, y)
    balanced = classifier(theta="ones", C=0.01, class_weight="balanced").fit(X, y)
    assert plain.predict(X).sum() < 10
    assert balanced.predict(X)[y == 1].mean() > 0.7


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_and_dense_rows_give_the_same_model(classifier, make_data, make, n_classes):
    X, y = make_data(n_classes=n_classes)
    X[np.abs(X) < 0.8] = 0.0
    dense, stored = classifier().fit(X, y), classifier().fit(make(X), y)
    for name in ("stump_features_", "stump_thresholds_"):
        np.testing.assert_array_equal(getattr(dense, name), getattr(stored, name))
    np.testing.assert_allclose(dense.coef_, stored.coef_, atol=1e-6)
    np.testing.assert_allclose(dense.decision_function(make(X)), dense.decision_function(X))


def test_mostly_zero_rows_are_learned(classifier):
    generator = np.random.default_rng(0)
    X = sparse.random_array((300, 40), density=0.05, rng=generator, format="csr")
    y = (X.sum(axis=1) > np.median(X.sum(axis=1))).astype(int)
    model = classifier(n_maps=600).fit(X, y)
    dense = classifier(n_maps=600).fit(X.toarray(), y)
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(
        model.decision_function(X), dense.decision_function(X.toarray()), atol=1e-6
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_and_orders_give_the_same_bits(classifier, same_model, make_data, order, dtype):
    X, y = make_data()
    reference = classifier().fit(X, y)
    model = classifier().fit(X.astype(dtype, order=order), y)
    assert same_model(reference, model)
    np.testing.assert_array_equal(
        model.decision_function(X.astype(dtype, order=order)), reference.decision_function(X)
    )


@pytest.mark.parametrize("convert", [np.ndarray.tolist, lambda X: (X * 64).astype(int)])
def test_lists_and_integers_are_accepted(classifier, make_data, convert):
    X, y = make_data()
    rows = convert(X)
    assert classifier().fit(rows, y.tolist()).score(rows, y) > 0.8


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(classifier, same_model, make_data, frame):
    X, y = make_data()
    names = [f"feature {number}" for number in range(4)]
    table = frame({name: X[:, number] for number, name in enumerate(names)})
    model = classifier().fit(table, y)
    np.testing.assert_array_equal(model.feature_names_in_, names)
    assert same_model(model, classifier().fit(X, y))
    np.testing.assert_array_equal(model.predict(table), classifier().fit(X, y).predict(X))


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.array([1, None, 2, None] * 10, dtype="Int64"), "b": range(40)}),
        pl.DataFrame({"a": [1, None, 2, None] * 10, "b": range(40)}),
    ],
    ids=["pandas", "polars"],
)
def test_empty_entries_of_data_frames_are_missing_values(paper_classifier, table):
    y = np.arange(40) % 2
    model = paper_classifier().fit(table, y)
    assert -np.inf in model.stump_thresholds_
    assert model.score(table, y) == 1.0


def test_renamed_columns_are_refused(classifier, make_data):
    X, y = make_data()
    model = classifier().fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=list("abce")))


def test_missing_values_can_carry_the_class(classifier):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.arange(60) % 2
    X[y == 1, 1] = np.nan
    model = classifier().fit(X, y)
    assert model.score(X, y) == 1.0
    assert -np.inf in model.stump_thresholds_


def test_missing_values_unseen_in_training_fall_below_everything(classifier, make_data):
    X, y = make_data()
    model = classifier().fit(X, y)
    missing, lowest = X.copy(), X.copy()
    missing[:, 0], lowest[:, 0] = np.nan, -1e30
    np.testing.assert_array_equal(model.decision_function(missing), model.decision_function(lowest))


def test_a_seed_gives_the_same_model_again(classifier, same_model, make_data):
    X, y = make_data()
    assert same_model(classifier(random_state=3).fit(X, y), classifier(random_state=3).fit(X, y))
    assert not same_model(
        classifier(random_state=3).fit(X, y), classifier(random_state=4).fit(X, y)
    )


def test_a_generator_moves_on(classifier, same_model, make_data):
    X, y = make_data()
    generator = np.random.RandomState(0)
    first = classifier(random_state=generator).fit(X, y)
    second = classifier(random_state=generator).fit(X, y)
    assert not same_model(first, second)


def test_fitting_again_forgets_the_first_time(classifier, same_model, make_data):
    X, y = make_data()
    other, other_y = make_data(n_features=6, n_classes=3, seed=5)
    model = classifier().fit(other, other_y).fit(X, y)
    assert same_model(model, classifier().fit(X, y))
    assert model.n_features_in_ == 4


@pytest.mark.parametrize("make", [MBKLClassifier, MBKLClassifierCV, MBKernel])
def test_parameters_are_keywords_only(make):
    with pytest.raises(TypeError):
        make("stumps")


def test_a_clone_has_the_parameters_and_nothing_else(paper_classifier, same_model, make_data):
    X, y = make_data()
    model = paper_classifier(maps=Stumps(thresholds="quantile"), C=3.0).fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    assert copy.maps.thresholds == "quantile"
    assert same_model(model, copy.fit(X, y))


def test_parameters_of_the_maps_can_be_searched(paper_classifier, make_data):
    X, y = make_data()
    search = GridSearchCV(
        paper_classifier(maps=Stumps()),
        {"maps__thresholds": ["uniform", "quantile"], "C": [0.1, 1]},
        cv=2,
    ).fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.6


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (MBKLClassifier, {}),
        (MBKLClassifier, {"calibration": "temperature"}),
        (MBKLClassifierCV, {"Cs": (0.1, 1), "cv": 2}),
    ],
    ids=["plain", "calibrated", "cross-validated"],
)
def test_pickling_keeps_every_bit(form, same_model, make_data, kind, parameters):
    X, y = make_data(n_classes=3)
    model = form(kind, n_maps=60, random_state=0, **parameters).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert same_model(model, copy)
    assert copy.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def test_a_pipeline_and_its_cross_validation(classifier, make_data):
    X, y = make_data(spread=0.8)
    pipeline = make_pipeline(StandardScaler(), classifier())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.7


def test_sample_weights_are_routed_through_a_pipeline(classifier, same_model, make_data):
    X, y = make_data()
    weights = np.random.default_rng(0).random(len(y)) + 0.1
    with config_context(enable_metadata_routing=True):
        step = classifier().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, step).fit(X, y, sample_weight=weights)
    direct = classifier().fit(StandardScaler().fit_transform(X), y, weights)
    assert same_model(pipeline[-1], direct)
    assert not same_model(pipeline[-1], classifier().fit(StandardScaler().fit_transform(X), y))


def test_sample_weights_are_routed_through_a_search(classifier, same_model, make_data):
    X, y = make_data()
    weights = np.random.default_rng(0).random(len(y)) + 0.1
    with config_context(enable_metadata_routing=True):
        model = (
            classifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        )
        search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, y, sample_weight=weights)
    best = classifier(**search.best_params_).fit(X, y, weights)
    assert same_model(search.best_estimator_, best)


def test_models_fit_in_other_processes(classifier, make_data):
    X, y = make_data()
    scores = cross_val_score(classifier(n_jobs=1), X, y, cv=2, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(classifier(), X, y, cv=2))


def test_sonar(form, data_folder):
    path = data_folder / "paper" / "sonar" / "sonar.npz"
    if not path.exists():
        pytest.skip("The data set paper/sonar is missing from the folder MBKL_DATA.")
    with np.load(path) as data:
        X, y = data["X"], data["y"]
    X = StandardScaler().fit_transform(X)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(
        form(MBKLClassifier, random_state=0), 1 / (1 + np.exp(-X)), y, cv=folds
    )
    assert scores.mean() > 0.8


def test_a_model_that_always_says_the_same_warns(make_data):
    X, y = make_data()
    rare = (np.arange(80) < 3).astype(int)
    with pytest.warns(UserWarning, match="says 0 for all rows"):
        MBKLClassifier(C=1e-4, random_state=0).fit(X, rare)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MBKLClassifier(random_state=0).fit(X, y)


def test_steps_that_would_go_in_circles_come_to_an_end():
    X = np.array([[0, 0], [1, np.nan], [2, -0.75], [0, 1], [1, -0.5], [2, -0.25]])
    model = MBKLClassifier(loss="hinge", n_maps=30, random_state=0).fit(X, [0, 1, 2, 0, 1, 2])
    assert model.gap_[1] < model.tol
