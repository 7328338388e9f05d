"""How far to go along a direction."""

from __future__ import annotations

from collections.abc import Callable

from mbkl.engine.arrays import Values, namespace

_MOST_HALVINGS = 40
_ENOUGH = 1e-4


def descend(rise: Callable[[Values], Values], slope: Values) -> tuple[Values, Values]:
    """Halve steps of one until each lowers its objective by a share of what the slope promises.

    Slopes are derivatives at a step of zero, and `rise` returns the changes of the objectives for
    given steps. Returned are steps, zero where none lowers the objective enough, and gains.

    >>> descend(lambda step: 2.0 * step**2 - step, np.array([-1.0]))
    (array([0.25]), array([0.125]))
    """
    xp = namespace(slope)
    steps = 0.0 * slope + 1.0
    for _ in range(_MOST_HALVINGS):
        change = rise(steps)
        enough = change <= _ENOUGH * steps * slope
        if enough.all():
            return steps, -change
        steps = xp.where(enough, steps, steps / 2)
    return xp.where(enough, steps, 0.0), -change
