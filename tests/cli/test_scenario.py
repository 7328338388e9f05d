"""From a frame with columns of all kinds to a model in other programs: the same labels."""

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

TEXT = ["town", "street"]


@pytest.fixture
def new_people(people):
    """Rows with unknown and missing values, and without labels."""
    new = people.drop(columns="income").iloc[::-1].reset_index(drop=True)
    new.loc[0, ["town", "street"]] = ["Atlantis", "nowhere"]
    new.loc[1, ["town", "street", "since"]] = None
    new.loc[1, "age"] = np.nan
    return new


@pytest.fixture
def labels(mbkl, model_file, new_people):
    """What the command line says."""
    new_people.to_csv("new.csv", index=False)
    mbkl("predict", model_file, "new.csv", "-o", "labels.csv")
    return pd.read_csv("labels.csv")["label"].tolist()


def as_numbers(column):
    """Return what programs are given that know no booleans and dates."""
    if column.dtype.kind == "M":
        return (column - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    return column.astype(float)


def test_a_report(mbkl, model_file, people_csv, labels):
    assert "report.html" in mbkl("report", model_file, people_csv, "-o", "report.html").err


def test_onnx(mbkl, model_file, new_people, labels):
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    mbkl("export", model_file, "--onnx", "people.onnx")
    inputs = {}
    for name in new_people.columns.drop("key"):
        column = new_people[name]
        if name in TEXT:
            values = column.fillna("").to_numpy(object)
        else:
            values = as_numbers(column).to_numpy(np.float32)
        inputs[name] = values[:, None]
    found, *_ = runtime.InferenceSession("people.onnx").run(None, inputs)
    assert found.tolist() == labels


PROGRAM = r"""
#include <stdio.h>
#include "people.h"
#define N_ROWS %d
static const float numbers[N_ROWS][3] = {%s};
static const char *const texts[N_ROWS][2] = {%s};
int main(void)
{
    float x[people_n_features];
    int row;
    for (row = 0; row < N_ROWS; row++) {
        people_encode(numbers[row], texts[row], x);
        puts(people_labels[people_predict(x)]);
    }
    return 0;
}
"""


def c_table(rows):
    return ",\n".join("{" + ", ".join(row) + "}" for row in rows)


def test_c(mbkl, model_file, new_people, labels, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no compiler of C")
    mbkl("export", model_file, "--c", "people.h", "--name", "people")
    columns = [as_numbers(new_people[name]) for name in ("age", "member", "since")]
    numbers = [["NAN" if np.isnan(v) else f"{v}f" for v in row] for row in zip(*columns)]
    texts = [
        ["NULL" if pd.isna(v) else f'"{v}"' for v in row] for row in new_people[TEXT].to_numpy()
    ]
    source = PROGRAM % (len(new_people), c_table(numbers), c_table(texts))
    (tmp_path / "people.c").write_text(source)
    subprocess.run([compiler, "-std=c99", "-Wall", "people.c", "-o", "people", "-lm"], check=True)
    found = subprocess.run(["./people"], capture_output=True, text=True, check=True).stdout
    assert found.split() == labels
