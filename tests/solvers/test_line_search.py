"""Steps that lower their objectives enough."""

import numpy as np
import pytest

from mbkl.solvers.line_search import descend


@pytest.mark.parametrize("steepness", [0.1, 1.0, 7.0, 1e4])
def test_steps_lower_the_objective(steepness):
    def rise(step):
        return steepness * step**2 - step

    steps, gains = descend(rise, np.array([-1.0]))
    assert 0 < steps[0] <= 1
    assert gains[0] == -rise(steps)[0] > 0


def test_columns_have_steps_of_their_own():
    curvature = np.array([0.5, 8.0])
    steps, _ = descend(lambda step: curvature * step**2 - step, np.array([-1.0, -1.0]))
    assert steps[0] == 1.0
    assert steps[1] < 0.125


def test_no_step_where_the_objective_only_rises():
    steps, _ = descend(lambda step: step, np.array([-1.0]))
    assert steps[0] == 0.0
