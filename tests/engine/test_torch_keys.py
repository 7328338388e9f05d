"""Hashes on a device: the bits of those in memory."""

import numpy as np
import pytest

from mbkl.engine import rows as in_memory
from mbkl.engine import torch_keys
from mbkl.engine.device import Device, DeviceRows
from mbkl.engine.keys import draw, scramble
from mbkl.engine.rows import ArrayRows

torch = pytest.importorskip("torch", reason="Torch is not installed.")


def some_keys(n_keys=200):
    return np.random.default_rng(0).integers(2**64, size=n_keys, dtype=np.uint64)


def on_device(values):
    return torch.as_tensor(values.view(np.int64))


def assert_same(found, expected):
    np.testing.assert_array_equal(found.numpy().view(np.uint64), expected)


def test_numbers_are_scrambled_alike():
    keys = some_keys()
    assert_same(torch_keys.scramble(on_device(keys)), scramble(keys))


@pytest.mark.parametrize("salt", [0, 1, 2**40 + 3])
def test_draws_are_the_same(salt):
    keys = some_keys()
    assert_same(torch_keys.draw(on_device(keys), salt), draw(keys, salt))


@pytest.mark.parametrize("weights", ["equal", "different"])
def test_equal_keys_are_told_apart_alike(weights):
    generator = np.random.default_rng(1)
    keys = some_keys(20)[generator.integers(20, size=300)]
    own = np.ones(300) if weights == "equal" else generator.integers(1, 4, size=300) / 2
    expected = in_memory.told_apart(keys, own)
    assert np.unique(expected).size == 300
    assert_same(torch_keys.told_apart(on_device(keys), torch.as_tensor(own)), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("held", [True, False])
def test_keys_and_samples_of_rows_are_the_same(dtype, held, monkeypatch):
    generator = np.random.default_rng(2)
    X = (generator.integers(0, 4, size=(300, 3)) / (1 if dtype == np.uint8 else 3)).astype(dtype)
    if dtype != np.uint8:
        X[generator.random(X.shape) < 0.1], X[0, 0] = np.nan, -0.0
    y, weights = generator.integers(3, size=300), generator.integers(1, 5, size=300) / 2
    device = Device("cpu")
    if not held:
        monkeypatch.setattr(device, "free_memory", lambda: 0.0)
    there, here = DeviceRows(X, device), ArrayRows(X)
    for labels in (None, y):
        np.testing.assert_array_equal(there.keys(labels, 3), here.keys(labels, 3))
        assert_same(there.keys_apart(labels, weights, 3), here.keys_apart(labels, weights, 3))
        for n_rows in (10, 1000):
            found, expected = (rows.sample(labels, weights, n_rows, 3) for rows in (there, here))
            np.testing.assert_array_equal(found.X, expected.X)
            np.testing.assert_array_equal(found.y, expected.y)
            np.testing.assert_array_equal(found.weights, expected.weights)
            assert found.n_different == expected.n_different
