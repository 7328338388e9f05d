"""Rules of tables: what they may say."""

import pytest

from mbkl.io.exports import columns_of


def rule(name="a", kind="number", categories=()):
    return {"name": name, "kind": kind, "categories": list(categories)}


def test_columns_follow_each_other():
    rules = [rule("a"), rule("b", "one-hot", "xyz"), rule("c", "ordinal", "xy"), rule("d")]
    columns = columns_of(rules, [None] * 6)
    assert [column.first for column in columns] == [0, 1, 4, 5]
    assert [column.n_features for column in columns] == [1, 3, 1, 1]
    assert [column.is_text for column in columns] == [False, True, True, False]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([rule(), rule("b")], "make 2 features, but the model has 1"),
        ([rule(kind="date")], "one of the kinds"),
        ([rule(name="")], "needs a name"),
        ([rule(name=3)], "needs a name"),
        ([rule(), rule()], "Two rules have the name 'a'"),
        ([rule(kind="one-hot")], "must be different, and only of text"),
        ([rule(kind="ordinal", categories="aa")], "must be different, and only of text"),
        ([rule(categories="a")], "must be different, and only of text"),
        ([rule(kind="ordinal", categories=[1])], "must be texts"),
    ],
)
def test_rules_that_say_something_else(rules, message):
    with pytest.raises(ValueError, match=message):
        columns_of(rules, [None])


def test_categories_of_the_model():
    columns = columns_of([rule("a"), rule("b", "text"), rule("c", "text")], [None, ["x"], [1, 2]])
    assert [column.categories for column in columns] == [(), ("x",), (1, 2)]
    assert [column.is_text for column in columns] == [False, True, False]


@pytest.mark.parametrize(("kind", "levels"), [("text", None), ("number", ["x"])])
def test_text_is_where_the_model_has_a_category(kind, levels):
    with pytest.raises(ValueError, match="'a' must be text where the model has a category"):
        columns_of([rule(kind=kind)], [levels])
