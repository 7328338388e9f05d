"""Files and exports of models with categories: the same answers on raw columns."""

import ctypes
import io
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLClassifier, MBKLClassifierCV, MBKLRegressor
from mbkl.io import ModelFileError, export_c, load, onnx_inputs, save, to_onnx
from mbkl.io.exports import columns_of_model
from mbkl.io.model_file import _unpack_levels


def make_frame(n_rows=200, seed=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "town": generator.choice(["Bonn", 'Os"lo', "Röm", None], n_rows),
            "age": generator.normal(size=n_rows).astype(np.float32),
            "rooms": pd.Categorical(generator.choice([1, 2, 7], n_rows)),
            "member": generator.random(n_rows) < 0.5,
        }
    )
    y = (frame["town"] == "Röm") ^ ((frame["rooms"] == 7) & (frame["age"] > 0))
    return frame, np.where(y, "yes", "no")


MODELS = {
    "auto": MBKLClassifier(n_maps=60, random_state=0),
    "stumps": MBKLClassifier(maps="stumps", random_state=0),
    "grown": MBKLClassifier(maps="grown", random_state=0),
    "search": MBKLClassifierCV(n_maps=40, Cs=(0.1, 1.0), cv=2, random_state=0),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return MODELS[request.param].fit(*make_frame())


@pytest.fixture(scope="module")
def new():
    frame, _ = make_frame(300, seed=1)
    frame.loc[:9, "town"] = "Paris"
    frame["rooms"] = frame["rooms"].astype(float)
    frame.loc[5:20, "rooms"] = [np.nan, 5.0] * 8
    return frame


def test_a_file_keeps_the_levels(fitted, new):
    file = io.BytesIO()
    save(fitted, file)
    model = load(io.BytesIO(file.getvalue()))
    assert model.levels_ == fitted.levels_
    np.testing.assert_array_equal(model.decision_function(new), fitted.decision_function(new))
    again = io.BytesIO()
    save(model, again)
    assert again.getvalue() == file.getvalue()


@pytest.mark.parametrize(
    "levels",
    [
        [[0, ["a", 1]]],
        [[0, [None]]],
        [[0, ["a", "a"]]],
        [[0, ["a"]], [0, ["b"]]],
        [[2, ["a"]]],
        [[True, ["a"]]],
        [0],
    ],
)
def test_levels_that_make_no_sense(levels):
    with pytest.raises(ModelFileError, match="category"):
        _unpack_levels(levels, 2)


def test_onnx_takes_raw_columns(fitted, new):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(to_onnx(fitted).SerializeToString())
    assert [each.name for each in session.get_inputs()] == list(new.columns)
    label, _ = session.run(None, onnx_inputs(fitted, new))
    np.testing.assert_array_equal(label, fitted.predict(new))


def test_onnx_inputs_need_categories():
    model = MBKLClassifier(n_maps=10).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="has no categories"):
        onnx_inputs(model, [[0.0]])


REGRESSORS = {
    "auto": MBKLRegressor(n_maps=60, random_state=0),
    "stumps": MBKLRegressor(maps="stumps", loss="poisson", random_state=0),
    "grown": MBKLRegressor(maps="grown", n_maps=20, random_state=0),
}


@pytest.fixture(scope="module", params=REGRESSORS)
def regressor(request):
    frame, y = make_frame()
    return REGRESSORS[request.param].fit(frame, 3.0 * (y == "yes") + np.abs(frame["age"]))


def test_onnx_predicts_numbers_of_raw_columns(regressor, new):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(to_onnx(regressor).SerializeToString())
    (found,) = session.run(None, onnx_inputs(regressor, new))
    np.testing.assert_allclose(found, regressor.predict(new), rtol=1e-6, atol=1e-6)


def test_c_takes_raw_columns(fitted, new, tmp_path):
    found = run_c(fitted, new, tmp_path, "int")
    np.testing.assert_array_equal(fitted.classes_[found], fitted.predict(new))


def test_c_predicts_numbers_of_raw_columns(regressor, new, tmp_path):
    found = run_c(regressor, new, tmp_path, "float")
    np.testing.assert_allclose(found, regressor.predict(new), rtol=1e-5, atol=1e-5)


def run_c(model, new, tmp_path, kind):
    """Return what a header gives for each row of a frame."""
    compiler = shutil.which("cc") or pytest.skip("there is no compiler")
    export_c(model, tmp_path / "model.h")
    (tmp_path / "run.c").write_text(
        '#include "model.h"\n'
        f"{kind} run(const float *numbers, const char *const *texts)\n"
        "{\n"
        "    float x[model_n_features];\n"
        "    model_encode(numbers, texts, x);\n"
        "    return model_predict(x);\n"
        "}\n"
    )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    library = tmp_path / "run.so"
    command = [compiler, *flags, "-o", str(library), str(tmp_path / "run.c"), "-lm"]
    subprocess.run(command, check=True)
    run, columns = ctypes.CDLL(str(library)).run, columns_of_model(model, None)
    run.restype = getattr(ctypes, f"c_{kind}")
    inputs = onnx_inputs(model, new)
    found = []
    for row in range(len(new)):
        values = [(one.is_text, inputs[one.name][row, 0]) for one in columns]
        numbers = [value for is_text, value in values if not is_text]
        texts = [value.encode() or None for is_text, value in values if is_text]
        found.append(
            run((ctypes.c_float * len(numbers))(*numbers), (ctypes.c_char_p * len(texts))(*texts))
        )
    return found
