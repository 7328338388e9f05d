"""scikit-learn's own checks, for all estimators and several settings.

What differs in numbers alone, such as other losses, has tests of its own elsewhere.
"""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV, MBKLRegressor, MBKLRegressorCV
from mbkl.maps import Stumps

PAPER = {"maps": "stumps", "theta": "learned"}
ESTIMATORS = [
    MBKLClassifier(),
    MBKLClassifierCV(n_maps=40),
    MBKernel(),
    MBKLClassifier(n_maps=40, C=1.0, **PAPER),
    MBKLClassifier(n_maps=40, maps=["stumps", "projections", "ferns"], theta="reweighted"),
    MBKLClassifier(
        n_maps=40,
        theta="reweighted",
        loss="logistic",
        maps=Stumps(thresholds="quantile", draw="stratified"),
    ),
    MBKLClassifier(n_maps=40, calibration="temperature"),
    MBKernel(n_maps=40, **PAPER),
    MBKernel(n_maps=40, theta="alignment", init_rule="median", sparse_output=False),
    MBKLRegressor(),
    MBKLRegressor(n_maps=40, C=1.0, **PAPER),
    MBKLRegressor(n_maps=40, maps=["stumps", "projections", "ferns"], theta="reweighted"),
    MBKLRegressor(n_maps=40, maps="stumps", loss="poisson"),
    MBKLRegressorCV(n_maps=20, Cs=(0.1, 1.0), C_kernels=(1.0,), cv=2, **PAPER),
    MBKernel(n_maps=40, task="regression", **PAPER),
]


def expected_failures(estimator) -> dict[str, str]:
    """Return the checks that an estimator fails, and why."""
    if estimator.loss == "poisson":
        return {"check_regressor_multioutput": "its targets are negative, whatever the tags say"}
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)
