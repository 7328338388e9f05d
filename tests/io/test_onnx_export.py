"""ONNX: the same labels and, to float32 accuracy, the same probabilities, scores and numbers."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mbkl import MBKernel, MBKLClassifier
from mbkl.io import export_c, export_onnx, register_onnx_converter, to_onnx
from mbkl.maps import Ferns

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def session(model_or_bytes):
    data = model_or_bytes
    if not isinstance(data, bytes):
        onnx.checker.check_model(data, full_check=True)
        data = data.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def expected_values(model, X):
    """Return probabilities, or scores with a column for each class."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    scores = model.decision_function(X)
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def assert_same(model, run, X):
    label, values = run.run(None, {"X": X})
    expected = model.predict(X)
    assert label.tolist() == expected.tolist()
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, expected_values(model, X), rtol=1e-6, atol=1e-6)


def test_the_same_labels_and_values(classifier_and_rows, rows_of_all_kinds):
    model, X = classifier_and_rows
    run = session(to_onnx(model))
    rows = rows_of_all_kinds(model, X)
    assert_same(model, run, rows)
    for n_rows in (1, 2, 63, 64, 65, 129):
        assert_same(model, run, rows[:n_rows])
    for row in rows[::17]:
        assert_same(model, run, row[None])


def assert_same_numbers(model, run, X):
    (found,) = run.run(None, {"X": X})
    expected = model.predict(X)
    assert (found.dtype, found.shape) == (np.float32, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_the_same_numbers(regressor_and_rows, rows_of_all_kinds):
    model, X = regressor_and_rows
    exported = to_onnx(model)
    assert [one.name for one in exported.graph.output] == ["prediction"]
    run = session(exported)
    rows = rows_of_all_kinds(model, X)
    assert_same_numbers(model, run, rows)
    for n_rows in (1, 2, 129):
        assert_same_numbers(model, run, rows[:n_rows])
    assert run.run(None, {"X": rows[:0]})[0].shape == (0, *model.predict(rows[:1]).shape[1:])


def test_drawn_and_grown_ferns_are_mixed(fitted):
    assert 0 < fitted("mixed regression")[0].grown_share_ < 1


def test_no_rows(fitted):
    for name in ("stumps", "default", "no maps"):
        model, X = fitted(name)
        empty = np.empty((0, np.asarray(X).shape[1]), np.float32)
        label, values = session(to_onnx(model)).run(None, {"X": empty})
        assert (label.shape, values.shape) == ((0,), (0, model.classes_.size))


@pytest.mark.parametrize("max_cells", [2, 256, 65_536])
def test_ferns_of_all_depths(make_data, max_cells):
    X, y = make_data(n_rows=300, n_features=5)
    X = X.astype(np.float32)
    for depth in (1, 3, 17, 40):
        ferns = Ferns(depth=depth, max_cells=max_cells)
        model = MBKLClassifier(maps=ferns, n_maps=60, C=1.0, random_state=0).fit(X, y)
        depths = {len(features) for features in model.fern_features_}
        assert len(depths) > 1
        _, values = session(to_onnx(model)).run(None, {"X": X})
        np.testing.assert_allclose(values, model.predict_proba(X), rtol=1e-6, atol=1e-6)


def test_names_of_inputs_and_outputs(fitted):
    graph = to_onnx(fitted("calibrated")[0]).graph
    assert [one.name for one in graph.input] == ["X"]
    assert [one.name for one in graph.output] == ["label", "probabilities"]
    assert [one.name for one in to_onnx(fitted("stumps")[0]).graph.output] == ["label", "scores"]


def test_a_file(fitted, tmp_path):
    model, X = fitted("stumps")
    export_onnx(model, tmp_path / "a.onnx")
    assert_same(model, session((tmp_path / "a.onnx").read_bytes()), X)
    assert [file.name for file in tmp_path.iterdir()] == ["a.onnx"]


def test_the_file_is_small(fitted, saved):
    for name in ("stumps", "ferns", "calibrated"):
        model, _ = fitted(name)
        assert to_onnx(model).ByteSize() < 20_000 + 5 * len(saved(model))


def test_the_same_model_gives_the_same_bytes(fitted):
    model, _ = fitted("default")
    assert to_onnx(model).SerializeToString() == to_onnx(model).SerializeToString()


# ---------------------------------------------------------------- columns of a table


def test_columns_of_a_table(table_model):
    model, columns, numbers, texts, frame = table_model
    run = session(to_onnx(model, columns))
    inputs = {name: values[:, None] for name, values in (*numbers.items(), *texts.items())}
    assert [one.name for one in run.get_inputs()] == columns
    label, values = run.run(None, inputs)
    assert label.tolist() == model.predict(frame).tolist()
    np.testing.assert_allclose(values, expected_values(model, frame), rtol=1e-6, atol=1e-6)
    for row in range(5):
        one = {name: values[row : row + 1] for name, values in inputs.items()}
        assert run.run(None, one)[0].tolist() == model.predict(frame[row : row + 1]).tolist()


def test_names_that_are_taken(fitted):
    model, X = fitted("stumps")
    with pytest.raises(ValueError, match="'prediction', that of an output; rename it"):
        to_onnx(fitted("regression")[0], ["prediction", "b", "c", "d"])
    for name in ("label", "scores"):
        with pytest.raises(ValueError, match="that of an output; rename it"):
            to_onnx(model, [name, "b", "c", "d"])
    names = ["mbkl_0_constant", "_mbkl_", "X", "probabilities"]
    columns = {name: X[:, [place]] for place, name in enumerate(names)}
    label, _ = session(to_onnx(model, names)).run(None, columns)
    assert label.tolist() == model.predict(X).tolist()


# ---------------------------------------------------------------- skl2onnx


@pytest.mark.parametrize("name", ["stumps", "default", "calibrated", "names", "list"])
def test_a_pipeline(fitted, name):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    register_onnx_converter()
    model, X = fitted(name)
    X = np.asarray(X, dtype=np.float32)
    y = model.predict(X)
    pipeline = make_pipeline(StandardScaler(), type(model)(**model.get_params())).fit(X, y)
    converted = skl2onnx.to_onnx(
        pipeline, X[:1], options={"zipmap": False}, target_opset={"": 18, "ai.onnx.ml": 3}
    )
    label, values = session(converted).run(None, {"X": X})
    # The scaler of ONNX computes in float32: its rows may lie in other cells near an edge.
    last = pipeline[-1]
    scaled = ((X - pipeline[0].mean_.astype("f4")) / pipeline[0].scale_.astype("f4")).astype("f4")
    assert (label == last.predict(scaled)).mean() > 0.98
    assert np.median(np.abs(values - expected_values(last, scaled))) < 1e-5


def test_a_model_alone_and_with_zipmap(fitted):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    register_onnx_converter()
    for name in ("default", "names", "cross-validation", "bool labels", "float labels"):
        model, X = fitted(name)
        X = np.asarray(X, dtype=np.float32)
        label, values = session(skl2onnx.to_onnx(model, X[:1])).run(None, {"X": X})
        assert label.tolist() == model.predict(X).tolist()
        assert values[0].keys() == set(model.classes_.tolist())  # 1.0 is 1 and True
        found = [[row[one] for one in model.classes_.tolist()] for row in values]
        np.testing.assert_allclose(found, expected_values(model, X), rtol=1e-6, atol=1e-6)


def test_a_model_alone_without_zipmap(fitted):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    register_onnx_converter()
    model, X = fitted("stumps")
    assert_same(model, session(skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})), X)


@pytest.mark.parametrize(
    "name", ["regression", "counts, 2 targets", "regression, cross-validation"]
)
def test_a_regressor_in_skl2onnx(fitted, name):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    register_onnx_converter()
    model, X = fitted(name)
    (found,) = session(skl2onnx.to_onnx(model, X[:1])).run(None, {"X": X})
    assert found.shape == (len(X), model.n_outputs_)
    expected = model.predict(X).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------- errors


def test_what_cannot_be_exported(fitted, tmp_path):
    with pytest.raises(TypeError, match="must be an MBKLClassifier or MBKLRegressor"):
        to_onnx(fitted("kernel")[0])
    with pytest.raises(TypeError, match="must be an MBKLClassifier or MBKLRegressor"):
        to_onnx(MBKernel())
    with pytest.raises(NotFittedError):
        to_onnx(MBKLClassifier())
    for export in (to_onnx, lambda model: export_c(model, tmp_path / "model.h")):
        with pytest.raises(ValueError, match="the chi2 map cannot be exported"):
            export(fitted("chi2 projections")[0])


def test_a_missing_library_is_named(fitted, monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == "onnx"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"onnx is needed.*mbkl\[onnx\]"):
        to_onnx(fitted("stumps")[0])
