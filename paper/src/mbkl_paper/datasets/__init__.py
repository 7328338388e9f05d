"""The benchmarks of the paper, read from a folder on this machine: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable

from mbkl_paper.datasets.apascal import load_apascal
from mbkl_paper.datasets.benchmark import Benchmark, Printed
from mbkl_paper.datasets.caltech101 import load_caltech101
from mbkl_paper.datasets.daimler import load_daimler
from mbkl_paper.datasets.files import DataHome, DatasetError, DatasetNotFoundError
from mbkl_paper.datasets.flowers17 import load_flowers17
from mbkl_paper.datasets.imagenet_folder import load_imagenet_folder
from mbkl_paper.datasets.osr import load_osr
from mbkl_paper.datasets.uci import load_liver, load_sonar

__all__ = ["Benchmark", "DatasetError", "DatasetNotFoundError", "Printed", "load", "names"]
__all__ += ["load_apascal", "load_caltech101", "load_daimler", "load_flowers17"]
__all__ += ["load_imagenet_folder", "load_liver", "load_osr", "load_sonar"]

_LOADERS: dict[str, Callable[..., Benchmark]] = {
    "daimler": load_daimler,
    "liver": load_liver,
    "sonar": load_sonar,
    "flowers17": load_flowers17,
    "osr": load_osr,
    "apascal": load_apascal,
    "caltech101": load_caltech101,
    "imagenet_folder": load_imagenet_folder,
}


def names() -> list[str]:
    """Return the names of the benchmarks, in the order of the paper.

    Examples
    --------
    >>> from mbkl_paper import datasets
    >>> datasets.names()[:3]
    ['daimler', 'liver', 'sonar']
    """
    return list(_LOADERS)


def load(name: str, data_home: DataHome = None, **options) -> Benchmark:
    """Read a benchmark by its name.

    Parameters
    ----------
    name : str
        One of `names()`.
    data_home : path or None
        Folder that holds paper/<name>/ or <name>/, or is the folder of the set
        itself. None means the folder named by the environment variable MBKL_DATA.
    **options
        What the loader of this set takes beside data_home.

    Returns
    -------
    benchmark : Benchmark

    Raises
    ------
    DatasetNotFoundError
        If the files are not there. The message says where they are obtained.
    DatasetError
        If a file is damaged or incomplete. The message names it, and the row or key.

    Examples
    --------
    >>> from mbkl_paper import datasets
    >>> datasets.load("sonar", data_home="missing")
    Traceback (most recent call last):
    ...
    mbkl_paper.datasets.files.DatasetNotFoundError: The set sonar was not found...
    """
    if name not in _LOADERS:
        raise ValueError(f"There is no benchmark named {name!r}; choose one of {names()}.")
    return _LOADERS[name](data_home, **options)
