"""Families of binary maps: how features become cell codes."""

from mbkl.maps.categories import Categories
from mbkl.maps.ferns import Ferns
from mbkl.maps.grown_ferns import GrownFerns
from mbkl.maps.projections import Projections
from mbkl.maps.stumps import Stumps

__all__ = ["Categories", "Ferns", "GrownFerns", "Projections", "Stumps"]
