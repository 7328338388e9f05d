"""`mbkl report`."""

import pytest


def test_one_page(mbkl, model_file, people_csv, people, tmp_path):
    people[:20].to_csv("test.csv", index=False)
    arguments = ["report", model_file, people_csv, "--test", "test.csv", "--title", "All people"]
    result = mbkl.json(*arguments, "-o", "page.html")
    assert result == {"output": "page.html", "rows": 90}
    page = (tmp_path / "page.html").read_text()
    assert "All people" in page
    assert '"Rome"' in page
    assert "town=Rome" not in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "nowhere/a.html"], "no folder nowhere"),
        (["--target", "nothing"], "no column 'nothing'"),
    ],
)
def test_bad_arguments(mbkl, model_file, people_csv, arguments, words):
    assert words in mbkl.error("report", model_file, people_csv, *arguments)
