"""`mbkl export`."""

from mbkl.cli.console import Steps


def test_both_at_once(mbkl, model_file, tmp_path):
    result = mbkl.json("export", model_file, "--onnx", "m.onnx", "--c", "m.h", "--name", "people")
    assert result == {"onnx": "m.onnx", "c": "m.h"}
    assert (tmp_path / "m.onnx").stat().st_size > 1000
    assert "int people_predict(const float *x)" in (tmp_path / "m.h").read_text()


def test_progress(mbkl, model_file, monkeypatch):
    seen = []
    monkeypatch.setattr(Steps, "begin", lambda _, step, detail="": seen.append(detail))
    mbkl("export", model_file, "--onnx", "m.onnx", "--c", "m.h")
    assert seen == [f"reading {model_file.name}", "writing m.onnx", "writing m.h"]


def test_quiet(mbkl, model_file):
    result = mbkl("export", model_file, "--c", "m.h", "--quiet")
    assert (result.out, result.err) == ("", "")


def test_bad_arguments(mbkl, model_file):
    assert "no folder nowhere" in mbkl.error("export", model_file, "--c", "nowhere/m.h")
    assert "name must be" in mbkl.error("export", model_file, "--c", "m.h", "--name", "a b")
    assert "read by this command" in mbkl.error("export", model_file, "--c", model_file)
