import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mbkl import MBKLClassifier
from mbkl.report import write_report

NASTY = "</script><img src=x onerror=alert(1)>"


def data_of(path) -> dict:
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


@pytest.fixture(scope="module")
def fitted(make_data):
    X, y = make_data(n_classes=3)
    return MBKLClassifier(n_maps=50, random_state=0).fit(X, y), X, y


def test_the_file_needs_nothing_else(fitted, tmp_path):
    model, X, y = fitted
    path = write_report(model, X, y, tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "default-src 'none'" in text
    for outside in ('src="', "@import", "url(", "<link", "fetch("):
        assert outside not in text
    addresses = set(re.findall(r"https?://[^\s\"']+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "{{" not in re.sub(r"<script.*?</script>|<style>.*?</style>", "", text, flags=re.DOTALL)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_where_the_accuracy_was_measured(fitted, tmp_path):
    model, X, y = fitted
    found = data_of(write_report(model, X, y, tmp_path / "a.html"))
    assert found["accuracy"]["how"] == "folds"
    found = data_of(write_report(model, X, y, tmp_path / "a.html", cross_validate=False))
    assert found["accuracy"]["how"] == "training"
    path = write_report(model, X, y, tmp_path / "b.html", X_test=X[:20], y_test=1 - y[:20] % 2)
    found = data_of(path)
    assert found["accuracy"]["how"] == "new"
    assert found["accuracy"]["rows"] == 20
    assert found["accuracy"]["accuracy"] == model.score(X[:20], 1 - y[:20] % 2)
    assert found["rows"] == 80


def test_names_cannot_break_out(make_data, tmp_path):
    X, y = make_data()
    frame = pd.DataFrame(X, columns=[NASTY, "b & c", "{{data}}", "\u2028"])
    model = MBKLClassifier(n_maps=30, random_state=0).fit(frame, np.array([NASTY, "fine"])[y])
    labels = np.array([NASTY, "fine"])[y]
    path = write_report(model, frame, labels, tmp_path / "nasty.html", title=NASTY)
    text = path.read_text(encoding="utf-8")
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert data_of(path)["classes"] == [NASTY, "fine"]
    assert set(data_of(path)["importances"]["names"]) == set(frame.columns)


def test_other_names(fitted, tmp_path):
    model, X, y = fitted
    found = data_of(write_report(model, X, y, tmp_path / "a.html", columns=list("abcd")))
    assert set(found["importances"]["names"]) == set("abcd")
    assert {shape["name"] for shape in found["shapes"]} == set("abcd")
    assert found["importances"]["sets"]
    assert all("x" not in own["name"] for own in found["importances"]["sets"])


def test_times_of_the_stages(fitted, tmp_path):
    model, X, y = fitted
    assert data_of(write_report(model, X, y, tmp_path / "a.html"))["timings"] == model.timings_


def test_the_size_is_bounded(make_data, tmp_path):
    X, y = make_data(n_rows=200, n_features=1000, n_classes=100)
    model = MBKLClassifier(maps=["stumps", "ferns"], n_maps=100, random_state=0).fit(X, y)
    path = tmp_path / "large.html"
    write_report(model, X, y, path, max_megabytes=0.5, cross_validate=False)
    assert path.stat().st_size < 7e6
    found = data_of(path)
    assert len(found["shapes"]) == 15
    assert found["whatIf"] is None
    found = data_of(write_report(model, X, y, path, cross_validate=False))
    assert 50 < len(found["whatIf"]["numbers"]) <= 200


@pytest.mark.parametrize("maps", ["stumps", "ferns", "projections"])
def test_families_and_sparse_data(make_data, tmp_path, maps):
    X, y = make_data()
    X[np.abs(X) < 0.5] = 0.0
    model = MBKLClassifier(maps=maps, n_maps=40, random_state=0).fit(X, y)
    options = {"cross_validate": False}
    dense = write_report(model, X, y, tmp_path / "dense.html", **options)
    same = write_report(model, sparse.csr_array(X), y, tmp_path / "sparse.html", **options)
    first, second = data_of(dense), data_of(same)
    np.testing.assert_allclose(
        first["importances"].pop("values"), second["importances"].pop("values"), rtol=1e-3
    )
    for changing in ("importances", "shapes", "kernel"):
        first.pop(changing), second.pop(changing)
    assert first == second


def test_an_old_file_is_replaced_only_by_a_whole_one(fitted, tmp_path, monkeypatch):
    model, X, y = fitted
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            write_report(model, X, y, path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
    write_report(model, X, y, path)
    assert path.read_text().startswith("<!doctype html>")


@pytest.mark.filterwarnings("ignore:No feature of X varies")
def test_a_constant_model_and_missing_columns(make_data, tmp_path):
    X, y = make_data()
    X[:, 1] = np.nan
    for data in (X, np.ones_like(X)):
        model = MBKLClassifier(n_maps=30, random_state=0).fit(data, y)
        data_of(write_report(model, data, y, tmp_path / "report.html"))


def test_bad_input(fitted, tmp_path):
    model, X, y = fitted
    path = tmp_path / "report.html"
    with pytest.raises(NotFittedError):
        write_report(MBKLClassifier(), X, y, path)
    with pytest.raises(TypeError, match="MBKLRegressor, got dict"):
        write_report({}, X, y, path)
    with pytest.raises(ValueError, match="belong together"):
        write_report(model, X, y, path, X_test=X)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        write_report(model, X, y[1:], path)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        write_report(model, X, y, path, X_test=X, y_test=y[1:])
    with pytest.raises(ValueError, match="columns has 2 entries for 4 features"):
        write_report(model, X, y, path, columns=["a", "b"])
    for name in ("max_rows", "max_features"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            write_report(model, X, y, path, **{name: 0})
    with pytest.raises(FileNotFoundError):
        write_report(model, X, y, tmp_path / "nowhere" / "report.html")
    assert not path.exists()
