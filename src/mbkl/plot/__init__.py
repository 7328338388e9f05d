"""Pictures, with matplotlib: `pip install 'mbkl[plot]'`."""

from mbkl.plot.importance import ImportanceDisplay
from mbkl.plot.kernel_matrix import KernelMatrixDisplay
from mbkl.plot.path import PathDisplay
from mbkl.plot.shape_function import ShapeFunctionDisplay

__all__ = ["ImportanceDisplay", "KernelMatrixDisplay", "PathDisplay", "ShapeFunctionDisplay"]
