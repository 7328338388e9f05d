"""Folders of images."""

import numpy as np
import pytest

from mbkl.tables import TableError, read_table
from mbkl.vision import HOG

cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")


@pytest.fixture
def folder(tmp_path):
    """Images with stripes, along and across, of several sizes."""
    for label in ("along", "across"):
        (tmp_path / label).mkdir()
        for number in range(3):
            image = np.zeros((40 + number, 50), dtype=np.uint8)
            image[::4] = 255
            image = image if label == "along" else image.T
            cv2.imwrite(str(tmp_path / label / f"{number}.png"), np.ascontiguousarray(image))
    return tmp_path


def test_folders_are_classes(folder):
    table = read_table(folder)
    assert table.labels.tolist() == ["across"] * 3 + ["along"] * 3
    assert table.row_names[0] == "across/0.png"
    expected = HOG(size=(64, 64), cell=8).fit_transform([folder / "across" / "0.png"])
    found = [column[0].as_py() for column in table.columns.columns]
    np.testing.assert_allclose(found, expected[0], rtol=1e-6)
    assert table.take(np.array([3])).row_names == ("along/0.png",)


def test_images_without_folders_have_no_labels(folder):
    table = read_table(folder / "along")
    assert table.labels is None
    assert table.row_names == ("0.png", "1.png", "2.png")


def test_bad_folders(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="no image in this folder"):
        read_table(tmp_path / "empty")
    (folder / "along" / "broken.png").write_bytes(b"no image")
    with pytest.raises(TableError, match=r"broken\.png"):
        read_table(folder)
