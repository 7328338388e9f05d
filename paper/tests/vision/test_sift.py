"""Dense SIFT and its colours, compared with the histograms in plain loops."""

import numpy as np
import pytest

from mbkl_paper.vision import BagOfWords, ColourSIFT, DenseSIFT, OpponentSIFT
from mbkl_paper.vision.images import as_pixels
from mbkl_paper.vision.local import grid, soft_votes


def sift(image, top, left, scale, root=False):
    """Return the descriptor of one patch; the centre of its first bin is (top, left)."""
    down, right = np.gradient(image)
    histogram = np.zeros((4, 4, 8))
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            y, x = (row - top) / scale, (column - left) / scale
            turn = np.arctan2(down[row, column], right[row, column]) * 4 / np.pi % 8
            strength = np.hypot(down[row, column], right[row, column])
            for i in range(4):
                for j in range(4):
                    share = max(0, 1 - abs(y - i)) * max(0, 1 - abs(x - j))
                    share *= np.exp(-((i - 1.5) ** 2 + (j - 1.5) ** 2) / 8)
                    histogram[i, j, int(turn) % 8] += strength * share * (1 - turn % 1)
                    histogram[i, j, (int(turn) + 1) % 8] += strength * share * (turn % 1)
    flat = histogram.ravel() / np.linalg.norm(histogram)
    flat = np.minimum(flat, 0.2)
    return np.sqrt(flat / flat.sum()) if root else flat / np.linalg.norm(flat)


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("scale", [3, 4])
def test_the_definition(make_images, scale, root):
    image = make_images(1, height=22, width=19)[0]
    model = DenseSIFT(step=5, scales=(scale,), smoothing=0, root=root)
    features = model.extract(image)
    corners = [(top, left) for top in grid(22, scale, 5) for left in grid(19, scale, 5)]
    assert len(features.descriptors) == len(corners) > 3
    for found, (top, left) in zip(features.descriptors, corners):
        np.testing.assert_allclose(found, sift(image / 255, top, left, scale, root), atol=1e-4)
    centres = (np.array(corners) + 1.5 * scale + 0.5) / (22, 19)
    np.testing.assert_allclose(features.positions, centres, rtol=1e-6)


def test_scales_come_one_after_the_other(make_images):
    images = make_images(2)
    both = DenseSIFT(scales=(3, 5)).fit_transform(images)
    parts = [DenseSIFT(scales=(scale,)).fit_transform(images) for scale in (3, 5)]
    for found, first, second in zip(both, *parts):
        np.testing.assert_array_equal(found, np.vstack([first, second]))


def test_scales_that_do_not_fit_are_left_out(make_images):
    images = make_images(1)
    np.testing.assert_array_equal(
        DenseSIFT(scales=(4, 40)).fit_transform(images)[0],
        DenseSIFT(scales=(4,)).fit_transform(images)[0],
    )


def test_the_smallest_image():
    image = np.random.default_rng(0).uniform(size=(13, 13))
    assert DenseSIFT(scales=(4,)).fit_transform([image])[0].shape == (1, 128)
    with pytest.raises(ValueError, match=r"images\[0\] .* too small.* 13 pixels"):
        DenseSIFT(scales=(4,)).fit_transform([image[1:]])


def test_lengths(make_images):
    image = make_images(1)
    plain = DenseSIFT(root=False).fit_transform(image)[0]
    np.testing.assert_allclose(np.linalg.norm(plain, axis=1), 1, rtol=1e-5)
    root = DenseSIFT().fit_transform(image)[0]
    np.testing.assert_allclose(np.linalg.norm(root, axis=1), 1, rtol=1e-5)


def test_brightness_and_contrast_do_not_matter(make_images):
    image = make_images(1).astype(float) / 255
    model = DenseSIFT()
    np.testing.assert_allclose(
        model.fit_transform(0.5 * image + 0.3)[0], model.fit_transform(image)[0], atol=2e-3
    )


