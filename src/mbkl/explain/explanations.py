"""Explanations of a whole model (`explain_global`) and of single rows (`explain_local`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mbkl.engine import limits
from mbkl.explain.attribution import Features, contributions, pair_strengths, set_contributions
from mbkl.explain.rows import check_number, rows_between_thresholds, some_rows
from mbkl.explain.shapes import FeatureShape, plain, shapes_of
from mbkl.extras import require
from mbkl.kernel_predictor import KernelPredictor
from mbkl.predictor import TablePredictor

Array = NDArray[np.float64]

# Work of about a second: pairs of rows, times coalitions of ferns, times columns. The part that is
# done once for all columns costs as much as this number of columns.
_MOST_WORK, _SHARED_WORK = 1e9, 3


@dataclass(frozen=True)
class FeatureGroup:
    """A set of features that at least one table depends on.

    Parameters
    ----------
    features : tuple of int
    name : str
    importances : ndarray of shape (n_columns,)
        Mean absolute centred contribution of these tables to each score.
    importance : float
        Mean of `importances` over the scores; see `GlobalExplanation.importance`.
    """

    features: Features
    name: str
    importances: Array
    importance: float


@dataclass(frozen=True, repr=False)
class GlobalExplanation:
    """Importances, shape functions and interactions of a fitted model.

    Parameters
    ----------
    feature_names : tuple of str
    classes : tuple
        Class of each score; with two classes there is one score, that of the second. Of a
        regressor, the name of each target.
    baseline : ndarray of shape (n_columns,)
        Mean scores of the background.
    importances : ndarray of shape (n_features, n_columns)
        Mean absolute contribution of each feature to each score.
    shapes : tuple of FeatureShape
        Shape functions of the features that stumps or ferns use.
    groups : tuple of FeatureGroup
        Sets of features that share a table, the most important first.
    pair_features : ndarray of shape (n_pair_features,)
        The most important features.
    pair_strengths : ndarray of shape (n_pair_features, n_pair_features)
        Strength of the interaction of each pair of them.
    n_rows : int
        Number of rows over which importances are averaged.
    from_data : bool
        Whether these rows come from given data, not from the thresholds of the model.
    unit : {"score", "target", "log"}
        What is explained: scores of classes, targets in their units, or logarithms of counts.
    """

    feature_names: tuple[str, ...]
    classes: tuple
    baseline: Array
    importances: Array
    shapes: tuple[FeatureShape, ...]
    groups: tuple[FeatureGroup, ...]
    pair_features: NDArray[np.intp]
    pair_strengths: Array
    n_rows: int
    from_data: bool
    unit: str = "score"

    def __repr__(self) -> str:
        best = self.ranking[:3]
        names = ", ".join(f"{self.feature_names[i]} {self.importance[i]:.2g}" for i in best)
        size = f"{len(self.feature_names)} features, {len(self.classes)} scores"
        return f"<GlobalExplanation: {size}, {self.n_rows} rows; most important: {names}>"

    @property
    def importance(self) -> Array:
        """Importance of each feature: the mean over the scores.

        Several targets may have different units: then the mean of the shares that the feature
        has of the sum over all features.
        """
        return (self.importances / self.scale).mean(axis=1)

    @property
    def scale(self) -> Array:
        """Divisor of each column: for several targets the sum over all features, otherwise 1."""
        return _scale(self.importances, self.unit)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Features from the most to the least important."""
        return np.argsort(-self.importance, kind="stable")

    def shape(self, feature: int | str) -> FeatureShape:
        """Return the shape function of a feature, given by number or name."""
        for shape in self.shapes:
            if feature in (shape.feature, shape.name):
                return shape
        raise KeyError(f"no stump and no fern of the model asks about feature {feature!r}.")

    def to_frame(self):
        """Return the importances as a pandas data frame, the greatest first."""
        pandas = require("pandas", "plot")
        columns = {"feature": self.feature_names, "importance": self.importance}
        columns |= {str(name): column for name, column in zip(self.classes, self.importances.T)}
        return pandas.DataFrame(columns).iloc[self.ranking].reset_index(drop=True)

    def to_dict(self) -> dict:
        """Return plain lists and numbers for JSON."""
        return plain(self)


