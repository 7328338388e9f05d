"""How much each input column matters, from the tables alone."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mbkl.explain.attribution import along_projections, entries_of
from mbkl.explain.background import rows_between_thresholds
from mbkl.explain.fern_games import FernTables, columns_of
from mbkl.maps.categories import CategoryMaps
from mbkl.maps.families import Maps
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor

Array = NDArray[np.float64]

_MOST_ROWS, _FEWEST_ROWS, _VALUES = 64, 8, 10_000_000


def column_importances(model) -> Array:
    """Return the importance of each input column; they sum to one.

    By how much a score changes, on average, if the column alone gets the value of another
    row. The rows are made up from the model: all intervals between the thresholds of a
    column count the same. No data are needed and no Shapley values computed, so that this
    takes little longer than a prediction; `explain_global` tells more.

    Parameters
    ----------
    model : MBKLClassifier or MBKLRegressor
        Fitted.

    Returns
    -------
    importances : ndarray of shape (n_features_in_,)
        All zero if the model has no maps.

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.explain import column_importances
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    >>> importances = column_importances(model)
    >>> int(importances.argmax()) in (2, 3), round(float(importances.sum()), 12)
    (True, 1.0)
    """
    check_is_fitted(model)
    predictor, n_features = model.predictor_, model.n_features_in_
    n_rows = _VALUES // (n_features * predictor.intercept.size)
    n_rows = min(max(n_rows, _FEWEST_ROWS), _MOST_ROWS)
    rows = rows_between_thresholds(predictor.maps, n_features, n_rows)
    changes = np.abs(_changes(predictor, rows)).mean(axis=1)
    if not hasattr(model, "classes_"):  # targets have units of their own
        totals = changes.sum(axis=0)
        changes = changes / np.where(totals > 0, totals, 1.0)
    changes = changes.mean(axis=1)
    return changes / (changes.sum() or 1.0)


def _changes(predictor: TablePredictor, rows: Array) -> Array:
    """Return the change by each column's value of the row before, (n_features, n_rows, ...)."""
    total = np.zeros((rows.shape[1], rows.shape[0], predictor.intercept.size))
    for maps, tables in predictor.families:
        _add_changes(maps, total, tables, rows)
    return total


@singledispatch
def _add_changes(maps: Maps, total: Array, tables: Array, rows: Array) -> None:
    """Add the changes of one family."""
    raise TypeError(f"Changes by columns of {type(maps).__name__} are unknown.")


@_add_changes.register
def _(maps: StumpMaps | CategoryMaps, total: Array, tables: Array, rows: Array) -> None:
    entries = entries_of(maps, tables, rows)
    total[maps.features] += entries - np.roll(entries, 1, axis=1)


@_add_changes.register
def _(maps: ProjectionMaps, total: Array, tables: Array, rows: Array) -> None:
    total += along_projections(maps, tables, rows, rows)


@_add_changes.register
def _(maps: FernMaps, total: Array, tables: Array, rows: Array) -> None:
    games, columns = FernTables(maps, tables), columns_of(rows)
    for block in games.blocks():
        answers = games.answers(columns, block)
        numbers = answers.numbers[answers.place]
        pieces = slice(*games.bounds[[block.start, block.stop]].tolist())
        fern = games.fern[games.starts[pieces]]
        own, masks = numbers[fern - block.start], games.masks[pieces, None]
        mixed = (own & ~masks) | (np.roll(own, 1, axis=1) & masks)
        here = games.entries(np.arange(block.start, block.stop)[:, None], numbers)
        change = here[fern - block.start] - games.entries(fern[:, None], mixed)
        features = games.features[games.starts[pieces]]
        collect = sparse.csc_array(
            (np.ones(fern.size), features, np.arange(fern.size + 1)), (len(total), fern.size)
        )
        total += (collect @ change.reshape(fern.size, -1)).reshape(total.shape)
