"""The C header: no warnings, and the same predictions to float32 accuracy."""

import ctypes
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from mbkl import MBKLClassifier
from mbkl.io import export_c

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

CLASSIFIERS = (
    *("stumps", "stumps, 3 classes", "ferns", "shallow ferns, 3 classes", "deep ferns"),
    *("default", "calibrated", "calibrated, 2 classes", "logistic", "list", "projections"),
    *("sparse projections", "names", "cross-validation", "no maps"),
    *("bool labels", "float labels", "object labels"),
)
REGRESSORS = (
    *("regression", "grown regression", "mixed regression", "counts", "counts, 2 targets"),
    *("grown regression, 2 targets", "quantile regression", "regression of one column"),
    *("regression without maps", "regression, cross-validation"),
)
STRICT = (
    "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Werror"
)
# Scores are sums of float32 numbers.
TOLERANCE = 1e-5
WRAPPER = """
#include "{name}.h"
int {name}_run(const float *X, int n, int *labels, float *scores, float *probabilities);
int {name}_run(const float *X, int n, int *labels, float *scores, float *probabilities)
{{
    int row;
    for (row = 0; row < n; row++) {{
        const float *x = X + row * {name}_n_features;
        labels[row] = {name}_predict(x);
        {name}_scores(x, scores + row * {name}_n_scores);
        {probabilities}
    }}
    (void)probabilities;
    return {name}_n_features;
}}
const char *{name}_label(int number);
const char *{name}_label(int number)
{{
    return {name}_labels[number];
}}
"""
NUMBERS_WRAPPER = """
#include "{name}.h"
int {name}_run(const float *X, int n, float *predictions);
int {name}_run(const float *X, int n, float *predictions)
{{
    int row;
    for (row = 0; row < n; row++) {{
        const float *x = X + row * {name}_n_features;
        {call};
    }}
    return {name}_n_scores;
}}
"""


def compiler(*names):
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"There is no compiler of C: none of {', '.join(names)}.")
    return found


