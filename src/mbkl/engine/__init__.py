"""Codes, and the two hot operations over them, behind one interface for all kinds of storage.

`gather` adds up table entries (codes -> scores) and `histogram` is its adjoint
(residuals -> sums per cell).
"""

from mbkl.engine.twins import choose_loops

__all__ = ["choose_loops"]
