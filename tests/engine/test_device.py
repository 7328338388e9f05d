"""The engine of Torch, here on the CPU, against that of NumPy."""

import numpy as np
import pytest

from mbkl.engine import engine_on
from mbkl.engine.codes import DenseCodes, coarsening
from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.maps import Ferns, Stumps

torch = pytest.importorskip("torch", reason="Torch is not installed.")
torch_engine = pytest.importorskip("mbkl.engine.torch_engine")

# On bfloat16 pieces: two hold 16 digits, one holds 8.
PRECISE, COARSE = 2.0**-15, 2.0**-7


@pytest.fixture
def engine():
    return engine_on("torch", 0)


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch, engine):
    """Have the work divided, or not."""
    if request.param == "many blocks":
        engine._block_rows = 7
        monkeypatch.setattr(torch_engine, "_BLOCK_CELLS", 5)
        monkeypatch.setattr(torch_engine, "_BLOCK_CODES", 50)


def pair_of_codes(make_codes, engine, n_rows=40, n_cells=(3, 5, 2, 9)):
    codes = make_codes(n_rows, n_cells)
    values = engine.empty_codes(codes.n_groups, n_rows, codes.values.dtype)
    values.copy_(torch.as_tensor(codes.values.astype(np.int64)))
    return codes, DenseCodes(values, codes.offsets)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("n_columns", [1, 3, 16, 20, 130])
def test_gather(engine, make_codes, n_columns):
    codes, on_device = pair_of_codes(make_codes, engine)
    tables = np.random.default_rng(0).normal(size=(codes.n_cells, n_columns))
    expected = NumpyEngine().gather(codes, tables)
    found = engine.gather(on_device, engine.to_device(tables))
    np.testing.assert_allclose(found.numpy(), expected, atol=10 * PRECISE)
    assert found.dtype == engine.row_dtype(n_columns)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_columns", [1, 3, 16, 20, 130])
def test_histogram(engine, make_codes, n_columns, dtype):
    codes, on_device = pair_of_codes(make_codes, engine)
    residuals = np.random.default_rng(1).integers(-1000, 1000, size=(codes.n_rows, n_columns))
    expected = NumpyEngine().histogram(codes, residuals)
    found = engine.histogram(on_device, engine.to_device(residuals.astype(dtype)))
    assert found.dtype == torch.float64  # running sums follow
    np.testing.assert_allclose(found.numpy(), expected, rtol=PRECISE, atol=1000 * PRECISE)


def test_coarse_products_are_coarser_and_near(engine, make_codes):
    codes, on_device = pair_of_codes(make_codes, engine)
    tables = engine.to_device(np.random.default_rng(0).normal(size=(codes.n_cells, 20)))
    precise = engine.gather(on_device, tables)
    with engine.coarse():
        coarse = engine.gather(on_device, tables)
    error = float((coarse - precise).abs().max())
    assert PRECISE < error < 10 * COARSE
    assert torch.equal(engine.gather(on_device, tables), precise)


@pytest.mark.parametrize("n_cells", [(3, 5), (300, 2)])
def test_codes_move_alike(engine, make_codes, n_cells):
    codes, on_device = pair_of_codes(make_codes, engine, 50, n_cells)
    rows = np.array([4, 1, 1, 30])
    assert np.array_equal(
        engine.take(on_device, rows).values.numpy(), NumpyEngine().take(codes, rows).values
    )
    kept = np.random.default_rng(0).random(codes.n_cells - codes.n_groups) < 0.5
    plan = coarsening(codes.offsets, kept)
    expected = NumpyEngine().coarsen(codes, plan)
    found = engine.coarsen(on_device, plan)
    assert np.array_equal(found.values.numpy(), expected.values)
    assert np.array_equal(engine.counts(on_device), NumpyEngine().counts(codes))


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize(
    "family",
    [Stumps(), Stumps(thresholds="quantile"), Ferns(depth=3), Ferns(depth=12, max_cells=16)],
    ids=repr,
)
def test_maps_and_codes_are_the_same(engine, family, dtype, held):
    generator = np.random.default_rng(0)
    X = (generator.random((60, 5)) * 9).astype(np.uint8).astype(dtype)
    if dtype != np.uint8:
        X[3, 1] = X[7, 4] = np.nan
    if held:
        engine.hold(X)
    weights = np.ones(60)
    maps, codes = family.fit_codes(X, weights, 40, 0, engine)
    same_maps, same_codes = family.fit_codes(X.astype(np.float64), weights, 40, 0, NumpyEngine())
    assert maps.n_maps == same_maps.n_maps
    assert np.array_equal(codes.values.numpy(), same_codes.values)
    assert np.array_equal(codes.offsets, same_codes.offsets)


def test_memory_that_does_not_suffice_is_met_by_smaller_blocks(engine, make_codes, monkeypatch):
    codes, on_device = pair_of_codes(make_codes, engine, n_rows=5000)
    tables = np.random.default_rng(0).normal(size=(codes.n_cells, 16))
    original = engine._equal

    def limited(block, groups, numbers):
        if block.shape[1] > 2_000:
            raise torch.OutOfMemoryError("no room")
        return original(block, groups, numbers)

    monkeypatch.setattr(engine, "_equal", limited)
    found = engine.gather(on_device, engine.to_device(tables))
    expected = NumpyEngine().gather(codes, tables)
    np.testing.assert_allclose(found.numpy(), expected, atol=10 * PRECISE)
    assert engine._block_rows <= 2_000
    monkeypatch.setattr(torch_engine, "_SMALLEST_BLOCK", 10_000)
    monkeypatch.setattr(engine, "_block_rows", 5_000)
    with pytest.raises(torch.OutOfMemoryError, match="no room"):
        engine.gather(on_device, engine.to_device(tables))


def test_without_a_gpu_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"device='cuda' needs a GPU.*use device='cpu'"):
        engine_on("cuda", 0)
