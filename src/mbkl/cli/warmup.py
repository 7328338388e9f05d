"""`mbkl warmup`: compile ahead of time."""

from __future__ import annotations

from mbkl.cli.console import Console


def warmup(console: Console) -> None:
    """Compile and cache the loops, so that nothing waits for the compiler.

    mbkl warmup
    """
    with console.steps(loops=1) as steps:
        steps.begin("loops", "compiling what fits and explanations need")
        from mbkl.warmup import warmup as compile_all

        seconds = compile_all()
    console.say(f"All loops are ready ({seconds:.1f} s).")
    console.result({"seconds": seconds})
