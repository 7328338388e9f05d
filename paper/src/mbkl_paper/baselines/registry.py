"""The systems that the paper compares, by name and with its settings."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier

from mbkl import MBKLClassifier
from mbkl.maps import Projections
from mbkl_paper.baselines.adaboost import AdaBoostStumps
from mbkl_paper.baselines.binary_codes import BinaryCodes
from mbkl_paper.baselines.binary_maps import BinaryMaps
from mbkl_paper.baselines.fourier import FourierMKL
from mbkl_paper.baselines.homogeneous_map import HomogeneousKernelMap
from mbkl_paper.baselines.kernel_svm import KernelSVM
from mbkl_paper.baselines.linear import LinearSVM
from mbkl_paper.baselines.maji import ApproximateIntersectionSVM
from mbkl_paper.baselines.power_mean import PowerMeanSVM
from mbkl_paper.baselines.published import PublishedMBKL

_SYSTEMS: dict[str, Callable[[], BaseEstimator]] = {
    "linear": LinearSVM,
    "random_forest": lambda: RandomForestClassifier(n_estimators=100, max_depth=50),
    "adaboost": AdaBoostStumps,
    "chi2": lambda: KernelSVM("chi2"),
    "rb_chi2": lambda: KernelSVM("rb_chi2"),
    "intersection": lambda: KernelSVM("intersection"),
    "approx_chi2": lambda: LinearSVM(HomogeneousKernelMap("chi2", order=1)),
    "approx_chi2_x3": lambda: LinearSVM(HomogeneousKernelMap("chi2", order=4)),
    "approx_intersection": ApproximateIntersectionSVM,
    "pmsvm_chi2": lambda: PowerMeanSVM(p=-1.0),
    "pmsvm_intersection": lambda: PowerMeanSVM(p=-8.0),
    "raginsky_lazebnik": lambda: LinearSVM(BinaryCodes()),
    "fourier_mkl": FourierMKL,
    "mbkl": lambda: MBKLClassifier(maps="stumps", theta="learned", C=1.0),
    "mbkl_published": PublishedMBKL,
    "mbkl_projections": lambda: MBKLClassifier(
        maps=Projections(input_map="chi2"), theta="learned", C=1.0
    ),
    "mbkl_ones": lambda: MBKLClassifier(maps="stumps", theta="ones", C=1.0),
    "l1_maps": lambda: LinearSVM(BinaryMaps(), penalty="l1"),
}


def names() -> list[str]:
    """Return the names of all systems.

    Examples
    --------
    >>> from mbkl_paper.baselines import names
    >>> names()[:3]
    ['linear', 'random_forest', 'adaboost']
    """
    return list(_SYSTEMS)


def make(name: str, *, random_state=None, n_jobs=None, **parameters) -> BaseEstimator:
    """Return a system with the settings of the paper.

    Its cost is the parameter `C`; "random_forest" and "adaboost" have none. On the UCI data
    the paper uses `make("random_forest", n_estimators=50, max_depth=10)`.

    Parameters
    ----------
    name : str
        One of `names()`.
    random_state : int, RandomState instance or None
        Seed, where there is anything random.
    n_jobs : int or None
        Number of threads, where there is a choice.
    **parameters
        Override settings, those of a feature map as `feature_map__order=2`.

    Returns
    -------
    estimator

    References
    ----------
    G. Roig, X. Boix, L. Van Gool. "Random Decision Stumps for Kernel Learning and
    Efficient SVM." ACCV 2014, section 6.3.
    L. Breiman. "Random Forests." Machine Learning 2001.

    Examples
    --------
    >>> from mbkl_paper.baselines import make
    >>> make("approx_chi2_x3", C=10)
    LinearSVM(C=10, feature_map=HomogeneousKernelMap(order=4))
    """
    if name not in _SYSTEMS:
        raise ValueError(f"There is no system {name!r}; names() are {', '.join(_SYSTEMS)}.")
    estimator = _SYSTEMS[name]()
    common = {"random_state": random_state, "n_jobs": n_jobs}
    known = estimator.get_params()
    settings = {key: common[end] for key in known if (end := key.split("__")[-1]) in common}
    return estimator.set_params(**{**settings, **parameters})
