"""Explicit maps of the chi2, intersection and Jensen-Shannon kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.integrate import quad
from sklearn.utils._param_validation import StrOptions

from mbkl_paper.baselines.base import AT_LEAST_ONE, Array, FeatureMap

# K(x, z) = sqrt(x z) * signature(log(z / x)).
_SIGNATURES: dict[str, Callable] = {
    "chi2": lambda t: 1.0 / np.cosh(t / 2),
    "intersection": lambda t: np.exp(-abs(t) / 2),
    "jensen_shannon": lambda t: (
        (np.exp(t / 2) * np.log2(1 + np.exp(-t)) + np.exp(-t / 2) * np.log2(1 + np.exp(t))) / 2
    ),
}
# Their Fourier transforms.
_SPECTRA: dict[str, Callable] = {
    "chi2": lambda w: 1.0 / np.cosh(np.pi * w),
    "intersection": lambda w: 2.0 / np.pi / (1 + 4 * w**2),
    "jensen_shannon": lambda w: 2.0 / np.log(4) / np.cosh(np.pi * w) / (1 + 4 * w**2),
}
# Periods that VLFeat uses for each order.
_PERIODS: dict[tuple[str, str], Callable] = {
    ("chi2", "rectangular"): lambda n: 8.80 * np.sqrt(n + 4.44) - 12.6,
    ("chi2", "uniform"): lambda n: 5.86 * np.sqrt(n) + 3.65,
    ("intersection", "rectangular"): lambda n: 2.00 * np.log(n + 0.99) + 3.52,
    ("intersection", "uniform"): lambda n: 2.38 * np.log(n + 0.8) + 5.6,
    ("jensen_shannon", "rectangular"): lambda n: 9.63 * np.sqrt(n + 1.00) - 2.93,
    ("jensen_shannon", "uniform"): lambda n: 6.64 * np.sqrt(n) + 7.24,
}


class HomogeneousKernelMap(FeatureMap):
    """Explicit map whose scalar products approximate an additive homogeneous kernel.

    A feature x becomes sqrt(x) times samples of the cosines and sines of log(x), with
    weights from the spectrum of the kernel. The kernels are sum 2 x z / (x + z) (chi2),
    sum min(x, z) (intersection) and the Jensen-Shannon kernel. Zeros stay zeros.

    Parameters
    ----------
    kernel : {"chi2", "intersection", "jensen_shannon"}, default="chi2"
    order : int, default=1
        There are 2 * order + 1 columns for each feature: all features at frequency zero,
        then all with the first cosine, the first sine, and so on.
    window : {"rectangular", "uniform"}, default="rectangular"
        "rectangular" makes the kernel periodic by cutting one period out of it,
        "uniform" by adding up all its shifts.

    Attributes
    ----------
    period_ : float
        Period of the approximation, in units of log(z / x).
    spectrum_ : ndarray of shape (order + 1,)
        Weight of each frequency.

    References
    ----------
    A. Vedaldi, A. Zisserman. "Efficient Additive Kernels via Explicit Feature Maps."
    PAMI 2012. Periods as in VLFeat.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.baselines import HomogeneousKernelMap
    >>> X = np.array([[0.2, 0.8], [0.5, 0.5]])
    >>> phi = HomogeneousKernelMap("chi2", order=4).fit_transform(X)
    >>> exact = (2 * X[0] * X[1] / (X[0] + X[1])).sum()
    >>> bool(abs(phi[0] @ phi[1] - exact) < 0.01)
    True
    """

    _takes_negative = False
    _parameter_constraints: dict = {
        "kernel": [StrOptions(set(_SIGNATURES))],
        "order": [AT_LEAST_ONE],
        "window": [StrOptions({"rectangular", "uniform"})],
    }

    def __init__(self, kernel="chi2", order=1, window="rectangular"):
        self.kernel = kernel
        self.order = order
        self.window = window

    def _learn(self, X) -> int:
        self.period_ = max(float(_PERIODS[self.kernel, self.window](self.order)), 1.0)
        self.spectrum_ = self._spectrum(2 * np.pi / self.period_ * np.arange(self.order + 1))
        return (2 * self.order + 1) * X.shape[1]

    def _map(self, X):
        if not sparse.issparse(X):
            return np.hstack(self._components(X))
        blocks = [
            sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
            for data in self._components(X.data)
        ]
        return sparse.hstack(blocks, format="csr")

    def _spectrum(self, frequencies: Array) -> Array:
        if self.window == "uniform":
            return _SPECTRA[self.kernel](frequencies)
        signature, half = _SIGNATURES[self.kernel], self.period_ / 2
        values = [quad(signature, 0.0, half, weight="cos", wvar=w)[0] for w in frequencies]
        # Weights of a kernel are not negative; cutting out a period may make them so.
        return np.maximum(values, 0.0) / np.pi

    def _components(self, values: Array) -> list[Array]:
        """Return one array for each column that a feature becomes."""
        step = 2 * np.pi / self.period_
        root = np.sqrt(step * values)
        angles = step * np.log(np.where(values > 0, values, 1.0))
        components = [np.sqrt(self.spectrum_[0]) * root]
        for number, weight in enumerate(self.spectrum_[1:], start=1):
            scaled = np.sqrt(2 * weight) * root
            components += [scaled * np.cos(number * angles), scaled * np.sin(number * angles)]
        return components
