"""OSR: eight kinds of outdoor scenes, with GIST descriptors and relative attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbkl_paper.datasets import files
from mbkl_paper.datasets.benchmark import Benchmark, Description, Printed
from mbkl_paper.datasets.files import DatasetError
from mbkl_paper.datasets.images import FolderImages, LazyImages, image_names, read_class_folders
from mbkl_paper.datasets.protocols import FixedSplits, PerClass, Protocol

Squash = Literal["logistic", "standardised"] | None

DESCRIPTION = Description(
    name="osr",
    source="Relative Attributes (Parikh and Grauman, ICCV 2011), the file osr/data.mat; images: "
    "Modeling the Shape of the Scene (Oliva and Torralba), MIT, 8 outdoor categories.",
    licence="None stated; for research, with citation.",
    # The paper's table says HoG; its text, and the length, say GIST.
    printed=Printed(8, 240, 2_448, "GIST and attributes", 518),
)
_CLASSES = (
    *("coast", "forest", "highway", "insidecity"),
    *("mountain", "opencountry", "street", "tallbuilding"),
)
_N_IMAGES, _N_GIST, _N_ATTRIBUTES = 2_688, 512, 6
_PARTS = {"train_idx": 240, "test_idx": 2_448}
_REBUILT = (
    "GIST and rank-SVM attributes computed anew, from grey copies of 200 pixels of the images, "
    "in place of those of Parikh and Grauman; the 240 training images are taken to be theirs."
)
_UNDESCRIBED = "images alone, of which GIST and attributes are to be computed"


def load_osr(data_home: files.DataHome = None, squash: Squash = "logistic") -> Benchmark:
    """Read the outdoor scenes: 2,688 images, 8 classes, 240 of them to train on.

    Read are data.mat of Parikh and Grauman; osr_gist.npz; or images, in folders named
    as the classes (as in the 15-scene set, whose others are left alone) or all in one
    folder with names such as coast_arnat59.jpg. For images with these original names,
    outdoor_scenes.mat beside them or their folder says which 240 are trained on; for
    others, 30 of a class are drawn.

    Parameters
    ----------
    data_home : path or None
        See `mbkl_paper.datasets.load`.
    squash : {"logistic", "standardised"} or None, default="logistic"
        How the scores of the attributes come into [0, 1]. The paper says "with a
        logistic function" and no more: "logistic" is 1 / (1 + exp(-score));
        "standardised" first gives each attribute mean 0 and deviation 1 on the
        training images; None leaves the scores as they are.

    Returns
    -------
    benchmark : Benchmark
        With 512 columns of GIST and 6 of attributes in `X`, or with `images`.

    Examples
    --------
    >>> from mbkl_paper import datasets
    >>> datasets.load_osr(data_home="missing")
    Traceback (most recent call last):
    ...
    mbkl_paper.datasets.files.DatasetNotFoundError: The set osr was not found...
    """
    if squash not in ("logistic", "standardised", None):
        raise ValueError(f"squash={squash!r} is not 'logistic', 'standardised' or None.")
    readers: dict[str, Callable[[Path], Benchmark]] = {
        "data.mat": partial(_read_mat, squash=squash),
        "osr_gist.npz": partial(_read_npz, squash=squash),
        "*[cC]oast": _read_class_folders,
        "coast_*.jpg": _read_flat_folder,
        "*/coast_*.jpg": _read_flat_folder,
    }
    return files.read_first(DESCRIPTION, data_home, readers)


def _read_mat(path: Path, squash: Squash) -> Benchmark:
    names, numbers = ("class_names", "attribute_names"), ("class_labels", "used_for_training")
    stored = files.read_mat(path, "feat", "relative_att_predictions", *names, *numbers)
    texts = {key: files.mat_texts(path, key, stored[key]) for key in names}
    # Counted from 0: an image that was used, marked by 1, has 0 here.
    labels, used = (files.mat_indices(path, key, stored[key]) for key in numbers)
    arrays = {
        "X": stored["feat"],
        "X_relattr": stored["relative_att_predictions"],
        "y": labels,
        "train_idx": np.flatnonzero(used == 0),
        "test_idx": np.flatnonzero(used != 0),
    }
    return _table(path, {**arrays, **texts}, squash, None)


def _read_npz(path: Path, squash: Squash) -> Benchmark:
    keys = ("X", "X_relattr", "y", "class_names", "attribute_names", *_PARTS)
    return _table(path, files.read_npz(path, *keys), squash, _REBUILT)


def _table(path: Path, stored: dict, squash: Squash, stand_in: str | None) -> Benchmark:
    class_names, attributes = (
        tuple(map(str, stored[key])) for key in ("class_names", "attribute_names")
    )
    files.check_count(path, "classes", len(class_names), len(_CLASSES))
    files.check_count(path, "names of attributes", len(attributes), _N_ATTRIBUTES)
    files.check_array(path, "GIST", stored["X"], (_N_IMAGES, _N_GIST), np.floating)
    scores = stored["X_relattr"]
    files.check_array(path, "relative attributes", scores, (_N_IMAGES, _N_ATTRIBUTES), np.floating)
    y = files.check_labels(path, "classes", stored["y"], _N_IMAGES, class_names)
    files.check_parts(path, stored, _PARTS)
    train, test = (stored[key] for key in _PARTS)
    X = np.hstack([stored["X"], _squash(scores, train, squash)]).astype(np.float32)
    names = (*(f"gist {number}" for number in range(_N_GIST)), *attributes)
    protocol = FixedSplits(((train, test),))
    return Benchmark(DESCRIPTION, y, class_names, protocol, X, names, stand_in=stand_in)


def _squash(scores: NDArray, train: NDArray[np.intp], squash: Squash) -> NDArray:
    from scipy.special import expit
    from sklearn.preprocessing import StandardScaler

    if squash == "standardised":
        scores = StandardScaler().fit(scores[train]).transform(scores)
    return scores if squash is None else expit(scores)


def _read_class_folders(found: Path) -> Benchmark:
    root = found.parent
    folders = {_plain(path.name): path.name for path in root.iterdir() if path.is_dir()}
    for name in _CLASSES:
        if name not in folders:
            raise DatasetError(f"{root} has no folder for the class {name!r}.")
    return _scenes(root, *read_class_folders(root, [folders[name] for name in _CLASSES]))


def _plain(name: str) -> str:
    """Return the name of a class without what copies of the set add: MITcoast, inside_city."""
    return "".join(filter(str.isalpha, name.lower())).removeprefix("mit")


def _read_flat_folder(found: Path) -> Benchmark:
    folder = found.parent
    classes = {name: name.split("_")[0] for name in image_names(folder)}
    names = [name for name, label in classes.items() if label in _CLASSES]
    y = np.array([_CLASSES.index(classes[name]) for name in names])
    return _scenes(folder, FolderImages(folder, np.array(names)), y)


def _scenes(folder: Path, images: LazyImages, y: NDArray[np.intp]) -> Benchmark:
    files.check_count(folder, "images", len(images), _N_IMAGES)
    files.check_labels(folder, "classes", y, _N_IMAGES, _CLASSES)
    trained = np.isin([Path(name).name for name in images.names], _training_names(folder))
    protocol: Protocol = PerClass(n_train=30)
    chosen = "30 random training images of each class in place of the official 240"
    if trained.sum() == _PARTS["train_idx"]:
        protocol = FixedSplits(((np.flatnonzero(trained), np.flatnonzero(~trained)),))
        chosen = "the training images of outdoor_scenes.mat are taken to be the official 240"
    stand_in = f"{_UNDESCRIBED}; {chosen}."
    return Benchmark(DESCRIPTION, y, _CLASSES, protocol, images=images, stand_in=stand_in)


def _training_names(folder: Path) -> tuple[str, ...]:
    for path in (folder / "outdoor_scenes.mat", folder.parent / "outdoor_scenes.mat"):
        if path.is_file():
            stored = files.read_mat(path, "image_names")
            return files.mat_texts(path, "image_names", stored["image_names"])
    return ()
