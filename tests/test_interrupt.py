"""Ctrl-C ends a fit."""

import os
import signal
import subprocess
import sys

import pytest

PAPER = {"maps": "stumps", "theta": "learned", "C": 1.0, "n_maps": 2000}
DEFAULT = {"n_maps": 200}
FIT_FOR_EVER = """
import numpy as np
from mbkl import MBKLClassifier
X = np.random.default_rng(0).normal(size=({n_rows}, 20))
y = (X[:, 0] * X[:, 1] + X[:, 2] > 0.3).astype(int)
while True:
    MBKLClassifier(**{parameters}, n_jobs=2, random_state=0, verbose=2).fit(X, y)
"""


@pytest.mark.skipif(os.name == "nt", reason="this system has no such signals")
@pytest.mark.parametrize(
    ("parameters", "n_rows", "stage"),
    [
        (PAPER, 40_000, "kernel weights, iteration 3"),
        (PAPER, 40_000, "classifier weights, iteration 1"),
        (DEFAULT, 4_500, "choice of maps"),
        (DEFAULT, 4_500, "classifier weights, iteration 1"),
        (DEFAULT, 40_000, "growth, iteration 3"),
        ({}, 9_000, "growth, iteration 30"),
    ],
)
def test_an_interrupt_ends_a_fit(python_environment, parameters, n_rows, stage):
    process = subprocess.Popen(
        [sys.executable, "-c", FIT_FOR_EVER.format(parameters=parameters, n_rows=n_rows)],
        env=python_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stdout:
            if stage in line:
                break
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert "in fit" in errors
