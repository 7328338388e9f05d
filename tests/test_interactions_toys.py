"""Problems that features solve only together, and the estimators with ferns."""

import numpy as np
import pytest
from scipy import sparse

from mbkl import MBKernel, MBKLClassifier
from mbkl.engine.rows import ArrayRows
from mbkl.maps import Ferns, Stumps


def xor(generator, n_rows):
    X = generator.normal(size=(n_rows, 20))
    return X, X[:, 0] * X[:, 1] > 0


def checkerboard(generator, n_rows):
    X = generator.random((n_rows, 2))
    return X, np.floor(4 * X).sum(axis=1) % 2 == 1


def parity_in_noise(generator, n_rows):
    X = generator.normal(size=(n_rows, 23))
    return X, np.prod(X[:, :3], axis=1) > 0


def parity_of_bits_in_noise(generator, n_rows):
    X = generator.integers(2, size=(n_rows, 23)).astype(float)
    return X, X[:, :3].sum(axis=1) % 2 == 1


def missing_or_large(generator, n_rows):
    X = generator.normal(size=(n_rows, 3))
    missing = generator.random(n_rows) < 0.5
    X[:, 0] = np.where(missing, np.nan, 1.0)
    return X, missing ^ (X[:, 1] > 0)


TOYS = [
    (xor, 1000, 0),
    (checkerboard, 2000, 0),
    (parity_in_noise, 2000, 0),
    # More ones than zeros in some of the bits.
    (parity_of_bits_in_noise, 1000, 3),
    (missing_or_large, 1000, 0),
]
EVERY_TOY = pytest.mark.parametrize(
    ("toy", "n_rows", "seed"), TOYS, ids=[toy.__name__ for toy, _, _ in TOYS]
)


def halves(toy, n_rows, seed):
    X, y = toy(np.random.default_rng(seed), 2 * n_rows)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


@EVERY_TOY
def test_the_default_solves_interactions(toy, n_rows, seed):
    X, y, X_new, y_new = halves(toy, n_rows, seed)
    assert MBKLClassifier(random_state=0).fit(X, y).score(X_new, y_new) >= 0.95


@EVERY_TOY
def test_stumps_alone_do_not(toy, n_rows, seed):
    X, y, X_new, y_new = halves(toy, n_rows, seed)
    model = MBKLClassifier(maps="stumps", random_state=0).fit(X, y)
    assert model.score(X_new, y_new) < 0.65


def test_rates_show_which_features_matter():
    X, y, _, _ = halves(*TOYS[2])
    model = MBKLClassifier(n_maps=50, random_state=0).fit(X, y)
    assert set(np.argsort(model.feature_rates_)[-3:]) == {0, 1, 2}


# --- Several families with one learned theta ---


@pytest.fixture(scope="module")
def blended():
    """Rows of three classes: one feature alone, and two only together."""
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(300, 5)) * 64) / 64
    y = np.where(X[:, 2] > 0.8, 2, X[:, 0] * X[:, 1] > 0)
    return X, y


@pytest.mark.parametrize("theta", ["learned", "ones", "reweighted", "alignment"])
def test_stumps_and_ferns_share_one_theta(blended, theta):
    X, y = blended
    families = ["stumps", Ferns(depth=3)]
    pure = {"theta": theta, "theta_shrinkage": 0}
    model = MBKLClassifier(maps=families, n_maps=300, random_state=0, **pure).fit(X, y)
    everything = MBKLClassifier(maps=families, n_maps=300, theta="ones", random_state=0).fit(X, y)
    assert (model.theta_ > 0).all()
    assert model.theta_.sum() == pytest.approx(1.0)
    assert model.theta_.size == model.n_maps_
    assert model.score(X, y) > 0.9
    stumps, ferns = model.maps_.families
    assert stumps.n_maps == model.stump_features_.size > 0
    assert ferns.n_maps == len(model.fern_features_) == len(model.fern_thresholds_) > 0
    if theta in ("learned", "reweighted"):
        # Some of the maps drawn have no weight, and are gone.
        assert model.n_maps_ < everything.n_maps_
    else:
        assert model.n_maps_ <= everything.n_maps_


@pytest.mark.parametrize("maps", [["stumps", "ferns"], ["ferns", "stumps"], ["stumps", "stumps"]])
def test_learned_theta_has_a_certificate(blended, maps):
    X, y = blended
    model = MBKLClassifier(maps=maps, n_maps=200, theta="learned", random_state=0).fit(X, y)
    assert (model.gap_ <= 1e-3).all()
    scores = model.decision_function(X)
    assert scores.shape == (300, 3)
    tables = model.maps_.tables(model.coef_.T)
    assert len(model.tables_) == model.table_features_.size == model.maps_.n_groups
    assert sum(map(len, model.tables_)) == sum(map(len, tables))


