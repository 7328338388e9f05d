"""Bad input gets a clear error that names what is wrong, and odd input works."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV, MBKLRegressor
from mbkl.maps import Stumps

SMALL = {
    MBKLClassifier: {"n_maps": 40, "random_state": 0},
    MBKLClassifierCV: {
        "n_maps": 40,
        "Cs": (0.1, 1.0),
        "C_kernels": (1.0,),
        "cv": 2,
        "random_state": 0,
    },
    MBKernel: {"n_maps": 40, "random_state": 0},
}


@pytest.fixture(params=SMALL, ids=["classifier", "cross-validated", "kernel"])
def make(request, form):
    """Each estimator in turn and in both forms, as a function of its parameters."""
    return partial(form, request.param, **SMALL[request.param])


@pytest.fixture
def classifier(form):
    """The classifier in both forms, as a function of its parameters."""
    return partial(form, MBKLClassifier, **SMALL[MBKLClassifier])


@pytest.fixture
def paper_classifier(paper):
    """The classifier of the paper, as a function of its parameters."""
    return partial(paper, MBKLClassifier, **SMALL[MBKLClassifier])


@pytest.fixture
def data(make_data):
    return make_data(n_rows=60)


def use(model, X):
    """Predict or transform."""
    return model.predict(X) if hasattr(model, "predict") else model.kernel(X)


# What cannot be learned from.


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_infinite_values(make, data, value, convert):
    X, y = data
    model = make().fit(convert(X), y)
    X[3, 1] = value
    with pytest.raises(ValueError, match="X contains infinity"):
        make().fit(convert(X), y)
    with pytest.raises(ValueError, match="X contains infinity"):
        use(model, convert(X))


def test_text(make, data):
    X, y = data
    with pytest.raises(ValueError, match="could not convert string to float"):
        make().fit(np.full(X.shape, "word"), y)
    with pytest.raises(ValueError, match="could not convert string to float"):
        make().fit(np.full(X.shape, "word", dtype=object), y)


def test_complex_numbers(make, data):
    X, y = data
    with pytest.raises(ValueError, match="Complex data not supported"):
        make().fit(X + 1j, y)


@pytest.mark.parametrize("label", [0, "only"])
def test_one_class(make, data, label):
    X, _ = data
    with pytest.raises(ValueError, match=rf"two classes.*{label}"):
        make().fit(X, np.full(60, label))


def test_one_class_of_positive_weight(make, data):
    X, y = data
    with pytest.raises(ValueError, match=r"two classes with positive weight"):
        make().fit(X, y, (y == 1).astype(float))


def test_mismatched_lengths(make, data):
    X, y = data
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make().fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"sample_weight"):
        make().fit(X, y, np.ones(59))


@pytest.mark.parametrize("shape", [(0, 4), (60, 0)])
def test_no_rows_and_no_columns(make, shape):
    with pytest.raises(ValueError, match=r"Found array with 0 (sample|feature)"):
        make().fit(np.zeros(shape), np.zeros(shape[0]))


def test_no_rows_to_predict(make, data):
    X, y = data
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        use(make().fit(X, y), X[:0])


def test_a_single_row_without_its_dimension(make, data):
    X, y = data
    with pytest.raises(ValueError, match="Expected 2D array"):
        make().fit(X[:, 0], y)
    with pytest.raises(ValueError, match="Expected 2D array"):
        use(make().fit(X, y), X[0])


def test_no_labels(make, data):
    X, _ = data
    with pytest.raises(ValueError, match=r"requires y to be passed"):
        make().fit(X, None)


def test_missing_labels(make, data):
    X, y = data
    with pytest.raises(ValueError, match="Input y contains NaN"):
        make().fit(X, np.where(y == 1, np.nan, y))


def test_numbers_instead_of_classes(make, data):
    X, _ = data
    if isinstance(make(), MBKernel):  # which learns from numbers as well
        assert make().fit(X, X[:, 0]).n_maps_ > 0
        return
    with pytest.raises(ValueError, match="Unknown label type"):
        make().fit(X, X[:, 0])


def test_several_labels_a_row(make, data):
    X, y = data
    with pytest.raises(ValueError, match="y should be a 1d array"):
        make().fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_sample_weights(make, data, value):
    X, y = data
    weights = np.ones(60)
    weights[7] = value
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        make().fit(X, y, weights)


def test_weights_that_are_all_zero(make, data):
    X, y = data
    with pytest.raises(ValueError, match=r"(?i)weight"):
        make().fit(X, y, np.zeros(60))


@pytest.mark.parametrize("value", [1e39, -1e300])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csc_array])
def test_values_beyond_float32(make, data, value, convert):
    X, y = data
    X[5, 2] = value
    with pytest.raises(ValueError, match="X has values beyond the range of float32 in column 2"):
        make().fit(convert(X), y)


def test_another_number_of_features(make, data):
    X, y = data
    model = make().fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features.* expecting 4 features"):
        use(model, X[:, :3])


@pytest.mark.parametrize("method", ["predict", "decision_function", "score"])
@pytest.mark.parametrize("kind", [MBKLClassifier, MBKLClassifierCV])
def test_use_before_fit(kind, data, method):
    X, y = data
    arguments = (X, y) if method == "score" else (X,)
    with pytest.raises(NotFittedError):
        getattr(kind(), method)(*arguments)


@pytest.mark.parametrize("kind", [MBKLClassifier, MBKLClassifierCV])
def test_probabilities_before_fit(kind, data):
    with pytest.raises(NotFittedError):
        kind(calibration="temperature").predict_proba(data[0])


@pytest.mark.parametrize("name", ["tables_", "table_features_"])
def test_attributes_before_fit(name):
    assert not hasattr(MBKLClassifier(), name)


# Parameters.


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("C", [0, -1.0, np.inf, np.nan, "1", None]),
        ("C_kernel", [0, -1.0, np.inf, "1"]),
        ("n_maps", [0, -5, 2.5, "many"]),
        ("tol", [0, -1e-3, "small"]),
        ("max_iter", [0, -1, 1.5]),
        ("max_pairs", [0, 1, -1]),
        ("negatives_per_positive", [0, -1, 0.5]),
        ("theta", ["twos", None]),
        ("theta_power", [-0.5, 2, "half"]),
        ("theta_shrinkage", [-0.1, 1.5, "half"]),
        ("init_rule", ["mean"]),
        ("loss", ["absolute"]),
        ("maps", ["trees", 3]),
        ("class_weight", ["unbalanced", 3]),
        ("calibration", ["isotonic"]),
        ("device", ["abacus"]),
        ("random_state", ["seed", -1]),
        ("n_jobs", ["two", 1.5]),
        ("verbose", ["loud", -1]),
    ],
)
def test_parameters_out_of_range_are_named(data, name, values):
    for value in values:
        with pytest.raises(ValueError, match=rf"'{name}'"):
            MBKLClassifier(**{name: value}).fit(*data)


@pytest.mark.parametrize(
    ("name", "value"),
    [("C_kernel", -1.0), ("theta", "twos"), ("sparse_output", "yes"), ("n_maps", 0)],
)
def test_parameters_of_the_kernel_out_of_range_are_named(data, name, value):
    with pytest.raises(ValueError, match=rf"'{name}'"):
        MBKernel(**{name: value}).fit(*data)


def test_no_threads_at_all(make, data):
    with pytest.raises(ValueError, match="n_jobs"):
        make(n_jobs=0).fit(*data)


@pytest.mark.parametrize("name", ["thresholds", "draw"])
def test_unknown_choices_of_the_maps_are_named(make, data, name):
    with pytest.raises(ValueError, match=rf"'{name}' parameter of Stumps must be"):
        make(maps=Stumps(**{name: "sideways"})).fit(*data)


@pytest.mark.parametrize("weights", [{0: 0.0, 1: 1.0}, {0: -1.0, 1: 1.0}, {7: 1.0}])
def test_class_weights_that_do_not_fit_are_named(make, data, weights):
    with pytest.raises(ValueError, match="class_weight"):
        make(class_weight=weights).fit(*data)


# What is odd and works.


@pytest.mark.parametrize("theta", ["learned", "ones", "reweighted", "alignment"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("value", [1.0, np.nan])
def test_rows_that_are_all_equal(make, theta, n_classes, value):
    X, y = np.full((30, 2), value), np.minimum(np.arange(30) % 5, n_classes - 1)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        model = make(theta=theta).fit(X, y)
    assert len(record) == 1
    assert "No feature of X varies" in str(record[0].message)
    assert model.n_maps_ == 0
    if hasattr(model, "predict"):
        assert (model.predict(X) == n_classes - 1).all()
    else:
        assert not model.kernel(X).any()


@pytest.mark.parametrize("theta", ["learned", "ones", "reweighted", "alignment"])
def test_two_rows(classifier, theta):
    X, y = np.array([[0.0], [1.0]]), np.array(["a", "b"])
    model = classifier(theta=theta).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
@pytest.mark.parametrize("theta", ["learned", "ones", "reweighted", "alignment"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_tiny_and_huge_costs(classifier, make_data, loss, theta, n_classes, C):
    X, y = make_data(n_rows=60, n_classes=n_classes)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        model = classifier(C=C, C_kernel=C, loss=loss, theta=theta).fit(X, y)
    kinds = {warning.category for warning in record}
    assert kinds <= {UserWarning, ConvergenceWarning}
    assert np.isfinite(model.decision_function(X)).all()
    if C > 1:
        assert model.score(X, y) > 0.7 or ConvergenceWarning in kinds


@pytest.mark.parametrize("C", [1e6, 1e12])
def test_huge_costs_of_separable_rows(classifier, C):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    model = classifier(C=C, C_kernel=C, n_maps=300).fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("kind", SMALL)
def test_seventy_thousand_thresholds_on_one_feature(paper, kind):
    X = np.random.default_rng(0).random((100, 1))
    y = (X[:, 0] > 0.5).astype(int)
    model = paper(kind, **{**SMALL[kind], "n_maps": 70_000}).fit(X, y)
    assert 1 <= model.n_maps_ <= 99
    if hasattr(model, "predict"):
        assert model.score(X, y) == 1.0


def test_seventy_thousand_cells_of_one_feature():
    X = np.arange(70_000.0)[:, None]
    y = (X[:, 0] >= 35_000).astype(int)
    maps = Stumps(thresholds="quantile", draw="stratified")
    model = MBKLClassifier(maps=maps, n_maps=70_000, theta="ones", C=1.0, random_state=0).fit(X, y)
    assert model.n_maps_ > 65_536
    (stumps,) = model.predictor_.maps.families
    assert stumps.edges.code_dtype == np.uint32
    assert model.score(X, y) > 0.999


@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_explicit_zeros(make, data, convert):
    X, y = data
    X[np.abs(X) < 1] = 0.0
    stored = convert(np.where(X == 0, 9.0, X))
    stored.data[stored.data == 9.0] = 0.0
    assert stored.nnz == X.size
    first, second = make().fit(stored, y), make().fit(convert(X), y)
    np.testing.assert_array_equal(first.stump_thresholds_, second.stump_thresholds_)
    np.testing.assert_array_equal(use(first, stored), use(second, X))


@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.csc_array])
def test_sparse_input_is_left_as_it_is(make, data, convert):
    X, y = data
    X[np.abs(X) < 1] = 0.0
    stored = convert(X)
    halves = (np.repeat(stored.data / 2, 2), np.repeat(stored.indices, 2), 2 * stored.indptr)
    doubled = convert(halves, shape=X.shape)
    before = doubled.data.copy()
    model = make().fit(doubled, y)
    np.testing.assert_array_equal(doubled.data, before)
    np.testing.assert_array_equal(model.stump_thresholds_, make().fit(stored, y).stump_thresholds_)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_read_only_arrays(make, data, convert):
    X, y = data
    X[np.abs(X) < 1] = 0.0
    weights = np.ones(60)
    expected = make().fit(convert(X), y, weights)
    rows = convert(X)
    arrays = [rows] if isinstance(rows, np.ndarray) else [rows.data, rows.indices, rows.indptr]
    for array in (*arrays, y, weights):
        array.flags.writeable = False
    model = make().fit(rows, y, weights)
    np.testing.assert_array_equal(model.theta_, expected.theta_)
    np.testing.assert_array_equal(use(model, rows), use(expected, rows))


def test_compiled_loops_read_read_only_arrays(make, data, use_loops, make_compiled):
    X, y = data
    expected = use(make().fit(X, y), X)
    use_loops(make_compiled(2))
    X.flags.writeable = False
    np.testing.assert_array_equal(use(make().fit(X, y), X), expected)


@pytest.mark.parametrize("sparse_type", [sparse.coo_array, sparse.lil_array, sparse.dok_array])
def test_other_sparse_formats_are_converted(make, data, sparse_type):
    X, y = data
    X[np.abs(X) < 1] = 0.0
    np.testing.assert_array_equal(
        use(make().fit(sparse_type(X), y), sparse_type(X)), use(make().fit(X, y), X)
    )


def test_repeated_rows(make, data):
    X, y = data
    model = make().fit(np.tile(X, (3, 1)), np.tile(y, 3))
    assert model.n_maps_ > 0


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")
def test_values_at_the_ends_of_float32(make):
    largest = float(np.finfo(np.float32).max)
    X = np.random.default_rng(0).uniform(-largest, largest, size=(60, 2)).astype(np.float32)
    X[0], X[1] = largest, -largest
    y = (X[:, 0] > 0).astype(int)
    model = make().fit(X, y)
    assert np.isfinite(model.stump_thresholds_).all()
    if hasattr(model, "predict"):
        assert model.score(X, y) > 0.9


def test_tiny_values(make):
    X = np.random.default_rng(0).random((60, 2)) * 1e-38
    y = (X[:, 0] > 0.5e-38).astype(int)
    model = make().fit(X, y)
    assert model.n_maps_ > 0


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 100.0])
def test_the_unit_of_the_weights(make, data, scale):
    X, y = data
    model, expected = make().fit(X, y, np.full(60, scale)), make().fit(X, y)
    np.testing.assert_array_equal(model.stump_thresholds_, expected.stump_thresholds_)
    np.testing.assert_allclose(model.theta_, expected.theta_, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("scale", [1e4, 1e9, 1e100])
def test_heavy_rows_are_all_learned_from(paper_classifier, data, scale):
    """A part of the pairs, drawn because of their total weight, still has most rows."""
    X, y = data
    model = paper_classifier().fit(X, y, np.full(60, scale))
    expected = paper_classifier().fit(X, y)
    assert model.objective_[0] == pytest.approx(expected.objective_[0], rel=0.2)


def test_weights_of_very_different_size(classifier, data):
    X, y = data
    weights = 10.0 ** np.random.default_rng(0).uniform(-8, 2, size=60)
    model = classifier(theta="ones").fit(X, y, weights)
    assert np.isfinite(model.decision_function(X)).all()
    heaviest = np.argsort(weights)[-1]
    assert model.predict(X)[heaviest] == y[heaviest]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_pairs", [2, 7])
def test_hardly_any_pairs(paper_classifier, make_data, n_classes, max_pairs):
    X, y = make_data(n_rows=60, n_classes=n_classes)
    model = paper_classifier(max_pairs=max_pairs).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def test_more_wrong_classes_than_there_are(make, make_data):
    X, y = make_data(n_rows=60, n_classes=3)
    first = make(negatives_per_positive=2).fit(X, y)
    second = make(negatives_per_positive=1000).fit(X, y)
    np.testing.assert_array_equal(first.theta_, second.theta_)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_more_classes_than_a_byte_can_number(form):
    X = np.arange(260.0)[:, None]
    model = form(MBKLClassifier, n_maps=300, theta="ones", C=1e4, random_state=0)
    model.fit(X, np.arange(260))
    assert model.classes_.size == 260
    assert model.coef_.shape[0] == 260


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.filterwarnings("ignore")
def test_rows_that_weigh_next_to_nothing(loss):
    X = np.random.default_rng(0).normal(size=(150, 6))
    y, weights = X[:, 0] > 0, np.ones(150)
    weights[:3] = 1e-18
    model = MBKLClassifier(loss=loss, random_state=0).fit(X, y, weights)
    assert np.isfinite(model.decision_function(X)).all()


def test_all_weights_may_be_tiny():
    X = np.random.default_rng(0).normal(size=(150, 6))
    tiny, plain = (
        MBKLRegressor(random_state=0).fit(X, X[:, 0], np.full(150, weight))
        for weight in (2.0**-1000, 1.0)
    )
    np.testing.assert_allclose(tiny.predict(X), plain.predict(X))
    assert tiny.n_held_out_ == plain.n_held_out_


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:The model says")
def test_a_cost_beyond_single_precision():
    X = np.random.default_rng(0).normal(size=(150, 6))
    model = MBKLClassifier(C=1e-42, random_state=0).fit(X, X[:, 0] > 0)
    assert np.isfinite(model.decision_function(X)).all()
