"""Export of classifiers and regressors to one header of plain C, for small machines.

The header needs no memory beyond its tables and only the C standard library. Table entries
have 24 bits, like float32; comparisons with thresholds are exact.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, singledispatch
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import mbkl
from mbkl.classifier import KernelClassifier
from mbkl.engine.files import write_atomically
from mbkl.engine.rows import to_float32
from mbkl.io.container import compact
from mbkl.io.exports import Column, check_exportable, columns_of_model, plain_arrays
from mbkl.kernel_predictor import KernelPredictor
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.regressor import KernelRegressor

_PER_LINE = 20
_SAFE = re.compile(rb"[A-Za-z0-9 _.,:;()<>=+*/|~^%&!#@$'{}\[\]-]")


def export_c(
    model: KernelPredictor,
    path: str | os.PathLike,
    columns: Sequence[str] | None = None,
    name: str = "model",
) -> None:
    """Write a classifier or regressor as a header of C99 (and C++) without dependencies.

    Of a classifier it defines `int <name>_predict(const float *x)`, which returns the number of a
    class, `void <name>_scores(const float *x, float *scores)`, the texts `<name>_labels` and, if
    the model has probabilities, `<name>_probabilities`. Of a regressor it defines
    `float <name>_predict(const float *x)`, or for y of several columns
    `void <name>_predict(const float *x, float *predictions)`. Missing values are NaN. A category is
    the number of its level, NaN if missing and any number above the last if new.
    `<name>_encode` makes x of the columns of a frame, and `<name>_categories_<k>` are the
    levels of its k-th column of text.

    Parameters
    ----------
    model : MBKLClassifier, MBKLRegressor, or one of their searches
    path : path
    columns : list of str or None, default=None
        Names of the features in a frame, whose rows `<name>_encode` takes; None means the
        names that a model with categories was fitted with.
    name : str, default="model"
        Prefix of all names in the header.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.io import export_c
    >>> model = MBKLClassifier(random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_c(model, Path(folder) / "model.h")
    ...     "int model_predict(const float *x)" in (Path(folder) / "model.h").read_text()
    True
    """
    check_exportable(model)
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,62}", name):
        raise ValueError(f"name must be letters, digits and underscores, got {name!r}.")
    pieces = list(_pieces(model, name))
    columns_to_encode = columns_of_model(model, columns)
    if columns_to_encode is not None:
        pieces += _encoding(columns_to_encode, name)
    text = "\n".join([*pieces, "#endif\n"])
    write_atomically(path, [text.encode("ascii")])


def _c(piece: str, *names: Mapping[str, Any], **more: Any) -> str:
    return _pieces_of_c()[piece].substitute(*names, **more)


@cache
def _pieces_of_c() -> dict[str, Template]:
    text = files("mbkl.io").joinpath("pieces.c").read_text("ascii")
    _, *parts = re.split(r"\n//// (\w+).*\n", text)
    return {name: Template(f"{body.rstrip()}\n") for name, body in zip(parts[::2], parts[1::2])}


def _pieces(model: KernelPredictor, name: str) -> Iterator[str]:
    common = {"name": name, "n_columns": model.intercept_.size}
    about = f"A regression. {name}_predict gives {name}_n_scores numbers."
    if isinstance(model, KernelClassifier):
        about = f"A classifier. {name}_predict gives a number, that of a label in {name}_labels."
    sizes = {"n_features": model.n_features_in_, "version": mbkl.__version__}
    yield _c("beginning", common, **sizes, about=about)
    calls = ""
    for number, (maps, tables) in enumerate(model.predictor_.families):
        if maps.n_groups:
            family = f"{name}_{number}"
            yield _arrays(family, **_in_units(tables), **plain_arrays(maps))
            yield from _family(maps, {**common, "family": family, "n_groups": maps.n_groups})
            calls += f"    {family}_add(x, scores);\n"
    yield _array(f"{name}_intercept", _single(model.intercept_))
    yield _c("scores", common, calls=calls)
    if isinstance(model, KernelRegressor):
        predict = "predict_numbers" if model.is_multi_output_ else "predict_number"
        yield _c(predict, common, link="expf" if model.loss == "poisson" else "")
    elif isinstance(model, KernelClassifier):
        yield _texts(f"{name}_labels", map(str, model.classes_.tolist()))
        yield _c("predict", common, n_classes=model.classes_.size)
        if hasattr(model, "predict_proba"):
            yield _probabilities(model, name)


@singledispatch
def _family(maps: Any, names: dict[str, Any]) -> Iterator[str]:
    """Yield the functions of a family of maps, and arrays that only this family has."""
    yield _c("stumps", names, value=f"x[{names['family']}_features[group]]", before="")


@_family.register
def _(maps: FernMaps, names: dict[str, Any]) -> Iterator[str]:
    family = names["family"]
    answer = f"x[{family}_features[stump]] > {family}_thresholds[stump]"
    if maps.sets is not None:
        yield _c("in_set", names)
        answer = f"{family}_sets[stump] ? {family}_in_set(x, stump) : {answer}"
    yield _c("ferns", names, answer=answer)


@_family.register
def _(maps: ProjectionMaps, names: dict[str, Any]) -> Iterator[str]:
    family, directions = names["family"], sparse.csc_array(maps.directions)
    yield _arrays(
        family,
        inputs=compact(directions.indices),
        starts=compact(directions.indptr),
        weights=directions.data,
    )
    yield _c("projections", names, n_features=maps.centre.size)
    before = f"    double inputs[{directions.shape[0]}];\n    {family}_prepare(x, inputs);\n"
    yield _c("stumps", names, value=f"{family}_project(inputs, group)", before=before)


def _probabilities(model: KernelClassifier, name: str) -> str:
    rule = np.array([model.temperature_, model.offset_ or 0.0])
    temperature, offset = _literals(_single(rule))
    odds, term = "", f"expf((scores[number] - highest) / {temperature})"
    if model.offset_ is not None:
        odds = _c("softplus", name=name, temperature=temperature, offset=offset) + "\n"
        term = f"{name}_odds(scores[number])"
    elif model.classes_.size == 2:
        term = f"1.0f / (1.0f + expf(-scores[number] / {temperature}))"
    elif model.probability_rule == "one-vs-rest":
        term = "1.0f / (1.0f + expf(-scores[number]))"
    return odds + _c("probabilities", name=name, term=term)


# ---------------------------------------------------------------- columns of a frame


# C expressions that look up a value of each kind among the levels of a category.
_LOOK_UPS = {
    "numbers": {
        "array": "levels",
        "type": "float",
        "is_missing": "isnan(value)",
        "is_other": "value != levels[place]",
    },
    "texts": {
        "array": "categories",
        "type": "const char *",
        "is_missing": "value == NULL || value[0] == 0",
        "is_other": "strcmp(value, levels[place]) != 0",
    },
}


def _encoding(columns: list[Column], name: str) -> Iterator[str]:
    """Yield the names of the columns, and the function that encodes a row of a frame."""
    lines = ""
    for kind, look_up in _LOOK_UPS.items():
        chosen = [pair for pair in enumerate(columns) if pair[1].is_text == (kind == "texts")]
        if chosen:
            yield _texts(f"{name}_{kind}", [column.name for _, column in chosen])
        if any(column.levels is not None for _, column in chosen):
            yield _c("find", look_up, name=name, kind=kind)
        for number, (feature, column) in enumerate(chosen):
            value = f"{kind}[{number}]"
            if column.levels is not None:
                levels = f"{name}_{look_up['array']}_{number}"
                yield _levels(levels, column)
                value = f"{name}_find_{kind}({value}, {levels}, {len(column.levels)})"
            lines += f"    x[{feature}] = {value};\n"
    yield _c("encode", name=name, lines=lines)


def _levels(name: str, column: Column) -> str:
    """Return the levels of a category as an array, which must not be empty in C."""
    levels = column.levels or ("",)
    if not column.is_text:
        return _array(name, np.array(levels, dtype=np.float32))
    if any("\0" in level for level in levels):
        raise ValueError(f"A category of {column.name!r} has a zero character.")
    return _texts(name, levels)


# ---------------------------------------------------------------- values


def _arrays(prefix: str, **arrays: NDArray) -> str:
    return "".join(_array(f"{prefix}_{name}", values) for name, values in arrays.items())


def _array(name: str, values: NDArray) -> str:
    if values.dtype.kind in "iu":
        kind = f"{values.dtype.name}_t"
    else:
        kind = "float" if values.itemsize == 4 else "double"
    return _definition(f"{kind} {name}", _literals(values.ravel()))


def _texts(name: str, texts) -> str:
    return _definition(f"char *const {name}", [_quoted(text) for text in texts])


def _definition(head: str, items: list[str]) -> str:
    lines = [",".join(items[at : at + _PER_LINE]) for at in range(0, len(items), _PER_LINE)]
    body = ",\n".join(lines)
    return f"static const {head}[{len(items)}] = {{\n{body}\n}};\n"


def _in_units(tables: NDArray[np.float64]) -> dict[str, NDArray]:
    """Return tables as integers of 24 bits, which make short literals, and units of columns."""
    largest = np.abs(_single(tables)).max(axis=0, initial=np.finfo(np.float32).tiny)
    units = np.exp2(np.ceil(np.log2(largest.astype(np.float64))) - 23)
    return {"tables": np.rint(tables / units).astype(np.int32), "units": _single(units)}


def _single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    single = to_float32(values)
    if not np.isfinite(single).all():
        raise ValueError("The scores of this model are beyond float32; rescale C, or y of numbers.")
    return single


def _literals(values: NDArray) -> list[str]:
    """Return the shortest C literals of values; literals of int have no suffix."""
    suffix = {"uint32": "u", "uint64": "ull", "float32": "f"}.get(values.dtype.name, "")
    texts = values.astype(str).tolist()
    return ["-INFINITY" if text == "-inf" else f"{text}{suffix}" for text in texts]


def _quoted(text: str) -> str:
    """Return a C string literal of the UTF-8 bytes; unsafe characters are octal escapes."""
    data = text.encode("utf-8", "surrogatepass")
    characters = (bytes([byte]) for byte in data)
    return (
        '"' + "".join(c.decode() if _SAFE.match(c) else f"\\{c[0]:03o}" for c in characters) + '"'
    )