def test_scores_are_sums_of_tables(blended):
    X, y = blended
    model = MBKLClassifier(maps=["stumps", "ferns"], n_maps=100, random_state=0).fit(X, y)
    codes = model.maps_.codes(ArrayRows(X))
    values = np.concatenate([part.dense().values.astype(int) for part in codes])
    expected = model.intercept_ + sum(
        table[cells] for table, cells in zip(model.tables_, values, strict=True)
    )
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-10)


# --- The same data in another form, with the default maps ---


def fit_default(X, y, **parameters):
    sample_weight = parameters.pop("sample_weight", None)
    model = MBKLClassifier(n_maps=60, random_state=0, **parameters)
    return model.fit(X, y, sample_weight=sample_weight)


def test_the_order_of_the_rows_changes_no_bit(blended):
    X, y = blended
    order = np.random.default_rng(1).permutation(len(X))
    left, right = fit_default(X, y), fit_default(X[order], y[order])
    np.testing.assert_array_equal(left.decision_function(X), right.decision_function(X))


def test_a_weight_is_a_repetition(blended):
    X, y = blended
    times = np.random.default_rng(1).integers(1, 4, size=len(X))
    left = fit_default(X, y, sample_weight=times)
    right = fit_default(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_array_equal(left.decision_function(X), right.decision_function(X))


@pytest.mark.parametrize("factor", [1e-6, 1e-2, 1e100])
def test_only_the_ratio_of_weights_matters(blended, factor):
    X, y = blended
    weights = np.random.default_rng(1).integers(1, 20, size=len(X)).astype(float)
    left = fit_default(X, y, sample_weight=weights)
    right = fit_default(X, y, sample_weight=factor * weights)
    np.testing.assert_allclose(left.decision_function(X), right.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    "form", [sparse.csr_array, sparse.csc_array, np.float32, np.asfortranarray]
)
def test_the_format_does_not_matter(blended, form):
    X, y = blended
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    left, right = fit_default(X, y), fit_default(form(X), y)
    np.testing.assert_allclose(
        left.decision_function(X), right.decision_function(form(X)), atol=1e-10
    )


# --- The kernel of ferns ---


@pytest.fixture(
    params=["ferns", ["stumps", "ferns"], [Ferns(depth=9, max_cells=8), Stumps(), "projections"]],
    ids=["ferns", "stumps and ferns", "all"],
)
def kernel(request, blended):
    X, y = blended
    return MBKernel(maps=request.param, n_maps=80, theta="learned", random_state=0).fit(X, y)


@pytest.fixture
def rows(blended):
    """Some rows of training, and some that fall in cells never seen."""
    new = 3 * np.random.default_rng(1).normal(size=(30, 5))
    new[::7, 1] = np.nan
    return np.vstack([blended[0][:40], new])


def test_the_kernel_is_positive_semi_definite(kernel, rows):
    K = kernel.kernel(rows)
    np.testing.assert_allclose(K, K.T, atol=1e-14)
    np.testing.assert_allclose(np.diag(K), kernel.theta_.sum(), atol=1e-12)
    assert K.min() >= -1e-12
    assert np.linalg.eigvalsh(K).min() > -1e-10


def test_the_feature_map_is_a_root_of_the_kernel(kernel, rows):
    phi = kernel.transform(rows)
    assert sparse.issparse(phi)
    np.testing.assert_allclose((phi @ phi.T).toarray(), kernel.kernel(rows), atol=1e-12)
    other = kernel.transform(rows[:9])
    np.testing.assert_allclose((phi @ other.T).toarray(), kernel.kernel(rows, rows[:9]), atol=1e-12)


def test_the_distance_is_what_the_kernel_lacks(kernel, rows):
    D = kernel.distance(rows, rows[:9])
    expected = kernel.theta_.sum() - kernel.kernel(rows, rows[:9])
    np.testing.assert_allclose(D, expected, atol=1e-12)
    own = kernel.distance(rows)
    np.testing.assert_allclose(np.diag(own), 0.0, atol=1e-12)
    assert own.min() >= -1e-12
    # The triangle inequality.
    assert (own[:, None] <= own[:, :, None] + own[None] + 1e-12).all()


def test_every_column_has_its_name(kernel, rows):
    names = kernel.get_feature_names_out()
    assert names.shape == (kernel.transform(rows).shape[1],)
    assert len(set(names)) == names.size
    assert sum(name.startswith("fern ") for name in names) > 0


def test_a_fern_is_one_in_one_of_its_columns(blended, rows):
    X, y = blended
    model = MBKernel(maps="ferns", n_maps=40, random_state=0).fit(X, y)
    phi = model.transform(rows).toarray() > 0
    fern = np.array([int(name.split()[1]) for name in model.get_feature_names_out()])
    for number in range(model.n_maps_):
        np.testing.assert_array_equal(phi[:, fern == number].sum(axis=1), 1)


def test_warp_is_for_stumps_alone(blended, rows):
    X, y = blended
    model = MBKernel(maps="ferns", n_maps=40, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="ferns"):
        model.warp(rows)
