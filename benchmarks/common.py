"""Shared by all benchmarks: machine, tables, timing, memory and the page of results."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import gc
import io
import multiprocessing
import os
import platform
import re
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.data import MissingData

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "RESULTS.md"
PLOTS = FOLDER / "plots"
MEGABYTE = 1e6
# Single rows predicted per turn, so that the data of each contestant are in its cache.
ROWS_IN_A_TURN = 25
# The method of the paper, which most benchmarks of speed measure.
PAPER_FORM = {"maps": "stumps", "theta": "learned", "theta_shrinkage": 0.0}

_BEGAN = time.perf_counter()
_LOAD_AT_START = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
_HEADER = """# Results

Every section names the command that made it, and is replaced when that command runs
again. Times on a shared machine vary; ratios within one run mean more than seconds.
"""


# ---------------------------------------------------------------- command line


def parse(description: str, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line of a benchmark, which has the option `--quick`."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that it runs; nothing is recorded"
    )
    return parser.parse_args(arguments)


def start(main: Callable[[], None]) -> int:
    """Run a benchmark and return the exit code; skip it with a message if data are missing."""
    try:
        main()
    except MissingData as missing:
        print(f"Skipped: {missing}")
    return 0


def say(text: str) -> None:
    """Print a line of progress with the seconds since the start."""
    print(f"[{time.perf_counter() - _BEGAN:7.1f} s] {text}", flush=True)


# ------------------------------------------------------- machine and versions


def machine() -> str:
    """Describe processor, cores, memory and load."""
    model = _first_match("/proc/cpuinfo", r"model name\s*:\s*(.+)") or platform.processor()
    kilobytes = _first_match("/proc/meminfo", r"MemTotal:\s*(\d+)")
    memory = f"{int(kilobytes) / 2**20:.0f} GiB memory" if kilobytes else "memory unknown"
    busy = f"load average {_LOAD_AT_START:.1f} before the run"
    return f"{model}, {n_cores()} cores, {memory}, {busy}; {platform.system()}"


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def versions() -> str:
    """Return the versions of Python, mbkl and the libraries it is compared with."""
    import mbkl

    names = ("numpy", "scipy", "scikit-learn", "numba", "lightgbm", "interpret-core", "onnxruntime")
    ours = [f"Python {platform.python_version()}", f"mbkl {mbkl.__version__}"]
    return ", ".join(ours + [f"{name} {_version(name)}" for name in names])


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _first_match(path: str, pattern: str) -> str | None:
    try:
        match = re.search(pattern, Path(path).read_text())
    except OSError:
        return None
    return match.group(1).strip() if match else None


# ---------------------------------------------------------------- tables


def number(value) -> str:
    """Format a number with three significant digits and thousands separators.

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


def percent(share: float) -> str:
    """Format a share as per cent with two decimals."""
    return f"{100 * share:.2f}"


