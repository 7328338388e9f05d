"""Step 1 beside liblinear: both sides run, and reach what the table says."""

import re

import pytest

from mbkl_paper.experiments import quick, sets, step_1


@pytest.fixture
def name(monkeypatch, tmp_path):
    """Let the sets be made-up ones; return the name of one."""
    monkeypatch.setattr(sets, "SETS", quick.SETS)
    monkeypatch.setattr(sets, "default_cache", lambda: tmp_path)
    monkeypatch.setattr(step_1, "warmup", lambda: None)
    return next(name for name, one in quick.SETS.items() if one.descriptor is None)


def test_a_line_for_each_cost(name, capsys):
    step_1.main(["--sets", name, "--costs", "0.01", "0.1"])
    lines = capsys.readouterr().out.splitlines()[-2:]
    for line, cost in zip(lines, ("0.01", "0.1")):
        cells = re.split(r"\s*\|\s*", line.strip("| "))
        assert cells[:2] == [name, cost]
        assert float(cells[3]) <= step_1.ACCURACY
        assert float(cells[-1].removeprefix("> ")) > 0


def test_an_unknown_set_is_refused(name, capsys):
    with pytest.raises(SystemExit):
        step_1.main(["--sets", "iris"])
    assert "iris" in capsys.readouterr().err
