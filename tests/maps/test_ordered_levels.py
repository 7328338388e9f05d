"""Categories with very many levels, in an order that a row has no part in."""

from dataclasses import replace

import numpy as np
import pytest

from mbkl.engine.files import FileRows
from mbkl.engine.rows import ArrayRows
from mbkl.engine.twins import TWINS
from mbkl.maps import GrownFerns, ordered_levels
from mbkl.maps.growth_losses import Targets, objective_of
from mbkl.maps.numbers import Numbers
from mbkl.maps.stumps import fine_stumps

N_ROWS, N_LEVELS = 3_000, 300


@pytest.fixture
def data():
    """Return rows of a category and a number, the effects of the levels, and classes."""
    generator = np.random.default_rng(0)
    levels = generator.integers(N_LEVELS, size=N_ROWS)
    X = np.column_stack([levels, generator.normal(size=N_ROWS)]).astype(np.float32)
    X[::50, 0] = np.nan
    effects = generator.normal(size=N_LEVELS)
    scores = np.where(np.isnan(X[:, 0]), 3.0, effects[levels]) + generator.normal(size=N_ROWS)
    return X, effects, scores


def targets_of(y, n_classes=2):
    return Targets(y, n_classes, np.ones(len(y)))


def put_in_order(rows, targets, n_levels=N_LEVELS):
    """Return the codes with those of orders, how many were there before, and the orders."""
    objective = objective_of("log_loss", targets)
    _, codes = fine_stumps(rows, targets.weights, 0)
    keys = rows.keys_apart(targets.y, targets.weights, 0)
    counts = np.array([n_levels, 0])
    joined, orders = ordered_levels.ordered_levels(rows, codes, counts, objective, targets, keys, 0)
    return joined, codes.n_groups, orders


def test_levels_are_in_the_order_of_what_their_rows_tell(data):
    X, effects, scores = data
    codes, first, (order,) = put_in_order(ArrayRows(X), targets_of((scores > 0).astype(int)))
    assert codes.n_groups == first + 1
    assert codes.offsets[-1] - codes.offsets[-2] == order.n_codes
    assert order.codes.size == N_LEVELS + 2
    assert np.corrcoef(order.codes[1:-1], effects)[0, 1] > 0.6
    assert order.codes[0] > np.quantile(order.codes, 0.8)  # missing values tell much here
    # What no row is of is where nothing is known.
    assert np.quantile(order.codes, 0.2) < order.codes[-1] < np.quantile(order.codes, 0.8)
    # Codes of rows are near those of their levels, but not the same.
    present = ~np.isnan(X[:, 0])
    own, of_all = codes.values[-1][present], order.codes[1 + X[present, 0].astype(int)]
    assert np.corrcoef(own, of_all)[0, 1] > 0.7
    assert (own != of_all).mean() > 0.5


def test_a_row_has_no_part_in_its_own_code(data):
    """Levels of one row each: their order would tell all classes."""
    X, _, scores = data
    X[:, 0] = np.arange(N_ROWS)
    y = (scores > 0).astype(int)
    codes, _, (order,) = put_in_order(ArrayRows(X), targets_of(y), N_ROWS)
    assert abs(np.corrcoef(order.codes[1:-1], y)[0, 1]) > 0.9
    assert np.unique(codes.values[-1]).size == 1


def test_what_is_asked_is_what_was_coded(data, monkeypatch):
    """Where a row may see itself, codes of rows and levels are the same, and so are the cells."""
    X, _, scores = data
    y = (scores > 0).astype(int)
    of_all = ordered_levels._codes_of

    def seen(gradients, curvatures, ridge):
        codes, by_fold = of_all(gradients, curvatures, ridge)
        return codes, np.repeat(codes[:, None], by_fold.shape[1], axis=1).astype(float)

    monkeypatch.setattr(ordered_levels, "_codes_of", seen)
    held_out = np.arange(N_ROWS) % 5 == 0
    targets = replace(targets_of(y), held_out=held_out)
    family = GrownFerns(validation_share=0.0, n_growths=1)
    # Held-out rows that do not count in the end have the scores of the model.
    monkeypatch.setattr("mbkl.maps.grown_ferns.Growth._WORTH_REFILLING", 1.0)
    maps = family.grow(ArrayRows(X), targets, 12, 0, n_levels=np.array([N_LEVELS, 0]))
    scores = maps.score(ArrayRows(X[held_out]), maps.path) + maps.intercept
    assert (maps.features == 0).any()
    np.testing.assert_allclose(scores, maps.held_out_scores, atol=1e-5)


def test_classes_and_targets_have_orders_of_their_own(data):
    X, _, scores = data
    y = np.digitize(scores, [-2.0, -1.0, 0.0, 1.0])
    codes, first, orders = put_in_order(ArrayRows(X), targets_of(y, 5))
    assert len(orders) == codes.n_groups - first == 3
    both = np.column_stack([scores, -scores])
    numbers, levels = Numbers.of(both, np.ones(N_ROWS), "squared_error")
    targets = Targets(levels, len(numbers.values), np.ones(N_ROWS), numbers)
    _, _, (one, other) = put_in_order(ArrayRows(X), targets)
    assert np.corrcoef(one.codes, other.codes)[0, 1] < -0.9


@pytest.mark.parametrize("n_levels", [0, 254, 2**17 + 1])
def test_few_levels_and_too_many_are_left_alone(data, n_levels):
    X, _, scores = data
    X[:, 0] = np.minimum(X[:, 0], max(n_levels - 1, 0))
    codes, first, orders = put_in_order(
        ArrayRows(X), targets_of((scores > 0).astype(int)), n_levels
    )
    assert (codes.n_groups, orders) == (first, [])


def test_levels_that_tell_nothing_are_left_alone(data):
    X, _, _ = data
    y = np.arange(N_ROWS) % 2
    X[:, 0] = np.nan
    codes, first, orders = put_in_order(ArrayRows(X), targets_of(y))
    assert (codes.n_groups, orders) == (first, [])


def test_files_and_devices_have_the_same_codes(data, tmp_path):
    X, _, scores = data
    targets = targets_of((scores > 0).astype(int))
    expected, _, (order,) = put_in_order(ArrayRows(X), targets)
    in_files, _, (own,) = put_in_order(FileRows(ArrayRows(X), TWINS, tmp_path, 700), targets)
    np.testing.assert_array_equal(in_files.dense().values, expected.values)
    np.testing.assert_array_equal(own.codes, order.codes)
    pytest.importorskip("torch", reason="Torch is not installed.")
    from mbkl.engine.device import Device, DeviceRows

    there, _, (own,) = put_in_order(DeviceRows(X, Device("cpu")), targets)
    np.testing.assert_array_equal(there.dense().values, expected.values)
    np.testing.assert_array_equal(own.codes, order.codes)
