"""Growth on a device: the rows, draws and sums of growth on the CPU, and nearly its scores."""

import numpy as np
import pytest

from mbkl.engine.device import Device, DeviceCodes, DeviceRows
from mbkl.engine.rows import ArrayRows
from mbkl.maps import GrownFerns
from mbkl.maps.device_growth import DeviceGrowingRows, DeviceSample
from mbkl.maps.growing_rows import (
    Draft,
    GrowingRows,
    HingeLoss,
    LogLoss,
    Targets,
    coarse_levels,
    growing_rows,
    objective_of,
)
from mbkl.maps.numbers import Numbers
from mbkl.maps.stumps import fine_stumps

torch = pytest.importorskip("torch", reason="Torch is not installed.")


def sample(n_rows=400, n_classes=2, missing=0.1, seed=0):
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(n_rows, 5)) * 64) / 64
    y = 1 * (X[:, 0] * X[:, 1] > 0) + generator.integers(max(n_classes - 1, 1), size=n_rows)
    X[generator.random(X.shape) < missing] = np.nan
    weights = generator.integers(1, 4, size=n_rows).astype(float)
    return X, y, weights


def place(array):
    return torch.as_tensor(array)


def pair(objective, n_classes, seed=3):
    """Return the same growing rows here and on a device."""
    X, y, weights = sample(n_classes=n_classes)
    found = []
    for rows in (ArrayRows(X), DeviceRows(X, Device("cpu"))):
        _, codes = fine_stumps(rows, weights, seed)
        keys = rows.keys_apart(y, weights, seed)
        found.append(growing_rows(codes, objective, y, weights / weights.mean(), keys, seed))
    return found


LOSSES_OF_NUMBERS = ["squared_error", "absolute_error", "quantile", "poisson"]


def of_numbers(loss, n_columns=1):
    """Return the objective of numbers with as many levels as the sample has classes."""
    values = np.random.default_rng(0).poisson(2.0, size=(12, n_columns)) + np.arange(12)[:, None]
    numbers, _ = Numbers.of(values.astype(float), np.ones(12), loss, 0.7)
    return objective_of("", Targets(None, 12, None, numbers))


OBJECTIVES = [(LogLoss(2), 2), (LogLoss(4), 4), (HingeLoss(2), 2), (HingeLoss(12), 12)]
OBJECTIVES += [(of_numbers(loss, 1 + (loss == "poisson")), 12) for loss in LOSSES_OF_NUMBERS]


def test_codes_decide_where_rows_grow():
    here, there = pair(LogLoss(2), 2)
    assert isinstance(here, GrowingRows)
    assert isinstance(there, DeviceGrowingRows)
    assert growing_rows.dispatch(DeviceCodes) is DeviceGrowingRows


@pytest.mark.parametrize(
    ("objective", "n_classes"), OBJECTIVES, ids=lambda each: type(each).__name__
)
def test_every_step_is_that_of_the_cpu(objective, n_classes):
    here, there = pair(objective, n_classes)
    assert there.hold_out(0.2) == here.hold_out(0.2) > 0
    np.testing.assert_array_equal(there._leading.numpy(), here._held_out)
    intercept = here.start()
    np.testing.assert_allclose(there.start(), intercept, rtol=1e-6)
    for rows in (here, there):
        rows.begin(intercept)
    units = (np.float32(2**12), np.float32(2**11))
    np.testing.assert_allclose(there.refresh(units, None), here.refresh(units, None), rtol=1e-6)
    assert there.held_out_loss() == pytest.approx(here.held_out_loss(), rel=1e-6)
    stumps = np.array([0, 2, 1]), np.array([40, 100, 7]), np.zeros((3, 256), dtype=bool)
    np.testing.assert_allclose(there.fill(*stumps), here.fill(*stumps), atol=len(here._y))
    np.testing.assert_array_equal(there._cells.numpy(), here._cells)
    filling = (*stumps, np.array(units, dtype=float), 2.0, 0.1)
    for found, expected in zip(there.table(*filling), here.table(*filling), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-3)
    table = np.random.default_rng(0).normal(size=(8, objective.n_columns)).astype(np.float32)
    placed = torch.as_tensor(table)
    np.testing.assert_allclose(there.refresh(units, placed), here.refresh(units, table), rtol=1e-5)
    np.testing.assert_array_equal(there._scores.numpy(), here._scores)
    assert there.held_out_loss() == pytest.approx(here.held_out_loss(), rel=1e-5)
    for found, expected in zip(there.held_out_scores(), here.held_out_scores(), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_shares", [1, 3])
@pytest.mark.parametrize("chance", [None, 1e-4])
def test_samples_and_what_is_chosen_on_them(n_shares, chance):
    here, there = pair(LogLoss(4), 4)
    for rows in (here, there):
        rows.hold_out(0.1)
        rows.begin(np.zeros(4, np.float32))
        rows.refresh((np.float32(2**12), np.float32(2**12)), None)
    # Sigmoids and exponentials differ in their last bits.
    there._packed = torch.as_tensor(here._packed)
    features, columns = np.array([0, 1, 3]), np.array([0, 2])
    n_codes = np.diff(here.offsets)[features]
    for number in (0, 1, 4):
        size = here.size_of_share(number, n_shares, columns)
        np.testing.assert_array_equal(there.size_of_share(number, n_shares, columns), size)
        arguments = (number, n_shares, features, columns, chance)
        own, other = here.sample(*arguments), there.sample(*arguments)
        assert own.n_rows == other.n_rows > 0
        np.testing.assert_array_equal(other.codes.numpy(), own.codes)
        np.testing.assert_array_equal(other.residuals.numpy(), own.residuals)
        generator = np.random.default_rng(0)
        for asked in (np.arange(3), np.array([0, 2])):
            some = coarse_levels(np.tile(asked, (5, 1)), n_codes, own.n_rows, generator)
            rest = (features, n_codes, some, 0.7, np.zeros(3, dtype=bool), generator)
            found, expected = (Draft(each, *rest).choose() for each in (other, own))
            np.testing.assert_array_equal(found.features, expected.features)
            np.testing.assert_array_equal(found.cuts, expected.cuts)
            # Cells of single rows, which the CPU leaves out, collect the same from all features.
            gains = (each.gains - each.gains[:, :1] for each in (found, expected))
            np.testing.assert_allclose(*gains, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 12])