def compile_(command: str, source) -> None:
    done = subprocess.run([*command.split(), str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.fixture(scope="module")
def headers(fitted, table_model, tmp_path_factory):
    """The headers of all models, included in one file of C."""
    folder = tmp_path_factory.mktemp("headers")
    models = {f"model_{n}": fitted(name)[0] for n, name in enumerate(CLASSIFIERS)}
    for name, model in models.items():
        export_c(model, folder / f"{name}.h", name=name)
    regressors = {f"numbers_{n}": fitted(name)[0] for n, name in enumerate(REGRESSORS)}
    for name, model in regressors.items():
        export_c(model, folder / f"{name}.h", name=name)
    models["table"] = table_model[0]
    export_c(table_model[0], folder / "table.h", table_model[1], "table")
    text = ""
    for name, model in models.items():
        call = f"{name}_probabilities(x, probabilities + row * {name}_n_classes);"
        used = call if hasattr(model, "predict_proba") else ""
        text += WRAPPER.format(name=name, probabilities=used)
    for name, model in regressors.items():
        place = f"predictions + row * {name}_n_scores"
        one, many = f"predictions[row] = {name}_predict(x)", f"{name}_predict(x, {place})"
        text += NUMBERS_WRAPPER.format(name=name, call=many if model.is_multi_output_ else one)
    text += """
void encode(const float *numbers, const char *const *texts, float *x);
void encode(const float *numbers, const char *const *texts, float *x)
{
    table_encode(numbers, texts, x);
}
"""
    (folder / "all.c").write_text(text)
    return folder / "all.c"


@pytest.fixture(scope="module")
def library(headers):
    """The compiled headers of all models."""
    target = headers.with_suffix(".so")
    cc = compiler("cc", "gcc", "clang")
    compile_(f"{cc} -std=c99 -O1 {STRICT} -fPIC -shared -o {target} -lm", headers)
    return ctypes.CDLL(str(target))


def test_cpp_compiles_it_too(headers):
    cxx = compiler("c++", "g++", "clang++")
    compile_(f"{cxx} -x c++ -std=c++11 {STRICT} -fsyntax-only", headers)


def run(library, name, model, X):
    """Return what the compiled header gives for rows."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    n = len(X)
    result = SimpleNamespace(
        labels=np.empty(n, np.int32),
        scores=np.empty((n, model.intercept_.size), np.float32),
        probabilities=np.empty((n, model.classes_.size), np.float32),
    )
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in vars(result).values()]
    used = getattr(library, f"{name}_run")(X.ctypes.data_as(ctypes.c_void_p), n, *pointers)
    assert used == X.shape[1]
    return result


@pytest.mark.parametrize("number", range(len(CLASSIFIERS)), ids=CLASSIFIERS)
def test_the_same_predictions(library, fitted, rows_of_all_kinds, number):
    model, X = fitted(CLASSIFIERS[number])
    rows = rows_of_all_kinds(model, X)
    found = run(library, f"model_{number}", model, rows)
    scores = model.predictor_.scores(rows)
    np.testing.assert_allclose(found.scores, scores, rtol=TOLERANCE, atol=TOLERANCE)
    clear = margins(scores) > 4 * TOLERANCE
    assert clear.mean() > 0.9
    assert (model.classes_[found.labels] == model.predict(rows))[clear].all()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found.probabilities, model.predict_proba(rows), atol=1e-5)


@pytest.mark.parametrize("number", range(len(REGRESSORS)), ids=REGRESSORS)
def test_the_same_numbers(library, fitted, rows_of_all_kinds, number):
    model, X = fitted(REGRESSORS[number])
    rows = np.ascontiguousarray(rows_of_all_kinds(model, X))
    expected = model.predict(rows)
    found = np.empty(expected.shape, np.float32)
    run = getattr(library, f"numbers_{number}_run")
    pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (rows, found))
    assert run(next(pointers), len(rows), next(pointers)) == model.n_outputs_
    unit = np.abs(expected).max(axis=0)
    np.testing.assert_allclose(found / unit, expected / unit, rtol=TOLERANCE, atol=TOLERANCE)


def margins(scores):
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    ordered = np.sort(scores, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def test_labels(library, fitted):
    for number, name in enumerate(CLASSIFIERS):
        get = getattr(library, f"model_{number}_label")
        get.restype = ctypes.c_char_p
        classes = fitted(name)[0].classes_.tolist()
        assert [get(n).decode() for n in range(len(classes))] == [str(one) for one in classes]


def test_columns_of_a_table(library, table_model):
    model, columns, numbers, texts, frame = table_model
    X = np.asarray(model.rows_of(frame), dtype=np.float32)
    for row in range(len(X)):
        values = (ctypes.c_float * len(numbers))(*(column[row] for column in numbers.values()))
        # Missing text is an empty one or none at all.
        words = [text[row].encode() for text in texts.values()]
        words = [word or [None, b""][row % 2] for word in words]
        x = (ctypes.c_float * X.shape[1])()
        library.encode(values, (ctypes.c_char_p * len(words))(*words), x)
        np.testing.assert_array_equal(np.array(x[:], np.float32), X[row])
    assert len(columns) == len(numbers) + len(texts)
    found = run(library, "table", model, X)
    assert (model.classes_[found.labels] == model.predict(frame)).mean() > 0.99


def test_texts_cannot_break_out(tmp_path):
    """Any text is a literal that the compiler reads back byte for byte."""
    texts = [
        '"; int evil(void); //',
        "*/",
        "??/",
        "\\",
        "\n",
        "\x01" + "7",
        "ü✓",
        "%s",
        "$name",
        "a",
    ]
    X = np.arange(len(texts), dtype=np.float32)[:, None]
    model = MBKLClassifier(maps="stumps", n_maps=20, C=1.0, random_state=0).fit(X, texts)
    export_c(model, tmp_path / "m.h", name="m")
    assert (tmp_path / "m.h").read_bytes().isascii()
    (tmp_path / "m.c").write_text(WRAPPER.format(name="m", probabilities=""))
    cc, target = compiler("cc", "gcc", "clang"), tmp_path / "m.so"
    compile_(f"{cc} -std=c99 {STRICT} -fPIC -shared -o {target} -lm", tmp_path / "m.c")
    get = ctypes.CDLL(str(target)).m_label
    get.restype = ctypes.c_char_p
    assert [get(n).decode() for n in range(len(texts))] == sorted(texts)


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "ä", "a;", "_a", "a" * 64, "a\n"])
def test_names_that_are_no_names(fitted, tmp_path, name):
    with pytest.raises(ValueError, match="name must be letters"):
        export_c(fitted("stumps")[0], tmp_path / "a.h", name=name)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported(fitted, tmp_path):
    with pytest.raises(TypeError, match="must be an MBKLClassifier or MBKLRegressor"):
        export_c(fitted("kernel")[0], tmp_path / "a.h")
    with pytest.raises(NotFittedError):
        export_c(MBKLClassifier(), tmp_path / "a.h")
    frame = pd.DataFrame({"a": ["x\0", "b"] * 5})
    with pytest.raises(ValueError, match="zero character"):
        export_c(MBKLClassifier().fit(frame, frame["a"]), tmp_path / "a.h")
    assert not list(tmp_path.iterdir())
