"""`mbkl explain`."""

import numpy as np
import pandas as pd
import pytest

from mbkl.explain import explain_global, explain_local
from mbkl.io import load, load_extra
from mbkl.tabular import TableEncoder


def model_and_rows(model_file, people):
    rules = load_extra(model_file)["rules"]
    encoder = TableEncoder.from_rules(rules).set_output(transform="pandas")
    return load(model_file), encoder.transform(people)


def test_importances(mbkl, model_file, people_csv, people):
    model, X = model_and_rows(model_file, people)
    expected = explain_global(model, X)
    found = mbkl.json("explain", model_file, people_csv)
    np.testing.assert_allclose(found["importances"], expected.importances)
    shown = mbkl("explain", model_file, people_csv, "--top", "2").out
    names = [line.split()[0] for line in shown.splitlines() if line]
    assert names[:3] == ["feature", *expected.to_frame()["feature"][:2]]
    assert "together" in names


def test_without_a_table(mbkl, model_file):
    assert mbkl.json("explain", model_file)["from_data"] is False


def test_one_row(mbkl, model_file, people_csv, people):
    model, X = model_and_rows(model_file, people)
    expected = explain_local(model, X[4:5], background=X)
    found = mbkl.json("explain", model_file, people_csv, "--row", "5")
    np.testing.assert_allclose(found["contributions"], expected.contributions)
    assert found["label"] == model.predict(X[4:5])[0]
    assert found["values"] == [None if pd.isna(value) else value for value in X.iloc[4]]


@pytest.mark.parametrize("row", [1, 2, 3, 4])
@pytest.mark.parametrize("top", ["3", "50"])
def test_what_is_shown_of_a_row_adds_up(mbkl, model_file, people_csv, row, top):
    lines = mbkl("explain", model_file, people_csv, "--row", row, "--top", top).out.splitlines()
    label = mbkl.json("predict", model_file, people_csv)["label"][row - 1]
    assert lines[0].startswith(f"row {row} is '{label}' because")
    *parts, total = (float(line.split()[-1]) for line in lines[1:])
    assert sum(parts) == pytest.approx(total, abs=0.01)
    assert total > 0


def test_a_picture(mbkl, model_file, people_csv, tmp_path):
    mbkl("explain", model_file, people_csv, "--plot", "i.svg")
    assert b"<svg" in (tmp_path / "i.svg").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--row", "3"], 2, "--row needs the file"),
        (["people.csv", "--row", "0"], 2, "--row"),
        (["people.csv", "--row", "91"], 1, "people.csv: no row 91; the last one is 90"),
        (["people.csv", "--row", "3", "--plot", "a.png"], 2, "leave out --row"),
        (["people.csv", "--plot", "a.gif"], 2, ".png"),
    ],
)
def test_bad_arguments(mbkl, model_file, people, arguments, code, words):
    people.to_csv("people.csv", index=False)
    assert words in mbkl.error("explain", model_file, *arguments, code=code)
