"""Small data and switches that many tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("mbkl", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("mbkl")


@pytest.fixture
def data_folder() -> Path:
    """Return the folder of the real data sets, or skip."""
    folder = os.environ.get("MBKL_DATA")
    if not folder:
        pytest.skip("The environment variable MBKL_DATA does not name the folder of the data sets.")
    return Path(folder)


@pytest.fixture(scope="session")
def make_data():
    """Return a function that draws overlapping classes."""

    def make(n_rows=80, n_features=4, n_classes=2, seed=0, spread=1.0):
        generator = np.random.default_rng(seed)
        y = np.arange(n_rows) % n_classes
        centres = generator.normal(size=(n_classes, n_features))
        X = centres[y] + spread * generator.normal(size=(n_rows, n_features))
        # Few digits, so that the values are the same in float32 and float64.
        return np.round(X * 64) / 64, y

    return make


@pytest.fixture(scope="session")
def run_python():
    """Return a function that runs code in a Python of its own and returns what it did."""

    def run(code: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return run
