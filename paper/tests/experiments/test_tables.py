"""Tables and verdicts, from made-up cells."""

from dataclasses import replace

import pytest

from mbkl_paper.experiments import figures, quick, report, sets, shortfall, tables
from mbkl_paper.experiments.collection import Collection
from mbkl_paper.experiments.store import Cell
from mbkl_paper.experiments.systems import VARIANTS


@pytest.fixture
def made_up(tmp_path):
    """Return a function that makes a collection of one set, from accuracies in per cent."""
    problem = sets.load({"quick_cells": quick.SETS["quick_cells"]}, tmp_path)["quick_cells"]

    def make(accuracies, name="quick_cells", failures=()):
        cells = {
            (name, system): [
                Cell(
                    accuracy=value / 100,
                    balanced_accuracy=value / 200,
                    fit_seconds=2.0,
                    predict_seconds=0.1,
                    train_rows=100,
                    predict_rows=100,
                    n_features=30,
                    n_classes=2,
                    choice_accuracy=choice / 100,
                    n_maps=10,
                )
                for value, choice in values
            ]
            for system, values in accuracies.items()
        }
        return Collection({name: problem}, cells, dict(failures), 0)

    return make


def _both(value):
    return [(value - 1, 50), (value + 1, 50)]


def test_accuracy_stands_beside_the_printed_one(made_up):
    accuracies = {"mbkl": _both(75), "linear": _both(60), "chi2": [(90, 50)]}
    failures = {("liver", "adaboost"): "ValueError: no"}
    rows = tables.accuracy(made_up(accuracies, "liver", failures))
    assert rows == [
        {"system": "MBKL", "Cells": "**75.0 ± 1.4** (75.0)"},
        {"system": "Linear SVM", "Cells": "60.0 ± 1.4 (67.5)"},
        {"system": "χ²", "Cells": "90.0 [1 of 2 splits] (68.1)"},
    ]
    by_class = tables.accuracy(made_up(accuracies, "liver"), "balanced_accuracy")
    assert by_class[0]["Cells"] == "**37.5 ± 0.7**"


def test_cells_left_out_on_purpose_are_empty(made_up):
    collection = made_up({"mbkl": _both(75), "linear": _both(60)})
    (problem,) = collection.problems.values()
    only_mbkl = replace(problem, settings=replace(problem.settings, systems=("mbkl",)))
    collection = replace(collection, problems={"quick_cells": only_mbkl})
    assert [row["Cells"] for row in tables.accuracy(collection)] == ["**75.0 ± 1.4** (-)", ""]


def test_learning_parameters_stand_beside_the_printed_ones(made_up):
    (row,) = tables.learning(made_up({"mbkl": _both(90)}, "daimler"))
    assert row["initial maps"] == "100 (10,000)"
    assert row["θ ≠ 0"] == "10 (3,832)"
    assert row["samples"] == "100 (19,600)"
    assert row["total, s"] == "2 (24)"
    (row,) = tables.learning(made_up({"mbkl": _both(90)}))
    assert row["total, s"] == "2 (-)"
    assert tables.learning(made_up({"linear": _both(90)})) == []


@pytest.mark.parametrize(
    ("ours", "best", "reached", "below", "behind"),
    [
        (76, 74, "accuracy and distance", "-", "0.0 (1.0)"),
        (76, 80, "accuracy", "-", "4.0 (1.0)"),
        (74, 74.5, "distance", "1.0", "0.5 (1.0)"),
        (70, 72, "neither", "5.0", "2.0 (1.0)"),
    ],
)
def test_targets(made_up, ours, best, reached, below, behind):
    accuracies = {"mbkl": _both(ours), "linear": _both(best), "chi2": _both(best - 1)}
    (row,) = shortfall.targets(made_up(accuracies, "liver"))
    assert row["reached"] == reached
    assert row["below target"] == below
    assert row["behind it (allowed)"] == behind
    assert row["best rival"] == f"Linear SVM, {best:.1f}"


def test_orderings_count_pairs_in_the_printed_order(made_up):
    # Printed: RB-χ² 64.0, MBKL 62.1, linear 57.9; the two PmSVM are equal and no pair.
    accuracies = {
        "mbkl": _both(70),
        "linear": _both(75),
        "rb_chi2": _both(80),
        "pmsvm_chi2": _both(85),
        "pmsvm_intersection": _both(60),
    }
    (row,) = shortfall.orderings(made_up(accuracies, "apascal"))
    assert row["pairs in the printed order"] == "5 of 9"
    assert row["of these, with MBKL"] == "2 of 4"
    assert shortfall.orderings(made_up(accuracies, "liver")) == []


def test_form_is_chosen_by_training_rows(made_up):
    median = VARIANTS["Step 0 by medians"].name
    accuracies = {"mbkl": [(60, 80), (70, 70)], median: [(90, 70), (80, 90)]}
    rows = shortfall.tried(made_up(accuracies))
    assert [row["form"] for row in rows] == [
        "MBKL",
        "MBKL, Step 0 by medians",
        "the best choice of each split",
    ]
    # 60 of the first split, 80 of the second, though 85 would be the best on test rows.
    assert rows[-1]["test"] == "70.0"
    assert rows[0]["choice"] == "75.0"


def test_outdated_results_and_failures_are_said(made_up, tmp_path):
    failures = {("quick_cells", "adaboost"): "ValueError: no"}
    collection = made_up({"mbkl": _both(90)}, failures=failures)
    collection = Collection(collection.problems, collection.cells, collection.failures, 3)
    page = report.write(collection, tmp_path / "report", "the command", None).read_text()
    assert "3 results of mbkl were measured with another state" in page
    assert "AdaBoost failed on Cells: ValueError: no" in page
    assert "Figure 2" not in page


def test_no_report_without_cells(made_up, tmp_path, capsys):
    assert report.write(made_up({}), tmp_path / "report", "the command", None) is None
    assert "nothing is measured yet" in capsys.readouterr().out
    assert not (tmp_path / "report").exists()


def test_splits_of_the_same_training_rows_count_one_fit(made_up):
    # Two systems of one fit of 2 s each, and four predictions of 0.1 s.
    taken = tables.minutes(made_up({"mbkl": _both(90), "linear": _both(80)}), "quick_cells")
    assert taken == pytest.approx((2 * 2.0 + 4 * 0.1) / 60)


def test_the_descriptors_of_daimler_stand_beside_the_printed_accuracy(made_up):
    (row,) = shortfall.descriptors(made_up({"linear": _both(91)}, "daimler"))
    assert row["Linear SVM"] == "91.0 ± 1.4 (94.1)"
    assert shortfall.descriptors(made_up({"linear": _both(91)}, "liver")) == []


def test_figure_3_has_the_same_splits_at_every_point(made_up):
    swept = {"mbkl@300": _both(60), "mbkl@1000": [(70, 50)], "mbkl_ones@300": _both(50)}
    collection = made_up(swept)
    assert collection.n_swept_splits("quick_cells") == 1
    accuracy = figures.figure_3(collection, "quick_cells").axes[0]
    curves = {line.get_label(): line.get_ydata().tolist() for line in accuracy.lines}
    # The first split alone; systems without a point have no curve.
    assert curves == {
        "MBKL": pytest.approx([59.0, 70.0]),
        "MBKL, θ = 1": pytest.approx([49.0]),
    }
