"""Rooms of the library know those above them alone, and nobody's private names."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import mbkl

SOURCE = Path(mbkl.__file__).parent

# From the bottom to the top: a room imports from those before it.
ORDER = ["leaves", "engine", "cells", "solvers", "maps", "learn", "estimators", "surfaces"]
# Modules that need no other of the library.
LEAVES = {"extras", "declare"}
# Modules that are one room together, in an order of their own.
ESTIMATORS = [
    {"levels", "memory", "predictor"},
    {"estimator"},
    {"kernel_predictor"},
    {"classifier", "regressor"},
    {"search", "kernel"},
]
# All that is made of estimators; these may use each other.
SURFACES = {
    "cli",
    "dask",
    "explain",
    "io",
    "parquet",
    "plot",
    "report",
    "tabular",
    "warmup",
}
# Names with an underscore that other libraries publish so.
PUBLISHED = {
    "_replace": "of named tuples",
    "_validate_params": "of scikit-learn's estimators, for those who write some",
    "_get_param_names": "likewise",
    "_parameter_constraints": "likewise",
    "_init_callback_context": "likewise",
    "_int_mm": "of Torch",
}

# Methods that bring what is made of estimators to the estimator itself: imported when called.
EXCEPTIONS = {
    ("estimator.py", "mbkl.io"): "`save` is a method of every estimator",
    (
        "kernel_predictor.py",
        "mbkl.explain",
    ): "`explain_global` and `explain_local` are methods too",
}


class Import(NamedTuple):
    """One name that a file imports from the library."""

    file: str
    module: str
    name: str | None
    is_lazy: bool
    is_for_types: bool

    def __str__(self) -> str:
        return f"{self.file} imports {self.name or 'all'} of {self.module}"


def imports_of(path: Path) -> Iterator[Import]:
    """Yield all that a file imports from the library, wherever in the file."""

    def visit(node: ast.AST, is_lazy: bool, is_for_types: bool) -> Iterator[Import]:
        found: list[tuple[str, str | None]] = []
        if isinstance(node, ast.Import):
            found = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has an import relative to itself"
            found = [(node.module or "", alias.name) for alias in node.names]
        for module, name in found:
            assert not module.startswith("mbkl_paper"), f"{path} imports the paper's experiments"
            assert name != "*", f"{path} imports all names of {module}"
            if module.split(".")[0] == "mbkl":
                yield Import(str(path.relative_to(SOURCE)), module, name, is_lazy, is_for_types)
        is_lazy |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            is_guarded = (
                isinstance(node, ast.If)
                and ast.unparse(node.test) == "TYPE_CHECKING"
                and child in node.body
            )
            yield from visit(child, is_lazy, is_for_types or is_guarded)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False, False)


def module_of(each: Import) -> str:
    """Return the top-level module or package that an import leads to, "" for the library itself."""
    parts = each.module.split(".")
    if len(parts) > 1:
        return parts[1]
    if each.name in mbkl._HOMES:
        return mbkl._HOMES[each.name].split(".")[1]
    is_module = each.name is not None and any(
        (SOURCE / f"{each.name}{end}").exists() for end in (".py", "/__init__.py")
    )
    return each.name if is_module else ""


def own_module(each: Import) -> str:
    return Path(each.file).parts[0].removesuffix(".py")


def room_of(module: str) -> str:
    if module in LEAVES:
        return "leaves"
    if module in SURFACES:
        return "surfaces"
    return "estimators" if any(module in level for level in ESTIMATORS) else module


def is_allowed(each: Import) -> bool:
    """Say whether an import leads to a room further down, or stays in its own."""
    own, other = own_module(each), module_of(each)
    room, other_room = room_of(own), room_of(other)
    if not other or own == other:
        return True
    if room != other_room:
        return ORDER.index(other_room) < ORDER.index(room)
    if room != "estimators" or each.is_for_types:
        return True
    level, other_level = (
        next(number for number, names in enumerate(ESTIMATORS) if name in names)
        for name in (own, other)
    )
    return other_level < level


def is_exception(each: Import) -> bool:
    return each.is_lazy and (each.file, each.module) in EXCEPTIONS


@pytest.fixture(scope="module")
def imports():
    """All imports within the library; its front door, which imports by name, is no room."""
    files = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]
    return [each for path in sorted(files) for each in imports_of(path)]


def test_every_module_has_a_room(imports):
    modules = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    modules -= {"__init__", "__pycache__"}
    assert {room_of(module) for module in modules} <= set(ORDER)
    assert {module_of(each) for each in imports} - {""} <= modules


def test_rooms_import_from_those_before_them(imports):
    wrong = [str(each) for each in imports if not is_allowed(each) and not is_exception(each)]
    assert wrong == []


def test_every_exception_is_needed(imports):
    used = {(each.file, each.module) for each in imports if not is_allowed(each)}
    assert set(EXCEPTIONS) == used


def test_private_names_stay_where_they_are(imports):
    wrong = [
        str(each)
        for each in imports
        if own_module(each) != module_of(each)
        and any(is_private(part) for part in [*each.module.split("."), each.name or ""])
    ]
    assert wrong == []


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def names_of(tree: ast.AST) -> Iterator[str]:
    """Yield all names that a file gives to something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.attr if isinstance(node, ast.Attribute) else node.id


def private_attributes(tree: ast.AST) -> Iterator[str]:
    """Yield names with an underscore that a file asks of anything but itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            holder = ast.unparse(node.value)
            if holder not in ("self", "cls", "super()"):
                yield node.attr


def test_private_attributes_stay_in_their_room():
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
    given: dict[str, set[str]] = {}
    for path, tree in trees.items():
        given.setdefault(path.relative_to(SOURCE).parts[0], set()).update(names_of(tree))
    wrong = [
        f"{path.relative_to(SOURCE)} asks for {name}"
        for path, tree in trees.items()
        for name in private_attributes(tree)
        if name not in given[path.relative_to(SOURCE).parts[0]] and name not in PUBLISHED
    ]
    assert wrong == []
    asked = {name for tree in trees.values() for name in private_attributes(tree)}
    assert set(PUBLISHED) <= asked


def test_the_rule_sees_private_attributes():
    tree = ast.parse("def f(model):\n    return model._secret, arrays._also, self._own")
    assert list(private_attributes(tree)) == ["_secret", "_also"]


@pytest.mark.parametrize(
    ("file", "code", "allowed"),
    [
        ("engine/x.py", "from mbkl.extras import require", True),
        ("engine/x.py", "from mbkl.learn import progress", False),
        ("learn/x.py", "from mbkl import __version__", True),
        ("learn/x.py", "from mbkl import MBKLClassifier", False),
        ("learn/x.py", "def f():\n    import mbkl.classifier", False),
        ("maps/x.py", "if TYPE_CHECKING:\n    from mbkl.learn.kernel_weights import Pairs", False),
        ("memory.py", "if TYPE_CHECKING:\n    from mbkl.estimator import Placed", True),
        ("memory.py", "from mbkl.estimator import Placed", False),
        ("search.py", "from mbkl.kernel import MBKernel", False),
        ("search.py", "from mbkl.classifier import MBKLClassifier", True),
        ("report/x.py", "from mbkl.explain import explain_global", True),
    ],
)
def test_the_rules_see_what_breaks_them(tmp_path, monkeypatch, file, code, allowed):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(code)
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    assert [is_allowed(each) for each in imports_of(path)] == [allowed]
