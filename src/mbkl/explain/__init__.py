"""Explanations: the tables of a model, and how they add up to scores."""

from mbkl.explain.columns import column_importances
from mbkl.explain.global_explanation import FeatureGroup, GlobalExplanation, explain_global
from mbkl.explain.input_columns import InputColumn
from mbkl.explain.local_explanation import LocalExplanation, explain_local
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
