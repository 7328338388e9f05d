"""Estimators with grown ferns: the path as a model, Step 2 with its kernel, and all around it."""

import ctypes
import io
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from scipy import sparse

import mbkl
import mbkl.engine
from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV, estimate_memory, memory
from mbkl.engine import limits
from mbkl.engine.twins import TWINS
from mbkl.explain import column_importances
from mbkl.io import export_c, to_onnx
from mbkl.maps import GrownFerns

EVERY_CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def rows(n_classes=2, n_rows=500, n_features=5, missing=0.0, seed=0):
    """Return rows of which two or three features matter, and classes."""
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(n_rows, n_features)) * 64) / 64
    y = 1 * (X[:, 0] * X[:, 1] > 0) + (n_classes > 2) * (X[:, 2] > 0.5)
    X[generator.random(X.shape) < missing] = np.nan
    return X.astype(np.float32), y


SETTINGS = {"maps": GrownFerns(n_ferns=30), "random_state": 0}


def grown(**parameters):
    return MBKLClassifier(**{**SETTINGS, **parameters})


def assert_same_model(model, other):
    """The same ferns, tables and intercept, to the bit."""
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_)
    np.testing.assert_array_equal(model.theta_, other.theta_)
    for own, same in zip(model.fern_thresholds_, other.fern_thresholds_, strict=True):
        np.testing.assert_array_equal(own, same)


@pytest.fixture(scope="module", params=[2, 3], ids=["2 classes", "3 classes"])
def fitted(request):
    """A fitted model, its rows and their classes."""
    X, y = rows(request.param, missing=0.05)
    return grown().fit(X, y), X, y


# --- The path is the model ---


def test_a_score_is_the_sum_of_one_entry_a_table(fitted):
    model, X, _ = fitted
    scores = np.tile(model.intercept_, (len(X), 1))
    # By the definition: which stumps of each fern say yes.
    (maps,) = model.maps_.families
    for fern, table in enumerate(model.tables_):
        yes = X[:, model.fern_features_[fern]] > model.fern_thresholds_[fern]
        cells = yes @ (2 ** np.arange(yes.shape[1])[::-1])
        scores += table[maps.numbers[maps.raw_offsets[fern] + cells]]
    np.testing.assert_allclose(
        model.decision_function(X).reshape(scores.shape), scores, rtol=1e-9, atol=1e-9
    )
    assert len(model.tables_) == model.n_maps_ == len(model.fern_features_)
    assert (model.table_features_ == -1).all()


def test_what_is_learned_has_the_usual_names(fitted):
    model, _, _ = fitted
    assert model.C_ == 0.0
    assert model.temperature_ == 1.0
    assert model.n_iter_ >= model.n_maps_ > 0
    assert np.isnan(model.gap_).all()
    assert np.isnan(model.objective_).all()
    assert model.feature_rates_ is None
    assert model.stump_features_.size == 0
    assert model.coef_.shape == (model.intercept_.size, sum(map(len, model.tables_)))
    assert set(model.timings_) == {"growth", "tables", "total"}


def test_theta_is_in_proportion_to_squared_norms(fitted):
    model, _, _ = fitted
    norms = np.array([(table**2).sum() for table in model.tables_])
    np.testing.assert_allclose(model.theta_, norms / norms.sum())
    assert model.theta_.sum() == pytest.approx(1.0)


def test_probabilities_are_there_without_calibration(fitted):
    model, X, y = fitted
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    scores = model.decision_function(X)
    if scores.ndim == 1:
        np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)))
    else:
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        np.testing.assert_allclose(probabilities, odds / odds.sum(axis=1, keepdims=True))
    assert model.score(X, y) > 0.9


def test_probabilities_are_true_to_the_frequencies():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(8000, 3)).astype(np.float32)
    chance = np.where(X[:, 0] * X[:, 1] > 0, 0.8, 0.3)
    y = (generator.random(8000) < chance).astype(int)
    model = MBKLClassifier(maps="grown", random_state=0).fit(X[:4000], y[:4000])
    found, seen = model.predict_proba(X[4000:])[:, 1], y[4000:]
    for group in (found < 0.5, found > 0.5):
        assert found[group].mean() == pytest.approx(seen[group].mean(), abs=0.1)


def test_labels_of_any_kind():
    X, y = rows(3)
    names = np.array(["oak", "ash", "elm"])[y]
    model = grown().fit(X, names)
    assert model.classes_.tolist() == ["ash", "elm", "oak"]
    assert (model.predict(X) == names).mean() > 0.9