@pytest.mark.parametrize("kind", [DenseSIFT, OpponentSIFT, ColourSIFT])
def test_a_constant_image_is_zero(kind):
    for image in (np.full((40, 40), 99, np.uint8), np.full((40, 40, 3), [9, 0, 200], np.uint8)):
        for contrast in (0, 0.005):
            found = kind(contrast=contrast).fit_transform([image])[0]
            np.testing.assert_allclose(found * contrast, 0)
            assert np.isfinite(found).all()


def test_opponent_channels_are_sift_of_each(make_images):
    image = make_images(1, colours=True)[0]
    red, green, blue = np.moveaxis(as_pixels(image), 2, 0).astype(float)
    channels = [
        (red - green) / np.sqrt(2),
        (red + green - 2 * blue) / np.sqrt(6),
        (red + green + blue) / np.sqrt(3),
    ]
    joint = OpponentSIFT().extract(image).descriptors
    for number, channel in enumerate(channels):
        # Shifts and factors change no descriptor, and bring the channel between 0 and 1.
        single = DenseSIFT(contrast=0).extract((channel + 2) / 4).descriptors
        np.testing.assert_allclose(joint[:, 128 * number : 128 * number + 128], single, atol=2e-3)


def test_shadows_leave_the_colours_of_w_as_they_are(make_images):
    image = make_images(1, colours=True)[0].astype(float) / 255 * 0.8 + 0.2
    shadow = np.linspace(0.5, 1, image.shape[1])[:, None]
    model = ColourSIFT("w", smoothing=0)
    there, back = model.extract(image).descriptors, model.extract(image * shadow).descriptors
    np.testing.assert_allclose(there[:, 128:], back[:, 128:], atol=2e-3)
    assert np.abs(there[:, :128] - back[:, :128]).max() > 0.01


def test_colour_spaces(make_images):
    images = make_images(1, colours=True)
    np.testing.assert_array_equal(
        ColourSIFT("opponent").fit_transform(images)[0], OpponentSIFT().fit_transform(images)[0]
    )
    np.testing.assert_array_equal(
        ColourSIFT("grey").fit_transform(images)[0], DenseSIFT().fit_transform(images)[0]
    )
    red = ColourSIFT("rgb").fit_transform(images)[0][:, :128]
    np.testing.assert_allclose(red, DenseSIFT().fit_transform(images[..., 0])[0], atol=1e-5)


def test_a_grey_image_has_no_opponent_colours(make_images):
    found = OpponentSIFT().fit_transform(make_images(1))[0]
    np.testing.assert_array_equal(found[:, :256], 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step": 0}, "step"),
        ({"scales": ()}, "scales must be"),
        ({"scales": (4, 0)}, "scales must be"),
        ({"scales": (4.5,)}, "scales must be"),
        ({"smoothing": -1}, "smoothing"),
        ({"contrast": -1}, "contrast"),
        ({"root": "yes"}, "root"),
    ],
)
def test_bad_settings(make_images, settings, message):
    with pytest.raises(ValueError, match=message):
        DenseSIFT(**settings).fit_transform(make_images(1))


def test_an_unknown_colour_space(make_images):
    with pytest.raises(ValueError, match="space"):
        ColourSIFT("cmyk").fit(make_images(1))
    with pytest.raises(ValueError, match="space"):
        ColourSIFT("cmyk").transform(make_images(1))
    with pytest.raises(ValueError, match="space"):
        BagOfWords(ColourSIFT("cmyk")).fit(make_images(1))


def test_votes_keep_the_weight_and_the_direction():
    generator = np.random.default_rng(0)
    angle = generator.uniform(-np.pi, np.pi, 200)
    weight = generator.uniform(size=200)
    votes = soft_votes(angle, weight, 18)
    np.testing.assert_allclose(votes.sum(axis=1), weight, rtol=1e-5)
    assert ((votes > 0).sum(axis=1) <= 2).all()
    nearest = np.rint(angle * 9 / np.pi).astype(int) % 18
    np.testing.assert_array_equal(votes.argmax(axis=1), nearest)
