"""Messages, results and progress."""

import io
import json
import sys

import numpy as np
import pytest

from mbkl.cli.console import Console


class Terminal(io.StringIO):
    """A stderr that says it is one."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("quiet", "shown"), [(False, "hello\nnote: look\n"), (True, "")])
def test_messages_go_to_stderr_unless_quiet(capsys, quiet, shown):
    console = Console(quiet=quiet)
    console.say("hello")
    console.note("look")
    assert capsys.readouterr() == ("", shown)


def test_json_holds_what_results_hold(capsys):
    content = {"a": np.arange(2), "b": np.float64(0.5), "c": [float("nan")], "d": (None, True)}
    Console(as_json=True).result(content, lambda: pytest.fail("not to be shown"))
    found = json.loads(capsys.readouterr().out)
    assert found == {"a": [0, 1], "b": 0.5, "c": [None], "d": [None, True]}


def test_grids_are_not_cut_in_a_pipe(capsys):
    Console().grid([["x" * 300, 0.5, 3]], ["name", "share", "rows"])
    assert "x" * 300 in capsys.readouterr().out


def test_progress_shows_the_stages_of_a_fit(monkeypatch, make_data):
    from mbkl import MBKLClassifier

    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks")
    seen = []
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Console().steps(1, 9) as steps:
        plain = steps._bar.update
        monkeypatch.setattr(steps._bar, "update", lambda *a, **k: (seen.append(k), plain(*a, **k)))
        steps.begin("reading")
        steps.begin("learning")
        steps.watch(MBKLClassifier(n_maps=20, random_state=0)).fit(*make_data())
    names = [step["description"] for step in seen if "description" in step]
    assert names == [
        "reading",
        "learning",
        "learning: choice of maps",
        "learning: binary maps",
        "learning: classifier weights",
        "learning: calibration",
        "learning: tables",
    ]
    done = [step["completed"] for step in seen if "completed" in step]
    assert done == sorted(done)
    assert done[1] == 1
    assert done[-1] < 10
    shown = sys.stderr.getvalue()
    assert "learning" in shown
    assert "0:00:0" in shown  # the time since the beginning
    assert "left:" in shown


@pytest.mark.parametrize(("quiet", "terminal"), [(True, True), (False, False)])
def test_progress_is_silent_if_quiet_or_without_a_terminal(monkeypatch, quiet, terminal):
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    with Console(quiet=quiet).steps(1) as steps:
        steps.begin("reading")
    assert sys.stderr.getvalue() == ""
