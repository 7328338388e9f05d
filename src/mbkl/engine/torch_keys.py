"""The hashes of rows on a device: those of `mbkl.engine.rows`, to the bit.

Torch computes with signed 64-bit integers. Sums and products wrap around alike; a shift to the
right has to be told that the first bit is no sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mbkl.engine.keys import GOLDEN
from mbkl.extras import require

if TYPE_CHECKING:
    from torch import Tensor

# Signed numbers are in the order of unsigned ones once this bit is flipped.
FIRST_BIT = -(2**63)
_NAN_BITS = 0x7FC00000


def signed(number: int) -> int:
    """Return the signed number with the same 64 bits.

    >>> signed(2**64 - 1), signed(2**64 + 5)
    (-1, 5)
    """
    return (int(number) + 2**63) % 2**64 - 2**63


def scramble(values: Tensor) -> Tensor:
    """See `mbkl.engine.keys.scramble`."""
    mixed = (values ^ _shifted(values, 30)) * signed(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ _shifted(mixed, 27)) * signed(0x94D049BB133111EB)
    return mixed ^ _shifted(mixed, 31)


def draw(keys: Tensor, salt: int | Tensor) -> Tensor:
    """See `mbkl.engine.keys.draw`."""
    moved = salt * signed(int(GOLDEN))
    return _shifted(scramble(keys + (signed(moved) if isinstance(moved, int) else moved)), 32)


def bits_of(values: Tensor) -> Tensor:
    """Return the bits of the values as float32; zero has none, of either sign."""
    torch = require("torch", "gpu")
    single = values.float() + 0.0
    bits = single.view(torch.int32).long() & 0xFFFFFFFF
    return bits.masked_fill_(single.isnan(), _NAN_BITS)


def told_apart(keys: Tensor, weights: Tensor) -> Tensor:
    """Return keys of which equal rows have different ones, whatever their order."""
    torch = require("torch", "gpu")
    by_weight = weights.argsort(stable=True)
    ordered, order = keys[by_weight].sort(stable=True)
    order = by_weight[order]
    place = torch.arange(keys.numel(), device=keys.device)
    place = place - (place * starts_of_runs(ordered)).cummax(0).values
    told = keys.clone()
    told[order] += place * signed(int(GOLDEN))
    return torch.where(told == keys, keys, scramble(told))


def starts_of_runs(ordered: Tensor) -> Tensor:
    """Say of each number whether it differs from the one before it."""
    starts = ordered.new_ones(ordered.numel(), dtype=require("torch", "gpu").bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    return starts


def _shifted(values: Tensor, n_bits: int) -> Tensor:
    """Shift to the right as if the numbers had no sign."""
    return (values >> n_bits) & ((1 << (64 - n_bits)) - 1)
