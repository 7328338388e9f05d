"""Loops over ferns in Torch and in Triton, beside their twins in NumPy."""

import importlib.util
import os

import numpy as np
import pytest

from mbkl.engine import torch_loops
from mbkl.engine.device import Device, place_ferns
from mbkl.engine.rows import ArrayRows
from mbkl.engine.torch_loops import Bins
from mbkl.engine.twins import TWINS
from mbkl.maps import Ferns

torch = pytest.importorskip("torch", reason="Torch is not installed.")

# Triton runs on a GPU, or anywhere when it interprets.
HAS_TRITON = importlib.util.find_spec("triton") is not None and (
    torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"
)
PLACE = "cuda" if torch.cuda.is_available() else "cpu"
N_CODES = np.array([256, 100, 3, 256, 17])


@pytest.fixture(params=["torch", "triton"])
def loops(request):
    if request.param == "torch":
        return torch_loops
    if not HAS_TRITON:
        pytest.skip("There is no Triton, or no GPU for it; TRITON_INTERPRET=1 needs none.")
    from mbkl.engine import triton_loops

    return triton_loops


def place(array):
    return torch.as_tensor(array, device=PLACE)


def codes_of(n_rows, seed=0):
    generator = np.random.default_rng(seed)
    return generator.integers(0, N_CODES[:, None], size=(5, n_rows)).astype(np.uint8)


@pytest.mark.parametrize("cuts", [[100, 50, 9], [100, -1, -1]], ids=str)
@pytest.mark.parametrize("n_columns", [1, 3])
def test_sums_in_the_cells_of_a_fern(loops, n_columns, cuts):
    n_rows, generator = 700, np.random.default_rng(1)
    codes, leading = codes_of(n_rows), (generator.random(n_rows) < 0.1).astype(np.uint8)
    gradient = generator.integers(-(2**15) + 1, 2**15, size=(n_rows, n_columns), dtype=np.int32)
    curvature = generator.integers(2**15, size=(n_rows, n_columns), dtype=np.int32)
    packed = (gradient << 16) + curvature
    stumps = np.array([[0, 1, 4], cuts], dtype=np.int32)
    members = generator.random((3, 256)) < 0.5
    cells = np.empty(n_rows, dtype=np.uint16)
    TWINS.fern_cells(codes, *stumps, members, leading, cells)
    own_cells = place(np.empty(n_rows, dtype=np.int32))
    values, stumps, leading, packed_there = map(place, (codes, stumps, leading, packed))
    sets = place(members.astype(np.uint8)) if -1 in cuts else None
    found = loops.fern_sums(values, stumps, sets, leading, packed_there, own_cells)
    np.testing.assert_array_equal(own_cells.cpu().numpy(), cells)
    np.testing.assert_array_equal(found.cpu(), TWINS.histogram_packed(cells, packed, 16))


