"""OSR: data.mat, the npz, and folders of images."""

import numpy as np
import pytest
from scipy.special import expit

from mbkl_paper import datasets
from mbkl_paper.datasets import DatasetError, osr

SIZES = (360, 328, 260, 308, 374, 410, 292, 356)
FORMS = ["osr_mat", "osr_npz"]


@pytest.mark.parametrize("form", FORMS)
def test_features_are_read(tmp_path, fakes, form):
    gist, scores, trained = getattr(fakes, form)(tmp_path)
    benchmark = datasets.load_osr(tmp_path)
    assert benchmark.X.shape == (2688, 518)
    np.testing.assert_array_equal(benchmark.X[:, :512], gist)
    if form == "osr_mat":  # those of the npz are fitted across folds
        np.testing.assert_allclose(benchmark.X[:, 512:], 1 / (1 + np.exp(-scores)), rtol=1e-5)
    np.testing.assert_array_equal(np.bincount(benchmark.y), SIZES)
    ((train, test),) = benchmark.splits()
    np.testing.assert_array_equal(train, np.flatnonzero(trained))
    np.testing.assert_array_equal(test, np.flatnonzero(~trained))
    assert benchmark.feature_names[511:513] == ("gist 511", "attribute 0")
    assert len(benchmark.feature_names) == 518
    assert benchmark.class_names[3] == "insidecity"
    assert (benchmark.stand_in is None) == (form == "osr_mat")


def test_scores_are_squashed_as_asked(tmp_path, fakes):
    _, scores, trained = fakes.osr_npz(tmp_path)
    raw = datasets.load_osr(tmp_path, squash=None, cross_fit=False).X[:, 512:]
    np.testing.assert_array_equal(raw, scores)
    standard = (scores - scores[trained].mean(axis=0)) / scores[trained].std(axis=0)
    squashed = datasets.load_osr(tmp_path, squash="standardised", cross_fit=False).X[:, 512:]
    np.testing.assert_allclose(squashed, expit(standard), atol=1e-5)
    with pytest.raises(ValueError, match="squash='tanh' is not"):
        datasets.load_osr(tmp_path, squash="tanh")


def test_attributes_of_training_images_come_from_other_images():
    """Labels that are noise cannot be told from attributes that have not seen them."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(80, 60)), np.arange(80) % 2
    train = np.arange(60)
    scores = osr.cross_fitted(X, y[:, None], y, train)[:, 0]
    assert abs(np.corrcoef(scores[train], y[train])[0, 1]) < 0.3
    there = osr.cross_fitted(X + 2.0 * y[:, None], y[:, None], y, train)[:, 0]
    for images in (train, np.arange(60, 80)):
        assert np.corrcoef(there[images], y[images])[0, 1] > 0.8
        assert abs(there[images].mean()) < 0.3 * there.std()


@pytest.fixture
def narrow(monkeypatch):
    """Make the descriptors short, as what is tested does not depend on them."""
    monkeypatch.setattr(osr, "_N_GIST", 3)
    return 3


def used(number):
    marks = np.zeros((2688, 1))
    marks[:number] = 1
    return marks


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feat": np.zeros((2688, 4))}, r"'GIST' has shape \(2688, 4\)"),
        ({"feat": np.full((2688, 3), np.nan)}, "'GIST' has a NaN"),
        ({"feat": None}, "'feat' is missing"),
        ({"relative_att_predictions": np.zeros((6, 2688))}, "'relative attributes' has shape"),
        ({"class_labels": np.zeros((2688, 1))}, "'classes' has -1 in row 0"),
        ({"class_labels": np.full((2688, 1), 9)}, "'classes' has 8 in row 0"),
        ({"used_for_training": used(239)}, "'train_idx' has shape"),
        ({"class_names": np.zeros((7, 1))}, "has 7 classes where 8"),
        ({"attribute_names": np.zeros((5, 1))}, "has 5 names of attributes where 6"),
    ],
)
def test_a_wrong_mat_is_refused(tmp_path, fakes, narrow, changes, message):
    fakes.osr_mat(tmp_path, narrow, **changes)
    with pytest.raises(DatasetError, match=rf"data\.mat.*{message}"):
        datasets.load_osr(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((2687, 3))}, "'GIST' has shape"),
        ({"X_relattr": np.full((2688, 6), np.inf)}, "infinite value in row 0"),
        ({"y": np.zeros(2688, dtype=int)}, "no row is of the class 'forest'"),
        ({"test_idx": np.arange(2448)}, "is twice in train_idx, test_idx"),
    ],
)
def test_a_wrong_npz_is_refused(tmp_path, fakes, narrow, changes, message):
    fakes.osr_npz(tmp_path, narrow, **changes)
    with pytest.raises(DatasetError, match=rf"osr_gist\.npz.*{message}"):
        datasets.load_osr(tmp_path)


# ---------------------------------------------------------------- images


@pytest.fixture(scope="module")
def scenes(tmp_path_factory, fakes):
    """Folders of classes as in copies of the 15-scene set, another class among them."""
    root = tmp_path_factory.mktemp("scenes")
    names = ("MITcoast", "Forest", "highway", "inside_city", "MITmountain", "OpenCountry")
    paths = fakes.scenes(root, (*names, "street", "tall-building"))
    (root / "kitchen").mkdir()
    return root, paths


def test_folders_of_images_are_read(scenes):
    root, paths = scenes
    benchmark = datasets.load_osr(root)
    assert [root / name for name in benchmark.images.names] == paths
    np.testing.assert_array_equal(np.bincount(benchmark.y), SIZES)
    assert benchmark.images[0].shape == (4, 6, 3)
    assert "random training images" in repr(benchmark)
    ((train, test),) = benchmark.splits(random_state=3)
    np.testing.assert_array_equal(np.bincount(benchmark.y[train]), [30] * 8)
    assert train.size + test.size == np.unique(np.concatenate([train, test])).size == 2688


def test_one_folder_of_images_is_read(tmp_path, fakes):
    paths = fakes.scenes(tmp_path / "images", flat=True)
    chosen = [path.name for path in paths if int(path.stem[-3:]) < 30]
    fakes.scene_list(tmp_path / "outdoor_scenes.mat", chosen)
    (tmp_path / "images" / "kitchen_1.jpg").touch()
    benchmark = datasets.load_osr(tmp_path)
    ((train, test),) = benchmark.splits()
    assert benchmark.images.names[train].tolist() == chosen
    assert test.size == 2448
    np.testing.assert_array_equal(np.bincount(benchmark.y), SIZES)
    assert "outdoor_scenes.mat" in benchmark.stand_in
    paths[5].unlink()
    with pytest.raises(DatasetError, match="has 2,687 images where 2,688"):
        datasets.load_osr(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    (tmp_path / "coast").mkdir()
    with pytest.raises(DatasetError, match="no folder for the class 'forest'"):
        datasets.load_osr(tmp_path)
