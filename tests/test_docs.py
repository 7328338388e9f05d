"""The documentation: what is public is in the API reference."""

import importlib
import re
from pathlib import Path

import pytest

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
