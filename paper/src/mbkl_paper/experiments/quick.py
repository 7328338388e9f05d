"""Small sets that come with scikit-learn, on which every experiment runs in seconds."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_breast_cancer, load_digits

from mbkl_paper.datasets.benchmark import Benchmark, Description, Printed
from mbkl_paper.datasets.protocols import StratifiedFolds
from mbkl_paper.experiments.sets import PaperSet

SYSTEMS = (
    "mbkl", "mbkl_published", "mbkl_ones", "mbkl_projections", "l1_maps", "linear", "chi2",
    "random_forest",
)  # fmt: skip
SWEEP = (30, 100)
ANALYSED = "quick_digits"


class Pixels(TransformerMixin, BaseEstimator):
    """The grey values of images, as a descriptor."""

    def fit(self, X, y=None):
        """Learn nothing."""
        return self

    def transform(self, X):
        """Return a row for each image."""
        return np.stack([image.ravel() / 16.0 for image in X])


def _digits(n_classes: int = 4, n_rows: int = 160) -> Benchmark:
    digits = load_digits(n_class=n_classes)
    about = Description(ANALYSED, "scikit-learn.", "BSD.", Printed(4, 80, 80, "pixels", 64))
    return Benchmark(
        about,
        digits.target[:n_rows],
        tuple(map(str, range(n_classes))),
        StratifiedFolds(2),
        images=digits.images[:n_rows],
        stand_in="small digits.",
    )


def _cells(n_rows: int = 200) -> Benchmark:
    X, y = load_breast_cancer(return_X_y=True)
    about = Description("quick_cells", "scikit-learn.", "BSD.", Printed(2, 100, 100, "cells", 30))
    return Benchmark(about, y[:n_rows], ("malignant", "benign"), StratifiedFolds(2), X[:n_rows])


SETS = {
    ANALYSED: PaperSet(
        "Digits", _digits, 100, descriptor=Pixels, learns=False, n_folds=2, choice_rows=60
    ),
    "quick_cells": PaperSet(
        "Cells", _cells, 100, squash=True, n_folds=2, variants=("Step 0 by medians",)
    ),
}
