"""Which loops are used, and their threads."""

import importlib.util
import os
import sys

import pytest

from mbkl.engine import choose_loops
from mbkl.engine.twins import TWINS


def test_small_problems_need_no_compiler(run_python):
    code = "from mbkl.engine import choose_loops; print(type(choose_loops(299_999)).__name__)"
    assert run_python(code).stdout.strip() == "Twins"


def test_large_problems_are_compiled(make_compiled):
    loops = choose_loops(10**9, n_jobs=3)
    assert isinstance(loops, make_compiled)
    assert loops.n_threads == 3


def test_small_problems_have_one_thread_where_loops_are_loaded(make_compiled):
    loops = choose_loops(10, n_jobs=3)
    assert isinstance(loops, make_compiled)
    assert loops.n_threads == 1


def test_without_numba_everything_still_runs(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "mbkl.engine.compiled", raising=False)
    assert choose_loops(10**9) is TWINS


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("length", [0, 1, 17])
def test_shares_cover_the_range_once(make_compiled, n_threads, falling, length):
    done = []

    def loop(name, start, stop):
        done.append((name, start, stop))

    make_compiled(n_threads).share(length, 10**6, loop, "name", falling=falling)
    assert {name for name, _, _ in done} == {"name"}
    covered = [number for _, start, stop in done for number in range(start, stop)]
    assert sorted(covered) == list(range(length))
    assert len(done) == max(1, min(n_threads, length))


def test_an_error_of_a_thread_is_raised(make_compiled):
    def loop(start, stop):
        if start:
            raise ValueError("in a thread")

    with pytest.raises(ValueError, match="in a thread"):
        make_compiled(2).share(10, 10**6, loop)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_starts_threads_of_its_own(run_python):
    code = """
import os, signal, warnings
import numpy as np
from mbkl.engine import compiled
from mbkl.engine.codes import DenseCodes
warnings.simplefilter("ignore")
compiled.SMALLEST_SHARE = 1
offsets = np.arange(5) * 2
codes = DenseCodes(np.zeros((4, 50), dtype=np.uint8), offsets, compiled.Compiled(2))
tables = np.ones((8, 1))
codes.gather(tables)
assert compiled._pools
child = os.fork()
if child == 0:
    signal.alarm(60)  # instead of waiting for ever for threads that do not exist
    os._exit(0 if (codes.gather(tables) == 4).all() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(code).stdout.strip() == "0"
