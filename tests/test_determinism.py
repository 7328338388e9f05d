"""The same bits for any number of threads, either kind of loops and any order of the rows."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV
from mbkl.engine import limits
from mbkl.engine.twins import TWINS

SIZES = [
    pytest.param(150, 60, id="dense solvers"),
    pytest.param(1100, 700, id="matrix-free solvers"),
]


@pytest.fixture(scope="module")
def all_bits(bits_of):
    """Return a function that gives the bits of a model and of what it says of X."""

    def bits(model, X) -> dict[str, bytes]:
        found = bits_of(model)
        if hasattr(model, "decision_function"):
            found["scores"] = model.decision_function(X).tobytes()
        else:
            found["kernel"] = model.kernel(X[:50]).tobytes()
        return found

    return bits


@pytest.mark.parametrize("maps", ["stumps", "ferns", "auto"])
def test_float32_and_float64_rows_give_the_same_model(maps, make_data, all_bits):
    X, y = make_data(300, 4)
    X = np.round(X, 1) + 1e-12  # not float32 numbers, and often equal to thresholds if rounded
    models = [MBKLClassifier(maps=maps, random_state=0).fit(rows, y) for rows in (X, np.float32(X))]
    assert all_bits(models[0], X) == all_bits(models[1], X)
    assert all_bits(models[0], X) == all_bits(models[0], np.float32(X))


@pytest.fixture
def threads_on_small_data(monkeypatch, make_compiled):
    """Make every fit use compiled loops on as many threads as it is told."""
    monkeypatch.setattr("mbkl.engine.twins.SMALL", 0)
    return make_compiled


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
@pytest.mark.parametrize(("n_classes", "theta"), [(2, "ones"), (3, "learned"), (3, "reweighted")])
def test_the_number_of_threads_does_not_matter(
    form, all_bits, threads_on_small_data, data, n_rows, n_maps, n_classes, theta
):
    X, y = data(n_rows, n_classes)
    parameters = {"n_maps": n_maps, "theta": theta, "random_state": 0}
    results = [
        all_bits(form(MBKLClassifier, **parameters, n_jobs=n_jobs).fit(X, y), X)
        for n_jobs in (1, 3)
    ]
    assert results[0] == results[1]


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_the_number_of_threads_does_not_matter_to_any_loss(
    form, all_bits, threads_on_small_data, data, loss
):
    X, y = data(150)
    parameters = {"n_maps": 60, "loss": loss, "random_state": 0}
    results = [
        all_bits(form(MBKLClassifier, **parameters, n_jobs=n_jobs).fit(X, y), X)
        for n_jobs in (1, 4)
    ]
    assert results[0] == results[1]


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_the_number_of_threads_does_not_matter_to_sparse_rows(
    form, all_bits, threads_on_small_data, data, make
):
    X, y = data(1100)
    X = make(np.where(np.abs(X) < 1.7, 0.0, X))
    results = [
        all_bits(form(MBKLClassifier, n_maps=700, random_state=0, n_jobs=n_jobs).fit(X, y), X)
        for n_jobs in (1, 3)
    ]
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (MBKLClassifier, {"calibration": "temperature"}),
        (MBKLClassifierCV, {"Cs": (0.1, 1.0), "C_kernels": (1.0,), "cv": 2}),
        (MBKernel, {}),
    ],
    ids=["calibrated", "cross-validated", "kernel"],
)
def test_the_number_of_threads_does_not_matter_to_any_estimator(
    form, all_bits, threads_on_small_data, data, kind, parameters
):
    X, y = data(150)
    parameters = {"n_maps": 60, "random_state": 0, **parameters}
    results = [all_bits(form(kind, **parameters, n_jobs=n_jobs).fit(X, y), X) for n_jobs in (1, 3)]
    assert results[0] == results[1]


@pytest.mark.parametrize(("n_rows", "n_maps"), SIZES)
@pytest.mark.parametrize("n_classes", [2, 6])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_loops_do_not_matter(
    form, all_bits, use_loops, make_compiled, data, n_rows, n_maps, n_classes, make
):
    X, y = data(n_rows, n_classes)
    if make is not np.asarray:
        X = make(np.where(np.abs(X) < 1.7, 0.0, X))
    results = []
    for loops in (TWINS, make_compiled(2)):
        use_loops(loops)
        model = form(MBKLClassifier, n_maps=n_maps, random_state=0).fit(X, y)
        results.append(all_bits(model, X))
    assert results[0] == results[1]


@pytest.mark.parametrize(("n_rows", "n_maps"), SIZES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_order_of_the_rows_does_not_matter(
    form, all_bits, data, n_rows, n_maps, n_classes, loss
):
    X, y = data(n_rows, n_classes)
    order = np.random.default_rng(1).permutation(n_rows)
    model = form(MBKLClassifier, n_maps=n_maps, loss=loss, random_state=0)
    assert all_bits(model.fit(X, y), X) == all_bits(model.fit(X[order], y[order]), X)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_order_of_the_rows_does_not_matter_to_a_sample_of_them(form, all_bits, data, make):
    """More rows than the defaults look at to choose maps, some of them repeated."""
    X, y = data(1100)
    X = np.where(np.abs(X) < 1.0, 0.0, np.nan_to_num(X))
    X, y = np.vstack([X, X[:300]]), np.concatenate([y, y[:300]])
    order = np.random.default_rng(1).permutation(1400)
    counts = np.where(np.arange(1100) < 300, 2, 1)
    model = form(MBKLClassifier, n_maps=200, random_state=0)
    expected = all_bits(model.fit(make(X), y), X)
    assert all_bits(model.fit(make(X[order]), y[order]), X) == expected
    assert all_bits(model.fit(make(X[:1100]), y[:1100], counts), X) == expected


def test_the_order_of_the_rows_does_not_matter_to_a_part_of_the_pairs(paper, all_bits, data):
    X, y = data(1100)
    order = np.random.default_rng(1).permutation(1100)
    model = paper(MBKLClassifier, n_maps=60, max_pairs=500, random_state=0)
    assert all_bits(model.fit(X, y), X) == all_bits(model.fit(X[order], y[order]), X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_part_of_the_pairs_is_not_all_of_them(paper, data, n_classes):
    X, y = data(1100, n_classes)
    part = paper(MBKLClassifier, n_maps=60, max_pairs=300, random_state=0).fit(X, y)
    everything = paper(MBKLClassifier, n_maps=60, random_state=0).fit(X, y)
    assert part.theta_.tobytes() != everything.theta_.tobytes()


def test_a_fit_in_a_new_process_gives_the_same_bits(paper, run_python):
    small = {"n_maps": 60, "random_state": 0}
    models = [paper(MBKLClassifier, **small), MBKLClassifier(**small)]
    code = f"""
