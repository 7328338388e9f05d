"""Pictures, with matplotlib: `pip install 'mbkl[plot]'`."""

from mbkl.plot.importance import ImportanceDisplay
from mbkl.plot.interaction import InteractionDisplay
from mbkl.plot.kernel_matrix import KernelMatrixDisplay
from mbkl.plot.path import PathDisplay
from mbkl.plot.prediction import PredictionDisplay
from mbkl.plot.quality import QualityDisplay
from mbkl.plot.shape_function import ShapeFunctionDisplay
from mbkl.plot.waterfall import WaterfallDisplay

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
