"""MBKLRegressor: what it learns, what it promises, and what it says of bad input."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import QuantileRegressor

from mbkl import MBKernel, MBKLRegressor, MBKLRegressorCV, load
from mbkl.engine import limits
from mbkl.maps import GrownFerns
from mbkl.maps.stumps import StumpMaps

LOSSES = ("squared_error", "absolute_error", "quantile", "poisson")
FAMILIES = ("stumps", "ferns", "grown", "projections", ["stumps", "ferns"])


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(500, n_features=7, noise=0.5, random_state=0)
    return X[:300], y[:300], X[300:], y[300:]


def kernel_of(model: MBKLRegressor, X) -> np.ndarray:
    """Return the kernel matrix of a fitted model."""
    kernel = MBKernel()
    kernel.maps_, kernel.theta_, kernel.n_features_in_ = model.maps_, model.theta_, X.shape[1]
    return kernel.kernel(X)


# Step 2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("maps", ["stumps", "ferns", ["stumps", "ferns"]])
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_error_is_the_exact_kernel_ridge_solution(friedman, maps, weighted):
    X, y, X_test, _ = friedman
    weights = np.random.default_rng(0).uniform(0.5, 2.0, y.size) if weighted else np.ones(y.size)
    model = MBKLRegressor(maps=maps, n_maps=500, C=0.7, random_state=0).fit(X, y, weights)
    gram = kernel_of(model, np.vstack([X, X_test]))
    n = y.size
    costs = 2000 * 0.7 * weights / weights.sum()
    # With a free intercept, the ridge sees targets and maps less their weighted means.
    share = weights / weights.sum()
    mean = share @ gram[:n]
    centred = gram - (gram[:, :n] @ share)[:, None] - mean + share @ gram[:n, :n] @ share
    shift = share @ y
    ridge = KernelRidge(alpha=1.0, kernel="precomputed")
    ridge.fit(centred[:n, :n], y - shift, sample_weight=costs)
    expected = ridge.predict(centred[n:, :n]) + shift
    np.testing.assert_allclose(model.predict(X_test), expected, rtol=0, atol=1e-6 * y.std())


def test_many_rows_have_the_same_solution_as_few(friedman, monkeypatch):
    X, y, X_test, _ = friedman
    model = MBKLRegressor(maps="ferns", n_maps=100, C=0.1, tol=1e-9, random_state=0)
    exact = model.fit(X, y).predict(X_test)
    monkeypatch.setattr("mbkl.engine.limits.FEW_ROWS_GRAM", 10)
    monkeypatch.setattr("mbkl.engine.limits.ROWS_OF_A_PART", 100)
    iterated = model.fit(X, y).predict(X_test)
    np.testing.assert_allclose(iterated, exact, atol=1e-3 * y.std())


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_has_a_certificate(friedman, loss):
    X, y, _, _ = friedman
    model = MBKLRegressor(maps="ferns", n_maps=200, C=1.0, loss=loss, quantile=0.8, random_state=0)
    assert 0 <= model.fit(X, y).gap_[1] <= model.tol


def test_quantiles_are_those_of_the_linear_program(friedman):
    X, y, _, _ = friedman
    X, y = X[:60, :2], y[:60]
    model = MBKLRegressor(
        maps="stumps", n_maps=3, C=1e5, loss="quantile", quantile=0.3, tol=1e-6, random_state=0
    ).fit(X, y)
    phi = np.array(
        [
            X[:, feature] > threshold
            for feature, threshold in zip(
                model.stump_features_, model.stump_thresholds_, strict=True
            )
        ]
    ).T.astype(float)
    linear = QuantileRegressor(quantile=0.3, alpha=0.0).fit(phi, y)

    def pinball(prediction):
        return np.maximum(0.3 * (y - prediction), -0.7 * (y - prediction)).mean()

    assert pinball(model.predict(X)) == pytest.approx(pinball(linear.predict(phi)), rel=1e-3)


def test_counts_have_the_right_total(friedman):
    X, y, _, _ = friedman
    counts = np.random.default_rng(0).poisson(np.exp(y / 8))
    model = MBKLRegressor(maps="ferns", n_maps=100, C=1.0, loss="poisson", random_state=0)
    model.fit(X, counts)
    assert model.predict(X).sum() == pytest.approx(counts.sum(), rel=1e-6)
    assert (model.predict(X) > 0).all()


@pytest.mark.parametrize(
    ("maps", "quantile"), [("auto", 0.5), ("grown", 0.1), ("grown", 0.5), ("grown", 0.9)]
)
def test_quantiles_have_their_share_below(quantile, maps):
    generator = np.random.default_rng(0)
    X = generator.uniform(size=(3000, 2))
    y = X[:, 0] + (0.2 + X[:, 1]) * generator.normal(size=3000)
    model = MBKLRegressor(loss="quantile", quantile=quantile, maps=maps, random_state=0)
    model.fit(X[:1000], y[:1000])
    assert (y[1000:] <= model.predict(X[1000:])).mean() == pytest.approx(quantile, abs=0.06)


# Maps and kernels ---------------------------------------------------------------------------------


@pytest.mark.parametrize("maps", FAMILIES)
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_every_family_learns(friedman, maps, loss):
    X, y, X_test, y_test = friedman
    shift = 0.0 if loss != "poisson" else 5.0
    model = MBKLRegressor(maps=maps, n_maps=300, loss=loss, random_state=0).fit(X, y + shift)
    assert model.score(X_test, y_test + shift) > 0.5


@pytest.mark.parametrize("theta", ["ones", "learned", "reweighted", "alignment"])
@pytest.mark.parametrize("maps", ["stumps", "ferns"])
def test_learned_kernels_prefer_features_that_tell(friedman, theta, maps):
    X, y, X_test, y_test = friedman
    kernel = {"theta": theta, "theta_shrinkage": 0, "C_kernel": 0.1}
    model = MBKLRegressor(maps=maps, n_maps=700, **kernel, random_state=0)
    model.fit(X, y)
    assert model.score(X_test, y_test) > 0.55
    assert model.theta_.sum() == pytest.approx(1.0)
    if maps == "stumps" and theta != "ones":
        weights = np.bincount(model.stump_features_, model.theta_, minlength=7)
        assert weights[:5].sum() > 0.8


def test_the_default_beats_either_family_or_comes_close(friedman):
    X, y, X_test, y_test = friedman
    default = MBKLRegressor(random_state=0).fit(X, y)
    assert 0 <= default.grown_share_ <= 1
    assert default.score(X_test, y_test) > 0.9


def test_more_rows_than_the_matrix_is_for(friedman, monkeypatch):
    X, y, X_test, y_test = friedman
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 100)
    monkeypatch.setattr(limits, "ROWS_DRAWN_FOR_NUMBERS", 100)
    model = MBKLRegressor(random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > 0.85
    assert model.n_held_out_ == pytest.approx(100, abs=1)


def test_many_rows_are_grown_on(friedman, monkeypatch):
    X, y, _, _ = friedman
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH_FOR_NUMBERS", 200)
    model = MBKLRegressor(n_maps=20, random_state=0).fit(X, y)
    assert (model.C_, model.grown_share_) == (0.0, 1.0)
    assert len(model.fern_features_) == model.n_maps_ <= 20


def test_many_rows_are_grown_on_alone_with_a_spread(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "ROWS_OF_MIXTURES_FOR_NUMBERS", 1_000)
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, size=(3_000, 3))
    y = X[:, 0] + (0.1 + 2 * (X[:, 2] > 0)) * generator.normal(size=3_000)
    model = MBKLRegressor(random_state=0).fit(X[:2_000], y[:2_000])
    assert (model.C_, model.grown_share_, model.n_held_out_) == (0.0, 1.0, 200)
    intervals = model.predict_interval(X[2_000:])
    lower, upper = intervals.T
    is_noisy = X[2_000:, 2] > 0
    assert (upper - lower)[is_noisy].mean() > 2 * (upper - lower)[~is_noisy].mean()
    assert ((lower <= y[2_000:]) & (y[2_000:] <= upper)).mean() == pytest.approx(0.9, abs=0.06)
    model.save(tmp_path / "grown.mbkl")
    again = load(tmp_path / "grown.mbkl")
    np.testing.assert_array_equal(again.predict_interval(X[2_000:]), intervals)
    # In another order, and each twice, with half of the weight.
    order = generator.permutation(np.tile(np.arange(2_000), 2))
    twice = MBKLRegressor(random_state=0, n_jobs=2).fit(X[order], y[order], np.full(4_000, 0.5))
    np.testing.assert_array_equal(twice.predict_interval(X[2_000:]), intervals)


def test_many_rows_of_which_few_differ_are_no_many(friedman, monkeypatch):
    monkeypatch.setattr(limits, "ROWS_OF_MIXTURES_FOR_NUMBERS", 100)
    X, y, X_test, _ = friedman
    few = MBKLRegressor(random_state=0).fit(X[:60], y[:60])
    many = MBKLRegressor(random_state=0).fit(np.tile(X[:60], (4, 1)), np.tile(y[:60], 4))
    np.testing.assert_array_equal(few.predict(X_test), many.predict(X_test))


@pytest.fixture(scope="module")
def linear():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(500, 8))
    y = X @ np.arange(8.0) + 0.5 * generator.normal(size=500)
    X[generator.random(X.shape) < 0.01] = np.nan
    return X[:300], y[:300], X[300:], y[300:]


def line_of(model):
    """Return the stumps that stand for a line: they come after ferns."""
    *before, last = model.maps_.families
    return last if before and isinstance(last, StumpMaps) else None


@pytest.mark.parametrize("limit", [20_000, 200])
def test_a_line_is_taken_from_numbers(linear, limit, monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH_FOR_NUMBERS", limit)
    X, y, X_new, y_new = linear
    model = MBKLRegressor(random_state=0).fit(X, y)
    assert line_of(model) is not None
    assert model.theta_.size == model.n_maps_ == model.maps_.n_maps
    assert model.theta_.sum() == pytest.approx(1.0)
    assert model.score(X_new, y_new) > 0.95
    lower, upper = model.predict_interval(X_new).T
    # Of few rows that grow, thirty tell the width.
    assert 0.7 < ((lower <= y_new) & (y_new <= upper)).mean() < 0.98
    model.save(tmp_path / "line.mbkl")
    np.testing.assert_array_equal(load(tmp_path / "line.mbkl").predict(X_new), model.predict(X_new))
    order = np.random.default_rng(1).permutation(len(X))
    again = MBKLRegressor(random_state=0, n_jobs=2).fit(X[order], y[order])
    np.testing.assert_array_equal(again.predict(X_new), model.predict(X_new))


@pytest.mark.parametrize(
    "settings", [{"C": 1.0}, {"n_maps": 50}, {"loss": "absolute_error"}, {"maps": "stumps"}]
)
def test_what_is_given_has_no_line(linear, settings):
    X, y, _, _ = linear
    assert line_of(MBKLRegressor(random_state=0, **settings).fit(X, y)) is None


def test_the_search_takes_a_line_and_scores_the_whole(linear):
    X, y, X_new, y_new = linear
    model = MBKLRegressorCV(cv=3, random_state=0).fit(X, y)
    assert line_of(model) is not None
    assert model.best_score_ == pytest.approx(model.score(X_new, y_new), abs=0.05)


def test_kernel_of_numbers(friedman):
    X, y, _, _ = friedman
    kernel = MBKernel(maps="stumps", theta="learned", random_state=0).fit(X, y)
    assert not hasattr(kernel, "classes_")
    same = MBKLRegressor(maps="stumps", theta="learned", random_state=0).fit(X, y)
    np.testing.assert_array_equal(kernel.theta_, same.theta_)
    both = MBKernel(task="regression", maps="stumps", random_state=0)
    both.fit(X, np.column_stack([y, -y]))


def test_whole_numbers_are_classes_unless_told(friedman):
    X, y, _, _ = friedman
    assert hasattr(MBKernel(maps="stumps").fit(X, np.rint(y)), "classes_")
    kernel = MBKernel(maps="stumps", task="regression").fit(X, np.rint(y))
    assert not hasattr(kernel, "classes_")


# Laws ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile"])
@pytest.mark.parametrize("maps", ["auto", "stumps", "grown"])
def test_neither_unit_nor_zero_of_y_matters(friedman, loss, maps):
    X, y, X_test, _ = friedman
    model = MBKLRegressor(loss=loss, quantile=0.7, maps=maps, n_maps=60, random_state=0)
    before = model.fit(X, y).predict(X_test)
    np.testing.assert_array_equal(model.fit(X, 1024 * y).predict(X_test), 1024 * before)
    moved = model.fit(X, 1e6 + 1e-3 * y).predict(X_test)
    np.testing.assert_allclose((moved - 1e6) / 1e-3, before, atol=0.02 * y.std())


def test_unit_of_counts_does_not_matter(friedman):
    X, y, X_test, _ = friedman
    model = MBKLRegressor(loss="poisson", maps="ferns", n_maps=60, random_state=0)
    before = model.fit(X, y + 5).predict(X_test)
    np.testing.assert_allclose(model.fit(X, 8 * (y + 5)).predict(X_test), 8 * before)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_numbers_of_any_size(friedman, scale):
    X, y, X_test, _ = friedman
    model = MBKLRegressor(maps="stumps", n_maps=60, random_state=0)
    before = model.fit(X, y).predict(X_test)
    np.testing.assert_allclose(model.fit(X, scale * y).predict(X_test) / scale, before, rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("maps", ["auto", "grown"])
def test_order_and_threads_do_not_matter(friedman, loss, maps):
    X, y, X_test, _ = friedman
    y = np.abs(y)
    model = MBKLRegressor(loss=loss, maps=maps, n_maps=60, random_state=0)
    expected = model.set_params(n_jobs=1).fit(X, y)
    order = np.random.default_rng(0).permutation(y.size)
    other = clone(model).set_params(n_jobs=3).fit(X[order], y[order])
    np.testing.assert_array_equal(other.predict(X_test), expected.predict(X_test))
    np.testing.assert_array_equal(other.residuals_, expected.residuals_)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_is_two_rows(friedman, loss):
    X, y, X_test, _ = friedman
    X, y = X[:120], np.abs(y[:120])
    times = np.random.default_rng(0).integers(0, 3, y.size)
    rows = np.repeat(np.arange(y.size), times)
    model = MBKLRegressor(loss=loss, maps="ferns", n_maps=60, C=1.0, random_state=0)
    weighted = model.fit(X, y, times).predict(X_test)
    repeated = model.fit(X[rows], y[rows]).predict(X_test)
    np.testing.assert_array_equal(weighted, repeated)


@settings(max_examples=15, deadline=None)
@given(
    y=st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=4, max_size=12),
    C=st.floats(1e-6, 1e3),
)
def test_squared_errors_keep_the_mean(y, C):
    X = np.arange(len(y), dtype=float)[:, None]
    model = MBKLRegressor(maps="stumps", n_maps=8, C=C, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        residuals = np.array(y) - model.fit(X, y).predict(X)
    assert abs(residuals.sum()) <= 1e-6 * (1 + np.abs(y).sum())


def test_several_targets_are_each_their_own_ridge(friedman):
    X, y, X_test, _ = friedman
    both = np.column_stack([y, 100 - 3 * y**2])
    model = MBKLRegressor(maps="ferns", n_maps=100, random_state=0).fit(X, both)
    for column in range(2):
        alone = MBKLRegressor(maps="ferns", n_maps=100, random_state=0).fit(X, both[:, column])
        # Rows are in another order of their own.
        np.testing.assert_allclose(
            model.predict(X_test)[:, column], alone.predict(X_test), rtol=1e-6
        )
    assert model.n_outputs_ == 2
    assert MBKLRegressor(maps="stumps").fit(X, y[:, None]).predict(X_test).shape == (200, 1)


@pytest.mark.parametrize("theta", ["learned", "reweighted", "alignment"])
@pytest.mark.parametrize("loss", LOSSES)
def test_several_targets_share_a_kernel(friedman, theta, loss):
    X, y, X_test, _ = friedman
    both = np.abs(np.column_stack([y, y[::-1], y**2]))
    model = MBKLRegressor(maps="stumps", n_maps=50, theta=theta, loss=loss, random_state=0)
    assert model.fit(X, both).predict(X_test).shape == (200, 3)


# Intervals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{}, {"maps": "grown"}, {"loss": "absolute_error"}, {"maps": "stumps", "theta": "learned"}],
)
def test_intervals_cover(settings):
    X, y = make_friedman1(2000, n_features=5, noise=1.0, random_state=1)
    model = MBKLRegressor(random_state=0, **settings).fit(X[:500], y[:500])
    # The standard error of 500 held-out rows, or of the 50 that growth holds out.
    error = 0.12 if settings.get("maps") else 0.06
    for coverage in (0.5, 0.9):
        lower, upper = model.predict_interval(X[500:], coverage).T
        covered = (lower <= y[500:]) & (y[500:] <= upper)
        assert covered.mean() == pytest.approx(coverage, abs=error)


def test_intervals_of_counts_are_not_negative(friedman):
    X, y, X_test, _ = friedman
    counts = np.random.default_rng(0).poisson(np.abs(y) / 20)
    model = MBKLRegressor(loss="poisson", maps="stumps", C=0.1, random_state=0).fit(X, counts)
    lower, upper = model.predict_interval(X_test).T
    assert (lower >= 0).all()
    assert (upper > lower).all()


def test_intervals_of_several_targets(friedman):
    X, y, X_test, _ = friedman
    model = MBKLRegressor(maps="stumps", random_state=0).fit(X, np.column_stack([y, 2 * y]))
    intervals = model.predict_interval(X_test)
    assert intervals.shape == (200, 2, 2)
    np.testing.assert_allclose(intervals[:, 1], 2 * intervals[:, 0])


def test_few_rows_have_infinite_intervals():
    model = MBKLRegressor(maps="stumps").fit(np.arange(6.0)[:, None], np.arange(6.0))
    assert np.isinf(model.predict_interval([[1.0]])).all()


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, np.nan])
def test_coverage_is_checked(friedman, coverage):
    model = MBKLRegressor(maps="stumps", n_maps=20).fit(*friedman[:2])
    with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
        model.predict_interval(friedman[2], coverage)


# Odd and bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("maps", ["auto", "stumps", "grown"])
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_constant_targets_give_a_constant(friedman, loss, maps, value):
    X, _, X_test, _ = friedman
    model = MBKLRegressor(loss=loss, maps=maps, n_maps=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        predicted = model.fit(X, np.full(300, value)).predict(X_test)
    np.testing.assert_allclose(predicted, value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("maps", ["auto", "stumps", "ferns", "grown"])
def test_one_row(maps):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = MBKLRegressor(maps=maps, n_maps=5).fit([[1.0, 2.0]], [3.0])
    assert model.predict([[5.0, 5.0]]) == pytest.approx(3.0)


@pytest.mark.parametrize("C", [1e-12, 1e12])
@pytest.mark.parametrize("loss", LOSSES)
def test_extreme_costs(friedman, C, loss):
    X, y, X_test, _ = friedman
    y = np.abs(y)
    model = MBKLRegressor(maps="stumps", n_maps=50, C=C, loss=loss, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = model.fit(X, y).predict(X_test)
    assert np.isfinite(predicted).all()
    if C < 1:
        assert np.ptp(predicted) < 1e-3 * y.std()


@pytest.mark.parametrize(
    ("y", "settings", "message"),
    [
        ([1.0, np.nan, 2.0], {}, "NaN"),
        ([1.0, np.inf, 2.0], {}, "infinity"),
        ([1.0, -1.0, 2.0], {"loss": "poisson"}, "y of at least zero"),
        ([1.0, 2.0], {}, "inconsistent numbers of samples"),
        ([1.0, 2.0, 3.0], {"quantile": 0.0}, "'quantile' parameter"),
        ([1.0, 2.0, 3.0], {"quantile": 1.5}, "'quantile' parameter"),
        ([1.0, 2.0, 3.0], {"loss": "hinge"}, "'loss' parameter"),
        ([1.0, 2.0, 3.0], {"C": 0.0}, "'C' parameter"),
        (["a", "b", "c"], {}, "y must be numbers"),
    ],
)
def test_bad_input_is_named(y, settings, message):
    with pytest.raises(ValueError, match=message):
        MBKLRegressor(**settings).fit([[0.0], [1.0], [2.0]], y)


def test_weights_of_zero_leave_no_rows():
    with pytest.raises(ValueError, match="non-zero"):
        MBKLRegressor().fit([[0.0], [1.0]], [0.0, 1.0], [0.0, 0.0])


@pytest.mark.parametrize("method", ["predict", "predict_interval", "explain_global"])
def test_unfitted_use_is_an_error(method):
    with pytest.raises(NotFittedError):
        getattr(MBKLRegressor(), method)([[0.0]])


def test_parameters_are_keyword_only():
    with pytest.raises(TypeError):
        MBKLRegressor("stumps")


# The search ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_search_takes_the_best_cost(friedman, loss):
    X, y, _, _ = friedman
    Cs = (1e-6, 1.0)
    model = MBKLRegressorCV(loss=loss, maps="ferns", n_maps=100, Cs=Cs, cv=3, random_state=0)
    model.fit(X, np.abs(y))
    assert model.C_ == 1.0
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()


def test_search_finds_depth_cost_and_share(friedman):
    X, y, X_test, y_test = friedman
    model = MBKLRegressorCV(cv=3, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    best = model.best_estimator_
    assert isinstance(best, MBKLRegressor)
    np.testing.assert_array_equal(best.predict(X_test), model.predict(X_test))


def test_search_scores_growth(friedman):
    X, y, X_test, y_test = friedman
    model = MBKLRegressorCV(maps=GrownFerns(n_ferns=60), cv=3, random_state=0).fit(X, y)
    assert (model.C_, model.grown_share_) == (0.0, 1.0)
    assert model.best_score_ == pytest.approx(model.score(X_test, y_test), abs=0.2)


@pytest.mark.parametrize(("n_rows", "n_features"), [(60, 40), (150, 100), (100, 30), (60, 10)])
@pytest.mark.parametrize("slope", [1.0, 0.0])
def test_intervals_of_few_rows_know_what_was_learned_from_them(n_rows, n_features, slope):
    inside = []
    for seed in range(4):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(n_rows + 1000, n_features))
        y = slope * X @ generator.normal(size=n_features) + generator.normal(0.0, 2.0, len(X))
        model = MBKLRegressor(random_state=0).fit(X[:n_rows], y[:n_rows])
        lower, upper = model.predict_interval(X[n_rows:], coverage=0.8).T
        inside.append(((lower <= y[n_rows:]) & (y[n_rows:] <= upper)).mean())
    assert 0.75 < np.mean(inside) < 0.9


def test_scores_of_a_search_are_those_of_the_whole_target():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0] + generator.normal(0.0, 0.1, 300)
    search = MBKLRegressorCV(scoring="loss", cv=2, random_state=0).fit(X, y)
    assert -0.05 < search.best_score_ < 0
    noise = generator.normal(size=300)
    both = MBKLRegressorCV(cv=2, random_state=0).fit(X, np.column_stack([y, noise]))
    assert 0.3 < both.best_score_ < 0.55


def test_a_single_row_gives_one_clear_warning():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = MBKLRegressor().fit([[1.0]], [2.0])
    assert [each.category for each in found] == [UserWarning]
    assert model.predict([[5.0]]) == 2.0


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_text_is_no_number(friedman, loss):
    X, y, _, _ = friedman
    with pytest.raises(ValueError, match="y must be numbers"):
        MBKLRegressor(loss=loss).fit(X, y.astype(str))


@pytest.mark.parametrize("limit", [20_000, 200])
def test_absolute_errors_ignore_far_numbers(friedman, limit, monkeypatch):
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH_FOR_NUMBERS", limit)
    X, y, X_new, y_new = friedman
    far = np.where(np.arange(y.size) % 100 == 0, 1e8, y)
    model = MBKLRegressor(loss="absolute_error", random_state=0).fit(X, far)
    assert np.median(np.abs(model.predict(X_new) - y_new)) < 1.2
