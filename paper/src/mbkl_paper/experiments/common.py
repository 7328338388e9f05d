"""What the experiments share: progress, machine and versions, numbers as text."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

import joblib

import mbkl

_BEGAN = time.perf_counter()
# Parts of mbkl that no classifier computes with: work on them voids no result.
_NO_CLASSIFIERS = {"cli", "explain", "io", "plot", "report", "tabular"}


def say(text: str) -> None:
    """Print a line of progress with the seconds since the start."""
    print(f"[{time.perf_counter() - _BEGAN:7.1f} s] {text}", flush=True)


def machine() -> str:
    """Describe processor, cores and memory."""
    model = _first_match("/proc/cpuinfo", r"model name\s*:\s*(.+)") or platform.processor()
    kilobytes = _first_match("/proc/meminfo", r"MemTotal:\s*(\d+)")
    memory = f"{int(kilobytes) / 2**20:.0f} GiB memory" if kilobytes else "memory unknown"
    return f"{model}, {joblib.cpu_count()} cores, {memory}; {platform.system()}"


def _first_match(path: str, pattern: str) -> str | None:
    try:
        match = re.search(pattern, Path(path).read_text())
    except OSError:
        return None
    return match.group(1).strip() if match else None


def versions() -> str:
    """Name the versions of Python, of mbkl and of what the rivals are made of."""
    names = ("numpy", "scipy", "scikit-learn", "numba")
    found = [f"Python {platform.python_version()}", f"mbkl {mbkl.__version__}"]
    return ", ".join(found + [f"{name} {metadata.version(name)}" for name in names])


def source_fingerprint() -> str:
    """Return a short text that changes with any source file that the classifiers use."""
    folder = Path(mbkl.__file__).parent
    sources = {path.relative_to(folder): path for path in sorted(folder.rglob("*.py"))}
    used = [
        (name.as_posix(), path.read_bytes())
        for name, path in sources.items()
        if name.parts[0] not in _NO_CLASSIFIERS
    ]
    return joblib.hash(used)[:12]


def number(value) -> str:
    """Write a number with three digits that matter, and thousands apart.

    Examples
    --------
    >>> number(19600), number(1234.5), number(0.012345), number("text")
    ('19,600', '1,234', '0.0123', 'text')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def markdown_table(rows: Iterable[Mapping[str, object]]) -> str:
    """Write rows as a Markdown table; the keys of the first are the headings.

    Examples
    --------
    >>> print(markdown_table([{"rows": 1000, "seconds": 0.25}]))
    | rows | seconds |
    | --- | --- |
    | 1,000 | 0.25 |
    """
    rows = list(rows)
    headings = list(rows[0])
    lines = [headings, ["---"] * len(headings)]
    lines += [[number(row[heading]) for heading in headings] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
