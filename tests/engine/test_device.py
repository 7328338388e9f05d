"""Codes on a device of Torch, here the CPU, against those in memory."""

import numpy as np
import pytest

from mbkl.engine.codes import DenseCodes, coarsening
from mbkl.engine.rows import ArrayRows
from mbkl.maps import Ferns, Projections, Stumps

torch = pytest.importorskip("torch", reason="Torch is not installed.")
device_module = pytest.importorskip("mbkl.engine.device")
DeviceCodes, DeviceRows = device_module.DeviceCodes, device_module.DeviceRows
device_of = device_module.device_of

# Steps of the largest value: two pieces of eight bits hold 15 digits and a sign.
PRECISE = 2.0**-15


@pytest.fixture
def device():
    return device_of("torch")


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch, device):
    """Have the work divided, or not."""
    if request.param == "many blocks":
        device.block_rows = 7
        monkeypatch.setattr(device_module, "_BLOCK_CELLS", 5)
        monkeypatch.setattr(device_module, "_BLOCK_CODES", 50)
        monkeypatch.setattr(device_module, "_SCORED_CODES", 50)


def pair_of_codes(make_codes, device, n_rows=40, n_cells=(3, 5, 2, 9)):
    """Return the same codes in memory and on the device."""
    codes = make_codes(n_rows, n_cells, np.uint8 if max(n_cells) <= 256 else np.uint16)
    values = device.empty_codes(codes.n_groups, n_rows, codes.values.dtype)
    values.copy_(torch.as_tensor(codes.values.astype(np.int64)))
    return codes, DeviceCodes(values, codes.offsets, device)


def assert_same_codes(on_device, in_memory):
    assert isinstance(on_device, DeviceCodes)
    np.testing.assert_array_equal(on_device.values.numpy(), in_memory.values)
    np.testing.assert_array_equal(on_device.offsets, in_memory.offsets)
    assert on_device.n_rows == in_memory.n_rows


# --- The two hot operations ---


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("n_columns", [1, 3, 16, 20, 130])
def test_gather(device, make_codes, n_columns):
    codes, on_device = pair_of_codes(make_codes, device)
    tables = np.random.default_rng(0).normal(size=(codes.n_cells, n_columns))
    found = on_device.gather(on_device.place(tables))
    np.testing.assert_allclose(found.numpy(), codes.gather(tables), atol=10 * PRECISE)
    assert found.dtype == on_device.row_dtype(n_columns)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_columns", [1, 3, 16, 20, 130])
def test_histogram(device, make_codes, n_columns, dtype):
    codes, on_device = pair_of_codes(make_codes, device)
    residuals = np.random.default_rng(1).integers(-1000, 1000, size=(codes.n_rows, n_columns))
    expected = codes.histogram(residuals)
    found = on_device.histogram(on_device.place(residuals.astype(dtype)))
    assert found.dtype == torch.float64  # running sums follow
    rounding = 1000 * PRECISE / 2
    np.testing.assert_allclose(found.numpy(), expected, atol=codes.n_rows * rounding)
    assert abs(found.numpy() - expected).mean() < 3 * rounding


def test_tables_of_zeros_and_equal_columns_give_what_they_would(device, make_codes):
    codes, on_device = pair_of_codes(make_codes, device)
    assert not on_device.gather(on_device.place(np.zeros((codes.n_cells, 20)))).any()
    equal = np.tile(np.arange(codes.n_rows)[:, None], (1, 20))
    found = on_device.histogram(on_device.place(equal.astype(np.float32)))
    np.testing.assert_allclose(found.numpy(), codes.histogram(equal), atol=1e-3 * codes.n_rows)


def test_memory_that_does_not_suffice_is_met_by_smaller_blocks(device, make_codes, monkeypatch):
    codes, on_device = pair_of_codes(make_codes, device, n_rows=5000)
    tables = np.random.default_rng(0).normal(size=(codes.n_cells, 16))
    original = device.loops.indicators

    def limited(block, groups, numbers, by_row):
        if block.shape[1] > 500:
            raise torch.OutOfMemoryError("no room")
        return original(block, groups, numbers, by_row)

    monkeypatch.setattr(device.loops, "indicators", limited)
    found = on_device.gather(on_device.place(tables))
    np.testing.assert_allclose(found.numpy(), codes.gather(tables), atol=10 * PRECISE)
    assert device.block_rows <= 2_000
    monkeypatch.setattr(device_module, "_SMALLEST_BLOCK", 10_000)
    monkeypatch.setattr(device, "block_rows", 5_000)
    with pytest.raises(torch.OutOfMemoryError, match="no room"):
        on_device.gather(on_device.place(tables))


# --- Moves ---


@pytest.mark.parametrize("n_cells", [(3, 5), (300, 2)])
def test_codes_move_alike(device, make_codes, n_cells):
    codes, on_device = pair_of_codes(make_codes, device, 50, n_cells)
    rows = np.array([4, 1, 1, 30])
    assert_same_codes(on_device.take(rows), codes.take(rows))
    assert_same_codes(on_device.take(torch.as_tensor(rows)), codes.take(rows))
    kept = np.random.default_rng(0).random(codes.n_cells - codes.n_groups) < 0.5
    plan = coarsening(codes.offsets, kept)
    assert_same_codes(on_device.coarsen(plan), codes.coarsen(plan))
    for groups in ([1, 0], [1], []):
        groups = np.array(groups, dtype=np.intp)
        assert_same_codes(on_device.keep_groups(groups), codes.keep_groups(groups))
    np.testing.assert_array_equal(on_device.counts(), codes.counts())


