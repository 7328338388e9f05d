import numpy as np
import pytest

tables = pytest.importorskip("benchmarks.tables")


@pytest.fixture
def rows():
    draw = np.random.default_rng(0)
    lines = [f'"{i}",{i % 7},{draw.choice(["a", "b"])},{draw.normal():.3f}' for i in range(60)]
    return ('"","whole","text","number"\n' + "\n".join(lines) + "\n").encode()


def test_all_steps_of_a_table(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcomes = tables.run_table("a.csv", rows, seed=0)
    assert [one.step for one in outcomes] == ["fit", "predict", "evaluate", "explain", "Python"]
    assert {one.kind for one in outcomes} == {"well"}


def test_errors_are_told_from_failures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (outcome,) = tables.run_table("a.csv", b"x,y\n1,u\n2,u\n3,u\n", seed=0)
    assert (outcome.step, outcome.kind) == ("fit", "clear error")

    def fail():
        raise RuntimeError("odd")

    assert tables._outcome("a.csv", "fit", fail).kind == "failure"
