"""Models of all families, and the plain way to share a score."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from mbkl import MBKLClassifier
from mbkl.maps import Ferns, Projections, Stumps

FAMILIES = {
    "stumps": "stumps",
    "learned stumps": Stumps(thresholds="quantile"),
    "ferns": Ferns(depth=4),
    "deep ferns": Ferns(depth=14, max_cells=16),
    "auto": "auto",
    "list": ["stumps", Stumps(thresholds="quantile"), Ferns(depth=3)],
}
WITH_PROJECTIONS = {
    "projections": "projections",
    "sparse projections": Projections(directions="sparse"),
    "chi2 projections": Projections(input_map="chi2"),
    "everything": ["stumps", "ferns", "projections"],
}


@pytest.fixture(scope="session")
def fitted(make_data):
    """Return a function that fits a family on small data with missing values."""

    def fit(name, n_classes=3, n_features=4, n_rows=80):
        X, y = make_data(n_rows=n_rows, n_features=n_features, n_classes=n_classes)
        if "chi2" in name:
            X = np.abs(X)
        X[::7, 1] = np.nan
        theta = "learned" if "learned" in name else "ones"
        maps = {**FAMILIES, **WITH_PROJECTIONS}[name]
        model = MBKLClassifier(maps=maps, n_maps=60, theta=theta, random_state=0)
        return model.fit(X, y), X

    return fit


@pytest.fixture(scope="session")
def mixed_scores():
    """Return a function: mean scores with some features of x and the others of each z."""

    def mean(model, x, background, features):
        rows = background.copy()
        rows[:, list(features)] = x[list(features)]
        return model.predictor_.scores(rows).mean(axis=0)

    return mean


@pytest.fixture(scope="session")
def plain_shapley(mixed_scores):
    """Return a function: Shapley values of the whole model, all coalitions looked at."""

    def values(model, x, background):
        players = range(x.size)
        result = np.zeros((x.size, model.intercept_.size))
        for player in players:
            others = [other for other in players if other != player]
            for size in range(x.size):
                weight = factorial(size) * factorial(x.size - size - 1) / factorial(x.size)
                for chosen in combinations(others, size):
                    gain = mixed_scores(model, x, background, (*chosen, player))
                    gain = gain - mixed_scores(model, x, background, chosen)
                    result[player] += weight * gain
        return result

    return values
