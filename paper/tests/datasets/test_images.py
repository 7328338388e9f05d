"""Images that are decoded when they are asked for."""

import pickle

import numpy as np
import pytest

from mbkl_paper.datasets import DatasetError
from mbkl_paper.datasets.images import FolderImages, decode, read_class_folders, read_pack

COLOURS = [(250, 0, 0), (0, 250, 0), (0, 0, 250), (120, 120, 120)]


@pytest.fixture(params=["pack", "folder"])
def images(request, tmp_path, fakes, make_jpeg):
    blobs = [make_jpeg(colour, shape=(4, 6 + number)) for number, colour in enumerate(COLOURS)]
    names = [f"{number}.jpg" for number in range(4)]
    if request.param == "pack":
        np.savez(tmp_path / "pack.npz", **fakes.pack(blobs, names))
        return read_pack(tmp_path / "pack.npz")
    for name, blob in zip(names, blobs):
        (tmp_path / name).write_bytes(blob)
    return FolderImages(tmp_path, np.array(names))


def is_image(pixels, number) -> bool:
    assert pixels.dtype == np.uint8
    same_size = pixels.shape == (4, 6 + number, 3)
    return same_size and np.abs(pixels.astype(int) - COLOURS[number]).max() < 6


def test_images_are_rgb_in_their_order(images):
    assert len(images) == 4
    assert all(is_image(pixels, number) for number, pixels in enumerate(images))
    assert is_image(images[-1], 3)
    assert repr(images) == "<4 images>"


@pytest.mark.parametrize(
    "index", [slice(1, 3), slice(None, None, -1), [3, 0, 0], np.array([True, False, False, True])]
)
def test_parts_stay_lazy(images, index):
    part = images[index]
    numbers = np.arange(4)[index]
    assert len(part) == numbers.size
    assert part.names.tolist() == [f"{number}.jpg" for number in numbers]
    assert all(is_image(pixels, number) for pixels, number in zip(part, numbers))
    assert len(part[:0]) == 0


def test_indices_out_of_range_are_refused(images):
    with pytest.raises(IndexError):
        images[4]


def test_images_can_be_sent_to_other_processes(images):
    assert is_image(pickle.loads(pickle.dumps(images[2:]))[0], 2)


def test_nothing_is_decoded_before_it_is_asked_for(tmp_path, fakes, make_jpeg):
    blobs = [make_jpeg(), b"no image", make_jpeg()[:-40], make_jpeg()[:20]]
    np.savez(tmp_path / "pack.npz", **fakes.pack(blobs, ["a", "b", "c", "d"]))
    images = read_pack(tmp_path / "pack.npz")
    assert images[0].shape == (4, 6, 3)
    for number, name in ((1, "b"), (2, "c"), (3, "d")):
        with pytest.raises(DatasetError, match=rf"pack\.npz.{name} is not an image, or was cut"):
            images[number]


def test_an_empty_file_is_no_image():
    with pytest.raises(DatasetError, match="x is not an image"):
        decode(b"", "x")


def test_a_jpeg_may_hold_a_smaller_one(make_jpeg):
    thumbnail, whole = make_jpeg(), make_jpeg(COLOURS[0])
    segment = b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail
    data = whole[:2] + segment + whole[2:]
    assert np.abs(decode(data, "x").astype(int) - COLOURS[0]).max() < 6
    with pytest.raises(DatasetError):  # the end of the smaller one is not that of the whole
        decode(data[:-2], "x")


def test_grey_images_keep_their_pixels(make_pgm):
    pixels = np.random.default_rng(0).integers(256, size=(36, 18), dtype=np.uint8)
    np.testing.assert_array_equal(decode(make_pgm(pixels), "x", grey=True), pixels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.array([0, 5])}, "'offsets' has shape"),
        ({"offsets": np.array([1, 5, 9])}, "start at 0"),
        ({"offsets": np.array([0, 9, 5])}, "grow"),
        ({"offsets": np.array([0, 5, 9])}, "bytes in 'jpeg' where 9"),
        ({"jpeg": np.zeros(10)}, "'jpeg' has the unexpected dtype"),
        ({"names": np.arange(2)}, "'names' has the unexpected dtype"),
    ],
)
def test_a_wrong_pack_is_refused(tmp_path, fakes, change, message):
    pack = fakes.pack([b"12345", b"67890"], ["a", "b"])
    np.savez(tmp_path / "pack.npz", **{**pack, **change})
    with pytest.raises(DatasetError, match=message):
        read_pack(tmp_path / "pack.npz")


def test_classes_are_folders(tmp_path):
    for folder, n_images in (("a", 2), ("b", 1)):
        (tmp_path / folder).mkdir()
        for number in range(n_images):
            (tmp_path / folder / f"{number}.PNG").touch()
        (tmp_path / folder / "notes.txt").touch()
    images, y = read_class_folders(tmp_path, ["b", "a"])
    assert images.names.tolist() == ["b/0.PNG", "a/0.PNG", "a/1.PNG"]
    np.testing.assert_array_equal(y, [0, 1, 1])
    with pytest.raises(DatasetError, match="c is missing"):
        read_class_folders(tmp_path, ["a", "c"])
    (tmp_path / "c").mkdir()
    with pytest.raises(DatasetError, match="c holds no images"):
        read_class_folders(tmp_path, ["a", "c"])
