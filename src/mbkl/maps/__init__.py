"""Families of binary maps: how features become cell codes."""

from mbkl.maps.stumps import Stumps

__all__ = ["Stumps"]
