"""GIST, compared with its filters written out."""

import numpy as np
import pytest

from mbkl_paper.vision import GIST
from mbkl_paper.vision.gist import block_means, filtered, gabor_filters, prefiltered


def slow_filter(pixels, transfer):
    """Return an image after a filter with the given transfer function of (down, right)."""
    size = len(pixels)
    spectrum = np.fft.fft2(pixels)
    for i in range(size):
        for j in range(size):
            down, right = (k if k < (size + 1) // 2 else k - size for k in (i, j))
            spectrum[i, j] *= transfer(down, right)
    return np.fft.ifft2(spectrum)


def test_the_prefilter(make_images):
    image = make_images(1, height=24, width=24)[0] / 255
    padded = np.log(1 + 255 * np.pad(image, 5, mode="symmetric"))

    def low(down, right):
        return 2 ** -((down**2 + right**2) / 16)

    detail = padded - slow_filter(padded, low).real
    contrast = np.sqrt(np.abs(slow_filter(detail**2, low)))
    expected = (detail / (0.2 + contrast))[5:-5, 5:-5]
    np.testing.assert_allclose(prefiltered(np.float32(image), 4.0), expected, atol=1e-4)


@pytest.mark.parametrize(("scale", "orientation"), [(0, 0), (0, 3), (1, 5), (2, 7)])
def test_the_filters(make_images, scale, orientation):
    image = make_images(1, height=16, width=16)[0] / 255
    padded = np.pad(image, 16, mode="symmetric")

    def gabor(down, right):
        ratio = np.hypot(down, right) / 48 / (0.3 / 1.85**scale)
        turned = np.arctan2(down, right) + np.pi * orientation / 8
        turned = turned - 2 * np.pi if turned > np.pi else turned
        return np.exp(-3.5 * (ratio - 1) ** 2 - 2 * np.pi * turned**2)

    expected = np.abs(slow_filter(padded, gabor))[16:-16, 16:-16]
    found = filtered(np.float32(image), 3, 8)[8 * scale + orientation]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_means_of_blocks():
    planes = np.random.default_rng(0).uniform(size=(3, 10, 10))
    found = block_means(planes, 3)
    edges = [0, 3, 6, 10]
    for plane in range(3):
        for i in range(3):
            for j in range(3):
                block = planes[plane, edges[i] : edges[i + 1], edges[j] : edges[j + 1]]
                np.testing.assert_allclose(found[plane, i, j], block.mean())


def test_the_usual_length_and_names(make_images):
    model = GIST()
    features = model.fit_transform(make_images(1, colours=True))
    assert features.shape == (1, 512)
    assert features.dtype == np.float32
    names = model.get_feature_names_out()
    assert len(set(names)) == names.size == 512
    assert names[17] == "scale 0 orientation 1 row 0 column 1"


def test_stripes_answer_to_their_orientation():
    rows, columns = np.mgrid[:64, :64]
    for plane, orientation in ((columns, 0), (rows, 4)):
        stripes = 0.5 + 0.4 * np.sin(2 * np.pi * 0.16 * plane)
        energy = GIST(size=64).fit_transform([stripes]).reshape(4, 8, 16).sum(axis=2)
        assert np.unravel_index(energy.argmax(), energy.shape) == (1, orientation)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_a_constant_image_is_zero(value):
    features = GIST(size=32).fit_transform([np.full((40, 40), value)])
    np.testing.assert_allclose(features, 0, atol=1e-4)


def test_the_middle_of_the_image_counts(make_images):
    image = make_images(1, height=40, width=60)[0]
    model = GIST(size=40)
    assert model.transform([image]).tobytes() == model.transform([image[:, 10:50]]).tobytes()


def test_filters_cover_all_orientations():
    filters = gabor_filters(32, 2, 4)
    assert filters.shape == (8, 32, 32)
    np.testing.assert_allclose(filters.max(axis=(1, 2)), 1, atol=0.2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 4}, "size"),
        ({"size": 8, "n_blocks": 9}, "n_blocks"),
        ({"n_scales": 0}, "n_scales"),
        ({"n_orientations": 0}, "n_orientations"),
        ({"cutoff": 0.0}, "cutoff"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_settings(make_images, settings, message):
    with pytest.raises(ValueError, match=message):
        GIST(**settings).fit_transform(make_images(1))
