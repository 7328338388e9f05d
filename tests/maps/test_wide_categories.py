"""Categories with very many levels in grown ferns."""

import numpy as np

from mbkl.maps.categories import WideCategory, wide_categories


def test_those_with_more_levels_than_a_byte_has_codes_and_cells_of_two():
    assert wide_categories(np.array([0, 254, 255, 10_000, 40_000])).features.tolist() == [2, 3]


def test_steps_lead_to_the_shrunken_optimum_and_a_gain_of_held_out_rows():
    gradient, curvature = np.array([[4.0], [-8.0], [0.0]]), np.full((3, 1), 2.0)
    wide = WideCategory(0, 3, 1)
    for _ in range(60):
        sums = np.stack([gradient + curvature * wide.table, curvature], axis=2)
        wide.step(sums, sums, 1.0)
    np.testing.assert_allclose(wide.table, -gradient / 3.0, atol=1e-4)
    against = np.stack([-gradient, curvature], axis=2)
    fresh = WideCategory(0, 3, 1)
    fresh.step(np.stack([gradient, curvature], axis=2), against, 1.0)
    assert fresh.gain < 0 < wide.gain + 1e-9


def test_a_table_is_a_fern_of_digits():
    wide = WideCategory(7, 1_000, 1)
    wide.table[:, 0] = np.random.default_rng(0).normal(size=1_000)
    members, cells = wide.fern()
    assert members.shape == (8, 1_000)
    number = np.packbits(members, axis=0)[0]
    assert np.abs(cells[number] - wide.table).mean() < 0.02
