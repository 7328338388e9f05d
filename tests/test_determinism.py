"""The same bits for any number of threads, either engine and any order of the rows."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import mbkl.engine
from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV
from mbkl.engine.numpy_engine import NumpyEngine

SIZES = [
    pytest.param(150, 60, id="dense solvers"),
    pytest.param(1100, 700, id="matrix-free solvers"),
]
NAMES = ("coef_", "intercept_", "theta_", "stump_features_", "stump_thresholds_", "objective_")


def bits_of(model, X) -> dict[str, bytes]:
    names = [name for name in NAMES if hasattr(model, name)]
    bits = {name: getattr(model, name).tobytes() for name in names}
    if hasattr(model, "decision_function"):
        bits["scores"] = model.decision_function(X).tobytes()
    else:
        bits["kernel"] = model.kernel(X[:50]).tobytes()
    return bits


@pytest.fixture
def threads_on_small_data(monkeypatch, make_numba_engine):
    """Make every fit use compiled kernels on as many threads as it is told."""
    monkeypatch.setattr(mbkl.engine, "SMALL", 0)
    return make_numba_engine


@pytest.fixture(scope="module")
def data(make_data):
    """Return a function that gives rows with ties and missing values."""

    def make(n_rows, n_classes=3):
        X, y = make_data(n_rows, 5, n_classes)
        X = np.round(X * 16) / 16
        X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
        return X, y

    return make


@pytest.mark.parametrize(("n_rows", "n_maps"), SIZES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("theta", ["learned", "reweighted"])
def test_the_number_of_threads_does_not_matter(
    threads_on_small_data, data, n_rows, n_maps, n_classes, theta
):
    X, y = data(n_rows, n_classes)
    results = [
        bits_of(
            MBKLClassifier(n_maps=n_maps, theta=theta, random_state=0, n_jobs=n_jobs).fit(X, y), X
        )
        for n_jobs in (1, 2, 4)
    ]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_the_number_of_threads_does_not_matter_to_any_loss(threads_on_small_data, data, loss):
    X, y = data(150)
    results = [
        bits_of(MBKLClassifier(n_maps=60, loss=loss, random_state=0, n_jobs=n_jobs).fit(X, y), X)
        for n_jobs in (1, 4)
    ]
    assert results[0] == results[1]


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_the_number_of_threads_does_not_matter_to_sparse_rows(threads_on_small_data, data, make):
    X, y = data(1100)
    X = make(np.where(np.abs(X) < 1.7, 0.0, X))
    results = [
        bits_of(MBKLClassifier(n_maps=700, random_state=0, n_jobs=n_jobs).fit(X, y), X)
        for n_jobs in (1, 2, 4)
    ]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    "model",
    [
        MBKLClassifier(n_maps=60, calibration="temperature"),
        MBKLClassifierCV(n_maps=60, Cs=(0.1, 1.0), C_kernels=(1.0,), cv=2),
        MBKernel(n_maps=60),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_number_of_threads_does_not_matter_to_any_estimator(threads_on_small_data, data, model):
    X, y = data(150)
    results = [
        bits_of(model.set_params(random_state=0, n_jobs=n_jobs).fit(X, y), X)
        for n_jobs in (1, 2, 4)
    ]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(("n_rows", "n_maps"), SIZES)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_engine_does_not_matter(
    use_engine, make_numba_engine, data, n_rows, n_maps, n_classes, make
):
    X, y = data(n_rows, n_classes)
    if make is not np.asarray:
        X = make(np.where(np.abs(X) < 1.7, 0.0, X))
    results = []
    for engine in (NumpyEngine(), make_numba_engine(2)):
        use_engine(engine)
        results.append(bits_of(MBKLClassifier(n_maps=n_maps, random_state=0).fit(X, y), X))
    assert results[0] == results[1]


@pytest.mark.parametrize(("n_rows", "n_maps"), SIZES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_order_of_the_rows_does_not_matter(data, n_rows, n_maps, n_classes, loss):
    X, y = data(n_rows, n_classes)
    order = np.random.default_rng(1).permutation(n_rows)
    model = MBKLClassifier(n_maps=n_maps, loss=loss, random_state=0)
    assert bits_of(model.fit(X, y), X) == bits_of(model.fit(X[order], y[order]), X)


def test_the_order_of_the_rows_does_not_matter_to_a_part_of_the_pairs(data):
    X, y = data(1100)
    order = np.random.default_rng(1).permutation(1100)
    model = MBKLClassifier(n_maps=60, max_pairs=500, random_state=0)
    assert bits_of(model.fit(X, y), X) == bits_of(model.fit(X[order], y[order]), X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_part_of_the_pairs_is_not_all_of_them(data, n_classes):
    X, y = data(1100, n_classes)
    part = MBKLClassifier(n_maps=60, max_pairs=300, random_state=0).fit(X, y)
    everything = MBKLClassifier(n_maps=60, random_state=0).fit(X, y)
    assert part.theta_.tobytes() != everything.theta_.tobytes()


def test_a_fit_in_a_new_process_gives_the_same_bits(run_python, make_data):
    code = """
import numpy as np
from mbkl import MBKLClassifier
X = np.random.default_rng(0).normal(size=(400, 5))
y = np.arange(400) % 3
X[:, 0] += y
model = MBKLClassifier(n_maps=60, random_state=0).fit(X, y)
print(model.coef_.tobytes().hex(), model.decision_function(X).tobytes().hex())
"""
    first, second = run_python(code), run_python(code, OMP_NUM_THREADS="1", PYTHONHASHSEED="7")
    assert first.stdout == second.stdout
    assert len(first.stdout) > 1000


def test_global_random_state_is_neither_used_nor_changed(data):
    X, y = data(150)
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MBKLClassifier(n_maps=60, random_state=0).fit(X, y).predict(X)
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002
