"""`mbkl info`."""


def test_what_a_model_knows(mbkl, model_file):
    content = mbkl.json("info", model_file)
    assert content["classes"] == ["high", "low"]
    assert content["target"] == "income"
    assert content["probabilities"] is True
    kinds = {rule["name"]: rule["kind"] for rule in content["rules"]}
    assert kinds == {
        "age": "number",
        "town": "text",
        "street": "text",
        "member": "number",
        "since": "number",
    }


def test_in_words(mbkl, model_file):
    shown = mbkl("info", model_file).out
    assert "high, low" in shown
    assert "random_state=0" in shown
    assert "columns, text" in shown


def test_sparse_models_have_no_rules(mbkl, tmp_path):
    (tmp_path / "a.svm").write_text("0 1:1\n1 2:1\n0 1:2\n1 2:2\n")
    mbkl("fit", "a.svm", "--n-maps", "10")
    assert mbkl.json("info", "a.mbkl")["rules"] is None
    assert mbkl("info", "a.mbkl").out
