"""What an import and a small fit load."""

import json

import pytest

HEAVY = ["numba", "sklearn", "scipy", "pandas", "matplotlib"]


def loaded_after(run_python, code: str) -> set[str]:
    result = run_python(f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))")
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout))


def test_the_package_alone_loads_nothing_heavy(run_python):
    assert loaded_after(run_python, "import mbkl").isdisjoint(HEAVY)


def test_names_are_listed_without_loading_them(run_python):
    code = (
        "import mbkl; assert {'MBKLClassifier', 'MBKLClassifierCV', 'MBKernel'} <= set(dir(mbkl))"
    )
    assert loaded_after(run_python, code).isdisjoint(HEAVY)


def test_a_first_fit_on_iris_needs_no_compiler(run_python):
    code = """
from sklearn.datasets import load_iris
from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV
X, y = load_iris(return_X_y=True)
MBKLClassifier(random_state=0).fit(X, y).predict(X)
MBKLClassifierCV(random_state=0).fit(X, y).predict(X)
MBKernel(random_state=0).fit(X, y).kernel(X)
"""
    loaded = loaded_after(run_python, code)
    assert "numba" not in loaded
    assert "sklearn" in loaded


def test_unknown_names_are_an_error(run_python):
    import mbkl

    with pytest.raises(AttributeError, match="MBKLRanker"):
        mbkl.MBKLRanker  # noqa: B018
    result = run_python("from mbkl import MBKLRanker")
    assert "ImportError" in result.stderr


def test_the_version_is_a_number():
    import mbkl

    assert all(part.isdigit() for part in mbkl.__version__.split(".")[:2])
