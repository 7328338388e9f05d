"""Power mean SVM: its kernel, the parabola, and the descent."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from mbkl_paper.baselines import PowerMeanSVM, chi2_kernel
from mbkl_paper.baselines.power_mean import ANCHORS, INTERPOLATION, OFFSET, plain_sweep, power_mean


def test_power_means():
    x, z = np.array([0.2, 0.5]), np.array([0.8, 0.5])
    np.testing.assert_allclose(power_mean(x, z, -1.0), 2 * x * z / (x + z))
    np.testing.assert_allclose(power_mean(x, z, -3.0), ((x**-3 + z**-3) / 2) ** (-1 / 3))
    np.testing.assert_allclose(power_mean(x, z, -1000.0), np.minimum(x, z), rtol=1e-3)
    grid = np.linspace(0, 1, 201)[1:]
    gap = power_mean(grid[:, None], grid, -8.0) - np.minimum(grid[:, None], grid)
    assert np.abs(gap).max() == pytest.approx(0.058, abs=0.001)


def test_extreme_values_do_not_overflow():
    found = power_mean(np.array([1e-12, 1.0]), np.array([1.0, 1e-12]), -8.0)
    np.testing.assert_allclose(found, 1e-12 * 2 ** (1 / 8), rtol=1e-9)


def test_the_interpolation_is_the_known_matrix():
    known = [[0.3137, -0.5220, 1.2083], [1.5480, -2.5249, 0.9769], [0.6369, -0.8315, 0.1946]]
    np.testing.assert_allclose(INTERPOLATION, known, atol=1e-4)


@pytest.mark.parametrize(
    ("p", "largest", "mean_square"), [(-1.0, 0.022, 0.008), (-8.0, 0.116, 0.040)]
)
def test_the_parabola_errs_as_known(p, largest, mean_square):
    grid = np.linspace(0, 1, 401)[1:]
    values = power_mean(grid[:, None], ANCHORS, p)
    values[:, 0] = ANCHORS[0]
    powers = np.vander(np.log(grid + OFFSET), 3, increasing=True)
    error = values @ INTERPOLATION.T @ powers.T - power_mean(grid[:, None], grid, p)
    assert np.abs(error).max() == pytest.approx(largest, rel=0.05)
    assert np.sqrt((error**2).mean()) == pytest.approx(mean_square, rel=0.06)


def entries_of(model, X, y):
    model._encode(y)
    model.n_features_in_ = X.shape[1]
    return model._learn_features(X)


def test_the_compiled_sweep_has_the_bits_of_its_twin(histograms):
    from mbkl_paper.baselines.loops import power_mean_sweep

    X, y = histograms(50, 6)
    entries = entries_of(PowerMeanSVM(), X, y)
    labels = np.where(y == 1, 1.0, -1.0)
    states = []
    for sweep in (plain_sweep, power_mean_sweep):
        generator = np.random.default_rng(0)
        alpha, weights = np.zeros(50), np.zeros((7, 3))
        active, limit = np.ones(50, dtype=bool), np.inf
        fixed = (entries.indptr, entries.indices, entries.logs, entries.updates, labels)
        for _ in range(8):
            order = generator.permutation(np.flatnonzero(active))
            limit, smallest = sweep(
                order, *fixed, entries.lengths + 0.05, 0.05, limit, alpha, weights, active
            )
        states.append((alpha, weights, active, limit, smallest))
    assert 0 < states[0][2].sum() < 50
    for plain, compiled in zip(*states, strict=True):
        np.testing.assert_array_equal(plain, compiled)


def test_the_end_is_an_optimum_of_the_approximate_problem(histograms):
    X, y = histograms(60, 6)
    C = 0.5
    model = PowerMeanSVM(C=C, tol=1e-6, random_state=0)
    entries = entries_of(model, X, y)
    weights, _ = model._solve(entries, y, C)
    labels = np.where(y == 1, 1.0, -1.0)
    margins = labels * entries.scores(weights)[:, 0]
    # From the margins follow the dual variables, and from those the weights.
    alpha = 2 * C * np.maximum(0.0, 1.0 - margins)
    rebuilt = np.zeros((7, 3))
    for row in range(60):
        part = slice(entries.indptr[row], entries.indptr[row + 1])
        rebuilt[entries.indices[part]] += alpha[row] * labels[row] * entries.updates[part]
    np.testing.assert_allclose(rebuilt, weights[:, :, 0], atol=1e-4)


def test_it_is_near_the_exact_chi2_svm(histograms):
    X, y = histograms(80, 6)
    C, labels = 0.5, np.where(y == 1, 1.0, -1.0)
    scaled = np.column_stack([X / X.max(axis=0), np.ones(len(X))])
    hessian = chi2_kernel(scaled) * np.outer(labels, labels) + np.eye(80) / (2 * C)
    exact = minimize(
        lambda a: (a @ hessian @ a / 2 - a.sum(), hessian @ a - 1),
        np.zeros(80),
        jac=True,
        bounds=[(0, None)] * 80,
        options={"maxiter": 5000},
    )
    expected = chi2_kernel(scaled) @ (exact.x * labels)
    model = PowerMeanSVM(C=C, tol=1e-4, random_state=0).fit(X, y)
    found = model.decision_function(X)
    assert np.corrcoef(found, expected)[0, 1] > 0.995
    assert np.abs(found - expected).max() < 0.15 * np.ptp(expected)


def test_shrinking_and_order_do_not_change_the_solution(histograms):
    X, y = histograms(80, 6, 3)
    models = [PowerMeanSVM(C=1.0, tol=1e-5, random_state=seed).fit(X, y) for seed in (0, 1)]
    np.testing.assert_allclose(
        models[0].decision_function(X), models[1].decision_function(X), atol=1e-2
    )


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_threads_do_not_matter(histograms, n_jobs):
    X, y = histograms(60, 6, 3)
    model = PowerMeanSVM(C=1.0, random_state=0, n_jobs=n_jobs).fit(X, y)
    expected = PowerMeanSVM(C=1.0, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(model.polynomials_, expected.polynomials_)


def test_small_data_need_no_compiler(run_python):
    code = """
import sys
from sklearn.datasets import load_iris
from mbkl_paper.baselines import PowerMeanSVM, make
X, y = load_iris(return_X_y=True)
for model in (PowerMeanSVM(random_state=0), make("chi2"), make("intersection")):
    model.fit(X, y).predict(X)
print("numba" in sys.modules)
"""
    result = run_python(code)
    assert (result.returncode, result.stdout.split()) == (0, ["False"]), result.stderr


def test_an_end_without_convergence_is_told(histograms):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = PowerMeanSVM(C=100.0, tol=1e-9, max_iter=2).fit(*histograms())
    assert model.n_iter_ == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PowerMeanSVM().fit(*histograms())


@pytest.mark.parametrize("wrong", [{"p": 1.0}, {"p": 0}, {"C": -1.0}, {"tol": 0.0}])
def test_wrong_parameters(histograms, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PowerMeanSVM(**wrong).fit(*histograms())
