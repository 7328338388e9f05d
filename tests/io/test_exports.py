"""Rules of frames: what they may say."""

import pytest

from mbkl.io.exports import columns_of


def rule(name="a", kind="number"):
    return {"name": name, "kind": kind}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([rule(), rule("b")], "There are 2 rules, but the model has 1 features"),
        ([rule(kind="date")], "one of the kinds"),
        ([rule(name="")], "needs a name"),
        ([rule(name=3)], "needs a name"),
    ],
)
def test_rules_that_say_something_else(rules, message):
    with pytest.raises(ValueError, match=message):
        columns_of(rules, [None])


def test_two_columns_of_a_name():
    with pytest.raises(ValueError, match="Two rules have the name 'a'"):
        columns_of([rule(), rule()], [None, None])


def test_categories_of_the_model():
    columns = columns_of([rule("a"), rule("b", "text"), rule("c", "text")], [None, ["x"], [1, 2]])
    assert [column.levels for column in columns] == [None, ("x",), (1, 2)]
    assert [column.is_text for column in columns] == [False, True, False]


@pytest.mark.parametrize(("kind", "levels"), [("text", None), ("number", ["x"])])
def test_text_is_where_the_model_has_a_category(kind, levels):
    with pytest.raises(ValueError, match="'a' must be text where the model has a category"):
        columns_of([rule(kind=kind)], [levels])