@pytest.mark.parametrize("validation_share", [0.0, 0.1])
def test_scores_are_near_those_of_the_cpu(n_classes, validation_share):
    X, y, weights = sample(500, n_classes)
    family = GrownFerns(depth=4, validation_share=validation_share)
    scores = []
    for rows in (ArrayRows(X), DeviceRows(X, Device("cpu"))):
        maps = family.grow(rows, Targets(y, int(y.max()) + 1, weights), 8, 0)
        scores.append(maps.intercept + maps.score(rows, maps.path))
    np.testing.assert_allclose(*scores, atol=0.02)
    assert np.median(np.abs(scores[0] - scores[1])) < 1e-4


@pytest.mark.parametrize("objective", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_kernels_that_are_recorded(monkeypatch, objective, n_classes):
    """What a recording starts is what was run before it, on the same tensors."""
    X, y, weights = sample(500, n_classes)
    family = GrownFerns(depth=4, objective=objective)
    rows = DeviceRows(X, Device("cpu"))
    arguments = (Targets(y, int(y.max()) + 1, weights), 12, 0)
    expected = family.grow(rows, *arguments)
    n_recorded, n_replayed = [], []

    def record(self, run):
        n_recorded.append(1)
        result = torch.zeros_like(run())

        def replay():
            n_replayed.append(1)
            result.copy_(run())

        return replay, result

    monkeypatch.setattr(Device, "can_record", True)
    monkeypatch.setattr(Device, "record", record)
    found = family.grow(DeviceRows(X, Device("cpu")), *arguments)
    assert len(n_replayed) > 3 * len(n_recorded) > 0
    np.testing.assert_array_equal(found.thresholds, expected.thresholds)
    np.testing.assert_array_equal(found.path, expected.path)


@pytest.mark.parametrize("n_classes", [2, 12])
def test_short_memory_means_smaller_blocks(monkeypatch, n_classes):
    X, y, weights = sample(500, n_classes)
    family = GrownFerns(depth=4)
    arguments = (Targets(y, n_classes, weights), 8, 0)
    expected = family.grow(DeviceRows(X, Device("cpu")), *arguments)
    monkeypatch.setattr("mbkl.maps.device_growth.ROWS_PACKED", 64)
    monkeypatch.setattr(Device, "free_memory", lambda self: 200_000.0)
    seen = []
    original = DeviceGrowingRows._residuals_of

    def noted(self, rows):
        seen.append(rows.stop - rows.start)
        return original(self, rows)

    monkeypatch.setattr(DeviceGrowingRows, "_residuals_of", noted)
    found = family.grow(DeviceRows(X, Device("cpu")), *arguments)
    assert (max(seen) < 500) == (n_classes == 12)
    np.testing.assert_array_equal(found.thresholds, expected.thresholds)
    np.testing.assert_array_equal(found.path, expected.path)


@pytest.mark.parametrize(("free", "what"), [(100.0, "codes"), (10_000.0, "scores and residuals")])
def test_no_memory_is_named(monkeypatch, free, what):
    X, y, weights = sample(500, 2)
    monkeypatch.setattr(Device, "free_memory", lambda self: free)
    with pytest.raises(MemoryError, match=f"{what} .* GB left. Use device='cpu'"):
        GrownFerns(depth=4).grow(DeviceRows(X, Device("cpu")), Targets(y, 2, weights), 8, 0)


def test_samples_of_about_the_same_size_share_kernels():
    device, generator, n_codes = Device("cpu"), np.random.default_rng(0), np.full(2, 256)
    for depth in (10, 11):
        for n_rows in (16_200, 16_384, 16_500):
            codes = place(generator.integers(256, size=(2, n_rows), dtype=np.uint8))
            own = DeviceSample(codes, place(generator.integers(2**20, size=(n_rows, 1))), device)
            asked = np.tile(np.arange(2), (depth, 1))
            levels = coarse_levels(asked, n_codes, n_rows, generator)
            rest = (levels, 1.0, np.zeros(2, dtype=bool), generator)
            Draft(own, np.arange(2), n_codes, *rest).choose()
    assert len(device.choosers) == 2


def test_the_oldest_kernels_go(monkeypatch):
    monkeypatch.setattr("mbkl.maps.device_growth._MOST_CHOOSERS", 2)
    device, n_codes = Device("cpu"), np.full(1, 8)
    for n_rows in (100, 1_000, 100, 9_000):
        codes, residuals = torch.zeros((1, n_rows), dtype=torch.uint8), torch.zeros((n_rows, 1))
        own = DeviceSample(codes, residuals.long(), device)
        levels = coarse_levels(np.zeros((1, 1), int), n_codes, n_rows, np.random.default_rng(0))
        Draft(own, np.arange(1), n_codes, levels, 1.0, np.zeros(1, dtype=bool), None).choose()
    assert [key[0] > 200 for key in device.choosers] == [False, True]