@pytest.mark.parametrize("n_cells", [(3, 5), (300, 2), ()])
def test_the_dense_form_is_that_in_memory(device, make_codes, n_cells):
    codes, on_device = pair_of_codes(make_codes, device, 50, n_cells or (2,))
    if not n_cells:
        none = np.empty(0, dtype=np.intp)
        codes, on_device = codes.keep_groups(none), on_device.keep_groups(none)
    dense = on_device.dense()
    assert isinstance(dense, DenseCodes)
    assert dense.values.dtype == codes.values.dtype
    assert dense.loops is on_device.loops
    np.testing.assert_array_equal(dense.values, codes.values)
    np.testing.assert_array_equal(dense.offsets, codes.offsets)


def test_many_columns_at_once_suit_a_device(device, make_codes):
    assert pair_of_codes(make_codes, device, 2000, (2,) * 9)[1].many_at_once


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_any_array_has_its_place(device, order):
    array = np.arange(4.0)[order]
    array.flags.writeable = False
    assert device.place(array).tolist() == array.tolist()
    assert device.place(array, torch.float32).dtype == torch.float32


# --- Rows ---


FAMILIES = [
    Stumps(),
    Stumps(thresholds="quantile"),
    Ferns(depth=3),
    Ferns(depth=12, max_cells=16),
    Projections(),
]


def some_values(dtype=np.float64):
    generator = np.random.default_rng(0)
    X = (generator.random((60, 5)) * 9).astype(np.uint8).astype(dtype)
    if dtype != np.uint8:
        X[3, 1] = X[7, 4] = np.nan
    return X


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("family", FAMILIES[:4], ids=repr)
def test_maps_and_codes_are_the_same(device, family, dtype, held, monkeypatch):
    X, weights = some_values(dtype), np.ones(60)
    if not held:
        monkeypatch.setattr(device_module, "_SHARE_OF_MEMORY", 0.0)
    rows = DeviceRows(X, device)
    maps, codes = family.fit_codes(rows, weights, 40, 0)
    same_maps, same_codes = family.fit_codes(ArrayRows(X.astype(np.float64)), weights, 40, 0)
    assert maps.n_maps == same_maps.n_maps
    assert_same_codes(codes, same_codes)
    rows.release()
    assert_same_codes(maps.codes(rows), same_codes)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_scores_are_the_same(device, family):
    X = some_values()
    maps, _ = family.fit_codes(ArrayRows(X), np.ones(60), 40, 0)
    tables = np.random.default_rng(0).normal(size=(maps.cells.n_cells, 3))
    expected = maps.score(ArrayRows(X), tables)
    found = maps.score(DeviceRows(X, device), tables)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.usefixtures("blocks")
def test_projections_are_coded_on_the_device(device):
    X, weights = some_values(), np.ones(60)
    _, codes = Projections().fit_codes(DeviceRows(X, device), weights, 40, 0)
    _, expected = Projections().fit_codes(ArrayRows(X), weights, 40, 0)
    assert_same_codes(codes, expected)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_column_ranges_are_the_same(device, dtype):
    X = some_values(dtype)
    if dtype != np.uint8:
        X[:, 2] = np.nan
    found = DeviceRows(X, device).column_ranges()
    expected = ArrayRows(X).column_ranges()
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, other)


def test_rows_are_sent_once_where_they_fit(device, monkeypatch):
    X = some_values(np.uint8)
    rows = DeviceRows(X, device)
    assert rows._sent is not None
    assert rows.block(slice(3, 8))._sent.tolist() == rows._sent[3:8].tolist()
    rows.release()
    assert rows._sent is None
    monkeypatch.setattr(device, "free_memory", lambda: X.nbytes)
    assert DeviceRows(X, device)._sent is None


def test_rows_are_read_from_the_array(device):
    X = some_values(np.uint8)
    rows = DeviceRows(X, device)
    np.testing.assert_array_equal(np.concatenate([block for _, block in rows.blocks(7)]), X)
    np.testing.assert_array_equal(rows.take(np.array([9, 3])), X[[9, 3]])
    left, right = (form.sample(None, np.ones(60), 20, 0) for form in (rows, ArrayRows(X)))
    np.testing.assert_array_equal(left.X, right.X)


# --- Devices ---


def test_without_a_gpu_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"device='cuda' needs a GPU.*use device='cpu'"):
        device_of("cuda")


@pytest.mark.parametrize("device", ["tpu", "cuda:first"])
def test_an_unknown_device_is_named(device):
    with pytest.raises(ValueError, match=rf"device must be .*'{device}'"):
        device_of(device)


def test_no_groups_have_no_counts():
    rows = DeviceRows(np.ones((5, 2)), device_of("torch"))
    maps, codes = Stumps().fit_codes(rows, np.ones(5), 10, 0)
    assert maps.n_maps == codes.counts().size == 0


@pytest.mark.parametrize("n_at_once", [10, 10**6])
def test_infinities_are_found_there(device, n_at_once, monkeypatch):
    monkeypatch.setattr(device_module, "_BLOCK_CODES", n_at_once)
    X = np.zeros((20, 3), dtype=np.float32)
    X[3, 1] = np.nan
    DeviceRows(X, device).check_finite()
    DeviceRows(X.astype(np.uint8), device).check_finite()
    X[12, 2] = -np.inf
    with pytest.raises(ValueError, match="Input X contains infinity"):
        DeviceRows(X, device).check_finite()
