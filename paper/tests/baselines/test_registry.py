"""The list of systems, their settings, and what all of them can do."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from mbkl import MBKLClassifier
from mbkl_paper.baselines import make, names

NAMES = [
    "linear",
    "random_forest",
    "adaboost",
    "chi2",
    "rb_chi2",
    "intersection",
    "approx_chi2",
    "approx_chi2_x3",
    "approx_intersection",
    "pmsvm_chi2",
    "pmsvm_intersection",
    "raginsky_lazebnik",
    "fourier_mkl",
    "mbkl",
    "mbkl_published",
    "mbkl_projections",
    "mbkl_ones",
    "l1_maps",
]
WITHOUT_COST = ("random_forest", "adaboost")
# Those whose kernel is one of histograms.
HISTOGRAMS = [name for name in NAMES if "chi2" in name or "intersection" in name]
SMALLER = {
    "adaboost": {"n_rounds": 20},
    "random_forest": {"n_estimators": 10},
    "raginsky_lazebnik": {"feature_map__n_bits": 100},
    "fourier_mkl": {"n_components": 30},
    "mbkl": {"n_maps": 100},
    "mbkl_published": {"n_maps": 100},
    "mbkl_projections": {"n_maps": 100},
    "mbkl_ones": {"n_maps": 100},
    "l1_maps": {"feature_map__n_maps": 100},
}


def small(name, **parameters):
    return make(name, random_state=0, n_jobs=1, **{**SMALLER.get(name, {}), **parameters})


def test_the_names():
    assert names() == NAMES


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="approx_chi2_x3"):
        make("chi3")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_every_system_learns_names_of_classes(histograms, name, n_classes):
    X, y = histograms(90, 6, n_classes)
    labels = np.array(["ape", "bee", "cat"])[y]
    model = small(name, **({} if name in WITHOUT_COST else {"C": 1.0})).fit(X, labels)
    assert model.score(X, labels) > 0.6
    assert set(model.predict(X)) <= set(model.classes_)
    assert model.n_features_in_ == 6
    if name != "random_forest":
        scores = model.decision_function(X)
        assert scores.shape == ((90,) if n_classes == 2 else (90, 3))
        best = (scores > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
        np.testing.assert_array_equal(model.predict(X), model.classes_[best])


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_COST])
def test_every_cost_is_called_c(name):
    assert make(name, C=7.0).C == 7.0
    assert clone(make(name)).set_params(C=3.0).C == 3.0


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_repeats_the_fit(histograms, name):
    X, y = histograms(40, 5)
    first, second = small(name).fit(X, y), small(name).fit(X, y)
    method = "predict_proba" if name == "random_forest" else "decision_function"
    np.testing.assert_array_equal(getattr(first, method)(X), getattr(second, method)(X))


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_negative_values_are_refused_with_the_remedy(histograms, name):
    X, y = histograms(30, 4)
    model = small(name).fit(X, y)
    X[3, 2] = -0.1
    with pytest.raises(ValueError, match=r"[Nn]egative values in data.*Squash\(\)"):
        small(name).fit(X, y)
    with pytest.raises(ValueError, match=r"Negative values in data.*Squash\(\)"):
        model.predict(X)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (np.vstack([X[:-1], np.full(4, np.inf)]), y), "inf"),
        (lambda X, y: (X, np.zeros(len(y))), "class"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X[:-1], y), "inconsistent"),
        (lambda X, y: (X, np.linspace(0, 1, len(y))), "continuous"),
    ],
    ids=["infinite", "one class", "empty", "lengths", "regression"],
)
def test_bad_rows_are_refused(histograms, name, spoil, message):
    if name == "random_forest" and message == "class":
        pytest.skip("The forest of scikit-learn takes one class.")
    X, y = spoil(*histograms(30, 4))
    with pytest.raises(ValueError, match=message):
        small(name).fit(X, y)


@pytest.mark.parametrize("C", [1e-9, 1e9])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_COST])
@pytest.mark.filterwarnings("ignore")
def test_extreme_costs_give_finite_scores(histograms, name, C):
    X, y = histograms(30, 4)
    quick = {"max_iter": 50} if "max_iter" in make(name).get_params() else {}
    model = small(name, C=C, **quick).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def test_settings_of_the_paper():
    forest = make("random_forest", random_state=1, n_jobs=2)
    assert isinstance(forest, RandomForestClassifier)
    assert (forest.n_estimators, forest.max_depth) == (100, 50)
    assert (forest.random_state, forest.n_jobs) == (1, 2)
    assert make("adaboost").n_rounds == 500
    assert make("approx_intersection").n_bins == 100
    assert make("approx_chi2").feature_map.order == 1
    assert make("approx_chi2_x3").feature_map.order == 4
    assert (make("pmsvm_chi2").p, make("pmsvm_chi2").C) == (-1.0, 0.01)
    assert make("pmsvm_intersection").p == -8.0
    assert make("l1_maps").penalty == "l1"


@pytest.mark.parametrize(
    ("name", "theta"), [("mbkl", "learned"), ("mbkl_projections", "learned"), ("mbkl_ones", "ones")]
)
def test_forms_of_mbkl(name, theta):
    model = make(name, n_maps=30)
    assert isinstance(model, MBKLClassifier)
    assert (model.theta, model.n_maps) == (theta, 30)
    if name == "mbkl_projections":
        assert model.maps.input_map == "chi2"
    else:
        assert model.maps == "stumps"


def test_seeds_reach_the_map_inside():
    assert make("raginsky_lazebnik", random_state=4).feature_map.random_state == 4
    assert make("approx_chi2", feature_map__order=2).feature_map.order == 2
    assert (
        make("l1_maps", random_state=4, feature_map__random_state=5).get_params()[
            "feature_map__random_state"
        ]
        == 5
    )


def test_an_unknown_parameter_is_an_error():
    with pytest.raises(ValueError, match="Invalid parameter"):
        make("linear", gamma=1.0)


def test_systems_do_not_share_their_maps():
    make("approx_chi2").feature_map.order = 9
    assert make("approx_chi2").feature_map.order == 1


@pytest.mark.parametrize(("data", "least"), [("sonar", 0.75), ("liver", 0.62)])
@pytest.mark.parametrize("name", ["intersection", "approx_intersection", "rb_chi2", "chi2"])
def test_real_data(data_folder, data, least, name):
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline

    from mbkl_paper.baselines import Squash

    file = np.load(data_folder / "paper" / data / f"{data}.npz")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = make_pipeline(Squash(), make(name, C=10.0, n_jobs=1))
    assert cross_val_score(model, file["X"], file["y"], cv=folds).mean() > least
