"""Reports in a real browser: that they run, and that they compute what Python computes."""

import re

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLClassifier, MBKLClassifierCV
from mbkl.explain import InputColumn
from mbkl.maps import Ferns, Projections, Stumps
from mbkl.report import write_report

NASTY = "</script><img src=x onerror=document.title='broken'>"
FAMILIES = {
    "auto": "auto",
    "deep ferns": Ferns(depth=20, max_cells=16),
    "deepest ferns": Ferns(depth=64, distribution="fixed"),
    "list": ["stumps", Stumps(thresholds="quantile"), Ferns(depth=3)],
    "projections": ["projections", Projections(directions="sparse")],
}


@pytest.fixture(scope="module")
def wine(make_data, tmp_path_factory):
    """A report with all sections, and the model."""
    X, y = make_data(n_rows=90, n_classes=3, n_features=12)
    X[::9, 1] = np.nan
    model = MBKLClassifierCV(n_maps=60, cv=2, random_state=0).fit(X[:60], y[:60])
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(model, X[:60], y[:60], path, X_test=X[60:], y_test=y[60:])
    return path, model, X


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", FAMILIES)
def test_scores_equal_those_of_python(browser, make_data, tmp_path, name, n_classes):
    X, y = make_data(n_classes=n_classes, n_features=6)
    X[::7, 1] = np.nan
    # Values of all digits, not only those that float32 has.
    X *= 1.1
    model = MBKLClassifier(maps=FAMILIES[name], n_maps=60, random_state=0).fit(X, y)
    browser.open(write_report(model, X, y, tmp_path / "report.html"))
    texts = browser.run(
        "[...document.querySelectorAll('#what-if-row option')].map((o) => o.dataset.scores)"
    )
    found = np.array([[float(score) for score in text.split()] for text in texts])
    expected = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert browser.complaints() == []


@pytest.mark.parametrize("maps", ["auto", "grown"])
def test_levels_of_categories(browser, tmp_path, maps):
    generator = np.random.default_rng(0)
    town, age = generator.choice(["Bonn", "Rome", None], 120), generator.normal(size=120)
    frame = pd.DataFrame({"town": town, "age": age})
    y = (frame["town"] == "Rome") ^ (frame["age"] > 0)
    model = MBKLClassifier(maps=maps, n_maps=60, random_state=0).fit(frame, y)
    browser.open(write_report(model, frame, y, tmp_path / "report.html"))
    texts = browser.run(
        "[...document.querySelectorAll('#what-if-row option')].map((o) => o.dataset.scores)"
    )
    np.testing.assert_allclose(np.array(texts, float), model.decision_function(frame), atol=1e-9)
    options = browser.run(
        "[...document.querySelectorAll('.slider select option')].map((o) => o.text)"
    )
    assert options == ["Bonn", "Rome", "missing"]
    browser.run(
        "const list = document.querySelector('.slider select');"
        "list.selectedIndex = 2; list.dispatchEvent(new Event('change'));"
    )
    score = browser.run(
        "Number([...document.querySelectorAll('.outcome li')].at(-1).dataset.score)"
    )
    row = frame[:1].assign(town=None)
    np.testing.assert_allclose(score, model.decision_function(row)[0], atol=1e-9)
    assert browser.complaints() == []


def test_moving_a_feature_moves_the_scores(browser, wine):
    path, model, X = wine
    browser.open(path)
    row = X[60].copy()
    feature = int(browser.run("page.whatIf.features[0].feature"))
    browser.run(
        "const input = document.querySelector('.slider input[type=number]');"
        "input.value = '0.3'; input.dispatchEvent(new Event('change'));"
    )
    row[feature] = 0.3
    scores = "[...document.querySelectorAll('.outcome li')].map((li) => Number(li.dataset.score))"
    np.testing.assert_allclose(browser.run(scores), model.decision_function(row[None])[0])
    guess = str(model.predict(row[None])[0])
    assert browser.run("document.querySelector('.verdict strong').textContent") == guess
    browser.run("input.value = ''; input.dispatchEvent(new Event('change'));")
    row[feature] = np.nan
    np.testing.assert_allclose(browser.run(scores), model.decision_function(row[None])[0])
    browser.run("[...document.querySelectorAll('.controls button')].at(-1).click()")
    np.testing.assert_allclose(browser.run(scores), model.decision_function(X[60:61])[0])


