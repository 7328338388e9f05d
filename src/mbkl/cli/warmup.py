"""`mbkl warmup`: compile ahead of time."""

from __future__ import annotations

from mbkl.cli.console import Console


def warmup(console: Console) -> None:
    """Compile and cache the loops, so that nothing waits for the compiler.

    mbkl warmup
    """
    with console.steps(fits=4, explanations=1) as steps:
        steps.begin("fits", "compiling what fits need")
        from mbkl.engine.warmup import warmup as of_engine
        from mbkl.explain.warmup import warmup as of_explanations

        seconds = of_engine()
        steps.begin("explanations", "compiling what explanations need")
        seconds += of_explanations()
    console.say(f"All loops are ready ({seconds:.1f} s).")
    console.result({"seconds": seconds})
