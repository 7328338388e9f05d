"""Every experiment in small, by the command itself."""

import json

import pytest

from mbkl_paper.experiments import __main__ as command
from mbkl_paper.experiments import quick
from mbkl_paper.experiments.systems import SYSTEMS


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """Run all experiments on small sets; return the folder of the report."""
    folder = tmp_path_factory.mktemp("paper")
    command.main(["--quick", "--output", str(folder), "--results", str(folder / "cells.jsonl")])
    return folder


def test_report_has_every_experiment(small_run):
    page = (small_run / "REPORT.md").read_text()
    for heading in (
        "Data sets",
        "Accuracy",
        "Learning parameters of MBKL",
        "Figure 2: distances and kernels, Digits (stand-in)",
        "Figure 3: number of initial maps, Digits (stand-in)",
        "Figure 4: test time and accuracy relative to MBKL",
        "What was not reached, and what was tried",
        "How it was measured",
    ):
        assert f"## {heading}\n" in page
    assert "Digits (stand-in): small digits." in page
    assert "failed" not in page
    assert "nan" not in page
    assert "None" not in page


@pytest.mark.parametrize("name", ["figure_2", "figure_3", "figure_4"])
def test_pictures_are_small_files(small_run, name):
    picture = (small_run / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert 10_000 < len(picture) < 500_000


def test_every_result_is_a_line(small_run):
    lines = (small_run / "cells.jsonl").read_text(encoding="utf-8").split("\n")
    cells = [json.loads(line) for line in lines if line]
    tables = [cell for cell in cells if "@" not in cell["method"]]
    curves = [cell for cell in cells if "@" in cell["method"]]
    # Two splits; one other form of MBKL on one of the sets.
    assert len(tables) == 2 * (len(quick.SETS) * len(quick.SYSTEMS) + 1)
    assert len(curves) == 2 * 5 * len(quick.SWEEP)
    by_chance = {"quick_digits": 0.25, "quick_cells": 0.5}
    for cell in tables:
        assert cell["accuracy"] > by_chance[cell["data_set"]] + 0.2
        has_cost = cell["method"] != "random_forest"
        assert (cell["C"] is not None) == has_cost
        is_ours = cell["method"].startswith("mbkl") and cell["method"] != "mbkl_published"
        assert (cell["C_kernel"] is not None) == (cell["theta_shrinkage"] is not None) == is_ours
        assert (cell["thresholds"] is not None) == (cell["method"] in ("mbkl", "mbkl_ones"))
        is_learned = is_ours and cell["theta_shrinkage"] != 1.0
        assert (cell["step_1_seconds"] > 0) == (is_learned or cell["method"] == "mbkl_published")
    for cell in curves:
        n_initial = int(cell["method"].partition("@")[2])
        assert 0 < cell["n_maps"] <= n_initial


def test_second_run_measures_nothing(small_run, capsys):
    results = small_run / "cells.jsonl"
    before = results.read_bytes()
    output = small_run / "again"
    command.main(["--quick", "--output", str(output), "--results", str(results)])
    assert "34 of 34 results are there already" in capsys.readouterr().out
    assert results.read_bytes() == before


def test_systems_have_names_of_their_own():
    assert list(SYSTEMS) == [system.name for system in SYSTEMS.values()]
    assert len({system.label for system in SYSTEMS.values()}) == len(SYSTEMS)


@pytest.mark.parametrize(
    "wrong", [["--sets", "moon"], ["--systems", "magic"], ["--quick", "--report-only"]]
)
def test_wrong_arguments_are_an_error(wrong, capsys):
    with pytest.raises(SystemExit) as leaving:
        command.main(wrong)
    assert leaving.value.code == 2
    assert wrong[-1].lstrip("-").split("-")[0] in capsys.readouterr().err


def test_without_data_the_command_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MBKL_DATA", str(tmp_path))
    arguments = ["--results", str(tmp_path / "none.jsonl"), "--output", str(tmp_path)]
    command.main(arguments)
    printed = capsys.readouterr().out
    assert "none of the data sets is there" in printed
    assert "sonar" in printed
    assert not list(tmp_path.glob("*"))