@pytest.mark.parametrize("at_once", [100, 32_000_000])
@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("shift", [0, 3])
def test_gains_of_levels_and_the_cells_they_divide(loops, shift, n_columns, at_once, monkeypatch):
    monkeypatch.setattr(torch_loops, "_AT_ONCE", at_once)
    # Two ferns, with rows, bins and ridges of their own.
    n_rows, generator, ridges = 400, np.random.default_rng(2), np.array([3.3, 0.4])
    codes = np.stack([codes_of(n_rows), codes_of(n_rows, 1)])
    cell = np.sort(generator.integers(4, size=(2, n_rows)), axis=1)
    gradient = generator.integers(-1000, 1000, size=(2, n_rows, n_columns))
    residuals = (gradient << 32) + generator.integers(1000, size=gradient.shape)
    shifts = np.where(N_CODES > 50, shift, 0)
    moves = generator.integers(0, 2**shifts, size=(2, N_CODES.size))
    lengths = ((N_CODES - 1 + moves) >> shifts) + 1
    asked = np.array([[4, 0, 1, 3], [1, 2, 3, 0]])
    numbers = np.stack(
        [
            np.stack([own, N_CODES[own], lengths[fern, own], shifts[own], moves[fern, own]])
            for fern, own in enumerate(asked)
        ]
    )
    bins, cells = Bins(place(numbers), int(lengths.max())), place(cell.astype(np.int32))
    rows = (place(codes), cells, 4, place(residuals), bins)
    sums = loops.level_sums(*rows)
    assert sums.shape == (2, 4, 4, bins.width, n_columns)
    expected = np.repeat(residuals.sum(axis=1)[:, None], 4, axis=1)
    np.testing.assert_array_equal(sums.sum(dim=(2, 3)).cpu(), expected)
    gains = loops.level_gains(*rows, place(ridges))
    best = gains.flatten(1).argmax(dim=1)
    stumps = loops.divide_cells(rows[0], best, bins, cells).tolist()
    for fern, own in enumerate(asked):
        starts = np.searchsorted(cell[fern], np.arange(5))
        alone = (own, np.arange(n_rows), residuals[fern], starts)
        bounds = (N_CODES, shifts[own], moves[fern, own], ridges[fern])
        most, cuts = TWINS.best_cuts(codes[fern], *alone, *bounds)
        np.testing.assert_allclose(gains[fern].cpu().max(dim=1).values, most, rtol=1e-12)
        feature, code = own[most.argmax()], cuts[most.argmax()]
        wanted = ((code + 1) << shifts[feature]) - moves[fern, feature] - 1
        wanted = min(wanted, N_CODES[feature] - 2)
        assert stumps[fern] == [feature, wanted]
        divided = 2 * cell[fern] + (codes[fern, feature] > wanted)
        np.testing.assert_array_equal(cells[fern].cpu(), divided)


@pytest.mark.parametrize("depth", [0, 1, 5, 11])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_newton_steps(loops, depth, n_columns):
    sums = np.random.default_rng(0).integers(0, 1000, size=(2 << depth, n_columns, 2))
    sums[..., 0] -= 500
    sums[1] = 0
    units = np.array([16.0, 0.5])
    steps, gains, _ = TWINS.newton_steps(sums / units, (0.7,))
    found, gained = loops.newton_steps(place(sums), place(units), place(np.float64(0.7)))
    np.testing.assert_allclose(found.cpu(), steps, rtol=1e-12)
    np.testing.assert_allclose(gained.cpu(), gains, rtol=1e-12)


