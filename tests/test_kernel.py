"""MBKernel: identities of the kernel, its feature map and its use elsewhere."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from mbkl import MBKernel, MBKLClassifier
from mbkl.engine.rows import ArrayRows
from mbkl.maps import Stumps
from mbkl.maps.ferns import FernMaps

THETAS = ["learned", "ones", "reweighted", "alignment"]


@pytest.fixture
def kernel_of(form):
    """The kernel in both forms, as a function of its parameters."""
    return partial(form, MBKernel, n_maps=60, random_state=0)


@pytest.fixture
def paper_kernel_of(paper):
    """The kernel of the paper, as a function of its parameters."""
    return partial(paper, MBKernel, n_maps=60, random_state=0)


@pytest.fixture(params=THETAS)
def fitted(request, kernel_of, make_data):
    X, y = make_data(n_classes=3)
    return kernel_of(theta=request.param).fit(X, y), X


@pytest.fixture(params=THETAS)
def fitted_stumps(request, paper_kernel_of, make_data):
    X, y = make_data(n_classes=3)
    return paper_kernel_of(theta=request.param).fit(X, y), X


def agreement(model, X, Z):
    """Return the kernel by its definition: the total weight of the maps that agree."""
    cells_X, cells_Z = cells(model, X), cells(model, Z)
    return ((cells_X[:, None] == cells_Z[None]) * model.theta_).sum(axis=2)


def cells(model, X):
    """Return the side of each stump, and the cell of each fern, that rows lie in."""
    columns = [X[:, model.stump_features_] > model.stump_thresholds_]
    for part in model.maps_.families:
        if isinstance(part, FernMaps):
            columns.append(part.codes(ArrayRows(X)).values.T)
    return np.hstack(columns)


def test_the_kernel_is_the_weight_of_agreeing_maps(fitted):
    model, X = fitted
    Z = 3 * np.random.default_rng(1).normal(size=(15, 4))  # also outside the range of X
    np.testing.assert_allclose(model.kernel(X, Z), agreement(model, X, Z), atol=1e-12)
    np.testing.assert_allclose(model.kernel(X), agreement(model, X, X), atol=1e-12)


def test_the_kernel_is_positive_semi_definite(fitted):
    model, X = fitted
    K = model.kernel(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(np.diag(K), 1)
    assert K.min() >= -1e-12
    assert np.linalg.eigvalsh(K).min() > -1e-10


def test_the_feature_map_is_a_root_of_the_kernel(fitted):
    model, X = fitted
    phi = model.transform(X)
    assert sparse.issparse(phi)
    n_stumps = model.stump_features_.size
    n_cells = sum(part.cells.n_cells for part in model.maps_.families if isinstance(part, FernMaps))
    assert phi.shape == (len(X), 2 * n_stumps + n_cells)
    assert phi.nnz == len(X) * model.n_maps_
    np.testing.assert_allclose((phi @ phi.T).toarray(), model.kernel(X), atol=1e-12)


def test_the_distance_is_what_is_left_of_the_kernel(fitted):
    model, X = fitted
    D = model.distance(X)
    np.testing.assert_allclose(D, 1 - model.kernel(X), atol=1e-12)
    assert D.min() >= 0
    assert (D[:, :, None] <= D[:, None, :] + D.T[None, :, :] + 1e-12).all()
    phi = model.transform(X).toarray()
    squared = ((phi[:, None] - phi[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, 2 * D, atol=1e-12)


def test_the_warp_never_falls(fitted_stumps):
    model, X = fitted_stumps
    used = np.unique(model.stump_features_)
    psi = model.warp(X)
    assert psi.shape == (len(X), used.size)
    for column, feature in enumerate(used):
        order = np.argsort(X[:, feature])
        assert (np.diff(psi[order, column]) >= 0).all()
    expected = np.abs(psi[:, None] - psi[None]).sum(axis=2)
    np.testing.assert_allclose(model.distance(X), expected, atol=1e-12)


def test_ferns_have_no_warp(make_data):
    X, y = make_data()
    with pytest.raises(ValueError, match=r"warp needs .* stumps or projections.* distance"):
        MBKernel(n_maps=20, random_state=0).fit(X, y).warp(X)


def test_a_dense_feature_map_is_the_same(kernel_of, make_data):
    X, y = make_data()
    stored, dense = kernel_of().fit(X, y), kernel_of(sparse_output=False).fit(X, y)
    assert isinstance(dense.transform(X), np.ndarray)
    np.testing.assert_array_equal(stored.transform(X).toarray(), dense.transform(X))


def test_the_kernel_is_that_of_the_classifier(kernel_of, form, make_data):
    X, y = make_data(n_classes=3)
    model = kernel_of(C_kernel=0.5).fit(X, y)
    classifier = form(MBKLClassifier, n_maps=60, C_kernel=0.5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.theta_, classifier.theta_)
    np.testing.assert_array_equal(model.stump_thresholds_, classifier.stump_thresholds_)


def test_a_linear_svm_on_the_map_is_the_svm_with_the_kernel(kernel_of, make_data):
    X, y = make_data()
    model = kernel_of().fit(X, y)
    by_kernel = SVC(kernel=model.kernel, C=2.0, tol=1e-8).fit(X, y)
    by_map = SVC(kernel="linear", C=2.0, tol=1e-8).fit(model.transform(X), y)
    np.testing.assert_allclose(
        by_kernel.decision_function(X), by_map.decision_function(model.transform(X)), atol=1e-4
    )


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_sparse_rows(kernel_of, make_data, make):
    X, y = make_data()
    X[np.abs(X) < 0.8] = 0.0
    model = kernel_of().fit(make(X), y)
    np.testing.assert_array_equal(model.kernel(make(X), X), model.kernel(X))
    np.testing.assert_array_equal(model.transform(make(X)).toarray(), model.transform(X).toarray())


def test_feature_names_tell_feature_and_threshold(paper_kernel_of, make_data):
    X, y = make_data()
    X[::5, 1] = np.nan
    frame = pd.DataFrame(X, columns=["petal width", "b", "c", "d"])
    model = paper_kernel_of(theta="ones").fit(frame, y)
    names = model.get_feature_names_out()
    assert names.shape == (2 * model.n_maps_,)
    assert len(set(names)) == names.size
    assert {"b present", "b missing"} <= set(names)
    first = f"petal width > {model.stump_thresholds_[0]:.9g}"
    assert names[0] == first
    assert names[1] == first.replace(">", "<=")
    np.testing.assert_array_equal(np.float32(names[0].split()[-1]), model.stump_thresholds_[0])


def test_feature_names_describe_the_columns(paper_kernel_of, make_data):
    X, y = make_data()
    model = paper_kernel_of(sparse_output=False).fit(X, y)
    phi, names = model.transform(X), model.get_feature_names_out(["a", "b", "c", "d"])
    for column, name in enumerate(names):
        feature, relation, threshold = name.split()
        values, limit = X[:, "abcd".index(feature)], float(np.float32(threshold))
        inside = values > limit if relation == ">" else values <= limit
        np.testing.assert_array_equal(phi[:, column] > 0, inside)


def test_names_of_nameless_features(paper_kernel_of, make_data):
    X, y = make_data()
    names = paper_kernel_of().fit(X, y).get_feature_names_out()
    assert all(name.startswith("x") for name in names)


def test_names_of_the_cells_of_ferns(make_data):
    X, y = make_data()
    model = MBKernel(n_maps=20, random_state=0).fit(X, y)
    names = model.get_feature_names_out()
    assert len(set(names)) == names.size == model.transform(X).shape[1]
    assert names[-1].startswith("fern ")


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_output_as_a_data_frame(kernel_of, make_data, kind, frame):
    X, y = make_data()
    model = kernel_of(sparse_output=False).set_output(transform=kind)
    result = model.fit_transform(X, y)
    assert isinstance(result, frame)
    assert list(result.columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(
        result.to_numpy(), kernel_of(sparse_output=False).fit(X, y).transform(X)
    )


def test_in_a_pipeline(kernel_of, make_data):
    X, y = make_data(n_classes=3)
    pipeline = make_pipeline(kernel_of(), LinearSVC()).fit(X, y)
    assert pipeline.score(X, y) > 0.7


def test_with_neighbours_and_principal_components(kernel_of, make_data):
    X, y = make_data(n_classes=3)
    model = kernel_of().fit(X, y)
    neighbours = KNeighborsClassifier(metric="precomputed").fit(model.distance(X), y)
    assert neighbours.score(model.distance(X), y) > 0.7
    components = KernelPCA(2, kernel="precomputed").fit_transform(model.kernel(X))
    assert components.shape == (len(X), 2)


@pytest.mark.parametrize("family", [Stumps(thresholds="quantile"), Stumps(draw="stratified")])
def test_families_of_maps(paper_kernel_of, make_data, family):
    X, y = make_data()
    model = paper_kernel_of(maps=family).fit(X, y)
    np.testing.assert_allclose(model.kernel(X), agreement(model, X, X), atol=1e-12)


def test_pickling_and_cloning(kernel_of, make_data):
    X, y = make_data()
    model = kernel_of().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.kernel(X).tobytes() == model.kernel(X).tobytes()
    assert clone(model).fit(X, y).kernel(X).tobytes() == model.kernel(X).tobytes()


@pytest.mark.parametrize("method", ["kernel", "distance", "warp", "transform"])
def test_use_before_fit_is_an_error(kernel_of, method):
    with pytest.raises(NotFittedError):
        getattr(kernel_of(), method)(np.zeros((2, 2)))


@pytest.mark.filterwarnings("ignore:C_kernel=1e-09 is too small")
def test_an_empty_kernel_is_zero(paper_kernel_of, make_data):
    X, y = make_data()
    model = paper_kernel_of(C_kernel=1e-9).fit(X, y)
    assert model.n_maps_ == 0
    assert model.transform(X).shape == (80, 0)
    np.testing.assert_array_equal(model.kernel(X), np.zeros((80, 80)))
    assert model.get_feature_names_out().size == 0
