"""Why single rows get their scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.explain.attribution import contributions
from mbkl.explain.background import check_number, rows_between_thresholds, some_rows
from mbkl.explain.global_explanation import (
    check_model,
    feature_names_of,
    score_classes,
    unit_of,
)
from mbkl.explain.groups import set_contributions
from mbkl.explain.shapes import plain
from mbkl.extras import require

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class LocalExplanation:
    """What each feature adds to the scores of each row.

    `baseline + contributions.sum(axis=1)` are the scores, and so are
    `baseline + group_contributions.sum(axis=1)`.

    Parameters
    ----------
    feature_names : tuple of str
    classes : tuple
        Class of each score; with two classes there is one score, that of the second. Or the name
        of each target.
    baseline : ndarray of shape (n_columns,)
        Mean scores of the background.
    contributions : ndarray of shape (n_rows, n_features, n_columns)
    scores : ndarray of shape (n_rows, n_columns)
        What `decision_function` returns; or the predictions of a regressor, of counts their
        logarithms.
    groups : tuple of tuple of int, or None
        Sets of features that tables join.
    group_contributions : ndarray of shape (n_rows, n_groups, n_columns) or None
        What the tables of each set add, undivided.
    unit : {"score", "target", "log"}
        What is explained: scores of classes, targets in their units, or logarithms of counts.
    """

    feature_names: tuple[str, ...]
    classes: tuple
    baseline: Array
    contributions: Array
    scores: Array
    groups: tuple[tuple[int, ...], ...] | None = None
    group_contributions: Array | None = None
    unit: str = "score"

    def __repr__(self) -> str:
        n_rows, n_features, n_scores = self.contributions.shape
        return f"<LocalExplanation: {n_rows} rows, {n_features} features, {n_scores} scores>"

    def to_frame(self):
        """Return a pandas data frame with a line for each row and score."""
        pandas = require("pandas", "plot")
        n_rows, n_features = self.contributions.shape[:2]
        lines = pandas.MultiIndex.from_product(
            [range(n_rows), self.classes],
            names=["row", "class" if self.unit == "score" else "target"],
        )
        values = self.contributions.transpose(0, 2, 1).reshape(-1, n_features)
        frame = pandas.DataFrame(values, index=lines, columns=list(self.feature_names))
        frame.insert(0, "baseline", np.tile(self.baseline, n_rows))
        frame["score"] = self.scores.ravel()
        return frame

    def to_dict(self) -> dict:
        """Return plain lists and numbers for JSON."""
        plain_form = {
            "feature_names": list(self.feature_names),
            "classes": [plain(name) for name in self.classes],
            "unit": self.unit,
            "baseline": self.baseline.tolist(),
            "contributions": self.contributions.tolist(),
            "scores": self.scores.tolist(),
        }
        if self.groups is not None and self.group_contributions is not None:
            plain_form["groups"] = [list(features) for features in self.groups]
            plain_form["group_contributions"] = self.group_contributions.tolist()
        return plain_form


def explain_local(
    model, X, *, background=None, background_rows: int = 100, groups: bool = False
) -> LocalExplanation:
    """Divide the scores of rows among the features.

    A feature gets the sum of its shares of all table entries, less their means over a
    background. A stump's table belongs to one feature. A fern's entry is divided by
    Shapley's rule: the mean, over all orders in which its features can be switched from
    a row of the background to the row in question, of what each changes. (Where more
    than eight features of a fern differ, over the orders that go round them in a circle.)
    A projection's entry is divided in proportion to how far each feature moves the row
    along it. For stumps and ferns these are the Shapley values of the whole model.

    The scores of a regressor are its predictions, and shares are in the unit of the target; for
    counts (loss="poisson") they are the logarithms of the predictions.

    Parameters
    ----------
    model : MBKLClassifier or MBKLRegressor
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    background : {array-like, sparse matrix} of shape (n_background, n_features) or None
        Rows to compare with, such as the training data. None means rows that are made
        up from the model: all intervals between thresholds count the same.
    background_rows : int, default=100
        Largest number of background rows, drawn by a hash of their values.
    groups : bool, default=False
        Whether to return also what sets of features add that are joined by ferns or
        projections.

    Returns
    -------
    explanation : LocalExplanation

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.explain import explain_local
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(n_maps=200, random_state=0).fit(X, y)
    >>> explanation = explain_local(model, X[:2], background=X)
    >>> scores = explanation.baseline + explanation.contributions.sum(axis=1)
    >>> np.allclose(scores, model.decision_function(X[:2]))
    True
    """
    check_model(model)
    check_number("background_rows", background_rows)
    X = model._validate_new(X)
    rows = X.toarray() if sparse.issparse(X) else X
    predictor = model.predictor_
    if background is None:
        reference = rows_between_thresholds(predictor.maps, rows.shape[1], background_rows)
    else:
        reference = some_rows(model._validate_new(background), background_rows)
    sets, added = set_contributions(predictor, rows, reference) if groups else (None, None)
    return LocalExplanation(
        feature_names_of(model),
        score_classes(model),
        predictor.scores(reference).mean(axis=0),
        contributions(predictor, rows, reference),
        predictor.scores(rows),
        None if sets is None else tuple(sets),
        None if added is None else added.transpose(1, 0, 2),
        unit_of(model),
    )
