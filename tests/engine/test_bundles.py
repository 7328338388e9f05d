"""Bundles of groups: the same sums with fewer look-ups."""

import numpy as np
import pytest

from mbkl.engine.bundles import BundledCodes, bundle, expand_tables, fold_sums
from mbkl.engine.codes import DenseCodes
from mbkl.engine.numpy_engine import NumpyEngine

CELLS = [
    pytest.param((2,) * 9, id="many pairs"),
    pytest.param((3, 5, 2, 9, 4, 2, 2), id="mixed"),
    pytest.param((200, 2, 2, 2, 300, 3, 3, 3, 2), id="one too large to join"),
]


@pytest.fixture(params=CELLS)
def codes(request, make_codes):
    return make_codes(2000, request.param, dtype=np.uint16)


def test_bundles_are_neighbouring_groups(codes):
    bundled = bundle(codes)
    assert isinstance(bundled, BundledCodes)
    assert (bundled.members[0], bundled.members[-1]) == (0, codes.n_groups)
    assert (np.diff(bundled.members) > 0).all()
    assert bundled.bundles.n_groups < codes.n_groups
    assert (bundled.n_rows, bundled.n_groups) == (codes.n_rows, codes.n_groups)
    assert bundled.n_cells == codes.n_cells
    assert bundled.n_stored < codes.n_stored


def test_a_bundle_code_is_a_number_whose_digits_are_the_codes(codes):
    bundled, sizes = bundle(codes), np.diff(codes.offsets)
    for position, (first, last) in enumerate(zip(bundled.members[:-1], bundled.members[1:])):
        number = np.zeros(codes.n_rows, dtype=int)
        for group in range(first, last):
            number = number * sizes[group] + codes.values[group]
        np.testing.assert_array_equal(bundled.bundles.values[position], number)


@pytest.mark.parametrize("n_columns", [1, 2])
def test_passes_over_bundles_are_those_over_groups(engine, codes, n_columns):
    generator, bundled = np.random.default_rng(0), bundle(codes)
    tables = generator.normal(size=(codes.n_cells, n_columns))
    residuals = generator.integers(-(2**40), 2**40, size=(codes.n_rows, n_columns))
    np.testing.assert_allclose(
        engine.gather(bundled, tables), engine.gather(codes, tables), atol=1e-12
    )
    np.testing.assert_array_equal(
        engine.histogram(bundled, residuals), engine.histogram(codes, residuals)
    )


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_engines_give_the_same_bits(make_numba_engine, codes, n_columns, n_threads):
    generator, bundled = np.random.default_rng(0), bundle(codes)
    tables = generator.normal(size=(codes.n_cells, n_columns))
    residuals = generator.integers(-(2**40), 2**40, size=(codes.n_rows, n_columns))
    twin, engine = NumpyEngine(), make_numba_engine(n_threads)
    assert engine.gather(bundled, tables).tobytes() == twin.gather(bundled, tables).tobytes()
    np.testing.assert_array_equal(
        engine.histogram(bundled, residuals), twin.histogram(bundled, residuals)
    )


def test_taking_rows_keeps_the_bundles(engine, codes):
    rows, bundled = np.array([1999, 0, 7, 7]), bundle(codes)
    taken = engine.take(bundled, rows)
    np.testing.assert_array_equal(taken.bundles.values, bundled.bundles.values[:, rows])
    np.testing.assert_array_equal(taken.members, bundled.members)


def test_expanded_tables_add_up_their_members(codes):
    bundled = bundle(codes)
    tables = np.random.default_rng(0).normal(size=(codes.n_cells, 1))
    assert expand_tables(bundled, tables).shape == (bundled.bundles.n_cells, 1)


def test_folded_sums_have_the_total_of_their_bundle(codes):
    bundled = bundle(codes)
    sums = np.random.default_rng(0).integers(100, size=(bundled.bundles.n_cells, 2))
    folded = fold_sums(bundled, sums)
    for position, (first, last) in enumerate(zip(bundled.members[:-1], bundled.members[1:])):
        cells = slice(*bundled.bundles.offsets[position : position + 2])
        for group in range(first, last):
            member = folded[codes.offsets[group] : codes.offsets[group + 1]]
            np.testing.assert_array_equal(member.sum(axis=0), sums[cells].sum(axis=0))


@pytest.mark.parametrize(
    ("n_rows", "n_cells"),
    [
        pytest.param(20, (2,) * 9, id="few rows"),
        pytest.param(2000, (256, 256, 256), id="large groups"),
        pytest.param(2000, (4,), id="one group"),
        pytest.param(2000, (), id="no group"),
    ],
)
def test_codes_stay_as_they_are_where_bundles_do_not_pay(make_codes, n_rows, n_cells):
    codes = make_codes(n_rows, n_cells)
    assert isinstance(bundle(codes), DenseCodes)
    assert bundle(codes) is codes
