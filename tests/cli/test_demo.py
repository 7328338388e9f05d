"""`mbkl demo`."""

from mbkl.cli import demo


def test_it_runs_every_command(mbkl, tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(demo, "_run", lambda line, console: ran.append(line.split()[0]))
    result = mbkl.json("demo", "here")
    assert set(ran) == {"fit", "info", "evaluate", "explain", "predict", "export"} | {
        "report",
        "compare",
    }
    assert result == {"folder": "here", "files": ["test.csv", "train.csv"]}
    header = (tmp_path / "here" / "train.csv").read_text().split("\n")[0]
    assert header.endswith(",diagnosis")


def test_its_commands_work(mbkl, tmp_path, monkeypatch):
    plain = demo._commands
    monkeypatch.setattr(demo, "_commands", lambda folder: plain(folder)[:2])
    result = mbkl("demo", "a folder")
    assert "$ mbkl fit 'a folder/train.csv'" in result.err
    assert "benign, malignant" in result.out
    assert (tmp_path / "a folder" / "model.mbkl").exists()
    quiet = mbkl("demo", "a folder", "--quiet", "--json")
    assert quiet.err == ""
    assert quiet.out.startswith("{")


def test_it_stops_where_a_command_fails(mbkl, monkeypatch):
    monkeypatch.setattr(demo, "_commands", lambda folder: ["info nothing", "info nothing"])
    errors = mbkl("demo", code=1).lines
    assert "no such file" in errors[-2]
    assert "'mbkl info nothing' failed" in errors[-1]
    assert "failed" in mbkl.error("demo", "--quiet")
