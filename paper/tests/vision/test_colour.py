"""Descriptors of colour alone."""

import cv2
import numpy as np
import pytest

from mbkl_paper.vision import ColourPatches, DenseSIFT, HueHistogram
from mbkl_paper.vision.local import grid


def weighted_mean(plane, row, column, spacing):
    """Return the mean around a point, the weights falling linearly to zero at the spacing."""
    total = 0.0
    for i in range(plane.shape[0]):
        for j in range(plane.shape[1]):
            share = max(0, 1 - abs(i - row) / spacing) * max(0, 1 - abs(j - column) / spacing)
            total += plane[i, j] * share / spacing**2
    return total


def test_patches_are_mean_colours(make_images):
    image = make_images(1, height=20, width=18, colours=True)[0]
    lab = cv2.cvtColor(np.float32(image / 255), cv2.COLOR_RGB2Lab) / 100
    found = ColourPatches(step=4, scales=(4,)).extract(image).descriptors
    corners = [(top, left) for top in grid(20, 4, 4) for left in grid(18, 4, 4)]
    for descriptor, (top, left) in zip(found, corners, strict=True):
        expected = [
            weighted_mean(lab[:, :, channel], top + down, left + right, 8)
            for down in (2, 10)
            for right in (2, 10)
            for channel in range(3)
        ]
        np.testing.assert_allclose(descriptor, expected, atol=1e-4)


def test_hues_are_weighted_by_saturation(make_images):
    image = make_images(1, height=20, width=18, colours=True)[0]
    red, green, blue = np.moveaxis(image / 255, 2, 0)
    first, second = (red - green) / np.sqrt(2), (red + green - 2 * blue) / np.sqrt(6)
    turn = np.arctan2(first, second) * 6 / np.pi % 12
    saturation = np.hypot(first, second)
    found = HueHistogram(step=6, scales=(4,), n_hues=12).extract(image).descriptors
    corners = [(top, left) for top in grid(20, 4, 6) for left in grid(18, 4, 6)]
    for descriptor, (top, left) in zip(found, corners, strict=True):
        for hue in range(12):
            distance = np.minimum(abs(turn - hue), 12 - abs(turn - hue))
            plane = saturation * np.maximum(0, 1 - distance)
            expected = weighted_mean(plane, top + 6, left + 6, 16)
            np.testing.assert_allclose(descriptor[hue], expected, atol=1e-5)


@pytest.mark.parametrize("kind", [ColourPatches, HueHistogram])
def test_points_are_those_of_sift(make_images, kind):
    image = make_images(1, colours=True)[0]
    settings = {"step": 5, "scales": (3, 4)}
    np.testing.assert_array_equal(
        kind(**settings).extract(image).positions, DenseSIFT(**settings).extract(image).positions
    )


@pytest.mark.parametrize("kind", [ColourPatches, HueHistogram])
def test_grey_and_black_images(kind):
    for image in (np.zeros((40, 40), np.uint8), np.full((40, 40, 3), 128, np.uint8)):
        found = kind().fit_transform([image])[0]
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[12], found[13], atol=1e-6)


def test_bad_number_of_hues(make_images):
    with pytest.raises(ValueError, match="n_hues"):
        HueHistogram(n_hues=0).fit(make_images(1))
