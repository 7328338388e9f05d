"""The stored sets, where the environment variable MBKL_DATA names their folder."""

import numpy as np
import pytest

from mbkl_paper import datasets

# Rows, classes, splits, and the sizes of the first split.
FACTS = {
    "daimler": (49_000, 2, 6, (19_600, 9_800)),
    "liver": (345, 2, 5, (276, 69)),
    "sonar": (208, 2, 5, (166, 42)),
    "flowers17": (1_360, 17, 3, (1_020, 340)),
    "osr": (2_688, 8, 1, (240, 2_448)),
    "apascal": (12_695, 20, 1, (6_340, 6_355)),
    "caltech101": (5_293, 101, 1, (3_030, 2_263)),
}


@pytest.fixture
def load(data_folder):
    def load(name, **options):
        if not (data_folder / "paper" / name).is_dir():
            pytest.skip(f"The data set paper/{name} is missing from the folder MBKL_DATA.")
        if FACTS[name][1] in (17, 101):
            pytest.importorskip("cv2")
        return datasets.load(name, **options)

    return load


@pytest.mark.parametrize("name", FACTS)
def test_sizes_are_those_of_the_paper(load, name):
    n_rows, n_classes, n_splits, sizes = FACTS[name]
    benchmark = load(name)
    assert benchmark.y.shape == (n_rows,)
    assert np.unique(benchmark.y).size == len(benchmark.class_names) == n_classes
    splits = list(benchmark.splits(random_state=0))
    assert len(splits) == n_splits
    assert (splits[0][0].size, splits[0][1].size) == sizes
    if name != "caltech101":
        assert sizes == (benchmark.printed.n_train, benchmark.printed.n_test)
        assert benchmark.printed.n_classes == n_classes
    for train, test in splits:
        assert np.intersect1d(train, test).size == 0
        assert set(benchmark.y[train]) == set(range(n_classes))
    stands_in = name in ("flowers17", "osr", "apascal", "caltech101")
    assert (benchmark.stand_in is not None) == stands_in


@pytest.mark.parametrize("name", ["liver", "sonar", "osr"])
def test_features_are_those_of_the_paper(load, name):
    benchmark = load(name)
    assert benchmark.X.shape == (benchmark.y.size, benchmark.printed.n_features)
    assert len(benchmark.feature_names) == benchmark.printed.n_features


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("liver", "liver.npz"),
        ("sonar", "sonar.npz"),
        ("apascal", "apascal_attributes.npz"),
    ],
)
def test_both_forms_hold_the_same(load, data_folder, tmp_path, name, stored):
    original = load(name)
    (tmp_path / stored).symlink_to(data_folder / "paper" / name / stored)
    other = datasets.load(name, tmp_path)
    np.testing.assert_array_equal(original.X, other.X)
    np.testing.assert_array_equal(original.y, other.y)
    assert original.class_names == other.class_names
    for first, second in zip(original.splits(), other.splits(), strict=True):
        np.testing.assert_array_equal(first[0], second[0])
        np.testing.assert_array_equal(first[1], second[1])


def test_attributes_of_scenes_lie_between_zero_and_one(load):
    for squash in ("logistic", "standardised"):
        attributes = load("osr", squash=squash).X[:, 512:]
        assert 0 < attributes.min() < 0.1
        assert 0.9 < attributes.max() < 1


@pytest.mark.parametrize(("name", "side"), [("flowers17", 320), ("caltech101", 128)])
def test_pictures_are_decoded(load, name, side):
    images = load(name).images
    for pixels in images[:: len(images) // 20]:
        assert pixels.dtype == np.uint8
        assert pixels.ndim == 3
        assert pixels.shape[2] == 3
        assert min(pixels.shape[:2]) <= side
