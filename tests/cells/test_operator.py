"""Operators of one family and of several, against the matrices they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.cells import Block, FreeCells, Ladder, Operator, operator_of, stacked, sum_in_order
from mbkl.engine.arrays import offsets_of
from mbkl.engine.codes import DenseCodes
from mbkl.engine.files import FileRows
from mbkl.engine.rows import ArrayRows
from mbkl.engine.twins import TWINS
from mbkl.maps import Ferns, Stumps

KINDS = ["stumps", "ferns", "stumps and ferns", "ferns, stumps and ferns"]


def random_operator(kinds, n_cells, n_rows, generator, loops=TWINS):
    """Return an operator on random codes; every kind has its own groups."""
    blocks = []
    offsets = offsets_of(n_cells)
    for kind in kinds:
        values = [generator.integers(count, size=n_rows) for count in n_cells]
        values = np.array(values, dtype=np.uint8).reshape(len(n_cells), n_rows)
        cells = Ladder(offsets) if kind == "stumps" else FreeCells(offsets)
        blocks.append(Block(DenseCodes(values, offsets, loops), cells))
    return Operator(tuple(blocks))


def families_in(kind):
    return kind.replace(" and ", ", ").split(", ")


def drawn_operator(kind, rows):
    blocks = []
    for seed, name in enumerate(families_in(kind)):
        family = Stumps() if name == "stumps" else Ferns(depth=3)
        maps, codes = family.fit_codes(rows, np.ones(rows.shape[0]), 25, seed)
        blocks.append(Block(codes, maps.cells))
    return Operator(tuple(blocks))


@pytest.fixture(params=KINDS)
def operator(request, loops):
    X = np.random.default_rng(0).normal(size=(60, 4))
    return drawn_operator(request.param, ArrayRows(X, loops))


def columns_for(operator, n_columns, seed=0):
    """Return weights of all columns, zero where there is no map."""
    weights = np.random.default_rng(seed).normal(size=(operator.n_columns, n_columns))
    return weights * operator.spread(operator.is_map)[:, None]


def kernel_weights_for(operator, seed=0):
    return np.random.default_rng(seed).random(operator.n_slots) + 0.1


def used_columns(operator):
    """Return the matrix without the columns that are no map."""
    return operator.dense()[:, operator.spread(operator.is_map)]


# --- The matrix ---


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_forward_is_the_product_with_the_matrix(operator, n_columns):
    weights = columns_for(operator, n_columns)
    expected = operator.dense() @ weights
    np.testing.assert_allclose(operator.forward(weights), expected, atol=1e-10)


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_adjoint_is_the_product_with_the_transpose(operator, n_columns):
    residuals = np.random.default_rng(1).normal(size=(60, n_columns))
    pull, total = operator.adjoint_and_total(residuals)
    np.testing.assert_allclose(pull, operator.dense().T @ residuals, atol=1e-10)
    np.testing.assert_array_equal(pull, operator.adjoint(residuals))
    np.testing.assert_allclose(total, residuals.sum(axis=0), atol=1e-10)


@given(
    st.sampled_from(KINDS),
    st.lists(st.integers(2, 6), min_size=1, max_size=5),
    st.integers(1, 20),
    st.integers(0, 2**32),
)
def test_adjointness(kind, n_cells, n_rows, seed):
    generator = np.random.default_rng(seed)
    operator = random_operator(families_in(kind), n_cells, n_rows, generator)
    weights, residuals = columns_for(operator, 2, seed), generator.normal(size=(n_rows, 2))
    forward = (operator.forward(weights) * residuals).sum()
    adjoint = (weights * operator.adjoint(residuals)).sum()
    np.testing.assert_allclose(forward, adjoint, atol=1e-9)


def test_columns_of_ferns_are_indicators(make_codes):
    codes = make_codes()
    dense = operator_of(codes, FreeCells(codes.offsets)).dense()
    for group in range(codes.n_groups):
        for row in range(codes.n_rows):
            part = dense[row, codes.offsets[group] : codes.offsets[group + 1]]
            assert np.flatnonzero(part).tolist() == [codes.values[group, row]]
            assert part.sum() == 1.0


def test_integers_are_added_exactly(operator):
    integers = np.random.default_rng(1).integers(-(2**40), 2**40, size=(60, 2))
    pull, total = operator.adjoint_and_total(integers.astype(np.float64))
    np.testing.assert_array_equal(pull, operator.dense().astype(np.int64).T @ integers)
    np.testing.assert_array_equal(total, integers.sum(axis=0))


def test_mass_is_the_sum_over_the_rows_that_say_yes(operator):
    integers = np.random.default_rng(1).integers(-(2**40), 2**40, size=(60, 2))
    used = operator.spread(operator.is_map)
    expected = (used_columns(operator) > 0).astype(np.int64).T @ integers
    np.testing.assert_array_equal(operator.mass(integers)[used], expected)


def test_gather_adds_up_tables(operator):
    tables = np.random.default_rng(1).normal(size=(operator.n_columns, 3))
    expected, start = np.zeros((60, 3)), 0
    for block in operator.blocks:
        codes = block.codes
        for group in range(codes.n_groups):
            expected += tables[start + codes.offsets[group] + codes.values[group].astype(int)]
        start += codes.n_cells
    np.testing.assert_allclose(operator.gather(tables), expected, atol=1e-10)


# --- Kernel weights ---


def test_collect_is_the_transpose_of_spread(operator):
    generator = np.random.default_rng(0)
    weights = generator.normal(size=operator.n_slots) * operator.is_map
    values = columns_for(operator, 1)[:, 0]
    spread, collected = operator.spread(weights), operator.collect(values)
    assert spread.shape == (operator.n_columns,)
    assert collected.shape == (operator.n_slots,)
    np.testing.assert_allclose(spread @ values, weights @ collected, atol=1e-12)


def test_matrices_are_spread_and_collected_column_by_column(operator):
    weights = np.random.default_rng(0).normal(size=(operator.n_slots, 3))
    values = columns_for(operator, 3)
    spread, collected = operator.spread(weights), operator.collect(values)
    for column in range(3):
        np.testing.assert_array_equal(spread[:, column], operator.spread(weights[:, column]))
        np.testing.assert_allclose(
            collected[:, column], operator.collect(values[:, column]), atol=1e-12
        )


def test_gram_is_the_matrix_times_itself(operator):
    weights = kernel_weights_for(operator)
    Z = operator.dense()
    expected = Z @ np.diag(1.0 / operator.penalty(weights)) @ Z.T
    gram = operator.gram(weights)
    np.testing.assert_allclose(gram, expected, atol=1e-10)
    np.testing.assert_array_equal(gram, gram.T)


def test_gram_of_equal_weights(operator):
    weights = np.full(operator.n_slots, 0.01)
    Z = operator.dense()
    expected = Z @ np.diag(1.0 / operator.penalty(weights)) @ Z.T
    np.testing.assert_allclose(operator.gram(weights), expected, atol=1e-10)


def test_products_are_those_of_the_columns(operator):
    curvature = np.random.default_rng(1).random((60, 2))
    total, mean, diagonal, neighbour = operator.products(curvature)
    Z, D = operator.dense(), curvature
    np.testing.assert_allclose(total, D.sum(axis=0))
    np.testing.assert_allclose(mean, Z.T @ D, atol=1e-10)
    np.testing.assert_allclose(diagonal, (Z**2).T @ D, atol=1e-10)
    expected = np.zeros((operator.n_columns, 2))
    products = (Z[:, 1:] * Z[:, :-1]).T @ D
    expected[1:] = np.where(operator.is_chained[1:, None], products, 0.0)
    np.testing.assert_allclose(neighbour, expected, atol=1e-10)


def test_cells_of_a_fern_are_marked(operator):
    expected = [
        isinstance(block.cells, FreeCells)
        for block in operator.blocks
        for _ in range(block.cells.n_cells)
    ]
    np.testing.assert_array_equal(operator.is_cell, expected)
    assert not (operator.is_cell & operator.is_chained).any()


def test_active_columns_are_those_of_the_matrix(operator):
    for block in operator.blocks:
        columns, n_columns = block.cells.active_columns(block.codes)
        active = np.zeros((60, n_columns))
        active[np.arange(60)[:, None], columns] = 1.0
        Z = used_columns(Operator((block,)))
        if isinstance(block.cells, FreeCells):
            np.testing.assert_array_equal(active, Z)
        else:
            np.testing.assert_array_equal(active[:, 0::2], Z > 0)
            np.testing.assert_array_equal(active[:, 1::2], Z < 0)


# --- Parts of the rows and of the maps ---


@pytest.mark.parametrize("rows", [np.array([5, 0, 59, 5]), np.array([], dtype=np.intp)])
def test_take_is_indexing(operator, rows):
    taken = operator.take(rows)
    assert taken.n_rows == rows.size
    np.testing.assert_array_equal(taken.dense(), operator.dense()[rows])
    weights = columns_for(operator, 2)
    expected = operator.dense()[rows] @ weights
    np.testing.assert_allclose(taken.forward(weights), expected, atol=1e-10)


@pytest.mark.parametrize("share_kept", [0.0, 0.2, 0.8, 1.0])
def test_keep_maps_keeps_their_columns(operator, share_kept):
    kept = np.random.default_rng(3).random(operator.n_slots) < share_kept
    kept &= operator.is_map
    part = operator.keep_maps(kept)
    assert part.is_map.sum() == kept.sum()
    expected = operator.dense()[:, operator.spread(kept)]
    np.testing.assert_array_equal(used_columns(part), expected)
    for n_columns in (1, 3):
        weights = columns_for(part, n_columns)
        np.testing.assert_allclose(part.forward(weights), part.dense() @ weights, atol=1e-10)
        residuals = np.random.default_rng(1).normal(size=(60, n_columns))
        np.testing.assert_allclose(part.adjoint(residuals), part.dense().T @ residuals, atol=1e-10)
    values = columns_for(part, 1)
    assert part.collect(values).shape == (part.n_slots, 1)
    gram_weights = kernel_weights_for(part)
    expected = part.dense() @ np.diag(1.0 / part.penalty(gram_weights)) @ part.dense().T
    np.testing.assert_allclose(part.gram(gram_weights), expected, atol=1e-10)


def test_all_maps_of_one_family_may_go(loops):
    generator = np.random.default_rng(0)
    operator = random_operator(["stumps", "ferns"], [3, 4], 30, generator, loops)
    stumps = np.arange(operator.n_slots) < operator.blocks[0].cells.n_slots
    for gone in (stumps, ~stumps):
        part = operator.keep_maps(operator.is_map & ~gone)
        expected = operator.dense()[:, operator.spread(operator.is_map & ~gone)]
        np.testing.assert_array_equal(used_columns(part), expected)
        weights = columns_for(part, 1)
        np.testing.assert_allclose(part.forward(weights), part.dense() @ weights, atol=1e-10)
        residuals = generator.normal(size=(30, 1))
        np.testing.assert_allclose(part.adjoint(residuals), part.dense().T @ residuals, atol=1e-10)
        _, mean, _, _ = part.products(np.ones((30, 1)))
        np.testing.assert_allclose(mean[:, 0], part.dense().sum(axis=0), atol=1e-10)


# --- Determinism ---


def test_the_order_of_the_rows_does_not_change_the_bits(operator):
    order = np.random.default_rng(5).permutation(60)
    residuals = np.random.default_rng(1).normal(size=(60, 2))
    np.testing.assert_array_equal(
        operator.take(order).adjoint(residuals[order]), operator.adjoint(residuals)
    )
    weights = kernel_weights_for(operator)
    np.testing.assert_array_equal(
        operator.take(order).gram(weights), operator.gram(weights)[np.ix_(order, order)]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_threads_gives_the_same_bits(make_compiled, kind):
    results = []
    for loops in (TWINS, *map(make_compiled, (1, 2, 5))):
        generator = np.random.default_rng(0)
        operator = random_operator(families_in(kind), [3, 5, 2, 9], 200, generator, loops)
        residuals = generator.normal(size=(200, 2))
        results.append(
            [
                operator.forward(columns_for(operator, 3)),
                operator.adjoint(residuals),
                operator.gram(kernel_weights_for(operator)),
                *operator.products(np.abs(residuals[:, :1]))[1:],
            ]
        )
    for other in results[1:]:
        for left, right in zip(results[0], other, strict=True):
            assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_codes_in_files_give_the_same_bits(tmp_path, loops, kind):
    rows = ArrayRows(np.random.default_rng(0).normal(size=(200, 4)), loops)
    in_memory = drawn_operator(kind, rows)
    in_files = drawn_operator(kind, FileRows(rows, loops, tmp_path, block_rows=33))
    residuals = np.random.default_rng(1).normal(size=(200, 2))
    weights, kernel_weights = columns_for(in_memory, 3), kernel_weights_for(in_memory)
    kept = np.random.default_rng(3).random(in_memory.n_slots) < 0.5
    for stored in (in_files, in_files.collected()):
        assert stored.forward(weights).tobytes() == in_memory.forward(weights).tobytes()
        assert stored.adjoint(residuals).tobytes() == in_memory.adjoint(residuals).tobytes()
    assert in_memory.gram(kernel_weights).tobytes() == in_files.gram(kernel_weights).tobytes()
    np.testing.assert_array_equal(
        in_files.keep_maps(kept).dense(), in_memory.keep_maps(kept).dense()
    )
    assert all(isinstance(block.codes, DenseCodes) for block in in_files.collected().blocks)


# --- Several blocks ---


def test_an_operator_is_its_blocks_side_by_side(operator):
    singles = [Operator((block,)) for block in operator.blocks]
    np.testing.assert_array_equal(
        operator.dense(), np.concatenate([one.dense() for one in singles], axis=1)
    )
    for name in ("n_groups", "n_columns", "n_slots"):
        assert getattr(operator, name) == sum(getattr(one, name) for one in singles)
    for name in ("is_map", "is_chained", "is_cell"):
        expected = np.concatenate([getattr(one, name) for one in singles])
        np.testing.assert_array_equal(getattr(operator, name), expected)
    assert operator.longest_chain == max(one.longest_chain for one in singles)
    assert (operator.n_rows, operator.codes) == (60, operator.blocks[0].codes)


def test_signed_maps_are_columns_times_signs(operator):
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=operator.n_columns)
    expected = operator.collect((operator.dense() * signs).T).T
    np.testing.assert_array_equal(operator.signed(signs), expected)


def test_two_blocks_are_two_matrices_side_by_side(loops):
    generator = np.random.default_rng(0)
    operator = random_operator(["stumps", "ferns"], [4, 3, 5], 50, generator, loops)
    stumps, ferns = (block.codes.values for block in operator.blocks)
    numbers = [(group, cell) for group, size in enumerate((4, 3, 5)) for cell in range(size)]
    signs = [np.where(stumps[g] >= c, 1.0, -1.0) * (c > 0) for g, c in numbers]
    indicators = [(ferns[g] == c).astype(float) for g, c in numbers]
    Z = np.array(signs + indicators).T
    np.testing.assert_array_equal(operator.dense(), Z)
    weights, residuals = columns_for(operator, 2), generator.normal(size=(50, 2))
    np.testing.assert_allclose(operator.forward(weights), Z @ weights, atol=1e-10)
    np.testing.assert_allclose(operator.adjoint(residuals), Z.T @ residuals, atol=1e-10)
    # A stump has a weight on either side: half of its kernel weight each.
    theta = generator.random(operator.n_slots) + 0.1
    scale = np.concatenate([theta[:12] / 2, np.repeat(theta[12:], (4, 3, 5))])
    np.testing.assert_allclose(operator.gram(theta), (Z * scale) @ Z.T, atol=1e-10)


def test_a_block_of_which_all_maps_are_kept_is_the_same(operator):
    part = operator.keep_maps(operator.is_map)
    assert all(own is block for own, block in zip(part.blocks, operator.blocks, strict=True))


# --- On a device ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_columns", [1, 3])
def test_an_operator_on_a_device_is_that_of_memory(kind, n_columns):
    pytest.importorskip("torch", reason="Torch is not installed.")
    from mbkl.engine.arrays import to_host
    from mbkl.engine.device import DeviceRows, device_of

    X = np.random.default_rng(0).normal(size=(60, 4))
    operator = drawn_operator(kind, ArrayRows(X))
    on_device = drawn_operator(kind, DeviceRows(X, device_of("torch")))
    assert on_device.many_at_once
    assert not operator.many_at_once
    weights = columns_for(operator, n_columns)
    residuals = np.random.default_rng(1).normal(size=(60, n_columns))
    placed, pulled = on_device.to_device(weights), on_device.to_device(residuals)
    np.testing.assert_allclose(to_host(on_device.forward(placed)), operator.forward(weights))
    for found, expected in (
        (on_device.adjoint(pulled), operator.adjoint(residuals)),
        (on_device.mass(pulled), operator.dense().clip(min=0).T @ residuals),
        *zip(on_device.products(pulled**2), operator.products(residuals**2), strict=True),
    ):
        used = operator.spread(operator.is_map) if len(found) > n_columns else slice(None)
        np.testing.assert_allclose(to_host(found)[used], expected[used], atol=1e-10)
    np.testing.assert_array_equal(on_device.dense(), operator.dense())
    np.testing.assert_array_equal(on_device.collected().dense(), operator.dense())


# --- Pieces ---


def test_pieces_are_stacked_and_added_in_order():
    pieces = [np.ones((2, 1)), np.zeros((3, 1))]
    assert stacked(pieces).shape == (5, 1)
    assert stacked(pieces[:1]) is pieces[0]
    numbers = [np.array([0.1]), np.array([0.2]), np.array([0.3])]
    assert sum_in_order(numbers)[0] == (0.1 + 0.2) + 0.3
