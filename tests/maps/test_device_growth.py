"""Growth on a device: the rows, draws and sums of growth on the CPU, and nearly its scores."""

import numpy as np
import pytest

from mbkl.engine.device import Device, DeviceCodes, DeviceRows
from mbkl.engine.rows import ArrayRows
from mbkl.maps import GrownFerns
from mbkl.maps.device_growth import DeviceGrowingRows
from mbkl.maps.growing_rows import (
    Chosen,
    Draft,
    GrowingRows,
    coarse_levels,
    growing_rows,
    rows_of_a_fern,
)
from mbkl.maps.growth_losses import HingeLoss, LogLoss, Targets, objective_of
from mbkl.maps.numbers import Numbers
from mbkl.maps.stumps import fine_stumps

torch = pytest.importorskip("torch", reason="Torch is not installed.")


def sample(n_rows=400, n_classes=2, missing=0.1, seed=0):
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(n_rows, 5)) * 64) / 64
    y = 1 * (X[:, 0] * X[:, 1] > 0) + generator.integers(max(n_classes - 1, 1), size=n_rows)
    X[generator.random(X.shape) < missing] = np.nan
    # Those of the first class weigh little: the largest gradient is not that of the heaviest row.
    weights = generator.integers(1, 4, size=n_rows) * np.where(y == 0, 0.1, 1.0)
    return X, y, weights


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
@pytest.mark.parametrize("is_given", [False, True])
def test_every_step_is_that_of_the_cpu(objective, n_classes, is_given):
    here, there = pair(objective, n_classes)
    held_out = np.arange(here.n_rows) % 5 == 0 if is_given else 0.2
    assert there.hold_out(held_out) == here.hold_out(held_out) > 0
    assert there.n_training == here.n_training
    np.testing.assert_array_equal(there._is_held_out.numpy(), here._held_out)
    intercept = here.start()
    np.testing.assert_allclose(there.start(), intercept, rtol=1e-6)
    generator, ferns = np.random.default_rng(0), []
    for rows in (here, there):
        rows.begin(intercept)
    assert there.first_loss == pytest.approx(here.first_loss, rel=1e-6)
    for depth in (3, 3, 2, 5, 5, 5, 5, 5):
        stumps = generator.integers(5, size=depth), generator.integers(100, size=depth)
        ferns.append(Chosen(*stumps, np.zeros((depth, 256), dtype=bool), None, None))
    # Sigmoids and exponentials differ in their last bits; sums of what is packed do not.
    there._packed.copy_(torch.as_tensor(here._packed))
    placed = torch.as_tensor(np.stack(ferns[0][:2]).astype(np.int32))
    np.testing.assert_array_equal(there.sums(placed, None), here.fill(*ferns[0][:3]))
    rates = np.linspace(0.1, 0.2, len(ferns))
    found, expected = there.add(ferns, rates, [2.0, 9.0], 1), here.add(ferns, rates, [2.0, 9.0], 1)
    np.testing.assert_array_equal(there.units.numpy(), here._units)
    np.testing.assert_array_equal(there._cells.numpy(), here._cells)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.table, other.table, atol=1e-3)
        np.testing.assert_allclose(mine.gains, other.gains, rtol=1e-2, atol=1e-2)
        np.testing.assert_allclose(mine.merits, other.merits, rtol=1e-2, atol=1e-2)
        assert mine.loss == pytest.approx(other.loss, rel=1e-3)
    np.testing.assert_allclose(there._scores.numpy(), here._scores, atol=1e-2)
    is_told = is_given or objective.is_numeric
    assert len(here.best_held_out[0]) == here.n_held_out * is_told
    for mine, other in zip(there.best_held_out, here.best_held_out, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-2)


def drafts_of(rows, n_shares, n_wanted, numbers=(0, 1, 4), asked=((0, 1, 2), (0, 2))):
    """Return ferns to be chosen: one of each list of features that are asked at all levels."""
    features, columns = np.array([0, 1, 3]), np.array([0, 2])
    n_codes, generator = np.diff(rows.offsets)[features], np.random.default_rng(0)
    for own in asked:
        found = []
        for number in numbers:
            some = np.tile(np.array(own), (5, 1))
            n_rows = rows_of_a_fern(rows.n_training, n_shares, n_wanted)
            levels = coarse_levels(some, n_codes, n_rows, generator)
            rest = (n_codes, np.zeros(3, dtype=bool), levels, generator)
            found.append(Draft(number, n_shares, n_wanted, features, columns, *rest))
        yield found


