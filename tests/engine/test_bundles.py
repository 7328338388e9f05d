"""Bundles of groups: the same sums with fewer look-ups."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mbkl.engine.codes import BundledCodes, bundling
from mbkl.engine.twins import TWINS

CELLS = [
    pytest.param((2,) * 9, id="many pairs"),
    pytest.param((3, 5, 2, 9, 4, 2, 2), id="mixed"),
    pytest.param((200, 2, 2, 2, 300, 3, 3, 3, 2), id="one too large to join"),
]


@pytest.fixture(params=CELLS)
def codes(request, make_codes):
    return make_codes(2000, request.param, dtype=np.uint16)


def test_bundles_are_neighbouring_groups(codes):
    bundled = codes.bundled()
    members = bundled.plan.members
    assert isinstance(bundled, BundledCodes)
    assert (members[0], members[-1]) == (0, codes.n_groups)
    assert (np.diff(members) > 0).all()
    assert bundled.bundles.n_groups == bundled.plan.n_bundles < codes.n_groups
    assert (bundled.n_rows, bundled.n_groups) == (codes.n_rows, codes.n_groups)
    assert bundled.n_cells == codes.n_cells
    assert bundled.bundles.values.size < codes.values.size


def test_a_bundle_code_is_a_number_whose_digits_are_the_codes(codes):
    bundled, sizes = codes.bundled(), np.diff(codes.offsets)
    for position, (first, last) in enumerate(pairwise(bundled.plan.members)):
        number = np.zeros(codes.n_rows, dtype=int)
        for group in range(first, last):
            number = number * sizes[group] + codes.values[group]
        np.testing.assert_array_equal(bundled.bundles.values[position], number)


@pytest.mark.parametrize("n_columns", [1, 2])
def test_passes_over_bundles_are_those_over_groups(loops, codes, n_columns):
    codes = replace(codes, loops=loops)
    generator, bundled = np.random.default_rng(0), codes.bundled()
    tables = generator.normal(size=(codes.n_cells, n_columns))
    residuals = generator.integers(-(2**40), 2**40, size=(codes.n_rows, n_columns))
    assert bundled.loops is loops
    np.testing.assert_allclose(bundled.gather(tables), codes.gather(tables), atol=1e-12)
    np.testing.assert_array_equal(bundled.histogram(residuals), codes.histogram(residuals))
    np.testing.assert_array_equal(bundled.counts(), codes.counts())


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_twins_and_compiled_loops_give_the_same_bits(make_compiled, codes, n_columns, n_threads):
    generator, compiled = np.random.default_rng(0), make_compiled(n_threads)
    tables = generator.normal(size=(codes.n_cells, n_columns))
    residuals = generator.integers(-(2**40), 2**40, size=(codes.n_rows, n_columns))
    twin, bundled = codes.bundled(), replace(codes, loops=compiled).bundled()
    assert (twin.loops, bundled.loops) == (TWINS, compiled)
    assert bundled.gather(tables).tobytes() == twin.gather(tables).tobytes()
    np.testing.assert_array_equal(bundled.histogram(residuals), twin.histogram(residuals))


def test_taking_rows_keeps_the_bundles(loops, codes):
    rows, bundled = np.array([1999, 0, 7, 7]), replace(codes, loops=loops).bundled()
    taken = bundled.take(rows)
    np.testing.assert_array_equal(taken.bundles.values, bundled.bundles.values[:, rows])
    assert taken.plan is bundled.plan


def test_bundles_are_bundled_once(codes):
    bundled = codes.bundled()
    assert bundled.bundled() is bundled


def test_expanded_tables_add_up_their_members(loops, codes):
    plan = bundling(codes.offsets, codes.n_rows)
    tables = np.random.default_rng(0).normal(size=(codes.n_cells, 1))
    expanded = loops.expand_tables(plan, tables)
    assert expanded.shape == (plan.cell_offsets[-1], 1)
    sizes = np.diff(codes.offsets)
    for position, (first, last) in enumerate(pairwise(plan.members)):
        members = np.unravel_index(np.arange(np.prod(sizes[first:last])), tuple(sizes[first:last]))
        expected = sum(
            tables[codes.offsets[group] + member]
            for group, member in zip(range(first, last), members, strict=True)
        )
        found = expanded[plan.cell_offsets[position] : plan.cell_offsets[position + 1]]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_folded_sums_have_the_total_of_their_bundle(loops, codes):
    plan = bundling(codes.offsets, codes.n_rows)
    sums = np.random.default_rng(0).integers(100, size=(plan.cell_offsets[-1], 2))
    folded = loops.fold_sums(plan, sums.copy())
    for position, (first, last) in enumerate(pairwise(plan.members)):
        cells = slice(*plan.cell_offsets[position : position + 2])
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
    assert bundling(codes.offsets, n_rows) is None
    assert codes.bundled() is codes


def test_sparse_codes_are_not_bundled(make_codes):
    codes = make_codes(2000, (2,) * 9, kind="sparse")
    assert codes.bundled() is codes
