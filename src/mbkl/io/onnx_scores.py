"""The scores of a model as ONNX operators: cells of all groups, then one look-up.

Stumps of a feature are one balanced tree of a TreeEnsembleRegressor, whose leaves are
the numbers of cells: it compares float32 numbers, as exact as the look-up itself, and a
missing value goes to the left everywhere. Ferns are comparisons and sums, for trees of
so many leaves would be large and slow (measured). Tables are float32, added in double precision.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.extras import require
from mbkl.maps.categories import LevelSets
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps, chi2_map
from mbkl.predictor import TablePredictor

# Operators keep their meaning from here to the latest version.
OPSET = 15
ML_OPSET = 3
ML_DOMAIN = "ai.onnx.ml"
_IR_VERSION = 8
# Rows that are scored at a time: memory for ferns stays bounded, and more are slower (measured).
_ROWS_AT_A_TIME = 128
# Ferns of similar depth are compared together, filled up to a multiple of this.
_DEPTH_STEP = 8
# Bits of the four pieces in which products of 64 bits are added as float32, exactly:
# 64 numbers of 18 bits have a sum of 24 bits.
_PIECES = (10, 18, 18, 18)


@dataclass
class Operator:
    """A node of the graph."""

    kind: str
    inputs: list[str]
    output: str
    domain: str
    attributes: dict[str, Any]


@dataclass
class Builder:
    """Operators and constants, in order; all names begin with the prefix."""

    prefix: str = "mbkl_"
    operators: list[Operator] = field(default_factory=list)
    constants: dict[str, NDArray] = field(default_factory=dict)
    _names: dict[tuple, str] = field(default_factory=dict)

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes) -> str:
        """Add an operator with one output; return the name of that."""
        output = self._name(kind)
        self.operators.append(Operator(kind, list(inputs), output, domain, attributes))
        return output

    def constant(self, values) -> str:
        """Add a constant, once; return its name."""
        values = np.asarray(values, order="C")
        key = values.dtype.str, values.shape, hashlib.sha256(values.tobytes()).digest()
        name = self._names.get(key)
        if name is None:
            self._names[key] = name = self._name("constant")
            self.constants[name] = values
        return name

    def cast(self, name: str, dtype) -> str:
        """Convert a tensor to the type of a NumPy array."""
        return self.add("Cast", name, to=tensor_type(dtype))

    def reshape(self, name: str, *shape: int) -> str:
        """Change the shape; one length may be -1."""
        return self.add("Reshape", name, self.constant(np.array(shape, np.int64)))

    def rename(self, output: str, name: str) -> None:
        """Give the output of an operator, which no other uses, another name."""
        (operator,) = (one for one in self.operators if one.output == output)
        operator.output = name

    def _name(self, kind: str) -> str:
        return f"{self.prefix}{len(self.operators) + len(self.constants)}_{kind}"

    def graph(self, inputs: dict[str, tuple], outputs: dict[str, tuple]):
        """Return the graph; inputs and outputs are (dtype, shape) by name, None any length."""
        onnx = require("onnx", "onnx")
        nodes = [
            onnx.helper.make_node(
                one.kind, one.inputs, [one.output], one.output, domain=one.domain, **one.attributes
            )
            for one in self.operators
        ]
        ends = [
            [
                onnx.helper.make_tensor_value_info(name, tensor_type(dtype), list(shape))
                for name, (dtype, shape) in side.items()
            ]
            for side in (inputs, outputs)
        ]
        constants = [
            onnx.numpy_helper.from_array(values, name) for name, values in self.constants.items()
        ]
        return onnx.helper.make_graph(nodes, "mbkl", *ends, constants)

    def model(self, inputs: dict[str, tuple], outputs: dict[str, tuple]):
        """Return the graph as a model; see `graph`."""
        onnx = require("onnx", "onnx")
        versions = [
            onnx.helper.make_opsetid("", OPSET),
            onnx.helper.make_opsetid(ML_DOMAIN, ML_OPSET),
        ]
        model = onnx.helper.make_model(
            self.graph(inputs, outputs), opset_imports=versions, producer_name="mbkl"
        )
        model.ir_version = _IR_VERSION
        return model


def tensor_type(dtype) -> int:
    """Return the number that ONNX has for a type of NumPy arrays."""
    return require("onnx", "onnx").helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def add_scores(builder: Builder, X: str, predictor: TablePredictor) -> str:
    """Add the scores of all rows of X, the name of a float32 tensor (n_rows, n_features).

    Return the name of the (n_rows, n_columns) tensor.
    """
    body = Builder(f"{builder.prefix}rows_")
    rows = f"{body.prefix}X"
    scores = _add_block(body, rows, predictor)
    n_columns = predictor.intercept.size
    graph = body.graph(
        {rows: (np.float32, (None, None))}, {scores: (np.float64, (None, n_columns))}
    )
    blocks, n_rows = _add_blocks(builder, X)
    by_block = builder.add("Scan", blocks, body=graph, num_scan_inputs=1)
    start = builder.constant(np.array([0]))
    return builder.add("Slice", builder.reshape(by_block, -1, n_columns), start, n_rows, start)


def _add_blocks(builder: Builder, X: str) -> tuple[str, str]:
    """Divide the rows, filled up with zeros, into equal blocks; return these and n_rows."""
    zero, one = builder.constant(np.array([0])), builder.constant(np.array([1]))
    shape = builder.add("Shape", X)
    n_rows, width = builder.add("Gather", shape, zero), builder.add("Gather", shape, one)
    most = builder.constant(np.array([_ROWS_AT_A_TIME]))
    size = builder.add("Max", builder.add("Min", n_rows, most), one)
    # Rounded up, but one block at least: an empty one would have no shape.
    last = builder.add("Sub", builder.add("Max", n_rows, one), one)
    n_blocks = builder.add("Add", builder.add("Div", last, size), one)
    n_added = builder.add("Sub", builder.add("Mul", n_blocks, size), n_rows)
    pads = builder.add("Concat", zero, zero, n_added, zero, axis=0)
    shape = builder.add("Concat", n_blocks, size, width, axis=0)
    return builder.add("Reshape", builder.add("Pad", X, pads), shape), n_rows


def _add_block(builder: Builder, X: str, predictor: TablePredictor) -> str:
    intercept = builder.constant(predictor.intercept[None, :])
    cells, tables, n_before = [], [], 0
    for maps, table in predictor.families:
        if maps.n_groups:
            codes = _add_codes(maps, builder, X)
            first = n_before + maps.cells.offsets[:-1]
            cells.append(builder.add("Add", codes, builder.constant(first)))
            tables.append(table)
            n_before += len(table)
    if not cells:
        n_rows = builder.add("Gather", builder.add("Shape", X), builder.constant(np.array([0])))
        shape = builder.add("Concat", n_rows, builder.constant(np.array([1])), axis=0)
        return builder.add("Expand", intercept, shape)
    sums = _add_table_sums(builder, np.concatenate(tables), builder.add("Concat", *cells, axis=1))
    return builder.add("Add", sums, intercept)


def _add_table_sums(builder: Builder, tables: NDArray, cells: str) -> str:
    """Add up the entries of the cells of each row; they are stored as float32 where they can."""
    n_columns = tables.shape[1]
    with np.errstate(over="ignore"):
        single = tables.astype(np.float32)
    tables = single if np.isfinite(single).all() else tables
    axis = builder.constant(np.array([1]))
    if n_columns > 1:
        entries = builder.add("Gather", builder.constant(tables), cells, axis=0)
        return builder.add("ReduceSum", builder.cast(entries, np.float64), axis, keepdims=0)
    flat = builder.cast(_add_look_up(builder, tables[:, 0], cells), np.float64)
    entries = builder.add("Reshape", flat, builder.add("Shape", cells))
    return builder.add("ReduceSum", entries, axis, keepdims=1)


@singledispatch
def _add_codes(maps: Any, builder: Builder, X: str) -> str:
    """Add the cell of each group of a family: int64 of shape (n_rows, n_groups)."""
    attributes = {"n_targets": maps.n_groups, **_trees(maps)}
    codes = builder.add("TreeEnsembleRegressor", X, domain=ML_DOMAIN, **attributes)
    return builder.cast(codes, np.int64)


def _trees(maps: Any) -> dict[str, list]:
    """Return balanced trees whose leaves tell how many thresholds a value exceeds."""
    nodes: list[tuple] = []
    leaves: list[tuple] = []

    def grow(group: int, first: int, low: int, high: int) -> int:
        """Add the nodes for so many of a group's thresholds; return the first of them."""
        place = len(nodes)
        node = place - first
        if low == high:
            nodes.append((group, node, 0, "LEAF", 0.0, 0, 0))
            leaves.append((group, node, group, float(low)))
            return node
        middle = (low + high) // 2
        nodes.append(())
        left, right = grow(group, first, low, middle), grow(group, first, middle + 1, high)
        threshold = float(maps.edges.thresholds[maps.edges.offsets[group] + middle])
        feature = int(maps.features[group])
        nodes[place] = (group, node, feature, "BRANCH_LEQ", threshold, left, right)
        return node

    for group, n_thresholds in enumerate(np.diff(maps.edges.offsets).tolist()):
        grow(group, len(nodes), 0, n_thresholds)
    of_nodes = (
        "treeids",
        "nodeids",
        "featureids",
        "modes",
        "values",
        "truenodeids",
        "falsenodeids",
    )
    of_leaves = ["treeids", "nodeids", "ids", "weights"]
    attributes = {f"nodes_{key}": list(own) for key, own in zip(of_nodes, zip(*nodes))}
    attributes |= {f"target_{key}": list(own) for key, own in zip(of_leaves, zip(*leaves))}
    return {**attributes, "nodes_missing_value_tracks_true": [1] * len(nodes)}


