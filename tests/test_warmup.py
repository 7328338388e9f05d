"""After `mbkl warmup` no fit waits for the compiler."""

import json

import pytest

WARM_UP_AND_FIT = """
import json
import numpy as np
import pandas as pd
from scipy import sparse
from mbkl import MBKLClassifier
from mbkl.engine import growth_loops, loops
from mbkl.warmup import warmup

def signatures():
    # Names with an underscore are used by other loops.
    kinds = {**vars(loops), **vars(growth_loops)}
    compiled = {n: k for n, k in kinds.items() if n[0] != "_" and hasattr(k, "signatures")}
    return {name: sorted(map(str, loop.signatures)) for name, loop in compiled.items()}

warmup()
ready = signatures()
report = {"signatures": ready}
inputs = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "column-major": np.asfortranarray,
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "categories": lambda X: pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "u", "v")}),
}
X = np.random.default_rng(0).normal(size=(1500, 3))
X[np.abs(X) < 1] = 0
for name, convert in inputs.items():
    before = signatures()
    for n_classes in (2, 3):
        y = np.arange(1500) % n_classes
        model = MBKLClassifier(n_maps=40, theta="ones", random_state=0).fit(convert(X), y)
        model.predict(convert(X))
    after = signatures()
    report[name] = [loop for loop in after if after[loop] != before[loop]]
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def report(run_python):
    """What warmup compiled, and what each kind of input compiled on top of it."""
    return json.loads(run_python(WARM_UP_AND_FIT).stdout)


def test_every_loop_is_compiled(report):
    compiled = report["signatures"]
    assert len(compiled) >= 9
    assert [name for name, signatures in compiled.items() if not signatures] == []


@pytest.mark.parametrize("name", ["float64", "float32", "column-major", "CSR", "CSC"])
def test_a_fit_and_a_prediction_compile_nothing_new(report, name):
    assert report[name] == []


def test_a_cold_cache_is_announced_in_one_line(run_python, tmp_path):
    code = "from mbkl.engine.compiled import announce_if_cold; announce_if_cold()"
    result = run_python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "mbkl warmup" in result.stderr


def test_a_warm_cache_is_not_announced(run_python, tmp_path):
    code = """
import numpy as np
from mbkl.engine import loops
from mbkl.engine.compiled import announce_if_cold
codes, offsets = np.zeros((1, 2), np.uint8), np.array([0, 2])
loops.gather_one(codes, offsets, np.zeros((2, 1)), np.empty((2, 1)), 0, 2)
announce_if_cold()
"""
    result = run_python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert (result.returncode, result.stderr) == (0, "")
