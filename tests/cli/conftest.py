"""A small frame with columns of all kinds, a model of it, and a way to run commands."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from mbkl.cli import main

SMALL = ["--n-maps", "40"]


def make_people(n_rows=90, seed=0):
    """Draw a frame in which the label depends on columns of text and of numbers."""
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 80, n_rows).astype(float)
    town = draw.choice(["Rome", "Bonn", "Nice"], n_rows)
    street = draw.choice([f"street {number}" for number in range(20)], n_rows)
    rich = (age > 45) ^ (town == "Rome")
    age[draw.random(n_rows) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "key": [f"person {number}" for number in range(n_rows)],
            "age": age,
            "town": np.where(draw.random(n_rows) < 0.1, None, town),
            "street": street,
            "member": draw.random(n_rows) < 0.5,
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(draw.integers(0, 900, n_rows), "D"),
            "income": np.where(rich, "high", "low"),
        }
    )


@pytest.fixture
def people():
    """The frame."""
    return make_people()


@pytest.fixture(scope="session")
def people_csv(tmp_path_factory):
    """The frame as a CSV file; not to be written to."""
    path = tmp_path_factory.mktemp("people") / "people.csv"
    make_people().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def model_file(people_csv):
    """A model of the frame, with probabilities; not to be written to."""
    path = people_csv.parent / "people.mbkl"
    arguments = ["fit", str(people_csv), "-t", "income", "-o", str(path), "--calibrate", *SMALL]
    assert main([*arguments, "--quiet"]) == 0
    return path


@pytest.fixture
def mbkl(capsys, tmp_path, monkeypatch):
    """Return a function that runs a command in a folder of its own, and what it said."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        capsys.readouterr()
        found = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert found == code, err
        assert "Traceback" not in err
        return SimpleNamespace(out=out, err=err, lines=err.splitlines())

    run.json = lambda *arguments: json.loads(run(*arguments, "--json").out)
    run.error = lambda *arguments, code=1: _the_only_line(run(*arguments, code=code))
    return run


def _the_only_line(result):
    assert result.out == ""
    lines = [line for line in result.lines if not line.startswith("note: ")]
    assert len(lines) == 1, lines
    return lines[0]
