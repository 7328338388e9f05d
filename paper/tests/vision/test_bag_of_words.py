"""Bags of words over a spatial pyramid, by counting."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mbkl_paper.vision import BagOfWords, ColourPatches, DenseSIFT, NestedSparseQuantization
from mbkl_paper.vision.pyramid import levels, regions_of

SMALL = DenseSIFT(step=4, scales=(3,))
PYRAMID = (1, 2, (1, 3), "centre")


@pytest.fixture(scope="module")
def bag(make_images):
    def make(**settings):
        model = BagOfWords(
            SMALL, 12, **{"random_state": 0, "pyramid": (1, 2, (1, 3), "centre")} | settings
        )
        return model.fit(make_images(6))

    return make


def points_by_region(positions, pyramid):
    """Return, for each region in order, the numbers of the points in it."""
    result = []
    for level in pyramid:
        if level == "centre":
            middle = ((positions >= 0.25) & (positions < 0.75)).all(axis=1)
            result.append(np.flatnonzero(middle))
            continue
        rows, columns = (level, level) if isinstance(level, int) else level
        for row in range(rows):
            for column in range(columns):
                inside = [
                    number
                    for number, (y, x) in enumerate(positions)
                    if row <= y * rows < row + 1 and column <= x * columns < column + 1
                ]
                result.append(inside)
    return result


@pytest.mark.parametrize("coding", ["hard", "soft"])
def test_averages_of_the_words_of_each_region(bag, make_images, coding):
    model, image = bag(coding=coding), make_images(1, seed=5)[0]
    found = SMALL.extract(image)
    codes = model.coder_.transform(found.descriptors).toarray()
    parts = [codes[inside].mean(axis=0) for inside in points_by_region(found.positions, PYRAMID)]
    expected = np.concatenate(parts) / 9
    features = model.transform([image])
    assert features.shape == (1, 9 * 12)
    np.testing.assert_allclose(features[0], expected, atol=1e-6)
    np.testing.assert_allclose(features.sum(), 1, rtol=1e-5)


def test_largest_codes_of_each_region(bag, make_images):
    model, image = bag(coding="soft", pooling="max"), make_images(1, seed=5)[0]
    found = SMALL.extract(image)
    codes = model.coder_.transform(found.descriptors).toarray()
    parts = [codes[inside].max(axis=0) for inside in points_by_region(found.positions, PYRAMID)]
    np.testing.assert_allclose(model.transform([image])[0], np.concatenate(parts), atol=1e-6)


def test_sparse_quantization_by_sorting(make_images):
    images = make_images(6)
    model = NestedSparseQuantization(SMALL, 30, n_ones=20, n_neighbors=3, random_state=0)
    features = model.fit_transform(images)
    assert features.shape == (6, 30 * 21)
    found = SMALL.extract(images[2])
    expected = []
    for inside in points_by_region(found.positions, (1, 2, 4)):
        code = np.zeros(30)
        for number in inside:
            binary = np.zeros(128)
            binary[np.argsort(-found.descriptors[number], kind="stable")[:20]] = 1
            hamming = (binary != model.coder_.words_).sum(axis=1)
            code[np.argsort(hamming, kind="stable")[:3]] = 1
        expected.append(code)
    np.testing.assert_array_equal(features[2], np.concatenate(expected))


def test_regions_without_points_are_zero(make_images):
    # The only two points of this image lie side by side: two of the quarters have none.
    images = make_images(3, height=10, width=14)
    model = BagOfWords(DenseSIFT(step=4, scales=(3,)), 2, pyramid=(1, 4), random_state=0)
    features = model.fit_transform(images)
    assert np.isfinite(features).all()
    regions = features.reshape(3, 17, 2).sum(axis=2)
    np.testing.assert_allclose(regions.sum(axis=1), 1, rtol=1e-5)
    assert (regions == 0).any()


def test_default_descriptor_and_pyramid(make_images):
    model = BagOfWords(n_words=5, random_state=0)
    assert model.fit_transform(make_images(3)).shape == (3, 5 * 21)
    assert isinstance(model.descriptor_, DenseSIFT)
    assert model.descriptor is None


def test_images_of_several_sizes_and_paths(make_images, tmp_path):
    import cv2

    images = [make_images(1, height=height)[0] for height in (30, 40, 55)]
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for image, path in zip(images, paths):
        cv2.imwrite(str(path), image)
    model = BagOfWords(SMALL, 8, random_state=0).fit(images)
    assert model.transform(images).tobytes() == model.transform(paths).tobytes()


def test_names_belong_to_columns(bag, make_images):
    model = bag()
    names = model.get_feature_names_out()
    assert len(set(names)) == names.size == model.transform(make_images(1)).shape[1]
    assert names[12] == "2x2 row 0 column 0 word 0"
    assert names[8 * 12 - 1] == "1x3 row 0 column 2 word 11"
    assert names[-1] == "centre row 0 column 0 word 11"


def test_a_sample_of_the_images(make_images):
    images = make_images(8)
    model = BagOfWords(SMALL, 4, max_descriptors=120, random_state=0).fit(images)
    assert model.coder_.words_.shape == (4, 128)


def test_constant_images_are_all_one_word():
    images = np.full((3, 40, 40), 50, dtype=np.uint8)
    features = BagOfWords(SMALL, 1, random_state=0).fit_transform(images)
    np.testing.assert_allclose(features, 1 / 21, rtol=1e-5)


def test_other_descriptors(make_images):
    images = make_images(3, colours=True)
    assert BagOfWords(ColourPatches(), 4, random_state=0).fit_transform(images).shape == (3, 84)


@pytest.mark.parametrize("kind", [BagOfWords, NestedSparseQuantization])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pyramid": ()}, "pyramid is empty"),
        ({"pyramid": (0,)}, "level of pyramid must be"),
        ({"pyramid": ((1, 2, 3),)}, "level of pyramid must be"),
        ({"pyramid": (1, "left")}, "level of pyramid must be"),
        ({"pyramid": (1.5,)}, "level of pyramid must be"),
        ({"n_words": 0}, "n_words"),
        ({"n_words": 5000}, "n_words=5000"),
        ({"descriptor": "sift"}, "descriptor"),
        ({"max_descriptors": 0}, "max_descriptors"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_settings(make_images, kind, settings, message):
    with pytest.raises(ValueError, match=message):
        kind(**{"descriptor": SMALL} | settings).fit(make_images(2))


@pytest.mark.parametrize("kind", [BagOfWords, NestedSparseQuantization])
def test_use_before_fit_is_an_error(make_images, kind):
    for method in ("transform", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(kind(), method)(make_images(1))


def test_a_nested_setting(make_images):
    model = clone(BagOfWords(DenseSIFT(), 4)).set_params(descriptor__scales=(3,), n_words=6)
    assert model.descriptor.scales == (3,)
    assert model.fit_transform(make_images(2)).shape == (2, 126)


def test_regions_are_numbered_through_all_levels():
    positions = np.array([[0.1, 0.1], [0.1, 0.9], [0.9, 0.1], [0.7, 0.6]])
    regions, n_regions = regions_of(positions, levels((1, 2, (1, 3), "centre")))
    assert n_regions == 9
    expected = [[0, 0, 0, 0], [1, 2, 3, 4], [5, 7, 5, 6], [-1, -1, -1, 8]]
    np.testing.assert_array_equal(regions, expected)
