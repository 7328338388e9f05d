"""The order of levels in grown ferns."""

import numpy as np

from mbkl.engine.twins import TWINS
from mbkl.maps import categories
from mbkl.maps.categories import OrderedLevels


class Always:
    """A generator of which all levels are told apart."""

    def random(self, shape):
        return np.zeros(shape)


def packed(gradient, curvature):
    return (np.asarray(gradient, np.int64) << 32) + np.asarray(curvature, np.int64)


def test_levels_are_in_the_order_of_their_residuals():
    codes = np.array([[0, 1, 2, 0, 1, 2], [5, 5, 5, 5, 5, 5]], dtype=np.uint8)
    residuals = packed([[-50], [90], [10], [-50], [90], [10]], np.full((6, 1), 10))
    levels = OrderedLevels(codes, np.array([True, False]), np.array([3, 6]), 1.0, TWINS)
    cells = (np.arange(6), residuals, np.array([0, 6]))
    levels.put_in_order(np.array([1]), *cells, 1, Always())
    np.testing.assert_array_equal(levels.codes, codes)  # those that are not asked stay
    levels.put_in_order(np.array([0, 1]), *cells, 1, Always())
    assert levels.ranks[0, :3].tolist() == [0, 2, 1]  # and codes not in use come after them
    np.testing.assert_array_equal(levels.codes[0], levels.ranks[0, codes[0]])
    np.testing.assert_array_equal(levels.codes[1], codes[1])
    assert codes[0].tolist() == [0, 1, 2, 0, 1, 2]


def test_what_the_cells_explain_does_not_count():
    codes = np.array([[0, 1, 0, 1]], dtype=np.uint8)
    # All that differs between the levels, in sum, is the cell that their rows are in.
    residuals = packed([[101], [100], [-101], [-100]], np.full((4, 1), 100))
    cells = (np.arange(4), residuals, np.array([0, 2, 4]))
    sums = TWINS.level_sums(codes, np.array([0]), *cells, 1, 1e-9)
    assert np.abs(sums[0, :, 0, 0]).max() <= 2
    assert sums[0, :2, 0, 1].tolist() == [200, 200]


def test_several_scores_are_looked_at_along_their_leading_direction():
    steps = np.array([[1.0, 1.1], [-2.0, -1.9], [0.2, -0.2]])
    along = categories._along(steps, np.ones((3, 2)))
    assert np.argsort(along).tolist() == [1, 2, 0]
    assert categories._along(np.zeros((3, 2)), np.ones((3, 2))).tolist() == [0, 0, 0]
