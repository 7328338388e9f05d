"""`mbkl explain`."""

import numpy as np
import pytest

from mbkl.explain import explain_global, explain_local
from mbkl.io import load, load_extra
from mbkl.tabular import TableEncoder


def model_and_rows(model_file, people):
    rules = load_extra(model_file)["rules"]
    encoder = TableEncoder.from_rules(rules)
    return load(model_file), encoder.transform(people)


def test_importances(mbkl, model_file, people_csv, people):
    model, X = model_and_rows(model_file, people)
    expected = explain_global(model, X)
    found = mbkl.json("explain", model_file, people_csv)
    np.testing.assert_allclose(found["importances"], expected.importances)
    shown = mbkl("explain", model_file, people_csv, "--top", "2").out
    names = [line.split()[0] for line in shown.splitlines() if line]
    assert names[:3] == ["column", *(one["name"] for one in found["columns"][:2])]
    assert {one["name"] for one in found["columns"]} == set(people.columns) - {"income", "key"}
    assert "together" in names


def test_without_a_table(mbkl, model_file):
    assert mbkl.json("explain", model_file)["from_data"] is False


def test_one_row(mbkl, model_file, people_csv, people):
    model, X = model_and_rows(model_file, people)
    expected = explain_local(model, X[4:5], background=X)
    found = mbkl.json("explain", model_file, people_csv, "--row", "5")
    assert set(found["feature_names"]) == set(people.columns) - {"income", "key"}
    total = expected.contributions.sum(axis=1)
    np.testing.assert_allclose(np.sum(found["contributions"], axis=1), total)
    assert found["label"] == model.predict(X[4:5])[0]
    written = dict(zip(found["feature_names"], found["values"], strict=True))
    assert written["town"] == (
        people["town"][4] if isinstance(people["town"][4], str) else "missing"
    )


def test_a_picture_of_a_row(mbkl, model_file, people_csv, tmp_path):
    mbkl("explain", model_file, people_csv, "--row", "3", "--plot", "why.png")
    assert (tmp_path / "why.png").stat().st_size > 1000


@pytest.mark.parametrize("row", [1, 2, 3, 4])
@pytest.mark.parametrize("top", ["3", "50"])
def test_what_is_shown_of_a_row_adds_up(mbkl, model_file, people_csv, row, top):
    lines = mbkl("explain", model_file, people_csv, "--row", row, "--top", top).out.splitlines()
    label = mbkl.json("predict", model_file, people_csv)["label"][row - 1]
    assert lines[0].startswith(f"row {row}: income is '{label}' because")
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
        (["people.csv", "--plot", "a.gif"], 2, ".png"),
    ],
)
def test_bad_arguments(mbkl, model_file, people, arguments, code, words):
    people.to_csv("people.csv", index=False)
    assert words in mbkl.error("explain", model_file, *arguments, code=code)


def test_long_values_are_cut_for_people_alone(mbkl, people):
    long = [f"street {number} " * 50 for number in range(4)]
    people.assign(street=np.resize(long, len(people))).to_csv("long.csv", index=False)
    mbkl("fit", "long.csv", "-t", "income", "--n-maps", "40")
    shown = mbkl("explain", "long.mbkl", "long.csv", "--row", "1").out
    assert max(map(len, shown.splitlines())) < 120
    assert long[0].strip() in mbkl.json("explain", "long.mbkl", "long.csv", "--row", "1")["values"]
