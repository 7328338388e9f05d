"""The command `mbkl`."""

from __future__ import annotations

import argparse


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="mbkl", description="Multiple Binary Kernel Learning.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("warmup", help="compile and cache the kernels, so that no fit waits")
    parser.parse_args(arguments)
    from mbkl.engine.warmup import warmup

    seconds = warmup()
    print(f"All kernels are ready ({seconds:.1f} s).")
    return 0
