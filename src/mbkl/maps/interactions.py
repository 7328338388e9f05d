"""Pairs and triples of features that tell the classes apart only together.

The slope of a learned function says nothing of features whose effect changes its sign
with that of others, as in a parity: at first there is nothing to learn a slope from. But
with each feature cut at its median (or into quarters, for a chess board), the product of
two or three signs goes along with the label, and a few hundred rows are enough to look
at all products.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import limits

Array = NDArray[np.float64]


def evidence_of_features(ranks: Array, labels: Array, weights: Array) -> Array:
    """Return for each feature how much it tells, alone or in products with others, beyond chance.

    That is the sum of the squared z-scores of the feature and of all products with it, each less
    what the largest of as many random ones would have; zero where there is nothing. Labels are +1
    or -1.

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
    # The largest of so many squared normal numbers, and some more.
    chance = 2.0 * np.log(n_products * labels.shape[1]) + 6.0
    evidence = np.zeros(n_features)
    for target in targets.T:
        # A feature that tells something by itself must not be forgotten over those that do not.
        for own in functions:
            evidence += np.maximum((target @ own) ** 2 - chance, 0.0)
        evidence += _pairs(functions, target, chance)
        if with_triples:
            evidence += _triples(functions[0], target, chance)
    return evidence


def _signs(ranks: Array) -> tuple[Array, Array]:
    """Return +1 or -1 for the halves, and for the outer and inner quarters, of each feature."""
    low, middle, high = np.quantile(ranks, [0.25, 0.5, 0.75], axis=0)
    above, not_below = ranks > middle, ranks >= middle
    # Of a column of two values the median is one: the cut with the more even sides.
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
        # Features before this one: every triple once.
        before = signs[:, :feature]
        product = (target * signs[:, feature])[:, None] * before
        squares = np.triu((before.T @ product) ** 2, 1)
        excess = np.maximum(squares - chance, 0.0)
        evidence[:feature] += excess.sum(axis=0) + excess.sum(axis=1)
        evidence[feature] += excess.sum()
    return evidence