@pytest.mark.parametrize("n_shares", [1, 3])
@pytest.mark.parametrize("n_wanted", [40, 10_000])
def test_samples_and_what_is_chosen_on_them(n_shares, n_wanted):
    here, there = pair(LogLoss(4), 4)
    for rows in (here, there):
        rows.hold_out(0.1)
        rows.begin(np.zeros(4, np.float32))
    # Sigmoids and exponentials differ in their last bits.
    there._packed.copy_(torch.as_tensor(here._packed))
    for drafts in drafts_of(here, n_shares, n_wanted):
        found, expected = there.choose(drafts, 0.7), here.choose(drafts, 0.7)
        n_rows, sizes = here.sizes_of_shares(drafts).T
        chances = np.where(n_rows > n_wanted, n_wanted / sizes, np.inf)
        samples = here.samples(drafts, chances)
        for number, (mine, other) in enumerate(zip(found, expected, strict=True)):
            np.testing.assert_array_equal(mine.features, other.features)
            np.testing.assert_array_equal(mine.cuts, other.cuts)
            # Cells of single rows, which the CPU leaves out, collect the same from all features.
            gains = (each.gains - each.gains[:, :1] for each in (mine, other))
            np.testing.assert_allclose(*gains, atol=1e-6)
            sample = samples[number]
            (chooser,) = {id(each): each for each in there._choosers.values()}.values()
            codes, residuals, inside = (each[number] for each in chooser._sample())
            assert inside.sum() == sample.n_rows > 0
            np.testing.assert_array_equal(codes[:, inside], sample.codes)
            np.testing.assert_array_equal(residuals[inside], sample.residuals)
            assert not residuals[~inside].any()
        there._choosers.clear()


def test_there_is_room_for_nearly_all_samples():
    """Rows beyond it are left out, and no fern is the worse for a few."""
    here, there = pair(LogLoss(4), 4)
    for rows in (here, there):
        rows.begin(np.zeros(4, np.float32))
    (drafts,) = drafts_of(here, 1, 100, asked=[(0, 1, 2)])
    expected = there.choose(drafts, 0.7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mbkl.maps.device_growth.with_room", lambda expected: expected // 2)
        there._choosers.clear()
        found = there.choose(drafts, 0.7)
        (chooser,) = there._choosers.values()
        assert chooser._sample()[2].sum(dim=1).tolist() == [50] * len(drafts)
    for mine, other in zip(found, expected, strict=True):
        assert mine.gains.shape == other.gains.shape
        assert np.isfinite(mine.gains).all()


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


def copies_of(growing):
    """Return all tensors that growing rows write to, and what is in them."""
    own = [each for rows in growing for each in vars(rows).values()]
    return [(each, each.clone()) for each in own if isinstance(each, torch.Tensor)]


@pytest.mark.parametrize("objective", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_kernels_that_are_recorded(monkeypatch, objective, n_classes):
    """What a recording starts is what was run before it, on the same tensors."""
    X, y, weights = sample(500, n_classes)
    family = GrownFerns(depth=4, objective=objective)
    rows = DeviceRows(X, Device("cpu"))
    arguments = (Targets(y, int(y.max()) + 1, weights), 40, 0)
    expected = family.grow(rows, *arguments)
    n_recorded, n_replayed, rooms = [], [], []

    def record(self, run, room):
        """Remember what was run; nothing is computed before it is started."""
        n_recorded.append(room)
        kept = copies_of(growing)
        result = run()
        for tensor, before in kept:
            tensor.copy_(before)

        def replay():
            n_replayed.append(1)
            found = run()
            if isinstance(result, tuple):
                for own, new in zip(result, found, strict=True):
                    own.copy_(new)
            else:
                result.copy_(found)

        return replay, result

    growing: list[DeviceGrowingRows] = []
    original = DeviceGrowingRows.__init__

    def noted(self, *arguments):
        original(self, *arguments)
        growing.append(self)

    monkeypatch.setattr(DeviceGrowingRows, "__init__", noted)
    monkeypatch.setattr(Device, "can_record", True)
    monkeypatch.setattr(Device, "record", record)
    monkeypatch.setattr(Device, "room_for_recordings", lambda self: rooms.append(1) or len(rooms))
    found = family.grow(DeviceRows(X, Device("cpu")), *arguments)
    assert len(n_replayed) > len(n_recorded) > 1
    # Rows that are held out no more begin anew: what was recorded before goes with its room.
    assert len(rooms) == 2
    assert 1 in n_recorded
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
