"""The one step that Torch alone would take seven passes over memory for (measured)."""

from __future__ import annotations

from typing import Any

from mbkl.extras import require

torch = require("torch", "gpu")
triton: Any = require("triton", "gpu")
tl: Any = require("triton.language", "gpu")

_BLOCK = 4096


@triton.jit
def _indicators(codes, groups, numbers, out, n_rows, stride, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    group = tl.load(groups + column).to(tl.int64)
    number = tl.load(numbers + column)
    inside = row < n_rows
    code = tl.load(codes + group * stride + row, mask=inside, other=0)
    place = out + column.to(tl.int64) * n_rows + row
    tl.store(place, (code == number).to(tl.bfloat16), mask=inside)


def indicators(codes, groups, numbers):
    """Return for each column whether the rows are in its cell, as 0 and 1 in bfloat16.

    Parameters
    ----------
    codes : tensor of shape (n_groups, n_rows)
        Rows next to each other in memory.
    groups, numbers : tensor of shape (n_columns,)
        Group and, within it, cell of each column.
    """
    n_rows = codes.shape[1]
    out = torch.empty((groups.numel(), n_rows), dtype=torch.bfloat16, device=codes.device)
    grid = (groups.numel(), triton.cdiv(n_rows, _BLOCK))
    with torch.cuda.device(codes.device):
        _indicators[grid](codes, groups, numbers, out, n_rows, codes.stride(0), BLOCK=_BLOCK)
    return out
