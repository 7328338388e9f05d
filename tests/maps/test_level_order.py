"""The order of levels in grown ferns."""

import numpy as np

from mbkl.engine.twins import TWINS, along
from mbkl.maps.growing_rows import Levels


def packed(gradient, curvature):
    return (np.asarray(gradient, np.int64) << 32) + np.asarray(curvature, np.int64)


def places(codes, residuals, starts, n_codes, ridge=1.0, is_ranked=True):
    told = np.full(256, is_ranked)
    order = np.arange(len(codes))
    return TWINS.put_in_order(codes, order, residuals, np.array(starts), told, n_codes, ridge)


def test_levels_are_in_the_order_of_their_residuals():
    codes = np.array([0, 1, 2, 0, 1, 2], dtype=np.uint8)
    residuals = packed([[-50], [90], [10], [-50], [90], [10]], np.full((6, 1), 10))
    found = places(codes, residuals, [0, 6], 3)
    assert found[:4].tolist() == [0, 2, 1, 3]  # and codes not in use come after them
    assert places(codes, residuals, [0, 6], 3, is_ranked=False)[:3].tolist() == [0, 1, 2]


def test_stumps_ask_about_the_levels_that_collect_most():
    codes = np.array([[0, 1, 2, 0, 1, 2], [5, 5, 5, 5, 5, 5]], dtype=np.uint8)
    residuals = packed([[-50], [90], [-50], [-50], [90], [-50]], np.full((6, 1), 10))
    is_category, n_codes = np.array([True, False]), np.array([3, 6])
    none = np.zeros((1, 2), np.int64)
    levels = Levels(np.array([[0, 1]]), none, none)
    is_ranked = np.ones((1, 1, 256), bool)
    arguments = (codes, is_category, n_codes, levels, is_ranked, residuals, 1.0)
    (feature,), (cut,), (n_above,), (ranks,), _ = TWINS.choose_stumps(*arguments)
    assert (feature, n_above) == (0, 2)
    assert (ranks[:3] > cut).tolist() == [False, True, False]


def test_what_the_cells_explain_does_not_count():
    codes = np.array([0, 1, 0, 1], dtype=np.uint8)
    # All that differs between the levels, in sum, is the cell that their rows are in.
    residuals = packed([[1000], [990], [-1000], [-980]], np.full((4, 1), 100))
    assert places(codes, residuals, [0, 2, 4], 2, 1e-9)[:2].tolist() == [0, 1]
    assert places(codes, residuals[::-1], [0, 2, 4], 2, 1e-9)[:2].tolist() == [1, 0]


def test_several_scores_are_looked_at_along_their_leading_direction():
    steps = np.array([[1.0, 1.1], [-2.0, -1.9], [0.2, -0.2]])
    found = along(steps, np.ones((3, 2)))
    assert np.argsort(found).tolist() == [1, 2, 0]
    assert along(np.zeros((3, 2)), np.ones((3, 2))).tolist() == [0, 0, 0]