def test_all_sections_are_there(browser, wine):
    browser.open(wine[0])
    titles = browser.run("[...document.querySelectorAll('h2')].map((title) => title.textContent)")
    links = browser.run("[...document.querySelectorAll('nav a')].map((link) => link.textContent)")
    assert links == titles
    assert len(titles) == 8
    text = browser.run("document.querySelector('main').textContent")
    assert "sets of columns that are asked about together" in text
    assert "Seconds of each stage of the fit" in text
    assert browser.run(
        "[...document.querySelectorAll('section')].every((s) => s.children.length > 1)"
    )
    assert browser.complaints() == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_needs_no_scrolling_sideways(browser, wine, dark):
    browser.open(wine[0], width=360, height=740, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= 360
    ink, paper = browser.run(
        "['color', 'backgroundColor'].map((name) => getComputedStyle(document.body)[name])"
    )
    light = [sum(int(part) for part in text[4:-1].split(",")) for text in (ink, paper)]
    assert (light[0] > light[1]) == dark


def test_keys_alone_are_enough(browser, wine):
    browser.open(wine[0])
    # From the top of the page, the tabulator reaches every control once.
    browser.run(
        "globalThis.reached = [];"
        "document.addEventListener('focusin', (e) => reached.push(e.target.id))"
    )
    n_controls = browser.run(
        "[...document.querySelectorAll('a, button, input, select, summary, [tabindex]')]"
        ".filter((e) => e.checkVisibility()).length"
    )
    for _ in range(n_controls):
        browser.press("Tab", 9)
    reached = browser.run("reached")
    assert len(reached) == n_controls
    assert {"shape-feature", "what-if-row", "move-0"} <= set(reached)
    browser.run("document.querySelector('#shapes input[type=range]').focus()")
    before = browser.run("document.querySelector('.readout').textContent")
    browser.press("ArrowRight", 39)
    after = browser.run("document.querySelector('.readout').textContent")
    assert before != after
    assert after.startswith(
        browser.run(
            "document.querySelector('#shapes input[type=range]').getAttribute('aria-valuetext')"
        )
    )


def test_the_pointer_reads_the_chart(browser, wine):
    browser.open(wine[0])
    box = browser.run(
        "document.getElementById('shapes').scrollIntoView({behavior: 'instant'});"
        "document.querySelector('#shapes svg').getBoundingClientRect().toJSON()"
    )
    told = []
    for share in (0.2, 0.9):
        x, y = box["x"] + share * box["width"], box["y"] + box["height"] / 2
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        told.append(browser.run("document.querySelector('.readout').textContent"))
    shape = browser.run("page.shapes[0]")
    values = [float(text.split(" = ")[1].split()[0].replace("\u2212", "-")) for text in told]
    assert shape["edges"][0] < values[0] < values[1] < shape["edges"][-1]
    place = int(np.searchsorted(shape["edges"], values[1])) - 1
    assert f"{shape['counts'][place]} rows" in told[1]


def test_controls_have_names(browser, wine):
    browser.open(wine[0])
    browser.call("Accessibility.enable")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    wanted = {"button", "combobox", "slider", "spinbutton", "link", "img", "region", "table"}
    nameless = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored")
        and node.get("role", {}).get("value") in wanted
        and not node.get("name", {}).get("value")
    ]
    assert nameless == []


def test_pressing_a_feature_shows_its_shape(browser, wine):
    browser.open(wine[0])
    name = browser.run("page.shapes[2].name")
    browser.run(
        f"[...document.querySelectorAll('#importances .bars button')]"
        f".find((b) => b.textContent.startsWith('{name}')).click()"
    )
    assert browser.run("document.getElementById('shape-feature').value") == name
    assert browser.run("document.querySelector('.readout').textContent").startswith(name)


