"""Descriptors put together for a task."""

import numpy as np
import pytest
from sklearn.base import clone

from mbkl_paper.vision import flower_descriptor, pedestrian_descriptor, scene_descriptor


def test_pedestrians(make_images):
    images = make_images(3, height=36, width=18)
    model = pedestrian_descriptor(n_jobs=1)
    features = model.fit_transform(images)
    assert features.shape == (3, model.get_feature_names_out().size)
    assert np.isfinite(features).all()


def fewer_words(model):
    """Return a descriptor with few words on a coarse grid, for small images."""
    parameters = model.get_params()
    small = {"n_words": 6, "n_components": None, "descriptor__step": 10, "descriptor__scales": (4,)}
    changes = {
        name: value
        for name in parameters
        for ending, value in small.items()
        if name == ending or name.endswith(f"__{ending}")
    }
    return clone(model).set_params(**changes)


@pytest.mark.parametrize("kind", ["bag_of_words", "sparse_quantization"])
def test_scenes(make_images, kind):
    model = scene_descriptor(kind, random_state=0)
    assert model.n_words == 1024
    assert fewer_words(model).fit_transform(make_images(3)).shape == (3, 21 * 6)


def test_an_unknown_kind():
    with pytest.raises(ValueError, match="kind must be one of"):
        scene_descriptor("fisher")


def test_flowers(make_images):
    images = make_images(3, colours=True)
    model = fewer_words(flower_descriptor(random_state=0, n_jobs=1))
    features = model.fit_transform(images)
    assert features.shape == (3, model.get_feature_names_out().size)
    again = clone(model).fit_transform(images)
    assert features.tobytes() == again.tobytes()
    # Each of the bags sums to one.
    np.testing.assert_allclose(features.sum(axis=1), len(model.transformer_list), rtol=1e-5)