def markdown_table(rows: Iterable[Mapping[str, object]]) -> str:
    """Format rows as a Markdown table; the keys of the first are the headings.

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


# ---------------------------------------------------------------- results


def record(
    section: str,
    command: str,
    table: str,
    notes: Sequence[str] = (),
    plot: Figure | None = None,
    *,
    title: str | None = None,
    quick: bool = False,
) -> None:
    """Print a result and write it to its section of RESULTS.md.

    Parameters
    ----------
    section : str
        Name of the section, of its markers and of its plot.
    command : str
        Command that repeats the measurement.
    table : str
        Markdown.
    notes : sequence of str
        Sentences below the table.
    plot : Figure or None
        Saved as plots/<section>.png.
    title : str or None
        Heading; None means the name of the section.
    quick : bool
        Print only, write nothing.
    """
    text = "\n\n".join([table, *([_bullets(notes)] if notes else [])])
    print(f"\n{text}\n", flush=True)
    if quick:
        if plot is not None:
            plot.savefig(io.BytesIO(), format="png")
        print("Quick run: nothing recorded.")
        return
    if plot is not None:
        PLOTS.mkdir(exist_ok=True)
        plot.savefig(PLOTS / f"{section}.png", dpi=120)
        text += f"\n\n![{section.replace('_', ' ')}](plots/{section}.png)"
    heading = title or section.replace("_", " ").capitalize()
    origin = [
        f"`{command}`",
        f"{datetime.date.today().isoformat()}; {machine()}.  \n{versions()}.",
    ]
    _replace_section(section, "\n\n".join([f"## {heading}", *origin, text]))
    say(f"recorded in section '{section}' of {RESULTS.name}")


def _bullets(notes: Sequence[str]) -> str:
    return "\n".join(f"- {note}" for note in notes)


def _replace_section(section: str, text: str) -> None:
    begin, end = f"<!-- begin {section} -->", f"<!-- end {section} -->"
    block = f"{begin}\n{text}\n{end}"
    page = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else _HEADER
    before, found, rest = page.partition(begin)
    if found and end in rest:
        page = before + block + rest.partition(end)[2]
    else:
        page = f"{page.rstrip()}\n\n{block}\n"
    RESULTS.write_text(page, encoding="utf-8")


def plain_log_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers at 1, 2, 5, 10 and so on."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def memory_bars(
    labels: Sequence[str], sizes: Mapping[str, Sequence[float]], caption: str
) -> Figure:
    """Draw two bars for each label, of sizes in megabytes."""
    figure = Figure(figsize=(8.5, 1.2 + 0.62 * len(labels)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(labels))
    for shift, (name, values) in zip((-0.2, 0.2), sizes.items()):
        bars = axes.barh(places + shift, values, height=0.4, label=name)
        axes.bar_label(bars, [f"{number(value)} MB" for value in values], fontsize=8, padding=2)
    axes.set_yticks(places, labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    plain_log_ticks(axes.xaxis)
    axes.set_xlabel(caption)
    axes.margins(x=0.15)
    figure.legend(loc="outside upper right", ncols=2, fontsize=8)
    return figure


# ---------------------------------------------------------------- time


def seconds(work: Callable[[], object]) -> float:
    """Return the duration of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def median_seconds(
    contestants: Mapping[str, Callable[[], object]],
    repeats: int,
    limit: float = float("inf"),
    is_short: bool = False,
) -> dict[str, float]:
    """Return the median time of each contestant.

    Contestants take turns, so that noise of the machine affects all of them. The next one
    starts only when all threads are idle: those of OpenBLAS spin for a tenth of a second.

    Parameters
    ----------
    contestants : mapping from name to function
    repeats : int
        Calls of each.
    limit : float
        A contestant that has used this many seconds is not called again.
    is_short : bool
        Begin each turn with a tenth of a second of untimed calls: threads that have just
        woken may share a core until the scheduler moves them.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, work in contestants.items():
            if sum(times[name]) < limit:
                _let_threads_rest()
                if is_short:
                    _wake_threads(work)
                times[name].append(seconds(work))
    return {name: statistics.median(values) for name, values in times.items()}


def one_row_at_a_time(predict: Callable, X) -> Callable[[], None]:
    """Return a function that predicts the next `ROWS_IN_A_TURN` rows, one call for each."""
    position = 0

    def work() -> None:
        nonlocal position
        for _ in range(ROWS_IN_A_TURN):
            position = (position + 1) % len(X)
            predict(X[position : position + 1])

    return work


def _wake_threads(work: Callable[[], object], longest: float = 0.1) -> None:
    """Call until the threads had time to spread over the cores."""
    began = time.perf_counter()
    while time.perf_counter() - began < longest:
        work()


def _let_threads_rest(pause: float = 0.01, longest: float = 1.0) -> None:
    """Wait until no thread of this process is busy."""
    for _ in range(round(longest / pause)):
        before = time.process_time()
        time.sleep(pause)
        if time.process_time() - before < 0.1 * pause:
            return


# ---------------------------------------------------------------- memory


@dataclass(frozen=True)
class Memory:
    """Resident memory of a process during one call, in bytes.

    Parameters
    ----------
    before : int
        Just before the call.
    peak : int
        Maximum during the call.
    result : object
        What the call returned.
    """

    before: int
    peak: int
    result: object

    @property
    def rise(self) -> int:
        return max(self.peak - self.before, 0)


def peak_memory(prepare: Callable, work: Callable, *arguments) -> Memory:
    """Run `work(prepare(*arguments))` in a fresh process; report its peak memory.

    Both functions must be at the top level of a module. The memory of `prepare` counts as
    used before the call.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(_measure_memory, prepare, work, arguments).result()


def _measure_memory(prepare: Callable, work: Callable, arguments: tuple) -> Memory:
    prepared = prepare(*arguments)
    gc.collect()
    _return_free_memory()
    _reset_peak()
    before = _status_bytes("VmRSS")
    result = work(prepared)
    return Memory(before, _status_bytes("VmHWM"), result)


def _return_free_memory() -> None:
    """Return freed memory to the system, so that it does not hide a later rise."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        say("the peak of this process cannot be reset; its peak so far counts too")


def _status_bytes(field: str) -> int:
    """Return VmRSS or VmHWM of this process; without /proc, the peak so far for both."""
    kilobytes = _first_match("/proc/self/status", rf"{field}:\s*(\d+) kB")
    if kilobytes is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(kilobytes) * 1024
