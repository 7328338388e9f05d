"""Reading and checking images."""

import cv2
import numpy as np
import pytest

from mbkl_paper.vision import GIST, read_image
from mbkl_paper.vision.images import as_images, as_pixels, colour, grey, resized


@pytest.fixture
def encoded(make_images):
    """A colour image, and the same as the contents of a PNG file."""
    image = make_images(1, colours=True)[0]
    return image, cv2.imencode(".png", image[:, :, ::-1])[1].tobytes()


def test_reading_bytes_and_files(encoded, tmp_path):
    image, content = encoded
    np.testing.assert_array_equal(read_image(content), image)
    path = tmp_path / "image.png"
    path.write_bytes(content)
    np.testing.assert_array_equal(read_image(path), image)
    np.testing.assert_array_equal(read_image(str(path)), image)


def test_grey_files_stay_grey(make_images):
    image = make_images(1)[0]
    content = cv2.imencode(".png", image)[1].tobytes()
    np.testing.assert_array_equal(read_image(content), image)


def test_transparency_is_dropped(encoded):
    image, _ = encoded
    with_alpha = np.dstack([image[:, :, ::-1], np.full(image.shape[:2], 9, dtype=np.uint8)])
    content = cv2.imencode(".png", with_alpha)[1].tobytes()
    assert read_image(content).shape == image.shape


@pytest.mark.parametrize("content", [b"", b"not an image", b"\x89PNG\r\n\x1a\n"])
def test_unreadable_contents(content, tmp_path):
    with pytest.raises(ValueError, match=r"Cannot read these \d+ bytes as an image"):
        read_image(content)
    path = tmp_path / "broken.jpg"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"Cannot read the file .*broken\.jpg"):
        read_image(path)


def test_a_header_that_promises_too_much():
    with pytest.raises(ValueError, match="Cannot read these"):
        read_image(b"P5 999999999 999999999 255 ")


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_image(tmp_path / "nothing.png")


def test_pixels_are_shares_of_white():
    image = np.array([[0, 51, 255]], dtype=np.uint8)
    np.testing.assert_allclose(as_pixels(image), [[0, 0.2, 1]], rtol=1e-6)
    for kind in (np.float32, np.float64):
        pixels = as_pixels(np.array([[0, 0.2, 1]], dtype=kind))
        assert pixels.dtype == np.float32
        np.testing.assert_allclose(pixels, [[0, 0.2, 1]], rtol=1e-6)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4, 2), np.uint8), r"shape \(height, width\)"),
        (np.zeros(4, np.uint8), r"shape \(height, width\)"),
        (np.zeros((0, 4), np.uint8), "no pixels"),
        (np.full((4, 4), 1.5), "between 0 and 1"),
        (np.full((4, 4), -0.1), "between 0 and 1"),
        (np.full((4, 4), np.nan), "must not be NaN"),
        (np.full((4, 4), np.inf), "between 0 and 1"),
        (np.zeros((4, 4), np.int64), "uint8 values or floats"),
        (np.zeros((4, 4), bool), "uint8 values or floats"),
        (np.array([["a", "b"]]), "uint8 values or floats"),
        (None, "shape"),
    ],
)
def test_bad_images(image, message):
    with pytest.raises(ValueError, match=message) as error:
        as_pixels(image, "images[3]")
    assert "images[3]" in str(error.value)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "empty"),
        (np.zeros((0, 4, 4), np.uint8), "empty"),
        (np.zeros((4, 4), np.uint8), "Put a single image into a list"),
        (np.zeros((1, 4, 4, 3, 1), np.uint8), "images in an array"),
        ("image.png", "Put a single image into a list"),
        (b"content", "Put a single image into a list"),
        (iter([]), "must be a list"),
        (3, "must be a list"),
    ],
)
def test_bad_lists_of_images(images, message):
    with pytest.raises(ValueError, match=message):
        as_images(images)


def test_the_number_of_a_bad_image_is_told(make_images):
    images = [*make_images(2), np.full((40, 44), 7.0)]
    with pytest.raises(ValueError, match=r"images\[2\]"):
        GIST(size=16).fit_transform(images)


def test_grey_and_colour(make_images):
    image = as_pixels(make_images(1)[0])
    three = colour(image)
    assert three.shape == (*image.shape, 3)
    np.testing.assert_allclose(grey(three), image, rtol=1e-5)
    assert grey(image) is image


def test_resizing_keeps_the_mean(make_images):
    image = as_pixels(make_images(1, height=40, width=40)[0])
    assert resized(image, (40, 40)) is image
    small = resized(image, (10, 10))
    np.testing.assert_allclose(small, image.reshape(10, 4, 10, 4).mean(axis=(1, 3)), atol=1e-5)
    assert resized(colour(image), (60, 50)).shape == (60, 50, 3)