# ---------------------------------------------------------------- ferns


@_add_codes.register
def _(maps: FernMaps, builder: Builder, X: str) -> str:
    """Add comparisons, the hash of their outcomes, and the numbers of the cells."""
    columns = builder.add("Transpose", X, perm=[1, 0])
    levels = None if maps.sets is None else _add_level_cells(builder, columns, maps.sets)
    depths = np.diff(maps.offsets)
    width = -(-depths // _DEPTH_STEP) * _DEPTH_STEP
    order = np.argsort(width, kind="stable")
    runs = _runs(order, width[order])
    pieces = [_add_sums(builder, columns, levels, maps, ferns) for ferns in runs]
    sums = builder.add("Concat", *pieces, axis=0) if len(pieces) > 1 else pieces[0]
    raw = _add_top_bits(builder, sums, np.log2(maps.n_raw[order]))
    first = builder.constant(maps.raw_offsets[order][:, None])
    cells = builder.add("Add", builder.cast(raw, np.int64), first)
    flat = _add_look_up(builder, maps.numbers, cells)
    numbers = builder.reshape(builder.cast(flat, np.int64), maps.n_maps, -1)
    back = builder.constant(np.argsort(order))
    return builder.add("Transpose", builder.add("Gather", numbers, back, axis=0), perm=[1, 0])


def _add_look_up(builder: Builder, table: NDArray, places: str) -> str:
    """Look up many single numbers; the result is flat. Gather copies them slowly (measured)."""
    return builder.add("GatherElements", builder.constant(table), builder.reshape(places, -1))


def _runs(values: NDArray, keys: NDArray) -> list[NDArray]:
    """Divide values where their keys change."""
    return np.split(values, np.flatnonzero(np.diff(keys)) + 1)


def _add_level_cells(builder: Builder, columns: str, sets: LevelSets) -> str:
    """Add the cells of level numbers, of shape (n_features, n_rows): 0 where one is missing."""
    before = builder.constant(np.float32(-1.0))
    number = builder.add("Where", builder.add("IsNaN", columns), before, columns)
    most = builder.constant(sets.n_levels.astype(np.float32)[:, None])
    within = builder.add("Min", builder.add("Max", number, before), most)
    return builder.add("Add", builder.cast(within, np.int64), builder.constant(np.int64(1)))


def _add_sums(
    builder: Builder, columns: str, levels: str | None, maps: FernMaps, ferns: NDArray
) -> str:
    """Add the pieces of outcome times factor, of shape (n_ferns, 4, n_rows)."""
    depths = np.diff(maps.offsets)[ferns]
    width = int(-(-depths.max() // _DEPTH_STEP) * _DEPTH_STEP)
    place = np.arange(width)
    is_stump = place < depths[:, None]
    stumps = np.where(is_stump, maps.offsets[ferns][:, None] + place, 0)
    digits = np.where(is_stump, depths[:, None] - 1 - place, 0).astype(np.uint64)
    n_bits = np.log2(maps.n_raw[ferns]).astype(np.int64)
    # The outcome of a shallow fern is its cell: moved to the top, where a hash has it.
    shift = np.uint64(1) << (64 - n_bits).astype(np.uint64)
    factors = np.where(depths > n_bits, maps.factors[ferns], shift)
    products = np.where(is_stump, factors[:, None] << digits, np.uint64(0))
    weights = np.empty((ferns.size, len(_PIECES), width), dtype=np.float32)
    for piece, size in enumerate(_PIECES):
        weights[:, piece] = products & np.uint64(2**size - 1)
        products = products >> np.uint64(size)
    yes = _add_answers(builder, columns, levels, maps, stumps.ravel())
    answers = builder.reshape(yes, ferns.size, width, -1)
    return builder.add("MatMul", builder.constant(weights), answers)


def _add_answers(
    builder: Builder, columns: str, levels: str | None, maps: FernMaps, stumps: NDArray
) -> str:
    """Add the answers to stumps as float32, of shape (n_stumps, n_rows)."""
    has_set = np.isnan(maps.thresholds[stumps])
    asked, compared = stumps[has_set], stumps[~has_set]
    answers = []
    if compared.size:
        features = builder.constant(maps.features[compared].astype(np.int32))
        thresholds = builder.constant(maps.thresholds[compared, None].astype(np.float32))
        yes = builder.add("Greater", builder.add("Gather", columns, features, axis=0), thresholds)
        answers.append(builder.cast(yes, np.float32))
    if asked.size and levels is not None and maps.sets is not None:
        features = builder.constant(maps.features[asked].astype(np.int32))
        starts = builder.constant(maps.sets.starts[asked, None])
        cells = builder.add("Add", builder.add("Gather", levels, features, axis=0), starts)
        is_member = _add_look_up(builder, maps.sets.members.astype(np.uint8), cells)
        answers.append(builder.reshape(builder.cast(is_member, np.float32), asked.size, -1))
    if len(answers) == 1:
        return answers[0]
    place = np.empty(stumps.size, dtype=np.int64)
    place[np.concatenate([np.flatnonzero(~has_set), np.flatnonzero(has_set)])] = np.arange(
        stumps.size
    )
    together = builder.add("Concat", *answers, axis=0)
    return builder.add("Gather", together, builder.constant(place), axis=0)


def _add_top_bits(builder: Builder, sums: str, n_bits: NDArray) -> str:
    """Add the first bits of the sum of all pieces, of shape (n_ferns, n_rows)."""
    axis = builder.constant(np.array([1]))
    places = [builder.constant(np.array([place])) for place in range(len(_PIECES) + 1)]
    carry = builder.constant(np.float32(0.0))
    for piece, size in enumerate(_PIECES):
        own = builder.add("Slice", sums, places[piece], places[piece + 1], axis)
        total = builder.add("Add", builder.reshape(own, -1), carry)
        unit = builder.constant(np.float32(2.0**-size))
        carry = builder.add("Floor", builder.add("Mul", total, unit))
    whole = builder.constant(np.float32(2.0 ** _PIECES[-1]))
    rest = builder.add("Sub", total, builder.add("Mul", carry, whole))
    units = builder.constant((2.0 ** (n_bits - _PIECES[-1])).astype(np.float32)[:, None])
    by_fern = builder.reshape(rest, n_bits.size, -1)
    return builder.add("Floor", builder.add("Mul", by_fern, units))


# ---------------------------------------------------------------- projections


@_add_codes.register
def _(maps: ProjectionMaps, builder: Builder, X: str) -> str:
    return _add_codes(maps.stumps, builder, _add_projections(builder, X, maps))


def _add_projections(builder: Builder, X: str, maps: ProjectionMaps) -> str:
    """Add the projections as float32, of shape (n_rows, n_projections)."""
    centre, scale = (builder.constant(values) for values in (maps.centre, maps.scale))
    centred = builder.add("Sub", builder.cast(X, np.float64), centre)
    scaled = builder.add("Div", centred, scale)
    zero = builder.constant(np.float64(0.0))
    # Missing values count as the centre.
    inputs = builder.add("Where", builder.add("IsNaN", scaled), zero, scaled)
    if maps.chi2_steps:
        inputs = _add_chi2_map(builder, inputs, maps.chi2_steps)
    directions = maps.directions
    dense = directions if isinstance(directions, np.ndarray) else directions.toarray()
    return builder.cast(builder.add("MatMul", inputs, builder.constant(dense)), np.float32)


def _add_chi2_map(builder: Builder, values: str, steps: int) -> str:
    """Add what `chi2_map` computes: roots, and roots times waves of the logarithm."""
    zero, one = builder.constant(np.float64(0.0)), builder.constant(np.float64(1.0))
    positive = builder.add("Greater", values, zero)
    # New rows may have values below zero; the map has none for them.
    safe = builder.add("Where", positive, values, one)
    root, logarithm = builder.add("Sqrt", safe), builder.add("Log", safe)
    # At one the logarithm is zero, and only the factors remain.
    factors = chi2_map(np.ones((1, 1)), steps)[0]
    columns = [builder.add("Mul", root, builder.constant(factors[0]))]
    for step in range(1, steps):
        scaled = builder.add("Mul", root, builder.constant(factors[2 * step - 1]))
        angle = builder.add("Mul", logarithm, builder.constant(step * factors[0] ** 2))
        columns += [builder.add("Mul", scaled, builder.add(wave, angle)) for wave in ("Cos", "Sin")]
    chosen = [builder.add("Where", positive, column, zero) for column in columns]
    return builder.add("Concat", *chosen, axis=1)
