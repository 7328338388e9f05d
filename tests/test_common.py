"""scikit-learn's own checks, for all estimators and several settings."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV
from mbkl.maps import Stumps

ESTIMATORS = [
    MBKLClassifier(n_maps=40),
    MBKLClassifier(n_maps=40, theta="ones", loss="hinge"),
    MBKLClassifier(
        n_maps=40,
        theta="reweighted",
        loss="logistic",
        maps=Stumps(thresholds="quantile", draw="stratified"),
    ),
    MBKLClassifier(n_maps=40, calibration="temperature"),
    MBKLClassifierCV(n_maps=20, Cs=(0.1, 1.0), C_kernels=(1.0,), cv=3),
    MBKernel(n_maps=40),
    MBKernel(n_maps=40, theta="alignment", init_rule="median", sparse_output=False),
]

EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_estimator_checks(estimator, check):
    check(estimator)
