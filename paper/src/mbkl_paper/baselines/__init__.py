"""The systems that the paper compares MBKL with, as scikit-learn estimators."""

from mbkl_paper.baselines.adaboost import AdaBoostStumps
from mbkl_paper.baselines.additive_kernels import chi2_distance, chi2_kernel, intersection_kernel
from mbkl_paper.baselines.binary_codes import BinaryCodes
from mbkl_paper.baselines.binary_maps import BinaryMaps
from mbkl_paper.baselines.costs import cross_validate_costs
from mbkl_paper.baselines.fourier import FourierMKL
from mbkl_paper.baselines.homogeneous_map import HomogeneousKernelMap
from mbkl_paper.baselines.kernel_svm import KernelSVM
from mbkl_paper.baselines.linear import LinearSVM
from mbkl_paper.baselines.maji import ApproximateIntersectionSVM, IntersectionEncoding
from mbkl_paper.baselines.power_mean import PowerMeanSVM
from mbkl_paper.baselines.published import PublishedMBKL
from mbkl_paper.baselines.registry import make, names
from mbkl_paper.baselines.squash import Squash

__all__ = [
    "AdaBoostStumps",
    "ApproximateIntersectionSVM",
    "BinaryCodes",
    "BinaryMaps",
    "FourierMKL",
    "HomogeneousKernelMap",
    "IntersectionEncoding",
    "KernelSVM",
    "LinearSVM",
    "PowerMeanSVM",
    "PublishedMBKL",
    "Squash",
    "chi2_distance",
    "chi2_kernel",
    "cross_validate_costs",
    "intersection_kernel",
    "make",
    "names",
]
