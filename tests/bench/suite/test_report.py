"""Ranks, their test, the report with its pictures, and the command."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import common
from benchmarks.suite import __main__ as benchmark
from benchmarks.suite import methods, plots, ranking, report
from benchmarks.suite.__main__ import main
from benchmarks.suite.collection import Collection, collect, measure_of
from benchmarks.suite.protocol import QUICK, STANDARD
from benchmarks.suite.store import Result, Store, Unit
from benchmarks.suite.tasks import CLASSIFICATION, QUANTILES, REGRESSION


@pytest.fixture
def results_page(tmp_path, monkeypatch):
    """Put the page of results and its pictures in a folder of the test."""
    monkeypatch.setattr(common, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(common, "PLOTS", tmp_path / "plots")
    return tmp_path / "RESULTS.md"


def test_ranks_share_ties():
    accuracy = np.array([[0.9, 0.8, 0.7, 0.8], [0.5, 0.5, 0.5, 0.5]])
    np.testing.assert_allclose(ranking.ranks(accuracy), [[1, 2.5, 4, 2.5], [2.5] * 4])
    assert ranking.wins(accuracy).tolist() == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("n_methods", "quantile"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)]
)
def test_quantiles_are_those_of_the_table(n_methods, quantile):
    assert ranking.nemenyi_quantile(n_methods) == pytest.approx(quantile, abs=1.5e-3)


def test_critical_difference_of_the_example():
    # Demšar, section 3.2.4: four classifiers on 14 data sets.
    assert ranking.critical_difference(4, 14) == pytest.approx(1.25, abs=0.01)
    assert ranking.critical_difference(4, 14, level=0.10) == pytest.approx(1.12, abs=0.01)


def test_cliques_are_the_largest_groups():
    positions = np.array([1.0, 1.5, 2.2, 4.0, 4.5, 4.9])
    assert ranking.cliques(positions, 1.0) == [(0, 1), (1, 2), (3, 5)]
    assert ranking.cliques(positions, 10.0) == [(0, 5)]
    assert ranking.cliques(positions, 0.1) == []


def _made_up(method_accuracy, names=("adult", "pima"), folds=2):
    """Return a collection in which each method has its accuracy and a time."""
    store, units = Store(None), []
    for name in names:
        for fold in range(folds):
            for position, (method, accuracy) in enumerate(method_accuracy.items()):
                unit = Unit(name, fold, method, "p", "s", None)
                units.append(unit)
                store.add(
                    unit,
                    Result(
                        {
                            "accuracy": accuracy,
                            "balanced accuracy": accuracy - 0.1,
                            "log loss": 1.0 - accuracy,
                            "area under ROC": accuracy,
                        },
                        fit_seconds=1.0 + position,
                        predict_seconds=0.001,
                        predict_rows=100,
                        train_rows=200,
                        n_features=5,
                        n_classes=2,
                        model_bytes=2_000_000,
                    ),
                )
    return units, store


def test_summary_counts_only_complete_sets():
    units, store = _made_up({"LightGBM default": 0.8, "MBKLClassifier": 0.9, "EBM": 0.7})
    extra = Unit("wdbc", 0, "EBM", "p", "s", None)
    store.add(extra, Result({"accuracy": 0.75}))
    missing = [replace(extra, method=method) for method in ("LightGBM default", "MBKLClassifier")]
    collection = collect([*units, extra, *missing], store)
    assert collection.names == ["adult", "pima", "wdbc"]
    assert collection.complete == ["adult", "pima"]
    written = report.summary(CLASSIFICATION, collection, collection.complete)
    overall, _, halves = written.split("\n\n")
    first = "| MBKLClassifier | 1.00 | 90.00 | 80.00 | 0.1000 | 0.9000 | 2 |"
    assert overall.splitlines()[2] == first
    assert halves.splitlines()[2] == "| MBKLClassifier | 90.00 | 1.00 | 90.00 | 1.00 |"
    times = report.time_table(CLASSIFICATION, collection, collection.complete).splitlines()
    assert times[3] == "| MBKLClassifier | 2 | 2 | 10 | 2 | 90.00 |"
    last = report.sets_table(CLASSIFICATION, collection).splitlines()[-1]
    assert last == "| wdbc | confirmation | 0 | 0 | 0 | 1 | - | - | **75.00** |"


def test_methods_that_have_all_sets_are_compared_on_all():
    units, store = _made_up({"LightGBM default": 0.8, "MBKLClassifier": 0.9})
    ebm, ebm_store = _made_up({"EBM": 0.7}, names=("adult",))
    for unit in ebm:
        store.add(unit, ebm_store.get(unit))
    (note,) = report._notes_on_all_sets(CLASSIFICATION, collect([*units, *ebm], store))
    assert "on all 2 sets, without EBM" in note
    assert note.endswith("MBKLClassifier 1.00, 90.00; LightGBM default 2.00, 80.00.")


def test_equal_means_of_folds_share_a_rank():
    folds = {"one": (87 / 89, 88 / 89), "other": (89 / 89, 86 / 89)}
    results = {
        ("wine", method): [Result({"accuracy": value}) for value in values]
        for method, values in folds.items()
    }
    collection = Collection(["wine"], list(folds), [], results, {})
    accuracy = collection.matrix(["wine"], measure_of("accuracy"))
    assert ranking.ranks(accuracy).tolist() == [[1.5, 1.5]]


def test_report_is_recorded_with_pictures(results_page):
    units, store = _made_up({"LightGBM default": 0.8, "MBKLClassifier": 0.9, "EBM": 0.7})
    report.write(CLASSIFICATION, collect(units, store), STANDARD, "the command")
    page = results_page.read_text()
    assert "Friedman" in page
    for section in ("suite", "suite_time", "suite_sets"):
        assert f"<!-- begin {section} -->" in page
    pictures = sorted(path.name for path in (results_page.parent / "plots").iterdir())
    assert pictures == ["suite.png", "suite_time.png"]


def test_labels_of_the_time_plot_do_not_overlap():
    generator = np.random.default_rng(0)
    points = {
        name: (float(10 ** generator.normal(0, 0.4)), float(generator.normal(0.88, 0.004)))
        for name in methods.METHODS
    }
    figure = plots.score_against_time(points, 31, CLASSIFICATION)
    figure.draw_without_rendering()
    frame = figure.axes[0].get_window_extent()
    areas = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text()]
    assert len(areas) == len(points)
    for position, area in enumerate(areas):
        assert not any(area.overlaps(other) for other in areas[:position])
        assert frame.x0 < area.x0
        assert area.x1 < frame.x1


def test_quick_run_needs_no_data_and_records_nothing(monkeypatch, results_page, capsys):
    monkeypatch.delenv("MBKL_DATA", raising=False)
    main(["--quick", "--methods", "MBKLClassifier", "LinearSVC", "SVC-RBF default"])
    printed = capsys.readouterr().out
    assert "12/12" in printed
    assert "nothing recorded" in printed
    assert "FAILED" not in printed
    assert not results_page.exists()


def test_second_run_finds_the_results_of_the_first(tmp_path, results_page, capsys):
    arguments = ["--quick", "--sets", "wine", "--methods", "SVC-RBF default"]
    arguments += ["--results", str(tmp_path / "results.jsonl")]
    main(arguments)
    capsys.readouterr()
    main(arguments)
    assert "2 of 2 results are there already" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [["--sets", "moon"], ["--methods", "magic"], ["--all-rows"]])
def test_wrong_arguments_are_an_error(wrong, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["--quick", *wrong])
    assert leaving.value.code == 2
    assert wrong[-1] in capsys.readouterr().err


def test_methods_that_search_nothing_are_compared_with_each_other():
    methods = {"LightGBM default": 0.8, "MBKLClassifier": 0.7, "LightGBM tuned": 0.9}
    units, store = _made_up(methods)
    collection = collect(units, store)
    last = report.summary(CLASSIFICATION, collection, collection.complete).split("\n\n")[-1]
    assert last.splitlines()[2:] == [
        "| LightGBM default | 80.00 | 1.00 | 80.00 | 1.00 |",
        "| MBKLClassifier | 70.00 | 2.00 | 70.00 | 2.00 |",
    ]


@pytest.mark.parametrize("task", [REGRESSION, QUANTILES], ids=lambda task: task.name)
def test_quick_run_of_numbers(task, monkeypatch, results_page, capsys):
    monkeypatch.delenv("MBKL_DATA", raising=False)
    monkeypatch.setattr(benchmark, "QUICK", replace(QUICK, train_rows=60, n_folds=1))
    main(["--quick", "--task", task.name, "--sets", "friedman"])
    printed = capsys.readouterr().out
    assert "FAILED" not in printed
    assert all(f"mean {measure}" in printed for measure in task.measures)
    assert "different targets" in printed
    assert not results_page.exists()