@pytest.mark.parametrize("maps", ["grown", ["grown"]])
def test_the_name_is_enough(maps):
    X, y = rows()
    model = grown(maps=maps, n_maps=12).fit(X, y)
    assert (model.n_maps_, model.C_) == (12, 0.0)


# --- What it does not depend on ---


@EVERY_CLASSES
def test_the_same_bits_for_any_threads_and_loops(
    monkeypatch, make_compiled, use_loops, bits_of, n_classes
):
    X, y = rows(n_classes, missing=0.05)
    weights = np.random.default_rng(0).exponential(size=len(y))
    use_loops(TWINS)
    expected = bits_of(grown().fit(X, y, weights))
    for n_threads in (1, 2, 3):
        use_loops(make_compiled(n_threads))
        assert bits_of(grown().fit(X, y, weights)) == expected


def test_the_order_and_form_of_the_rows_do_not_matter(bits_of):
    X, y = rows(missing=0.05)
    X[np.abs(X) < 0.5] = 0.0
    expected = bits_of(grown().fit(X, y))
    order = np.random.default_rng(1).permutation(len(y))
    assert bits_of(grown().fit(X[order], y[order])) == expected
    for same in (X.astype(np.float64), sparse.csr_array(X), sparse.csc_matrix(X)):
        model = grown().fit(same, y)
        assert bits_of(model) == expected
        np.testing.assert_array_equal(model.decision_function(same), model.decision_function(X))


def test_a_weight_of_zero_is_absence(bits_of):
    X, y = rows()
    weights = np.where(np.arange(len(y)) % 3, 1.5, 0.0)
    present = weights > 0
    X[~present] = 1e6
    some = grown().fit(X[present], y[present], weights[present])
    assert bits_of(grown().fit(X, y, weights)) == bits_of(some)


def test_class_weights_are_weights(bits_of):
    X, y = rows()
    by_class = grown(class_weight={0: 4.0, 1: 1.0}).fit(X, y)
    by_row = grown().fit(X, y, np.where(y == 0, 4.0, 1.0))
    assert bits_of(by_class) == bits_of(by_row)
    plain = grown().fit(X, y)
    assert (by_class.predict(X) == 0).sum() > (plain.predict(X) == 0).sum() - 5
    assert by_class.intercept_[0] < plain.intercept_[0]


# --- Which rows grow ---


@pytest.mark.parametrize(("n_rows", "grows"), [(300, False), (301, True)])
def test_the_default_grows_above_the_limit(monkeypatch, n_rows, grows):
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH", 300)
    X, y = rows(n_rows=n_rows)
    model = MBKLClassifier(random_state=0, n_maps=40).fit(X, y)
    assert (model.C_ == 0) is grows
    assert (model.feature_rates_ is None) is grows


@pytest.mark.parametrize("parameters", [{"C": 1.0}, {"loss": "hinge"}, {"theta": "learned"}])
def test_the_default_does_not_grow_where_something_else_is_asked(monkeypatch, parameters):
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH", 10)
    X, y = rows(n_rows=100)
    model = MBKLClassifier(random_state=0, n_maps=40, **parameters).fit(X, y)
    assert model.C_ > 0


def test_ample_memory_does_not_change_the_default(monkeypatch, bits_of):
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH", 10)
    X, y = rows(n_rows=100)
    plain, limited = (
        MBKLClassifier(random_state=0, n_maps=10, max_memory=limit).fit(X, y)
        for limit in (None, "1GB")
    )
    assert plain.C_ == 0
    assert bits_of(limited) == bits_of(plain)


def test_rows_of_zero_weight_do_not_count(monkeypatch):
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH", 100)
    X, y = rows(n_rows=150)
    weights = (np.arange(150) < 100).astype(float)
    assert MBKLClassifier(random_state=0, n_maps=40).fit(X, y, weights).C_ > 0
    weights[100] = 1.0
    assert MBKLClassifier(random_state=0, n_maps=40).fit(X, y, weights).C_ == 0


# --- Step 2 with the grown kernel ---


@EVERY_CLASSES
@pytest.mark.parametrize("theta", ["ones", "learned", "reweighted", "alignment"])
def test_a_cost_runs_step_2(n_classes, theta):
    X, y = rows(n_classes)
    model = grown(C=1.0, theta=theta).fit(X, y)
    assert model.C_ == 1.0
    assert model.gap_[1] < model.tol
    assert (model.gap_[0] < model.tol) == (theta == "learned")
    assert model.theta_.sum() == pytest.approx(1.0)
    assert model.score(X, y) > 0.9
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))
    path = grown().fit(X, y)
    if theta == "ones":
        np.testing.assert_allclose(model.theta_, path.theta_, rtol=1e-9)
    for own, others in zip(model.fern_thresholds_, path.fern_thresholds_, strict=False):
        assert own.size == others.size or theta in ("learned", "reweighted")


