"""The command line as a whole."""

import json
import os
import signal
import subprocess
import sys

import pytest

COMMANDS = ["demo", "fit", "predict", "evaluate", "compare", "explain", "report", "export"]
COMMANDS += ["info", "warmup"]


def test_help_names_the_commands(mbkl):
    shown = mbkl("--help").out
    assert all(f"  {command} " in shown for command in COMMANDS)
    assert "--install-completion" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(mbkl, command):
    shown = mbkl(command, "--help").out
    assert f"  mbkl {command}" in shown
    for option in ("--quiet", "--json", "--config", "--debug"):
        assert option in shown


def test_no_command_shows_the_help(mbkl):
    assert "Commands:" in mbkl(code=2).err


def test_the_version(mbkl):
    import mbkl as package

    assert mbkl("--version").out == f"mbkl {package.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cooldown"], "No such command 'cooldown'"),
        (["fi"], "Did you mean 'fit'"),
        (["fit"], "See 'mbkl fit --help'"),
        (["fit", "a.csv", "--nonsense"], "--nonsense"),
        (["fit", "a.csv", "--maps", "trees"], "trees"),
        (["fit", "a.csv", "--n-maps", "0"], "n-maps"),
        (["evaluate", "a.csv", "--model", "m", "--test", "b.csv"], "--test"),
        (["export", "m.mbkl"], "--onnx"),
        (["predict", "m.mbkl", "a.csv", "-o", "p.txt"], ".parquet"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(mbkl, arguments, words):
    line = mbkl.error(*arguments, code=2)
    assert line.startswith("mbkl: ")
    assert words in line


def test_warmup_says_that_it_is_done(mbkl, monkeypatch):
    from mbkl import warmup

    monkeypatch.setattr(warmup, "warmup", lambda: 0.5)
    assert "ready" in mbkl("warmup").err
    assert mbkl.json("warmup")["seconds"] == 0.5


def test_a_mistake_of_ours_is_one_line_and_debug_shows_where(mbkl, capsys, monkeypatch):
    from mbkl import warmup
    from mbkl.cli import main

    def broken():
        raise RuntimeError("all\nbroken")

    monkeypatch.setattr(warmup, "warmup", broken)
    line = mbkl.error("warmup")
    assert "RuntimeError: all broken" in line
    assert "--debug" in line
    assert main(["warmup", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_one_line_and_code_130(mbkl, monkeypatch):
    from mbkl import warmup

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(warmup, "warmup", interrupted)
    assert mbkl.error("warmup", code=130) == "mbkl: interrupted."


RUN = "import sys; from mbkl.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.skipif(os.name == "nt", reason="this system has no such signals")
def test_a_real_interrupt_ends_a_fit_and_leaves_no_file(python_environment, people, tmp_path):
    import pandas as pd

    pd.concat([people] * 20).to_csv(tmp_path / "many.csv", index=False)
    arguments = ["fit", "many.csv", "-t", "income", "--tune", "--calibrate", "--theta", "learned"]
    process = subprocess.Popen(
        [sys.executable, "-c", f"{_say_when_learning()}\n{RUN}", *arguments],
        cwd=tmp_path,
        env=python_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "learning\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "mbkl: interrupted."
    assert [path.name for path in tmp_path.iterdir()] == ["many.csv"]


def _say_when_learning():
    return """
import mbkl.learn.progress
plain = mbkl.learn.progress.Progress.stage
def stage(self, name):
    print("learning", flush=True)
    return plain(self, name)
mbkl.learn.progress.Progress.stage = stage
"""


def test_help_loads_nothing_heavy(run_python):
    code = "from mbkl.cli import main; main(['fit', '--help'])\nimport sys; print(*sys.modules)"
    result = run_python(code)
    loaded = set(result.stdout.split())
    assert "typer" in loaded
    assert loaded.isdisjoint({"numpy", "sklearn", "pandas", "pyarrow", "numba", "rich"})


def test_without_typer_it_says_what_to_install(run_python):
    code = "import sys; sys.modules['typer'] = None\nfrom mbkl.cli import main; print(main([]))"
    result = run_python(code)
    assert result.stdout == "1\n"
    assert result.stderr.splitlines() == [
        "mbkl: the command line needs more: pip install 'mbkl[cli]'"
    ]


def test_a_reader_that_leaves_early_is_no_error(python_environment, model_file, people_csv):
    command = [sys.executable, "-c", RUN, "predict", str(model_file), str(people_csv)]
    process = subprocess.Popen(
        command, env=python_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert errors == b""


# ---------------------------------------------------------------- options from a file


@pytest.fixture
def config(tmp_path):
    """Return a function that writes a file of options."""

    def write(text):
        path = tmp_path / "mbkl.toml"
        path.write_text(text)
        return path

    return write


def test_options_come_from_a_file(mbkl, people_csv, config, tmp_path):
    path = config(
        """
        target = "income"   # for all commands that have it
        [fit]
        n-maps = 30
        output = "from-file.mbkl"
        calibrate = true
        drop = ["street", "since"]
        [info]
        json = true
        """
    )
    result = mbkl.json("fit", people_csv, "--config", path)
    assert result["model"] == "from-file.mbkl"
    parameters = json.loads(mbkl("info", "from-file.mbkl", "--config", path).out)
    assert parameters["parameters"]["n_maps"] == 30
    assert parameters["parameters"]["calibration"] == "temperature"
    assert [rule["name"] for rule in parameters["rules"]] == ["age", "town", "member"]


def test_the_command_line_wins(mbkl, people_csv, config):
    path = config('[fit]\ntarget = "nonsense"\nn_maps = 30\noutput = "a.mbkl"')
    arguments = ["--config", path, "-t", "income", "-o", "b.mbkl"]
    assert mbkl.json("fit", people_csv, *arguments)["model"] == "b.mbkl"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[fit]\nnmaps = 3", "no option 'nmaps'"),
        ("[fitt]\ntarget = 'a'", "no command 'fitt'"),
        ("[fit\n", "no TOML file"),
        ("[fit]\nn_maps = 'many'", "--n-maps"),
        ("[fit]\nmaps = 'trees'", "trees"),
    ],
)
def test_bad_files(mbkl, config, text, words):
    assert words in mbkl.error("fit", "a.csv", "--config", config(text), code=2)


def test_a_missing_file(mbkl):
    assert "none.toml" in mbkl.error("fit", "a.csv", "--config", "none.toml", code=2)
