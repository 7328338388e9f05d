"""Explanations: the tables of a model, and how they add up to scores."""

from mbkl.explain.attribution import column_importances
from mbkl.explain.explanations import (
    FeatureGroup,
    GlobalExplanation,
    LocalExplanation,
    explain_global,
    explain_local,
)
from mbkl.explain.input_columns import InputColumn
from mbkl.explain.quality import Curves, number_figures, probability_figures, quality_curves
from mbkl.explain.shapes import FeatureShape

__all__ = [
    "Curves",
    "FeatureGroup",
    "FeatureShape",
    "GlobalExplanation",
    "InputColumn",
    "LocalExplanation",
    "column_importances",
    "explain_global",
    "explain_local",
    "number_figures",
    "probability_figures",
    "quality_curves",
]