@pytest.mark.parametrize("C", ["auto", 1.0])
def test_a_list_of_families_runs_step_2(C):
    X, y = rows()
    model = grown(maps=["stumps", GrownFerns(n_ferns=10)], C=C).fit(X, y)
    assert model.C_ == 1.0
    assert model.gap_[1] < model.tol
    assert len(model.fern_features_) == 10
    assert model.stump_features_.size > 10
    assert model.theta_[-10:].sum() == pytest.approx(0.5)
    assert model.score(X, y) > 0.9


def test_the_kernel_by_itself():
    X, y = rows(3)
    kernel = MBKernel(maps=GrownFerns(n_ferns=20), random_state=0).fit(X, y)
    K = kernel.kernel(X)
    np.testing.assert_allclose(K.diagonal(), 1.0)
    assert K.min() >= 0
    phi = kernel.transform(X)
    np.testing.assert_allclose((phi @ phi.T).toarray(), K, atol=1e-12)
    # Rows of a class are more alike: the labels chose the maps.
    same = y[:, None] == y
    assert K[same].mean() > K[~same].mean() + 0.1


@pytest.mark.parametrize("maps", [GrownFerns(n_ferns=5), ["stumps", GrownFerns(n_ferns=5)]])
def test_a_search_of_costs_is_refused_where_folds_have_been_seen(maps):
    X, y = rows()
    with pytest.raises(ValueError, match="Cs='auto'"):
        MBKLClassifierCV(maps=maps, Cs=(0.1, 1), cv=3, random_state=0).fit(X, y)


def test_calibration_of_step_2_is_refused_for_the_same_reason():
    X, y = rows()
    with pytest.raises(ValueError, match="C='auto'"):
        grown(C=1.0, calibration="temperature").fit(X, y)


def test_cross_validation_of_the_path_scores_rows_that_took_no_part():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(600, 4)), generator.integers(2, size=600)
    model = MBKLClassifierCV(
        maps=GrownFerns(n_ferns=15, validation_share=0), cv=3, random_state=0
    ).fit(X, y)
    assert model.C_ == 0
    assert model.score(X, y) > 0.7
    assert abs(model.best_score_ - 0.5) < 0.1


# --- Elsewhere than in memory, on this machine ---


def test_max_memory_is_kept_or_the_error_says_what_is_needed(bits_of):
    X, y = rows()
    plain = grown().fit(X, y)
    assert bits_of(grown(max_memory="1GB").fit(X, y)) == bits_of(plain)
    with pytest.raises(ValueError, match=r"max_memory=1,000 bytes is too little: about"):
        grown(max_memory=1000).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_codes_in_files_give_the_same_bits(n_classes, monkeypatch):
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 100)
    monkeypatch.setattr(memory, "_BLOCK_BYTES", 600)
    monkeypatch.setattr(memory, "_BLOCKS", 1)
    X, y = rows(n_classes)
    plain, limited = (
        grown(),
        grown(max_memory=estimate_memory(grown(), *X.shape, n_classes).in_memory - 1),
    )
    assert_same_model(limited.fit(X, y), plain.fit(X, y))


def test_codes_in_files_serve_step_two_as_well(monkeypatch):
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 100)
    monkeypatch.setattr(memory, "_BLOCK_BYTES", 600)
    monkeypatch.setattr(memory, "_BLOCKS", 1)
    X, y = rows()
    settings = {"C": 1.0, "n_maps": 5}
    estimate = estimate_memory(grown(**settings), *X.shape)
    limited = grown(max_memory=estimate.in_memory - 1, **settings).fit(X, y)
    np.testing.assert_array_equal(limited.coef_, grown(**settings).fit(X, y).coef_)


def test_too_little_memory_to_grow_is_refused():
    X, y = rows(n_rows=limits.FEW_ROWS_GRAM + 1)
    with pytest.raises(ValueError, match=r"max_memory=100,000 bytes is too little"):
        MBKLClassifier(maps="grown", max_memory="100kB").fit(X, y)