def explain_global(
    model,
    X=None,
    *,
    max_rows: int = 200,
    background_rows: int = 100,
    pair_features: int = 20,
) -> GlobalExplanation:
    """Show what a model has learned.

    The contribution of a feature to a score is defined in `explain_local`; the importance of
    the feature is the mean absolute contribution over rows of X. Its shape function is the sum
    of its stumps' tables and of the partial dependence of the ferns that use it. Without data,
    rows are generated: all intervals between thresholds are equally likely.

    All values are in the unit of the scores. The scores of a regressor are its predictions in
    the unit of the target; for counts (loss="poisson") their logarithms.

    Parameters
    ----------
    model : MBKLClassifier or MBKLRegressor
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features) or None
        For example the training data. The shape functions count all rows.
    max_rows : int, default=200
        Rows over which importances are averaged, drawn by a hash of their values. A model of
        many ferns or classes uses fewer, to take only a few seconds, but at least 25;
        `n_rows` of the result is their number.
    background_rows : int, default=100
        Rows that stand for the absence of features, drawn and limited likewise. Shape functions
        use all of them.
    pair_features : int, default=20
        How many of the most important features are compared pair by pair.

    Returns
    -------
    explanation : GlobalExplanation

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.explain import explain_global
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MBKLClassifier(n_maps=200, random_state=0).fit(X, y)
    >>> explanation = explain_global(model, X)
    >>> explanation.feature_names[explanation.ranking[0]].startswith("petal")
    True
    >>> int(explanation.shape("petal width (cm)").counts.sum())
    150
    """
    check_model(model)
    check_number("max_rows", max_rows)
    check_number("background_rows", background_rows)
    predictor = model.predictor_
    if X is None:
        rows = rows_between_thresholds(predictor.maps, model.n_features_in_, max_rows)
    else:
        X = model.rows_of(X)
        rows = some_rows(X, max_rows)
    background = some_rows(rows, background_rows)
    share = _affordable_share(predictor, len(rows), len(background))
    rows, few_background = (
        some_rows(each, max(int(share * len(each)), limits.FEWEST_ROWS_TO_EXPLAIN))
        for each in (rows, background)
    )
    names, classes = feature_names_of(model), score_classes(model)
    importances = np.abs(contributions(predictor, rows, few_background)).mean(axis=0)
    unit = unit_of(model)
    scale = _scale(importances, unit)
    strongest = np.argsort(-(importances / scale).mean(axis=1), kind="stable")[:pair_features]
    return GlobalExplanation(
        names,
        classes,
        predictor.scores(background).mean(axis=0),
        importances,
        tuple(shapes_of(predictor, background, model.theta_, names, classes, X, model.levels_)),
        _groups(set_contributions(predictor, rows, few_background), names, scale),
        strongest,
        (pair_strengths(predictor, rows, few_background, strongest) / scale).mean(axis=2),
        len(rows),
        X is not None,
        unit,
    )


def strongest_pairs(explanation: GlobalExplanation, most: int) -> list[tuple[int, int, float]]:
    """Return the strongest interactions: two features, the more important first, and strength."""
    features, strengths = explanation.pair_features.tolist(), explanation.pair_strengths
    first, second = np.triu_indices(len(features), 1)
    order = np.argsort(-strengths[first, second], kind="stable")[:most]
    places = zip(first[order].tolist(), second[order].tolist(), strict=True)
    pairs = [(features[i], features[j], float(strengths[i, j])) for i, j in places]
    return [pair for pair in pairs if pair[-1] > 0]


def _scale(importances: Array, unit: str) -> Array:
    """Return divisors of the columns that make several targets with different units comparable."""
    total = importances.sum(axis=0)
    is_one_unit = unit == "score" or total.size == 1
    return np.ones(total.size) if is_one_unit else np.where(total > 0, total, 1.0)


def _groups(
    by_set: dict[Features, Array], names: Sequence[str], scale: Array
) -> tuple[FeatureGroup, ...]:
    """Return the sets of features with their importances, the most important first."""
    groups = []
    for features, contribution in by_set.items():
        importances = np.abs(contribution).mean(axis=0)
        name = " & ".join(names[feature] for feature in features)
        importance = float((importances / scale).mean())
        groups.append(FeatureGroup(features, name, importances, importance))
    return tuple(sorted(groups, key=lambda group: -group.importance))


