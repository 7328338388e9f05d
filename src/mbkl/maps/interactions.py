"""Interactions: pairs and triples of features that separate the classes only together.

Where the effect of a feature changes its sign with that of others, as in a parity, its slope
is zero on average, and rates learned from slopes miss it. But if each feature is cut at its
median (or into quarters, for a chess board), the product of two or three signs is correlated
with the label, and a few hundred rows are enough to test all products.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import limits

Array = NDArray[np.float64]


def evidence_of_features(ranks: Array, labels: Array, weights: Array) -> Array:
    """Return the evidence for each feature, alone or in products with others, beyond chance.

    That is the sum of the squared z-scores of the feature and of all products with it, each less
    the largest that is expected of so many random products, or zero. Labels are +1 or -1.

    >>> X = np.random.default_rng(0).random((300, 5))
    >>> y = np.sign((X[:, [0]] - 0.5) * (X[:, [1]] - 0.5) * (X[:, [2]] - 0.5))
    >>> evidence_of_features(X, y, np.ones(300)).astype(bool)
    array([ True,  True,  True, False, False])
    """
    n_rows, n_features = ranks.shape
    if not 2 <= n_features <= limits.FEATURES_FOR_PAIRS:
        return np.zeros(n_features)
    share = weights / weights.sum()
    halves, quarters = _signs(ranks)
    functions = [_standardised(part, share) for part in (halves, quarters, halves * quarters)]
    targets = _standardised(labels, share) * share[:, None] * n_rows**0.5
    with_triples = n_features <= limits.FEATURES_FOR_TRIPLES
    n_products = 4.5 * n_features**2 + (n_features**3 / 6 if with_triples else 0)
    # The expected largest of so many squared normal numbers, and a margin.
    chance = 2.0 * np.log(n_products * labels.shape[1]) + 6.0
    evidence = np.zeros(n_features)
    for target in targets.T:
        # Features with an effect of their own count, too, or interactions would displace them.
        for columns in functions:
            evidence += np.maximum((target @ columns) ** 2 - chance, 0.0)
        evidence += _pairs(functions, target, chance)
        if with_triples:
            evidence += _triples(functions[0], target, chance)
    return evidence


def _signs(ranks: Array) -> tuple[Array, Array]:
    """Return +1 or -1 for the halves, and for the outer and inner quarters, of each feature."""
    low, middle, high = np.quantile(ranks, [0.25, 0.5, 0.75], axis=0)
    above, not_below = ranks > middle, ranks >= middle
    # The median of a column of two values is one of them: take the more even of the two cuts.
    uneven = np.abs(above.mean(axis=0) - 0.5) > np.abs(not_below.mean(axis=0) - 0.5)
    halves = np.where(np.where(uneven, not_below, above), 1.0, -1.0)
    return halves, np.where((ranks > low) & (ranks <= high), -1.0, 1.0)


def _standardised(columns: Array, share: Array) -> Array:
    """Return the columns with mean zero and variance one; constant ones are zero."""
    centred = columns - share @ columns
    deviation = np.sqrt(share @ centred**2)
    return np.where(deviation > 1e-9, centred / np.where(deviation > 1e-9, deviation, 1.0), 0.0)


def _pairs(functions: list[Array], target: Array, chance: float) -> Array:
    evidence = np.zeros(functions[0].shape[1])
    for left, right in combinations_with_replacement(functions, 2):
        squares = ((target[:, None] * left).T @ right) ** 2
        np.fill_diagonal(squares, 0.0)
        excess = np.maximum(squares - chance, 0.0)
        evidence += excess.sum(axis=1)
        if left is not right:
            evidence += excess.sum(axis=0)
    return evidence


def _triples(signs: Array, target: Array, chance: float) -> Array:
    evidence = np.zeros(signs.shape[1])
    for feature in range(2, signs.shape[1]):
        # Only with features before this one, so that each triple counts once.
        before = signs[:, :feature]
        product = (target * signs[:, feature])[:, None] * before
        squares = np.triu((before.T @ product) ** 2, 1)
        excess = np.maximum(squares - chance, 0.0)
        evidence[:feature] += excess.sum(axis=0) + excess.sum(axis=1)
        evidence[feature] += excess.sum()
    return evidence
