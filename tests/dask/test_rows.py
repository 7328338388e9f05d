"""Arrays in parts behave as those of NumPy, and add up to the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from mbkl.dask.rows import RemoteMatrix, RemoteRows, RowSet
from mbkl.dask.store import nothing
from mbkl.engine.arrays import exact_sum, exact_total


@pytest.fixture(scope="module")
def spread(local_crew):
    """Return a function that gives the weights of rows in parts."""

    def make(values, cuts=(3, 3, 7)):
        pieces = np.split(values, list(cuts))
        parts = [(np.zeros((len(own), 1)), np.zeros(len(own)), own) for own in pieces]
        crew = local_crew(parts)
        return crew, RemoteMatrix(crew).labelled()[2]

    return make


@pytest.fixture
def both(spread):
    values = np.random.default_rng(0).random(10) + 0.1
    _, rows = spread(values)
    return values, rows


def fetch(rows) -> np.ndarray:
    """Return an array in parts as one."""
    return rows.collected()


EXPRESSIONS = {
    "arithmetic": lambda a: 2.0 * a - a**2 / (1.0 + a),
    "columns": lambda a: a[:, None] * np.array([1.0, -2.0]) + np.array([0.5, 0.25]),
    "comparison": lambda a: np.where((a < 0.5) & (a > 0.2), 1.0, a),
    "functions": lambda a: np.logaddexp(0.0 * a, -a) + special.expit(a) + np.maximum(a, 0.4),
    "clip": lambda a: np.clip(a, 0.3, 0.6),
    "type": lambda a: np.rint(8 * a).astype(np.int64),
    "some columns": lambda a: (a[:, None] * np.arange(3.0))[:, np.array([2, 0])],
    "one column": lambda a: (a[:, None] * np.arange(3.0))[:, 1],
    "sides": lambda a: abs(-a) + (1.0 - a) + np.sqrt(a),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name, both):
    values, rows = both
    expected = EXPRESSIONS[name](values)
    found = EXPRESSIONS[name](rows)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.size == expected.size
    np.testing.assert_array_equal(fetch(found), expected)


def test_in_place_operations(both):
    values, rows = both
    plain, remote = values[:, None] * np.ones(3), rows[:, None] * np.ones(3)
    before = remote + 0.0
    for array, own in ((plain, values), (remote, rows)):
        array[:, np.array([0, 2])] += own[:, None] * np.array([1.0, 10.0])
        array *= 2.0
    np.testing.assert_array_equal(fetch(remote), plain)
    np.testing.assert_array_equal(fetch(before), values[:, None] * np.ones(3))


@given(st.lists(st.integers(0, 30), max_size=4), st.integers(0, 5))
def test_sums_have_the_same_bits_for_any_parts(spread, cuts, seed):
    generator = np.random.default_rng(seed)
    values = generator.random(30) * 10.0 ** generator.integers(-9, 9, size=30)
    _, rows = spread(values, sorted(cuts))
    assert exact_total(rows) == exact_total(values)
    columns = np.array([1.0, -3.0, 1e-9])
    np.testing.assert_array_equal(
        exact_sum(rows[:, None] * columns), exact_sum(values[:, None] * columns)
    )


def test_rows_that_are_not_zero(both):
    values, rows = both
    chosen = np.flatnonzero(np.where(rows > 0.5, rows, 0.0))
    assert isinstance(chosen, RowSet)
    assert chosen.size == (values > 0.5).sum()
    part = rows[chosen]
    assert part.shape == (chosen.size,)
    assert exact_total(part) == exact_total(values[values > 0.5])


def test_sums_of_numbers_with_a_fraction_are_refused(both):
    with pytest.raises(TypeError, match="Only integers"):
        both[1].sum(axis=0)


def test_nothing_is_gathered_by_accident(both):
    with pytest.raises(TypeError, match="not gathered"):
        np.asarray(both[1])
    with pytest.raises(TypeError):
        np.sort(both[1])


def test_stores_forget_what_nobody_refers_to(spread):
    crew, rows = spread(np.ones(10))
    exact_total(rows)
    crew.call(nothing)
    held = len(crew._stores[0]._objects)
    for _ in range(20):
        exact_total((rows + 1.0) * 2.0)
    crew.call(nothing)
    assert len(crew._stores[0]._objects) == held


def test_a_chain_is_computed_once(spread):
    _, rows = spread(np.ones(10))
    twice = rows * 2.0
    assert isinstance(twice, RemoteRows)
    assert not twice.node.is_computed
    exact_total(twice)
    assert twice.node.is_computed
    assert twice.node.order().function is None
