import sys

import pytest

from mbkl.plot import style


def test_long_names_lose_their_middle():
    assert style.shorten("short") == "short"
    shortened = style.shorten("a" * 40 + "b" * 40, 21)
    assert shortened == "a" * 10 + "…" + "b" * 10


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"mbkl\[plot\]"):
        style.Display()._begin(None)
