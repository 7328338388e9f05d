"""Pictures, with matplotlib: `pip install 'mbkl[plot]'`."""

from mbkl.plot.explanations import (
    ImportanceDisplay,
    InteractionDisplay,
    ShapeFunctionDisplay,
    WaterfallDisplay,
)
from mbkl.plot.quality import KernelMatrixDisplay, PredictionDisplay, QualityDisplay

__all__ = [
    "ImportanceDisplay",
    "InteractionDisplay",
    "KernelMatrixDisplay",
    "PredictionDisplay",
    "QualityDisplay",
    "ShapeFunctionDisplay",
    "WaterfallDisplay",
]