def _affordable_share(predictor: TablePredictor, n_rows: int, n_background: int) -> float:
    """Return the share of rows and of background rows that can be compared within seconds."""
    # Two rows differ in about half of the stumps of a fern, and in at most all its features.
    players = [min(each.size / 2, np.unique(each).size, 6) for each, _ in predictor.maps.ferns]
    n_coalitions = np.exp2(players).sum()
    work = n_rows * n_background * n_coalitions * (_SHARED_WORK + predictor.intercept.size)
    return min((_MOST_WORK / max(work, 1)) ** 0.5, 1.0)


def check_model(model) -> None:
    """Raise an error unless the model is a fitted classifier or regressor of this package."""
    if not isinstance(model, KernelPredictor):
        raise TypeError(
            f"model must be an MBKLClassifier or MBKLRegressor, got {type(model).__name__}."
        )
    check_is_fitted(model)


def feature_names_of(model) -> tuple[str, ...]:
    """Return the names of the features, or x0, x1, ... where the model has none."""
    return tuple(str(name) for name in _check_feature_names_in(model))


def unit_of(model) -> str:
    """Return the unit of the scores; see `GlobalExplanation.unit`."""
    if hasattr(model, "classes_"):
        return "score"
    return "log" if model.loss == "poisson" else "target"


def score_classes(model) -> tuple:
    """Return the class of each score (of two classes the second only), or the target names."""
    if not hasattr(model, "classes_"):
        return tuple(model.target_names_)
    classes = tuple(model.classes_.tolist())
    return classes[1:] if len(classes) == 2 else classes


@dataclass(frozen=True, repr=False)
class LocalExplanation:
    """Contributions of the features to the scores of rows.

    `baseline + contributions.sum(axis=1)` are the scores, and so are
    `baseline + group_contributions.sum(axis=1)`.

    Parameters
    ----------
    feature_names, classes, baseline, unit
        See `GlobalExplanation`.
    contributions : ndarray of shape (n_rows, n_features, n_columns)
    scores : ndarray of shape (n_rows, n_columns)
        What `decision_function` returns; of a regressor the predictions, of counts their
        logarithms.
    groups : tuple of tuple of int, or None
        Sets of features that share a table.
    group_contributions : ndarray of shape (n_rows, n_groups, n_columns) or None
        Contribution of the tables of each set.
    """

    feature_names: tuple[str, ...]
    classes: tuple
    baseline: Array
    contributions: Array
    scores: Array
    groups: tuple[Features, ...] | None = None
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
        """Return plain lists and numbers for JSON, without entries that are None."""
        return {name: value for name, value in plain(self).items() if value is not None}


def explain_local(
    model, X, *, background=None, background_rows: int = 100, groups: bool = False
) -> LocalExplanation:
    """Divide the scores of rows among the features.

    The contribution of a feature is the sum of its shares of all table entries, less their
    means over a background. A stump's table belongs to one feature. A fern's entry is divided
    by Shapley values: the mean change by each feature, over all orders in which the features
    can be switched from a background row to the explained row. (Where more than seven
    features of a fern differ, over the orders that go round them in a circle.) A
    projection's entry is divided in proportion to how far each feature moves the projection.
    For stumps and ferns these are the Shapley values of the whole model.

    The scores of a regressor are its predictions, and shares are in the unit of the target; for
    counts (loss="poisson") they are the logarithms of the predictions.

    Parameters
    ----------
    model : MBKLClassifier or MBKLRegressor
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    background : {array-like, sparse matrix} of shape (n_background, n_features) or None
        Rows to compare with, such as the training data. None means rows generated from
        the model: all intervals between thresholds are equally likely.
    background_rows : int, default=100
        Largest number of background rows, drawn by a hash of their values.
    groups : bool, default=False
        Whether to return also the contributions of the sets of features in one fern or
        projection.

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
    X = model.rows_of(X)
    rows = X.toarray() if sparse.issparse(X) else X
    predictor = model.predictor_
    if background is None:
        reference = rows_between_thresholds(predictor.maps, rows.shape[1], background_rows)
    else:
        reference = some_rows(model.rows_of(background), background_rows)
    by_set = set_contributions(predictor, rows, reference) if groups else {}
    scores = predictor.scores(rows)
    return LocalExplanation(
        feature_names_of(model),
        score_classes(model),
        predictor.scores(reference).mean(axis=0),
        contributions(predictor, rows, reference),
        scores,
        tuple(by_set) if groups else None,
        np.reshape([*by_set.values()], (-1, *scores.shape)).swapaxes(0, 1) if groups else None,
        unit_of(model),
    )
