"""Families of binary maps: how features become cell codes."""

from mbkl.maps.ferns import Ferns
from mbkl.maps.grown_ferns import GrownFerns
from mbkl.maps.projections import Projections
from mbkl.maps.stumps import Stumps

__all__ = ["Ferns", "GrownFerns", "Projections", "Stumps"]