@pytest.mark.parametrize(
    "family",
    [
        Ferns(depth=3),
        Ferns(depth=12, max_cells=16),
        Ferns(depth=9, distribution="fixed", max_cells=65_536),
        Ferns(depth=64, distribution="fixed", max_cells=256),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_columns", [1, 3, 40])
@pytest.mark.parametrize("n_levels", [None, np.array([0, 7, 0, 0, 300])], ids=str)
def test_ferns_on_rows(loops, family, n_columns, n_levels, monkeypatch):
    monkeypatch.setattr(torch_loops, "_AT_ONCE", 3_000)
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 5))
    if n_levels is not None:
        X[:, [1, 4]] = generator.integers([7, 300], size=(200, 2))
    X[generator.random(X.shape) < 0.1] = np.nan
    maps, codes = family.fit_codes(ArrayRows(X), np.ones(200), 30, 0, n_levels)
    assert (maps.sets is None) == (n_levels is None)
    tables = generator.normal(size=(maps.cells.n_cells, n_columns))
    device = Device(PLACE)
    placed = place_ferns(maps, device)
    values = device.empty_codes(maps.n_maps, 200, maps.numbers.dtype)
    loops.fern_codes(place(X), placed, values)
    np.testing.assert_array_equal(values.cpu(), codes.values)
    scores = torch.zeros((200, n_columns), dtype=torch.float64, device=PLACE)
    loops.fern_scores(place(X), placed, place(tables), scores)
    np.testing.assert_allclose(scores.cpu(), maps.score(ArrayRows(X), tables), atol=1e-12)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_residuals_are_packed(loops, n_columns):
    generator = np.random.default_rng(0)
    gradient = (generator.integers(-99, 99, size=(500, n_columns)) / 4).astype(np.float32)
    curvature = (generator.integers(99, size=(500, n_columns)) / 8).astype(np.float32)
    # Some are too large, and some are halves.
    gradient[3], gradient[4], curvature[5] = 1e6, -1e6, 1e6
    weights = generator.integers(1, 4, size=500).astype(np.float32)
    units, packed = np.array([2.0, 4.0]), np.empty((500, n_columns), dtype=np.int32)
    single = tuple(units.astype(np.float32))
    TWINS.pack_residuals(gradient, curvature, weights, single, packed)
    found = place(np.zeros_like(packed))
    loops.pack_residuals(*map(place, (gradient, curvature, weights, units)), found)
    np.testing.assert_array_equal(found.cpu(), packed)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_values_are_binned(loops, dtype):
    generator = np.random.default_rng(0)
    X = (generator.normal(size=(150, 70)) * 20 + 100).astype(dtype)
    if dtype != np.uint8:
        X[generator.random(X.shape) < 0.1] = np.nan
    columns = np.sort(generator.choice(70, 66, replace=False))
    thresholds = np.sort(generator.normal(size=(66, 5)) * 20 + 100).astype(np.float32)
    thresholds[:, 0], thresholds[::2, 3:] = -np.inf, np.inf
    thresholds[:, 1] = X[0, columns]
    thresholds = np.sort(np.nan_to_num(thresholds, nan=100.0, posinf=np.inf, neginf=-np.inf))
    values = place(np.zeros((66, 150), dtype=np.uint8))
    loops.bin(place(X), place(columns), place(thresholds), values)
    expected = (X[:, columns].astype(np.float32)[:, :, None] > thresholds).sum(axis=2).T
    np.testing.assert_array_equal(values.cpu(), expected)


@pytest.mark.parametrize("n_codes", [3, 256])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_codes_are_counted(loops, n_codes, dtype):
    codes = np.random.default_rng(0).integers(n_codes, size=(3, 5_000)).astype(dtype)
    expected = [np.bincount(own, minlength=n_codes) for own in codes]
    np.testing.assert_array_equal(loops.counts(place(codes), n_codes).cpu(), expected)


@pytest.mark.parametrize("n_columns", [1, 2, 5])
@pytest.mark.parametrize("at_once", [100, 32_000_000])
def test_table_entries_are_looked_up(loops, n_columns, at_once, monkeypatch):
    monkeypatch.setattr(torch_loops, "_AT_ONCE", at_once)
    codes, first = codes_of(700), np.cumsum(N_CODES) - N_CODES
    generator = np.random.default_rng(2)
    tables = generator.integers(1000, size=(N_CODES.sum(), n_columns)).astype(float)
    scores = generator.integers(1000, size=(700, n_columns)).astype(float)
    expected = scores + tables[codes + first[:, None]].sum(axis=0)
    found = place(scores)
    loops.look_up(place(codes), place(first), place(tables), found)
    np.testing.assert_array_equal(found.cpu(), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
@pytest.mark.parametrize("by_row", [False, True])
def test_indicators_of_cells(loops, by_row, dtype):
    codes = codes_of(700).astype(dtype)
    groups, numbers = np.repeat(np.arange(5), 30), np.tile(np.arange(30), 5).astype(dtype)
    numbers[0] = 255
    expected = codes[groups] == numbers[:, None]
    # Lines begin where words do.
    room = place(np.full((5, 768), 255, dtype))
    room[:, :700] = place(codes)
    found = loops.indicators(room[:, :700], place(groups), place(numbers), by_row).cpu().numpy()
    found = found.T if by_row else found
    assert found.shape == (256, 768)
    np.testing.assert_array_equal(found[:150, :700], expected)
