"""The hashes of rows on a device, the same bits as those of `mbkl.engine.rows`.

Torch computes with signed 64-bit integers. Sums and products wrap around as unsigned ones do; a
shift to the right must clear the copies of the sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mbkl.engine.keys import GOLDEN
from mbkl.extras import require

if TYPE_CHECKING:
    from torch import Tensor

# Flipping this bit gives signed numbers the order of the unsigned ones.
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
    """Return the bits of the values as float32; those of -0.0 and of NaN are made unique."""
    torch = require("torch", "gpu")
    single = values.float() + 0.0
    bits = single.view(torch.int32).long() & 0xFFFFFFFF
    return bits.masked_fill_(single.isnan(), _NAN_BITS)


def told_apart(keys: Tensor, weights: Tensor) -> Tensor:
    """Return keys that differ even for equal rows; see `mbkl.engine.rows.told_apart`."""
    torch = require("torch", "gpu")
    by_weight = weights.argsort(stable=True)
    ordered, order = keys[by_weight].sort(stable=True)
    order = by_weight[order]
    place = torch.arange(keys.numel(), device=keys.device)
    place = place - (place * starts_of_runs(ordered)).cummax(0).values
    moved = keys.clone()
    moved[order] += place * signed(int(GOLDEN))
    return torch.where(moved == keys, keys, scramble(moved))


def starts_of_runs(ordered: Tensor) -> Tensor:
    """Mark the numbers that differ from the one before them."""
    starts = ordered.new_ones(ordered.numel(), dtype=require("torch", "gpu").bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    return starts


def _shifted(values: Tensor, n_bits: int) -> Tensor:
    """Shift to the right as if the numbers had no sign."""
    return (values >> n_bits) & ((1 << (64 - n_bits)) - 1)
