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
_CROSS_FITTED = " Attributes of training images are those of models that have not seen them."
# Folds and pairs of images for the attributes of training images.
_N_FOLDS, _N_PAIRS = 5, 2_000
_UNDESCRIBED = "images alone, of which GIST and attributes are to be computed"


def load_osr(
    data_home: files.DataHome = None, squash: Squash = "logistic", *, cross_fit: bool = True
) -> Benchmark:
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
    cross_fit : bool, default=True
        The attributes of osr_gist.npz are scores of rank-SVMs, which have seen the labels of
        the training images. With True they are computed again, for these images by models
        that were fitted to others of them; else attributes tell more of training than of test
        images, and mislead whoever weighs features.

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
        "osr_gist.npz": partial(_read_npz, squash=squash, cross_fit=cross_fit),
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


def _read_npz(path: Path, squash: Squash, cross_fit: bool) -> Benchmark:
    keys = ("X", "X_relattr", "y", "class_names", "attribute_names", *_PARTS)
    if not cross_fit:
        return _table(path, files.read_npz(path, *keys), squash, _REBUILT)
    stored = files.read_npz(path, *keys, "relative_ordering")
    order = stored["relative_ordering"]
    files.check_array(path, "order", order, (_N_ATTRIBUTES, len(_CLASSES)), np.integer)
    return _table(path, stored, squash, _REBUILT + _CROSS_FITTED, order)


def cross_fitted(
    X: NDArray, order: NDArray, y: NDArray[np.intp], train: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return how strong each attribute is in each image, by models fitted to other images.

    Parameters
    ----------
    X : ndarray of shape (n_images, n_features)
    order : ndarray of shape (n_images, n_attributes)
        Images with a larger number have more of the attribute; asked of training images.
    y : ndarray of shape (n_images,)
        Classes; folds have the same share of each.
    train : ndarray of shape (n_train,)
        Images to learn from: all of them for the others, and folds of them for one another.

    Returns
    -------
    scores : ndarray of shape (n_images, n_attributes)
        Zero at the mean of the images that a model was fitted to.
    """
    from sklearn.model_selection import StratifiedKFold

    scores = np.empty(order.shape)
    folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=0)
    parts = [(train[inside], train[outside]) for inside, outside in folds.split(train, y[train])]
    parts.append((train, np.setdiff1d(np.arange(len(X)), train)))
    for inside, outside in parts:
        centred = X[outside] - X[inside].mean(axis=0)
        for attribute in range(order.shape[1]):
            direction = _rank_svm(X[inside], order[inside, attribute])
            scores[outside, attribute] = centred @ direction
    return scores


def _rank_svm(X: NDArray, order: NDArray) -> NDArray:
    """Return the direction in which images of higher order lie, by a linear SVM on pairs."""
    from sklearn.svm import LinearSVC

    more, less = np.nonzero(order[:, None] > order)
    drawn = np.random.default_rng(0).permutation(more.size)[:_N_PAIRS]
    # The SVM needs two classes: every second difference is turned round.
    signs = np.where(np.arange(drawn.size) % 2, 1.0, -1.0)
    differences = signs[:, None] * (X[more[drawn]] - X[less[drawn]])
    svm = LinearSVC(dual=False, fit_intercept=False, tol=0.01).fit(differences, signs)
    return svm.coef_[0]


def _table(
    path: Path,
    stored: dict,
    squash: Squash,
    stand_in: str | None,
    order: NDArray | None = None,
) -> Benchmark:
    """Return the benchmark; with an order of the classes, attributes are fitted across folds."""
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
    if order is not None:
        scores = cross_fitted(stored["X"], order[:, y].T, y, train)
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
