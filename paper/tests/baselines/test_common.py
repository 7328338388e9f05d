"""scikit-learn's own checks, for every rival and every map."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mbkl_paper.baselines import (
    AdaBoostStumps,
    ApproximateIntersectionSVM,
    BinaryCodes,
    BinaryMaps,
    FourierMKL,
    HomogeneousKernelMap,
    IntersectionEncoding,
    KernelSVM,
    LinearSVM,
    PowerMeanSVM,
    PublishedMBKL,
    Squash,
)

# The checks seed the estimator itself, not a map inside it.
ESTIMATORS = [
    Squash(),
    HomogeneousKernelMap(),
    IntersectionEncoding(n_bins=10),
    BinaryCodes(n_bits=50),
    BinaryMaps(n_maps=40),
    LinearSVM(),
    LinearSVM(HomogeneousKernelMap()),
    LinearSVM(IntersectionEncoding(n_bins=10)),
    LinearSVM(BinaryMaps(n_maps=40, random_state=0), penalty="l1"),
    AdaBoostStumps(n_rounds=10),
    AdaBoostStumps("real", n_rounds=10),
    KernelSVM("chi2"),
    KernelSVM("rb_chi2", multi_class="ovo"),
    KernelSVM("intersection"),
    ApproximateIntersectionSVM(),
    PowerMeanSVM(C=1.0),
    FourierMKL(n_components=20),
    PublishedMBKL(50),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)