def test_a_device_grows_nearly_the_same_model():
    pytest.importorskip("torch", reason="torch is not installed")
    X, y = rows(3)
    plain, model = grown().fit(X, y), grown(device="torch").fit(X, y)
    difference = np.abs(model.decision_function(X) - plain.decision_function(X))
    assert np.median(difference) < 1e-3
    assert (model.predict(X) == plain.predict(X)).mean() > 0.99


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_partitions", [1, 3])
def test_workers_grow_the_same_bits(local_crew, n_classes, n_partitions):
    """Rows of different stores may be equal: they are told apart as those of one are."""
    pytest.importorskip("distributed", reason="distributed is not installed")
    from mbkl.dask import MBKLClassifier as OnCluster

    X, y = rows(n_classes)
    X, y = np.concatenate([X, X[:40]]), np.concatenate([y, y[:40]])
    weights = np.where(np.arange(y.size) % 7, 1.0, 0.5)
    order = np.random.default_rng(0).permutation(y.size)
    pieces = [(X[own], y[own], weights[own]) for own in np.array_split(order, n_partitions)]
    model = OnCluster(**SETTINGS)
    model._fit_stores(local_crew(pieces))
    assert_same_model(model, grown().fit(X, y, weights))


# --- Limits, interruptions, what is printed ---


def test_verbose_prints_the_loss_of_held_out_rows(capsys):
    X, y = rows()
    model = grown(verbose=2).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    losses = [line.split()[-1] for line in lines if "loss of held-out rows" in line]
    assert len(losses) == model.n_iter_
    assert float(losses[-1]) < float(losses[0])
    assert [line.split(":")[0] for line in lines if " s" in line[-3:]] == [
        "[mbkl] growth",
        "[mbkl] tables",
    ]


def test_a_fit_is_silent(capfd):
    X, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grown().fit(X, y)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("validation_share", [0, 0.1])
def test_time_that_is_over_leaves_a_model(validation_share):
    X, y = rows()
    maps = GrownFerns(n_ferns=400, validation_share=validation_share)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = grown(maps=maps, max_time=1e-9).fit(X, y)
    assert (model.n_maps_, model.n_iter_) == (1, 1)
    assert model.score(X, y) > 0.7


def test_an_interrupt_ends_growth(monkeypatch):
    X, y = rows()
    calls = []

    def interrupted(self, cells, table, scores):
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr("mbkl.engine.twins.Twins.add_table", interrupted)
    monkeypatch.setattr("mbkl.engine.compiled.Compiled.add_table", interrupted)
    model = grown()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "coef_")
    monkeypatch.undo()
    assert model.fit(X, y).score(X, y) > 0.9


def test_callbacks_see_every_fern_and_can_end_growth():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks")

    class Recorder:
        def __init__(self, most):
            self.ended, self.most = [], most

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            self.ended.append(context.task_name)
            return self.ended.count("iteration") >= self.most

    X, y = rows()
    every, few = Recorder(1000), Recorder(4)
    model = grown().set_callbacks(every).fit(X, y)
    assert every.ended == [*["iteration"] * model.n_iter_, "growth", "tables", "fit"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stopped = grown().set_callbacks(few).fit(X, y)
    assert stopped.n_iter_ == 4
    assert stopped.score(X, y) > 0.7


@EVERY_CLASSES
def test_growth_is_recalled_from_a_checkpoint(monkeypatch, tmp_path, bits_of, n_classes):
    X, y = rows(n_classes, missing=0.05)
    model = grown(checkpoint=tmp_path / "fit")
    expected = bits_of(model.fit(X, y))
    assert expected == bits_of(grown().fit(X, y))

    def never(*_):
        raise AssertionError("growth is not to be repeated")

    monkeypatch.setattr(GrownFerns, "grow", never)
    again = grown(checkpoint=tmp_path / "fit").fit(X, y)
    assert bits_of(again) == expected
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.n_iter_ == model.n_iter_


def test_growth_that_was_cut_short_is_not_kept(tmp_path):
    X, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grown(checkpoint=tmp_path / "fit", max_time=1e-9).fit(X, y)
    assert grown(checkpoint=tmp_path / "fit").fit(X, y).n_iter_ == 30


@pytest.mark.parametrize(
    "parameters", [{"depth": 0}, {"rate": 0}, {"n_ferns": 0}, {"validation_share": 1}], ids=str
)
@pytest.mark.parametrize("C", ["auto", 1.0])
def test_bad_parameters_of_the_family_are_named(parameters, C):
    X, y = rows(n_rows=50)
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of GrownFerns must be"):
        grown(maps=GrownFerns(**parameters), C=C).fit(X, y)


# --- Data of all kinds ---


@pytest.mark.parametrize(
    ("X", "y"),
    [
        pytest.param(np.eye(5), np.arange(5) % 2, id="five rows"),
        pytest.param(np.eye(2), np.arange(2), id="two rows"),
        pytest.param(np.ones((20, 2)), np.arange(20) % 2, id="equal rows"),
        pytest.param(np.ones((20, 2)), np.arange(20) % 3, id="equal rows, 3 classes"),
        pytest.param(np.arange(30.0)[:, None], np.arange(30) > 10, id="one feature"),
        pytest.param(np.full((20, 2), np.nan), np.arange(20) % 2, id="nothing but gaps"),
    ],
)
@pytest.mark.filterwarnings("ignore:No feature of X varies")
def test_small_and_odd_data(X, y):
    for seed in range(3):
        model = grown(random_state=seed).fit(X, y)
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert np.isfinite(model.decision_function(X)).all()
        loaded = mbkl.load(saved(model))
        np.testing.assert_array_equal(loaded.predict_proba(X), probabilities)


def test_ferns_that_say_nothing_can_be_saved():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 1, 0, 1])
    model = grown(maps=GrownFerns(n_ferns=3, validation_share=0)).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), 0.5)
    np.testing.assert_array_equal(mbkl.load(saved(model)).predict_proba(X), 0.5)


