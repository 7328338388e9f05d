"""The documentation: what is public is in the API reference."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

PAGES = Path(__file__).parents[1] / "docs" / "api"


def listed_names(module):
    """Return the names that the API reference lists for a module."""
    names = set()
    for page in PAGES.glob("*.rst"):
        for block in re.split(r"^\.\. currentmodule:: ", page.read_text(), flags=re.M)[1:]:
            where, _, text = block.partition("\n")
            if where.strip() == module:
                names.update(re.findall(r"^   (\w+)$", text, flags=re.M))
    return names


@pytest.mark.parametrize(
    "module",
    [
        "mbkl",
        "mbkl.maps",
        "mbkl.dask",
        "mbkl.explain",
        "mbkl.plot",
        "mbkl.report",
        "mbkl.io",
        "mbkl.tabular",
        "mbkl_paper.vision",
        "mbkl_paper.baselines",
        "mbkl_paper.datasets",
    ],
)
def test_all_public_names_are_in_the_reference(module):
    assert listed_names(module) == set(importlib.import_module(module).__all__)


def estimators():
    """Return all public estimators and families of maps."""
    for module in ("mbkl", "mbkl.dask", "mbkl.maps"):
        for name in importlib.import_module(module).__all__:
            kind = getattr(importlib.import_module(module), name)
            if isinstance(kind, type) and issubclass(kind, BaseEstimator):
                yield kind


def documented_parameters(kind) -> list[str]:
    """Return the names in the section of parameters of a docstring."""
    text = re.split(r"^Parameters\n-+\n", inspect.getdoc(kind), flags=re.M)[1:]
    if not text:
        return []
    section = re.split(r"^\w[\w ]*\n-+\n", text[0], flags=re.M)[0]
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return [name.strip() for line in lines for name in line.split(" : ")[0].split(",")]


@pytest.mark.parametrize(
    "kind", list(estimators()), ids=lambda kind: f"{kind.__module__}.{kind.__name__}"
)
def test_all_parameters_are_documented_once(kind):
    assert sorted(documented_parameters(kind)) == sorted(kind().get_params(deep=False))
