"""Pictures, with matplotlib: `pip install 'mbkl[plot]'`."""

from mbkl.plot.explanations import (
    ImportanceDisplay,
    InteractionDisplay,
    ShapeFunctionDisplay,
    WaterfallDisplay,
)
from mbkl.plot.quality import KernelMatrixDisplay, PathDisplay, PredictionDisplay, QualityDisplay

__all__ = [
    "ImportanceDisplay",
    "InteractionDisplay",
    "KernelMatrixDisplay",
    "PathDisplay",
    "PredictionDisplay",
    "QualityDisplay",
    "ShapeFunctionDisplay",
    "WaterfallDisplay",
]