import numpy as np
from mbkl import MBKLClassifier
X = np.random.default_rng(0).normal(size=(400, 5))
y = np.arange(400) % 3
X[:, 0] += y
for model in {models!r}:
    model.fit(X, y)
    print(model.coef_.tobytes().hex(), model.decision_function(X).tobytes().hex())
"""
    first, second = run_python(code), run_python(code, OMP_NUM_THREADS="1", PYTHONHASHSEED="7")
    assert first.stdout == second.stdout
    assert len(first.stdout) > 1000


def test_global_random_state_is_neither_used_nor_changed(form, data):
    X, y = data(150)
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        form(MBKLClassifier, n_maps=60, random_state=0).fit(X, y).predict(X)
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002


def test_more_rows_than_a_kernel_matrix_has(monkeypatch, make_data, bits_of):
    """With the sizes at which that begins made small."""
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 100)
    monkeypatch.setattr(limits, "ROWS_OF_A_PART", 80)
    X, y = make_data(n_rows=400, n_classes=3)
    order = np.random.default_rng(0).permutation(400)
    fits = [
        MBKLClassifier(
            maps=["stumps", "ferns"], theta="ones", n_maps=50, C=5.0, random_state=0, n_jobs=n_jobs
        ).fit(X[rows], y[rows])
        for n_jobs, rows in ((1, np.arange(400)), (3, np.arange(400)), (2, order))
    ]
    assert bits_of(fits[0]) == bits_of(fits[1]) == bits_of(fits[2])
    assert fits[0].gap_[1] <= 1e-3
