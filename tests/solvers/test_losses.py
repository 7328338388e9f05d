"""Losses: their derivatives and conjugates."""

import numpy as np
import pytest

from mbkl.solvers.problem import LOSSES, Hinge, Logistic, SquaredHinge, exact_loss, smoothing_path

SMOOTH = [SquaredHinge(), Hinge(0.5), Hinge(0.02), Logistic()]
EXACT = [SquaredHinge(), Hinge(), Logistic()]
# Away from the kinks at 1 - width and 1.
MARGINS = np.array([-30.0, -3.2, -0.7, 0.0, 0.31, 0.73, 0.77, 0.985, 1.013, 1.9, 40.0])
name_of = repr


@pytest.mark.parametrize("loss", [*SMOOTH, Hinge()], ids=name_of)
def test_support_is_minus_the_slope(loss):
    step = 1e-6
    slope = (loss.value(MARGINS + step) - loss.value(MARGINS - step)) / (2 * step)
    np.testing.assert_allclose(loss.support(MARGINS), -slope, atol=1e-6)


@pytest.mark.parametrize("loss", SMOOTH, ids=name_of)
def test_curvature_is_the_slope_of_the_slope(loss):
    step = 1e-6
    slope = (loss.support(MARGINS - step) - loss.support(MARGINS + step)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(MARGINS), slope, atol=1e-6)


@pytest.mark.parametrize("loss", [*SMOOTH, Hinge()], ids=name_of)
def test_losses_are_convex_not_increasing_and_not_negative(loss):
    margins = np.linspace(-5, 5, 401)
    assert (loss.value(margins) >= 0).all()
    assert (loss.support(margins) >= 0).all()
    assert (np.diff(loss.support(margins)) <= 1e-12).all()
    assert (loss.curvature(margins) >= 0).all()


@pytest.mark.parametrize("loss", EXACT, ids=name_of)
def test_dual_value_touches_the_loss_at_its_support(loss):
    support = loss.support(MARGINS)
    np.testing.assert_allclose(
        loss.dual_value(support) - support * MARGINS, loss.value(MARGINS), atol=1e-10
    )


@pytest.mark.parametrize("loss", EXACT, ids=name_of)
def test_dual_value_is_a_lower_bound_everywhere(loss):
    support = np.linspace(0, 1 if loss.support_is_limited else 9, 101)[:, None]
    bound = loss.dual_value(support) - support * MARGINS
    assert (bound <= loss.value(MARGINS) + 1e-12).all()


@pytest.mark.parametrize("cost", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=name_of)
def test_conjugate_slope_finds_the_margin_of_a_support(loss, cost):
    margins = np.array([-3.0, -0.5, 0.0, 0.4, 0.9])
    support = cost * loss.support(margins)
    costs = np.full(margins.size, cost)
    np.testing.assert_allclose(loss.offset - loss.conjugate_slope(support, costs), margins)


@pytest.mark.parametrize("cost", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("loss", EXACT, ids=name_of)
def test_conjugate_curvature_is_the_slope_of_the_conjugate_slope(loss, cost):
    support = cost * np.array([0.1, 0.3, 0.5, 0.8])
    costs, step = np.full(support.size, cost), 1e-6 * cost
    slope = loss.conjugate_slope(support + step, costs) - loss.conjugate_slope(
        support - step, costs
    )
    np.testing.assert_allclose(
        loss.conjugate_curvature(support, costs), slope / (2 * step), rtol=1e-6
    )


@pytest.mark.parametrize("width", [0.5, 0.02])
def test_a_smoothed_hinge_is_within_half_its_width(width):
    margins = np.linspace(-2, 3, 301)
    difference = Hinge().value(margins) - Hinge(width).value(margins)
    assert difference.min() >= 0
    assert difference.max() == pytest.approx(width / 2)


def test_extreme_margins_stay_finite():
    margins = np.array([-1e4, -800.0, 800.0, 1e4])
    for loss in (*SMOOTH, Hinge()):
        for values in (loss.value(margins), loss.support(margins), loss.curvature(margins)):
            assert np.isfinite(values).all()
    assert np.isfinite(Logistic().dual_value(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize(
    ("name", "goal"),
    [("squared_hinge", SquaredHinge()), ("logistic", Logistic()), ("hinge", Hinge())],
)
def test_a_path_ends_near_its_goal(name, goal):
    path = smoothing_path(LOSSES[name])
    assert exact_loss(path[-1]) == goal
    np.testing.assert_allclose(path[-1].value(MARGINS), goal.value(MARGINS), atol=5e-4)


def test_widths_shrink_along_the_path():
    widths = [loss.smoothing for loss in smoothing_path(Hinge())]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] > 0