def test_names_are_text_and_nothing_else(browser, make_data, tmp_path):
    X, y = make_data()
    labels = np.array([NASTY, "b"])[y]
    frame = pd.DataFrame(X, columns=[NASTY, "<b>x</b>", "&lt;", "y"])
    model = MBKLClassifier(n_maps=30, random_state=0).fit(frame, labels)
    browser.open(write_report(model, frame, labels, tmp_path / "nasty.html", title=NASTY))
    assert browser.run("document.images.length + document.querySelectorAll('b').length") == 0
    assert browser.run("document.title") == NASTY
    assert browser.run("document.querySelector('h1').textContent") == NASTY
    names = browser.run(
        "[...document.querySelectorAll('#shape-feature option')].map((o) => o.textContent)"
    )
    assert set(names) == set(frame.columns)
    assert browser.complaints() == []


def test_a_script_put_into_the_file_does_not_run(browser, wine, tmp_path):
    path = tmp_path / "changed.html"
    text = wine[0].read_text(encoding="utf-8")
    path.write_text(text.replace("</main>", "<script>document.title = 'broken'</script></main>"))
    browser.open(path)
    assert browser.run("document.title") != "broken"


def test_many_features_and_classes(browser, make_data, tmp_path):
    X, y = make_data(n_rows=200, n_features=300, n_classes=100)
    model = MBKLClassifier(maps=["stumps", "ferns"], n_maps=80, random_state=0).fit(X, y)
    path = write_report(model, X, y, tmp_path / "large.html")
    browser.open(path, width=360)
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth") <= 360
    text = browser.run("document.querySelector('main').textContent")
    assert "most important of 300 columns" in text
    assert "classes with the most errors" in text


def test_a_model_without_room(browser, make_data, tmp_path):
    X, y = make_data()
    model = MBKLClassifier(n_maps=50, random_state=0).fit(X, y)
    browser.open(write_report(model, X, y, tmp_path / "report.html", max_megabytes=0))
    assert "too large for a page" in browser.run("document.getElementById('what-if').textContent")
    assert browser.complaints() == []


def test_columns_as_people_know_them(browser, tmp_path):
    """Levels in a list, whole numbers and dates; probabilities are those of Python."""
    generator = np.random.default_rng(0)
    town, age = generator.integers(4, size=200), generator.integers(18, 80, size=200)
    days = generator.integers(17_000, 18_000, size=200)
    towns = np.array(["Rome", "Bonn", "Oslo", None], dtype=object)
    X = pd.DataFrame({"age": age, "town": towns[town], "since": days})
    y = np.where((town == 1) ^ (age > 50), "yes", "no")
    columns = [
        InputColumn("age", "whole"),
        InputColumn("town", "category", ("Bonn", "Oslo", "Rome")),
        InputColumn("since", "date"),
    ]
    model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    browser.open(write_report(model, X, y, tmp_path / "report.html", columns=columns))
    place = browser.run("page.whatIf.features.findIndex((column) => column.name === 'town')")
    row = X.iloc[[browser.run("page.whatIf.numbers[0]") - 1]].copy()
    chances = "[...document.querySelectorAll('.outcome li')].map((li) => Number(li.dataset.chance))"
    np.testing.assert_allclose(browser.run(chances), model.predict_proba(row)[0])
    browser.run(
        f"const list = document.getElementById('move-{place}'); list.selectedIndex = 1;"
        "list.dispatchEvent(new Event('change'));"
    )
    row["town"] = "Oslo"
    np.testing.assert_allclose(browser.run(chances), model.predict_proba(row)[0])
    assert browser.run("document.querySelectorAll('.quality svg').length") == 3
    assert browser.run("document.querySelectorAll('.slider input[type=date]').length") == 1
    told = browser.run(
        "const shape = document.getElementById('shape-feature');"
        "shape.selectedIndex = [...shape.options].findIndex((one) => one.text === 'age');"
        "shape.dispatchEvent(new Event('change'));"
        "const cursor = document.querySelector('#shapes input[type=range]');"
        "[0, 33, 100, 141, 200].map((value) => { cursor.value = value;"
        " cursor.dispatchEvent(new Event('input'));"
        " return document.querySelector('.readout').textContent; })"
    )
    for text in told:  # ages are whole, and so are the ends of their intervals
        assert not re.search(r"(= |from |to |with )\d+\.\d", text), text
        first = re.match(r"age = (\d+) adds", text)[1]
        between = re.search(r"from (\d+) to (\d+)", text)
        assert not between or int(between[1]) <= int(first) <= int(between[2])
    assert browser.complaints() == []
