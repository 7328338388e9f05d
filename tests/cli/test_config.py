"""Options from a file."""

import json

import pytest


@pytest.fixture
def config(tmp_path):
    """Return a function that writes a file of options."""

    def write(text):
        path = tmp_path / "mbkl.toml"
        path.write_text(text)
        return path

    return write


def test_options_come_from_a_file(mbkl, people_csv, config, tmp_path):
    path = config(
        """
        target = "income"   # for all commands that have it
        [fit]
        n-maps = 30
        output = "from-file.mbkl"
        calibrate = true
        drop = ["street", "since"]
        [info]
        json = true
        """
    )
    result = mbkl.json("fit", people_csv, "--config", path)
    assert result["model"] == "from-file.mbkl"
    parameters = json.loads(mbkl("info", "from-file.mbkl", "--config", path).out)
    assert parameters["parameters"]["n_maps"] == 30
    assert parameters["probabilities"] is True
    assert [rule["name"] for rule in parameters["rules"]] == ["age", "town", "member"]


def test_the_command_line_wins(mbkl, people_csv, config):
    path = config('[fit]\ntarget = "nonsense"\nn_maps = 30\noutput = "a.mbkl"')
    arguments = ["--config", path, "-t", "income", "-o", "b.mbkl"]
    assert mbkl.json("fit", people_csv, *arguments)["model"] == "b.mbkl"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[fit]\nnmaps = 3", "no option 'nmaps'"),
        ("[fitt]\ntarget = 'a'", "no command 'fitt'"),
        ("[fit\n", "no TOML file"),
        ("[fit]\nn_maps = 'many'", "--n-maps"),
        ("[fit]\nmaps = 'trees'", "trees"),
    ],
)
def test_bad_files(mbkl, config, text, words):
    assert words in mbkl.error("fit", "a.csv", "--config", config(text), code=2)


def test_a_missing_file(mbkl):
    assert "none.toml" in mbkl.error("fit", "a.csv", "--config", "none.toml", code=2)
