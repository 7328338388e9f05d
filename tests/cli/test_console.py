"""Messages, results and progress."""

import io
import json
import re
import sys

import numpy as np
import pytest

from mbkl.cli.console import Console, Grid


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
    Console(as_json=True).result(content, Grid([["not to be shown", 1]]))
    found = json.loads(capsys.readouterr().out)
    assert found == {"a": [0, 1], "b": 0.5, "c": [None], "d": [None, True]}


def test_grids_are_not_cut_in_a_pipe(capsys):
    Console().result({}, Grid([["x" * 300, 0.5, 3]], ["name", "share", "rows"]))
    assert "x" * 300 in capsys.readouterr().out


def test_steps_and_stages_of_a_fit_are_shown(monkeypatch, make_data):
    from mbkl import MBKLClassifier

    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks")
    monkeypatch.setattr(sys, "stderr", Terminal())
    console, seen = Console(), []
    plain, done = console.show, []

    def show(words=None):
        seen.extend([words] if words else [])
        done.append(console._done)
        plain(words)

    console.show = show
    console.step("reading", 0.1)
    console.watched(MBKLClassifier(n_maps=20, random_state=0), "learning", 0.9).fit(*make_data())
    console.say("ready")
    console.end_steps()
    assert seen == [
        "reading",
        "learning",
        "learning: choice of maps",
        "learning: binary maps",
        "learning: classifier weights",
        "learning: calibration",
        "learning: tables",
    ]
    assert done[:2] == [0, 0.1]
    assert done == sorted(done)
    assert 0.5 < done[-1] < 0.91
    shown = sys.stderr.getvalue()
    assert "learning" in shown
    assert "ready" in shown
    assert "0:00:0" in shown  # the time since the beginning
    assert re.search(r"about 0:00:\d\d left", shown)


@pytest.mark.parametrize(("quiet", "terminal"), [(True, True), (False, False)])
def test_steps_are_silent_if_quiet_or_without_a_terminal(monkeypatch, quiet, terminal):
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    Console(quiet=quiet).step("reading")
    assert sys.stderr.getvalue() == ""
