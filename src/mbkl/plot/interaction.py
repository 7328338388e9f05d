"""A picture of what two features add together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.explain.background import some_rows
from mbkl.explain.global_explanation import (
    check_model,
    feature_names_of,
    score_classes,
    unit_of,
)
from mbkl.plot.style import add_colour_bar, added_words, number_of, pyplot, quieten, shorten


@dataclass(eq=False, repr=False)
class InteractionDisplay:
    """Heat map of the joint partial dependence of a score on two features.

    Parameters
    ----------
    grids : pair of ndarray of shape (n_first,) and (n_second,)
        Values of the two features.
    values : ndarray of shape (n_second, n_first)
        Mean score of the background with both features at these values, less its mean.
    names : pair of str
    label : str
        Class of the score, or name of the target.
    unit : {"score", "target", "log"}, default="score"
        See `GlobalExplanation`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    mesh_ : matplotlib QuadMesh

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.plot import InteractionDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    >>> display = InteractionDisplay.from_estimator(model, X, features=(2, 3), resolution=8)
    >>> display.values.shape
    (8, 8)
    """

    grids: Sequence[NDArray[np.float64]]
    values: NDArray[np.float64]
    _: KW_ONLY
    names: Sequence[str]
    label: str = ""
    unit: str = "score"

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        features,
        label=None,
        background_rows: int = 50,
        resolution: int = 40,
        ax=None,
    ):
        """Compute a joint partial dependence and draw it.

        Parameters
        ----------
        estimator : MBKLClassifier or MBKLRegressor
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The values of all other features are those of some of these rows.
        features : pair of int or str
            The two features, by number or name.
        label : class label, name of a target, or None
            Whose score; None means the one that changes most, or the first target.
        background_rows : int, default=50
            Rows of X to average over, drawn by a hash of their values.
        resolution : int, default=40
            Values of each feature, evenly spread over those of X.
        ax : matplotlib Axes or None

        Returns
        -------
        display : InteractionDisplay
        """
        check_model(estimator)
        names, classes = feature_names_of(estimator), score_classes(estimator)
        pair = [_feature(names, feature) for feature in features]
        if len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"features must be two different ones, got {features!r}.")
        data = estimator._validate_new(X)
        grids = [_grid(some_rows(data[:, [feature]], 10_000), resolution) for feature in pair]
        rows = some_rows(data, background_rows)
        mixed = np.tile(rows, (resolution**2, 1))
        for feature, values in zip(pair, np.meshgrid(*grids)):
            mixed[:, feature] = np.repeat(values.ravel(), len(rows))
        scores = estimator.predictor_.scores(mixed).reshape(resolution, resolution, len(rows), -1)
        means = scores.mean(axis=2)
        unit = unit_of(estimator)
        if label is not None:
            column = number_of(classes, label)
        else:
            column = int(np.ptp(means, axis=(0, 1)).argmax()) if unit == "score" else 0
        values = means[:, :, column] - estimator.predictor_.scores(rows)[:, column].mean()
        display = cls(
            grids,
            values,
            names=[names[feature] for feature in pair],
            label=str(classes[column]),
            unit=unit,
        )
        return display.plot(ax=ax)

    def plot(self, ax=None, *, cmap="RdBu", colorbar: bool = True):
        """Draw into an axes, or into a new figure; return the display."""
        if ax is None:
            _, ax = pyplot().subplots(figsize=(5.4, 4.4), layout="constrained")
        most = np.abs(self.values).max() or 1.0
        self.mesh_ = ax.pcolormesh(
            *self.grids, self.values, cmap=cmap, vmin=-most, vmax=most, shading="nearest"
        )
        ax.set_xlabel(shorten(self.names[0], 40))
        ax.set_ylabel(shorten(self.names[1], 40))
        quieten(ax)
        if colorbar:
            add_colour_bar(ax, self.mesh_, added_words(self.unit, self.label), fraction=0.05)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _feature(names, feature) -> int:
    if feature in names:
        return names.index(feature)
    if isinstance(feature, (int, np.integer)) and 0 <= feature < len(names):
        return int(feature)
    raise ValueError(f"features names {feature!r}, which is no name or number of a feature.")


def _grid(column: NDArray, resolution: int) -> NDArray[np.float64]:
    """Return values evenly spread over a column, less its outermost ends."""
    present = column[~np.isnan(column)]
    low, high = np.quantile(present, [0.005, 0.995]) if present.size else (0.0, 0.0)
    return np.linspace(low, high if high > low else low + 1.0, resolution)
