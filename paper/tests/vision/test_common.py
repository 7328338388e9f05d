"""What all descriptors have in common as transformers of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline, make_union
from sklearn.utils.estimator_checks import (
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
    check_set_params,
)

from mbkl import MBKLClassifier
from mbkl_paper.vision import (
    GIST,
    HOG,
    BagOfWords,
    ColourPatches,
    ColourSIFT,
    DenseSIFT,
    HueHistogram,
    NestedSparseQuantization,
    OpponentSIFT,
)

LOCAL = [
    DenseSIFT(scales=(3,)),
    OpponentSIFT(scales=(3,)),
    ColourSIFT(scales=(3,)),
    ColourPatches(scales=(3,)),
    HueHistogram(scales=(3,), n_hues=6),
]
WHOLE = [
    HOG(),
    GIST(size=32),
    BagOfWords(LOCAL[0], 8, coding="soft", random_state=0),
    NestedSparseQuantization(LOCAL[0], 8, random_state=0),
]


def name(estimator):
    return type(estimator).__name__


def bits(features):
    """Return the features of images, an array or a list of arrays, as bytes."""
    return b"".join(np.ascontiguousarray(part).tobytes() for part in features)


# Most checks of `parametrize_with_checks` feed tables; these estimators take images.
@pytest.mark.parametrize(
    "check",
    [
        check_get_params_invariance,
        check_no_attributes_set_in_init,
        check_parameters_default_constructible,
        check_set_params,
    ],
    ids=lambda check: check.__name__,
)
@pytest.mark.parametrize("estimator", LOCAL + WHOLE, ids=name)
def test_estimator_checks(estimator, check):
    check(name(estimator), type(estimator)())


@pytest.mark.parametrize("estimator", LOCAL + WHOLE, ids=name)
def test_threads_do_not_change_the_bits(estimator, make_images):
    images = make_images(9, colours=True)
    results = {
        bits(clone(estimator).set_params(n_jobs=n_jobs).fit_transform(images))
        for n_jobs in (1, 2, 3, None)
    }
    assert len(results) == 1


@pytest.mark.parametrize("estimator", LOCAL + WHOLE, ids=name)
def test_pickling_and_cloning(estimator, make_images):
    images = make_images(4, colours=True)
    model = clone(estimator).fit(images)
    expected = bits(model.transform(images))
    assert bits(pickle.loads(pickle.dumps(model)).transform(images)) == expected
    assert bits(clone(model).fit(images).transform(images)) == expected


@pytest.mark.parametrize("estimator", LOCAL + WHOLE, ids=name)
def test_forms_of_the_same_images(estimator, make_images):
    images = make_images(4)
    model = clone(estimator).fit(images)
    expected = model.transform(images)
    assert bits(model.transform(list(images))) == bits(expected)
    for found, row in zip(model.transform(images / np.float32(255)), expected):
        np.testing.assert_allclose(found, row, atol=1e-5)


@pytest.mark.parametrize("estimator", LOCAL + WHOLE, ids=name)
@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "empty"),
        (np.zeros((40, 44), np.uint8), "single image"),
        ([np.zeros((40, 44, 4), np.uint8)], r"images\[0\]"),
        ([np.full((40, 44), np.nan)], "NaN"),
        ([np.full((40, 44), 200.0)], "between 0 and 1"),
    ],
)
def test_bad_images(estimator, images, message, make_images):
    model = clone(estimator)
    with pytest.raises(ValueError, match=message):
        model.fit_transform(images)
    model.fit(make_images(4))
    with pytest.raises(ValueError, match=message):
        model.transform(images)


@pytest.mark.parametrize("estimator", WHOLE, ids=name)
def test_output_as_a_data_frame(estimator, make_images):
    images = make_images(4)
    frame = clone(estimator).set_output(transform="pandas").fit_transform(images)
    assert list(frame.columns) == list(clone(estimator).fit(images).get_feature_names_out())


def test_in_a_union_and_a_pipeline(make_images):
    upright = make_images(8, height=40, width=40)
    images = np.concatenate([upright, upright.transpose(0, 2, 1)])
    y = np.repeat([0, 1], 8)
    union = make_union(HOG(), GIST(size=32))
    model = make_pipeline(union, MBKLClassifier(maps="stumps", n_maps=200, random_state=0))
    assert model.fit(images, y).score(images, y) == 1
    assert len(union.get_feature_names_out()) == model[0].transform(images).shape[1]
