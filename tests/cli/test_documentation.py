"""Every command on the page about the command line runs, and says what the page says."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
# The demo has tests of its own, and takes long.
LEFT_OUT = ("mbkl demo", "cd mbkl-demo")
# The default would learn the same, with thousands of maps.
SMALLER = {
    command: ["--n-maps", "100", "--jobs", "1"] for command in ("fit", "evaluate", "compare")
}


def commands_of(page):
    """Return commands with what the page says they print."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, shown = piece.partition("\n")
            if line not in LEFT_OUT:
                found.append((line, shown))
    return found


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not part of this distribution")
def test_the_page_is_true(mbkl, tmp_path):
    from mbkl.cli.commands import write_demo_files

    page = PAGE.read_text(encoding="utf-8")
    write_demo_files(tmp_path)
    (config,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "mbkl.toml").write_text(config)
    checker, commands = doctest.OutputChecker(), commands_of(page)
    assert {line.split()[1] for line, _ in commands} == {
        "fit", "predict", "evaluate", "compare", "explain", "report", "export", "info", "warmup"
    }  # fmt: skip
    for line, shown in commands:
        program, *arguments = shlex.split(line)
        assert program == "mbkl"
        printed = mbkl(*arguments, *SMALLER.get(arguments[0], [])).out
        if shown:
            options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert checker.check_output(shown, printed, options), f"{line}\n{printed}"
