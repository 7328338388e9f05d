"""Categories on a device: the order of their levels, their sets and their tables as on the CPU."""

import numpy as np
import pytest

from mbkl.engine.device import Device, DeviceRows
from mbkl.engine.rows import ArrayRows
from mbkl.engine.twins import along as along_here
from mbkl.maps import Ferns, GrownFerns
from mbkl.maps.device_growth import along
from mbkl.maps.growing_rows import Draft, coarse_levels, growing_rows
from mbkl.maps.growth_losses import LogLoss, Targets
from mbkl.maps.stumps import fine_stumps

torch = pytest.importorskip("torch", reason="Torch is not installed.")

N_LEVELS = np.array([0, 9, 0, 30, 400])


def sample(n_rows=900, n_classes=2, seed=0):
    """Return two numbers and three categories, the last with more levels than a byte has."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, N_LEVELS.size))
    for column in np.flatnonzero(N_LEVELS):
        X[:, column] = generator.integers(N_LEVELS[column], size=n_rows)
    y = ((X[:, 1] * 7 % 9 > 3) * 1 + (X[:, 4] % 3 > X[:, 0])) % n_classes
    X[generator.random(X.shape) < 0.1] = np.nan
    return X, y


def both(X):
    return ArrayRows(X), DeviceRows(X, Device("cpu"))


@pytest.mark.parametrize("n_columns", [1, 3])
def test_levels_along_their_leading_direction(n_columns):
    generator = np.random.default_rng(0)
    steps, mass = generator.normal(size=(2, 4, 50, n_columns)) ** 2
    steps[1] = 0.0
    found = along(torch.as_tensor(steps), torch.as_tensor(mass)).numpy()
    expected = [along_here(*each) for each in zip(steps, mass, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_category", [N_LEVELS > 0, np.zeros(N_LEVELS.size, bool)], ids=str)
def test_stumps_on_categories_are_those_of_the_cpu(n_classes, is_category):
    X, y = sample(n_classes=n_classes)
    columns = np.arange(1 if n_classes == 2 else 3)
    found = []
    for rows in both(X):
        _, codes = fine_stumps(rows, np.ones(len(y)), 0)
        keys = rows.keys_apart(y, np.ones(len(y)), 0)
        growing = growing_rows(codes, LogLoss(n_classes), y, np.ones(len(y)), keys, 0)
        growing.begin(np.zeros(columns.size, np.float32))
        n_codes, generator = np.diff(growing.offsets), np.random.default_rng(1)
        asked = np.array([[0, 1, 3], [1, 2, 4]] * 3)
        levels = coarse_levels(asked, n_codes, growing.n_training, generator)
        own = (np.arange(5), columns, n_codes, is_category, levels, generator)
        (chosen,) = growing.choose([Draft(0, 1, len(y), *own)], 3.0)
        (added,) = growing.add([chosen], [0.1], [3.0])
        found.append((chosen, np.asarray(added.table), np.asarray(growing._cells)))
    (expected, *rest), (chosen, *others) = found
    asks_sets = is_category[chosen.features]
    assert asks_sets.any() == is_category.any()
    np.testing.assert_array_equal(chosen.features, expected.features)
    np.testing.assert_array_equal(chosen.cuts, expected.cuts)
    if asks_sets.any():
        np.testing.assert_array_equal(chosen.members[asks_sets], expected.members[asks_sets])
    np.testing.assert_array_equal(chosen.usual[asks_sets], expected.usual[asks_sets])
    np.testing.assert_allclose(others[0], rest[0], atol=1e-6)
    np.testing.assert_array_equal(others[1], rest[1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_grown_ferns_with_sets_and_tables_of_levels(n_classes):
    X, y = sample(n_classes=n_classes)
    family = GrownFerns(depth=4)
    found = []
    for rows in both(X):
        maps = family.grow(rows, Targets(y, n_classes, np.ones(len(y))), 12, 0, n_levels=N_LEVELS)
        found.append((maps, maps.intercept + maps.score(rows, maps.path)))
    (here, expected), (there, scores) = found
    assert there.sets is not None
    assert (N_LEVELS[there.features] == 400).any()
    assert there.n_maps == here.n_maps
    np.testing.assert_allclose(scores, expected, atol=0.02)


def test_ferns_that_saw_no_category_are_filled_again_beside_others():
    """Few of many columns are seen by each fern, and tables are filled again in other groups."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 80))
    X[:, 0] = generator.integers(5, size=600)
    y = 1 * ((X[:, 0] > 2) + X[:, 3] / 2 + generator.normal(size=600) > 0.5)
    n_levels = np.zeros(80, dtype=np.int64)
    n_levels[0] = 5
    family, targets = GrownFerns(depth=3, n_growths=1), Targets(y, 2, np.ones(600))
    scores = []
    for rows in both(X):
        maps = family.grow(rows, targets, 12, 0, n_levels=n_levels)
        ferns = np.split(maps.features, maps.offsets[1:-1])
        assert 0 < sum((own == 0).any() for own in ferns) < maps.n_maps
        scores.append(maps.intercept + maps.score(rows, maps.path))
    np.testing.assert_allclose(*scores, atol=1e-4)


def test_random_ferns_have_the_cells_of_the_cpu():
    X, _ = sample()
    (maps, codes), (others, there) = (
        Ferns(depth=5).fit_codes(rows, np.ones(len(X)), 30, 0, N_LEVELS) for rows in both(X)
    )
    assert maps.sets is not None
    np.testing.assert_array_equal(others.numbers, maps.numbers)
    np.testing.assert_array_equal(there.values.numpy(), codes.values)
    new = np.array([[0.0, 9.0, 0.0, 77.0, np.nan], [0.0, np.nan, np.nan, 3.0, 1e6]])
    tables = np.random.default_rng(0).normal(size=(int(maps.cell_offsets[-1]), 2))
    scores = [maps.score(rows, tables) for rows in both(new)]
    np.testing.assert_allclose(*scores, atol=1e-12)
