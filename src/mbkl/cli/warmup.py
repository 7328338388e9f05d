"""`mbkl warmup`: compile ahead of time."""

from __future__ import annotations

from mbkl.cli.console import Console


def warmup(console: Console) -> None:
    """Compile and cache the kernels, so that no fit waits for the compiler.

    mbkl warmup
    """
    from mbkl.engine.warmup import warmup as compile_kernels

    seconds = compile_kernels()
    console.say(f"All kernels are ready ({seconds:.1f} s).")
    console.result({"seconds": seconds})
