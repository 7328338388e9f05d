"""Writers of made-up copies of each benchmark, in every form that it is read in."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

FLOWER_PARTS = {"trn": 680, "val": 340, "tst": 340}
SCENES = (
    *("coast", "forest", "highway", "insidecity"),
    *("mountain", "opencountry", "street", "tallbuilding"),
)
SCENE_SIZES = (360, 328, 260, 308, 374, 410, 292, 356)
SCENE_LABELS = np.repeat(np.arange(8), SCENE_SIZES)
OBJECTS = (6_340, 6_355)
VOC = [f"class{number}" for number in range(20)]


def jpeg(colour=(0, 0, 0), shape=(4, 6)) -> bytes:
    """Return a small JPEG of one colour (RGB)."""
    cv2 = pytest.importorskip("cv2")
    pixels = np.empty((*shape, 3), dtype=np.uint8)
    pixels[...] = colour[::-1]
    return cv2.imencode(".jpg", pixels)[1].tobytes()


def pgm(pixels) -> bytes:
    """Return a grey image as a binary PGM."""
    rows, columns = pixels.shape
    return b"P5\n%d %d\n255\n" % (columns, rows) + pixels.tobytes()


def cells(texts) -> np.ndarray:
    """Return texts as a cell array of MATLAB."""
    array = np.empty((len(texts), 1), dtype=object)
    array[:, 0] = texts
    return array


class Fakes:
    """Each method writes one form of a set into a folder and returns what is in it."""

    def __init__(self):
        self.generator = np.random.default_rng(0)

    def liver(self, folder: Path, header=""):
        X = self.generator.integers(1, 99, size=(345, 6)).astype(np.float32)
        y = np.repeat([0, 1], [145, 200])
        rows = [
            ",".join(f"{value:g}" for value in row) + f",{label + 1}" for row, label in zip(X, y)
        ]
        (folder / "bupa.data").write_text(header + "\n".join(rows) + "\n")
        return X, y

    def sonar(self, folder: Path, header=""):
        X = (self.generator.integers(10_000, size=(208, 60)) / 10_000).astype(np.float32)
        y = np.repeat([0, 1], [97, 111])
        rows = [
            ",".join(f"{value:.4f}" for value in row) + f",{'RM'[label]}"
            for row, label in zip(X, y)
        ]
        (folder / "sonar.all-data").write_text(header + "\n".join(rows) + "\n")
        return X, y

    def table_npz(self, path: Path, shape, **changes):
        X = self.generator.random(shape, dtype=np.float32)
        y = (np.arange(shape[0]) % 2).astype(np.int8)
        np.savez(path, **{"X": X, "y": y, **changes})
        return X, y

    def daimler(self, folder: Path):
        """Write 3 pedestrians and 4 others for each of the five sets."""
        images, labels, fold = [], [], []
        for number, name in enumerate(("1", "2", "3", "T1", "T2")):
            for label, (kind, size) in enumerate((("non-ped", 4), ("ped", 3))):
                inside = folder / name / f"{kind}_examples"
                inside.mkdir(parents=True)
                for image in range(size):
                    pixels = self.generator.integers(256, size=(36, 18), dtype=np.uint8)
                    (inside / f"img_{image:05}.pgm").write_bytes(pgm(pixels))
                    images.append(pixels)
                labels += [label] * size
                fold += [number] * size
        return np.array(images), np.array(labels), np.array(fold)

    def daimler_tar(self, folder: Path, top: str):
        content = folder / "content"
        arrays = self.daimler(content)
        with tarfile.open(folder / "DC-ped-dataset_base.tar.gz", "w:gz") as archive:
            archive.add(content, arcname=top)
        return arrays

    def flowers(self, folder: Path):
        (folder / "jpg").mkdir()
        for number in range(1360):
            data = self.flower(number // 80)
            (folder / "jpg" / f"image_{number + 1:04}.jpg").write_bytes(data)

    def flower(self, label: int) -> bytes:
        if not hasattr(self, "_flowers"):
            self._flowers = [jpeg((15 * number, 255 - 15 * number, 0)) for number in range(17)]
        return self._flowers[label]

    def flower_parts(self):
        """Draw three divisions of 1,360 rows."""
        parts = {}
        for number in (1, 2, 3):
            order = self.generator.permutation(1360)
            pieces = np.split(order, np.cumsum(list(FLOWER_PARTS.values()))[:-1])
            parts |= {f"{part}{number}": rows for part, rows in zip(FLOWER_PARTS, pieces)}
        return parts

    def flower_splits(self, folder: Path):
        parts = self.flower_parts()
        savemat(folder / "datasplits.mat", {key: rows[None] + 1 for key, rows in parts.items()})
        return parts

    def flower_pack(self, folder: Path, **changes):
        parts = self.flower_parts()
        blobs = [self.flower(number // 80) for number in range(1360)]
        arrays = {
            **self.pack(blobs, [f"image_{number + 1:04}.jpg" for number in range(1360)]),
            "y": np.repeat(np.arange(17), 80).astype(np.int16),
            **parts,
        }
        np.savez(folder / "flowers17_jpeg.npz", **{**arrays, **changes})
        return parts

    @staticmethod
    def pack(blobs, names):
        return {
            "jpeg": np.frombuffer(b"".join(blobs), dtype=np.uint8),
            "offsets": np.concatenate([[0], np.cumsum([len(blob) for blob in blobs])]),
            "names": np.array(names),
        }

    def osr_arrays(self, n_gist):
        trained = np.zeros(2688, dtype=bool)
        starts = np.concatenate([[0], np.cumsum(SCENE_SIZES)])[:-1]
        trained[(starts[:, None] + np.arange(30)).ravel()] = True
        gist = self.generator.random((2688, n_gist), dtype=np.float32)
        scores = 3 * self.generator.standard_normal((2688, 6)).astype(np.float32) + 1
        return gist, scores, trained

    def osr_mat(self, folder: Path, n_gist=512, **changes):
        gist, scores, trained = self.osr_arrays(n_gist)
        arrays = {
            "feat": gist,
            "relative_att_predictions": scores,
            "class_labels": SCENE_LABELS[:, None] + 1.0,
            "class_names": cells(SCENES),
            "attribute_names": cells([f"attribute {number}" for number in range(6)]),
            "used_for_training": trained[:, None].astype(np.uint8),
        }
        kept = {key: value for key, value in {**arrays, **changes}.items() if value is not None}
        savemat(folder / "data.mat", kept)
        return gist, scores, trained

    def osr_npz(self, folder: Path, n_gist=512, **changes):
        gist, scores, trained = self.osr_arrays(n_gist)
        arrays = {
            "X": gist,
            "X_relattr": scores,
            "y": SCENE_LABELS.astype(np.int16),
            "class_names": np.array(SCENES),
            "attribute_names": np.array([f"attribute {number}" for number in range(6)]),
            "train_idx": np.flatnonzero(trained),
            "test_idx": np.flatnonzero(~trained),
            "relative_ordering": np.arange(48, dtype=np.int8).reshape(6, 8) % 5,
        }
        np.savez(folder / "osr_gist.npz", **{**arrays, **changes})
        return gist, scores, trained

    def scenes(self, folder: Path, folders=SCENES, flat=False):
        """Write the scenes in folders of classes or in one; return their paths."""
        data, paths = jpeg(), []
        for name, inside, size in zip(SCENES, folders, SCENE_SIZES):
            target = folder if flat else folder / inside
            target.mkdir(parents=True, exist_ok=True)
            for number in range(size):
                paths.append(target / f"{name}_x{number:03}.jpg")
                paths[-1].write_bytes(data)
        return paths

    @staticmethod
    def scene_list(path: Path, names):
        savemat(path, {"image_names": cells([cells([name]) for name in names])})

    def apascal_arrays(self, sizes):
        X = self.generator.integers(2, size=(sum(sizes), 64), dtype=np.uint8)
        return X, np.concatenate([np.arange(size) % 20 for size in sizes])

    def apascal(self, folder: Path, sizes=OBJECTS, packed=False):
        folder.mkdir(exist_ok=True)
        X, y = self.apascal_arrays(sizes)
        words = np.where(X == 1, "1", "0")
        lines = [
            f"2008_{number:06}.jpg {VOC[label]} 1 2 30 40 {' '.join(row)}"
            for number, (row, label) in enumerate(zip(words.tolist(), y))
        ]
        for part, rows in (("train", lines[: sizes[0]]), ("test", lines[sizes[0] :])):
            text = "\n".join(rows) + "\n"
            path = folder / f"apascal_{part}.txt"
            if packed:
                path = path.with_name(f"{path.name}.gz")
                path.write_bytes(gzip.compress(text.encode(), compresslevel=1))
            else:
                path.write_text(text)
        names = [f"attribute {number}" for number in range(64)]
        (folder / "attribute_names.txt").write_text("\n".join(names) + "\n")
        (folder / "class_names.txt").write_text("\n".join([*VOC, "donkey", "mug"]) + "\n")
        return X, y

    @staticmethod
    def apascal_features(folder: Path, sizes, n_features=50):
        """Write sparse base features, a column for every object."""
        folder.mkdir(exist_ok=True)
        blocks = []
        for part, size in zip(("train", "test"), sizes):
            block = sparse.random(n_features, size, density=0.05, format="csc", random_state=size)
            savemat(folder / f"feat_apascal_{part}.mat", {"feat": block})
            blocks.append(block.T)
        return sparse.vstack(blocks).toarray().astype(np.float32)

    def apascal_npz(self, folder: Path, sizes=OBJECTS, **changes):
        X, y = self.apascal_arrays(sizes)
        arrays = {
            "X": X,
            "y": y.astype(np.int16),
            "class_names": np.array(VOC),
            "attribute_names": np.array([f"attribute {number}" for number in range(64)]),
            "train_idx": np.arange(sizes[0]),
            "test_idx": np.arange(sizes[0], sum(sizes)),
        }
        np.savez(folder / "apascal_attributes.npz", **{**arrays, **changes})
        return X, y

    def caltech(self, folder: Path, classes=("ant", "Bass", "camera"), size=33):
        root = folder / "101_ObjectCategories"
        for number, name in enumerate((*classes, "BACKGROUND_Google")):
            (root / name).mkdir(parents=True)
            data = jpeg((60 * number, 0, 0))
            for image in range(size + number):
                (root / name / f"image_{image:04}.jpg").write_bytes(data)
        return root

    def caltech_pack(self, folder: Path, **changes):
        labels = np.repeat(np.arange(101), 31 + np.arange(101) % 30)
        data = jpeg()
        arrays = {
            **self.pack([data] * labels.size, [f"{number}.jpg" for number in range(labels.size)]),
            "y": labels.astype(np.int16),
            "class_names": np.array([f"class {number}" for number in range(101)]),
        }
        np.savez(folder / "caltech101_jpeg.npz", **{**arrays, **changes})
        return labels


@pytest.fixture(scope="session")
def fakes() -> Fakes:
    """Return the writers of sets in all forms."""
    return Fakes()


@pytest.fixture(scope="session")
def make_jpeg():
    """Return a function that makes a small JPEG of one colour."""
    return jpeg


@pytest.fixture(scope="session")
def make_pgm():
    """Return a function that makes a PGM of grey pixels."""
    return pgm


@pytest.fixture(scope="session")
def make_cells():
    """Return a function that makes a cell array of texts."""
    return cells


@pytest.fixture
def cut_short():
    """Return a function that takes the second half of a file away."""

    def cut(path: Path) -> Path:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        return path

    return cut
