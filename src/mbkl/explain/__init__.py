"""Explanations: the tables of a model, and how they add up to scores."""

from mbkl.explain.columns import column_importances
from mbkl.explain.global_explanation import FeatureGroup, GlobalExplanation, explain_global
from mbkl.explain.local_explanation import LocalExplanation, explain_local
from mbkl.explain.shapes import FeatureShape

__all__ = [
    "FeatureGroup",
    "FeatureShape",
    "GlobalExplanation",
    "LocalExplanation",
    "column_importances",
    "explain_global",
    "explain_local",
]
