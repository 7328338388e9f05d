"""The command `mbkl`."""

import pytest

from mbkl.cli import main


def test_warmup_says_that_it_is_done(capsys):
    assert main(["warmup"]) == 0
    assert "ready" in capsys.readouterr().out


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["--help"])
    assert leaving.value.code == 0
    assert "warmup" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["cooldown"]])
def test_unknown_commands_are_an_error(arguments, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    assert leaving.value.code == 2
    assert "warmup" in capsys.readouterr().err or arguments == []