def test_new_rows_beyond_all_thresholds():
    X, y = rows()
    model = grown().fit(X, y)
    far = np.array([[1e30] * 5, [-1e30] * 5, [np.nan] * 5], np.float32)
    assert np.isfinite(model.decision_function(far)).all()


# --- Files ---


def saved(model) -> io.BytesIO:
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return file


@pytest.mark.parametrize("parameters", [{}, {"C": 1.0}], ids=str)
def test_a_model_file_keeps_all_bits(fitted, parameters, bits_of):
    model, X, y = fitted
    if parameters:
        model = grown(**parameters).fit(X, y)
    loaded = mbkl.load(saved(model))
    assert bits_of(loaded) == bits_of(model)
    assert loaded.get_params()["maps"].get_params() == model.get_params()["maps"].get_params()
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert hasattr(loaded, "predict_proba") == hasattr(model, "predict_proba")
    assert loaded.n_iter_ == model.n_iter_


def test_onnx_agrees(fitted):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model, X, _ = fitted
    exported = to_onnx(model)
    onnx.checker.check_model(exported, full_check=True)
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    labels, probabilities = session.run(None, {"X": X})
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=1e-5, atol=1e-6)
    assert (labels == model.predict(X)).mean() > 0.99


def test_the_c_header_agrees(fitted, tmp_path):
    cc = shutil.which("cc") or shutil.which("gcc")
    if cc is None:
        pytest.skip("There is no compiler of C.")
    model, X, _ = fitted
    export_c(model, tmp_path / "grown.h", name="grown")
    (tmp_path / "all.c").write_text(
        '#include "grown.h"\n'
        "void run(const float *X, int n, float *out);\n"
        "void run(const float *X, int n, float *out) { for (int i = 0; i < n; i++)\n"
        "  grown_probabilities(X + i * grown_n_features, out + i * grown_n_classes); }\n"
    )
    library = tmp_path / "grown.so"
    command = [cc, "-std=c99", "-O1", "-Wall", "-fPIC", "-shared", "-o", library]
    subprocess.run([*command, tmp_path / "all.c", "-lm"], check=True, capture_output=True)
    found = np.empty((len(X), model.classes_.size), np.float32)
    arguments = (np.ascontiguousarray(X).ctypes.data, len(X), found.ctypes.data)
    kinds = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    pairs = zip(kinds, arguments, strict=True)
    ctypes.CDLL(str(library)).run(*(kind(value) for kind, value in pairs))
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-5)


# --- Explanations ---


@pytest.mark.parametrize("with_background", [True, False])
def test_contributions_sum_to_the_scores(fitted, with_background):
    model, X, _ = fitted
    explanation = model.explain_local(X[:7], background=X[:50] if with_background else None)
    total = explanation.baseline + explanation.contributions.sum(axis=1)
    scores = model.decision_function(X[:7]).reshape(total.shape)
    np.testing.assert_allclose(total, scores, rtol=1e-9, atol=1e-9)


def test_noise_is_not_important(fitted):
    model, X, _ = fitted
    used = [0, 1] if model.classes_.size == 2 else [0, 1, 2]
    noise = np.setdiff1d(np.arange(5), used)
    importances = column_importances(model)
    assert importances.sum() == pytest.approx(1.0)
    assert importances[used].min() > 2 * importances[noise].max()
    overall = model.explain_global(X).importances.mean(axis=1)
    assert overall[used].min() > 2 * overall[noise].max()
