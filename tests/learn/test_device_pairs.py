"""The matrix of signed maps on a device against the operator that never forms it."""

import numpy as np
import pytest

from mbkl.cells import Block, Operator
from mbkl.engine.arrays import to_host
from mbkl.engine.device import DeviceRows, device_of
from mbkl.engine.rows import ArrayRows
from mbkl.learn.initial_guess import class_shares, initial_signs
from mbkl.learn.kernel_weights import DevicePairs, KernelProblem, SignedMaps
from mbkl.maps import Ferns, Stumps

pytest.importorskip("torch", reason="Torch is not installed.")

FAMILIES = {
    "stumps": [Stumps()],
    "ferns": [Ferns(depth=2)],
    "both": [Stumps(), Ferns(depth=2)],
}


@pytest.fixture(params=FAMILIES)
def both(request, make_data, labelled):
    """The operator of the same pairs on the CPU and in Torch."""
    X, y = make_data(n_rows=60, n_classes=3)
    operators = []
    for rows in (ArrayRows(X), DeviceRows(X, device_of("torch"))):
        drawn = [family.fit_codes(rows, np.ones(60), 30, 0) for family in FAMILIES[request.param]]
        operator = Operator(tuple(Block(codes, maps.cells) for maps, codes in drawn))
        known = labelled(operator, y, 3)
        signs = initial_signs(operator, class_shares(known), "balanced")
        problem = KernelProblem.of(known, signs, "squared_hinge", 1, 1_000)
        operators.append(problem.operator)
    assert [type(operator) for operator in operators] == [SignedMaps, DevicePairs]
    return operators


def test_products_are_the_same(both):
    plain, device = both
    generator = np.random.default_rng(0)
    theta = generator.random((plain.n_columns, 1))
    assert device.n_columns == plain.n_columns
    scores = plain.forward(theta)
    np.testing.assert_allclose(device.forward(device.to_device(theta)), scores, atol=1e-5)
    residuals = generator.normal(size=scores.shape)
    found = device.adjoint_and_total(device.to_device(residuals))
    for value, expected in zip(found, plain.adjoint_and_total(residuals), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-5)
    weights = generator.random(scores.shape)
    found = device.products(device.to_device(weights))
    for value, expected in zip(found, plain.products(weights), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-5)


def test_blocks_do_not_matter(both, monkeypatch):
    _, device = both
    weights = device.to_device(np.random.default_rng(0).random((device.matrices[0].shape[1], 1)))
    whole = device.products(weights)
    monkeypatch.setattr("mbkl.learn.kernel_weights._BLOCK_MAPS", 3)
    for value, expected in zip(device.products(weights), whole, strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-6)


def test_the_maps_are_described_alike(both):
    plain, device = both
    assert np.array_equal(device.is_map, plain.is_map)
    assert np.array_equal(device.is_chained, plain.is_chained.astype(bool))
    assert np.array_equal(device.is_signed, plain.is_signed)


def test_some_maps_are_kept(both):
    plain, device = both
    kept = np.random.default_rng(0).random(plain.n_columns) < 0.5
    small, little = plain.keep_maps(kept), device.keep_maps(kept)
    assert np.array_equal(little.is_map, small.is_map)
    theta = np.where(small.is_map, 1.0, 0.0)[:, None]
    found = to_host(little.forward(little.to_device(theta)))
    np.testing.assert_allclose(found, small.forward(theta), atol=1e-5)
