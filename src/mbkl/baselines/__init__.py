"""The systems that the paper compares MBKL with, as scikit-learn estimators."""

from mbkl.baselines.adaboost import AdaBoostStumps
from mbkl.baselines.additive_kernels import chi2_distance, chi2_kernel, intersection_kernel
from mbkl.baselines.binary_codes import BinaryCodes
from mbkl.baselines.binary_maps import BinaryMaps
from mbkl.baselines.costs import cross_validate_costs
from mbkl.baselines.fourier import FourierMKL
from mbkl.baselines.homogeneous_map import HomogeneousKernelMap
from mbkl.baselines.kernel_svm import KernelSVM
from mbkl.baselines.linear import LinearSVM
from mbkl.baselines.maji import ApproximateIntersectionSVM, IntersectionEncoding
from mbkl.baselines.power_mean import PowerMeanSVM
from mbkl.baselines.registry import make, names
from mbkl.baselines.squash import Squash

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
    "Squash",
    "chi2_distance",
    "chi2_kernel",
    "cross_validate_costs",
    "intersection_kernel",
    "make",
    "names",
]
