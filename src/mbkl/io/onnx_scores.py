"""The scores of a model as ONNX operators: cells of all groups, then one look-up.

Values and thresholds are compared as float32, which gives exact cells. Tables are float32 and are
added in double precision.
"""

from __future__ import annotations

import hashlib
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.rows import to_float32
from mbkl.extras import require
from mbkl.maps.categories import LevelSets
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.predictor import TablePredictor

# The operators used here are the same from these versions to the latest.
OPSET = 15
ML_OPSET = 3
ML_DOMAIN = "ai.onnx.ml"
_IR_VERSION = 8
# Rows scored at a time: bounds the memory of ferns, and larger blocks are slower (measured).
_ROWS_AT_A_TIME = 128
# Ferns are computed together with depths rounded up to a multiple of this.
_DEPTH_STEP = 8
# ONNX operators of NumPy functions, where names differ.
_KINDS = {
    "absolute": "Abs",
    "divide": "Div",
    "floor_divide": "Div",
    "isnan": "IsNaN",
    "matmul": "MatMul",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "subtract": "Sub",
}


class Graph:
    """An ONNX graph under construction; all names in it begin with the prefix."""

    def __init__(self, prefix: str = "mbkl_") -> None:
        self.prefix = prefix
        self.nodes: list = []
        self._constants: dict[tuple, Any] = {}

    def add(self, kind: str, *inputs, domain: str = "", **attributes) -> Tensor:
        """Add an operator on tensors and constant arrays; return its output."""
        make_node = require("onnx", "onnx").helper.make_node
        names = [each.name if isinstance(each, Tensor) else self._constant(each) for each in inputs]
        output = self._name(kind)
        self.nodes.append(make_node(kind, names, [output], output, domain=domain, **attributes))
        return Tensor(self, output)

    def _constant(self, values) -> str:
        """Return the name of a constant; equal values share one constant."""
        values = np.asarray(values, order="C")
        key = values.dtype.str, values.shape, hashlib.sha256(values.tobytes()).digest()
        if key not in self._constants:
            make = require("onnx", "onnx").numpy_helper.from_array
            self._constants[key] = make(values, self._name("constant"))
        return self._constants[key].name

    def _name(self, kind: str) -> str:
        return f"{self.prefix}{len(self.nodes) + len(self._constants)}_{kind}"

    @property
    def constants(self) -> list:
        return list(self._constants.values())

    def rename(self, output: Tensor, name: str) -> None:
        """Give the output of an operator, which no other uses, another name."""
        (node,) = (one for one in self.nodes if one.output[0] == output.name)
        node.output[0] = name

    def proto(self, inputs: dict[str, tuple], outputs: dict[str, tuple]):
        """Return the graph; inputs and outputs are (dtype, shape) by name, None any length."""
        helper = require("onnx", "onnx").helper
        ends = [
            [
                helper.make_tensor_value_info(name, tensor_type(dtype), list(shape))
                for name, (dtype, shape) in side.items()
            ]
            for side in (inputs, outputs)
        ]
        return helper.make_graph(self.nodes, "mbkl", *ends, self.constants)

    def model(self, inputs: dict[str, tuple], outputs: dict[str, tuple]):
        helper = require("onnx", "onnx").helper
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML_DOMAIN, ML_OPSET)]
        model = helper.make_model(
            self.proto(inputs, outputs), opset_imports=versions, producer_name="mbkl"
        )
        model.ir_version = _IR_VERSION
        return model


class Tensor(NDArrayOperatorsMixin):
    """A symbolic array: NumPy functions of it add operators to the graph.

    Scalars must have the type of the tensor: Python floats are float64, Python integers int64.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __array_ufunc__(self, ufunc, method, *inputs):
        return self.graph.add(_KINDS.get(ufunc.__name__, ufunc.__name__.capitalize()), *inputs)

    def apply(self, kind: str, *inputs, **attributes) -> Tensor:
        return self.graph.add(kind, self, *inputs, **attributes)

    def cast(self, dtype) -> Tensor:
        return self.apply("Cast", to=tensor_type(dtype))

    def reshape(self, *shape: int) -> Tensor:
        return self.apply("Reshape", shape)

    def looked_up(self, table: NDArray) -> Tensor:
        """Return the flat entries of a table at these indices; Gather is slower here (measured)."""
        return self.graph.add("GatherElements", table, self.reshape(-1))


def tensor_type(dtype) -> int:
    """Return the number that ONNX has for a type of NumPy arrays."""
    return require("onnx", "onnx").helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def scores_of(X: Tensor, predictor: TablePredictor) -> Tensor:
    """Return the (n_rows, n_columns) scores of X, float32 of shape (n_rows, n_features)."""
    body, n_columns = Graph(f"{X.graph.prefix}rows_"), predictor.intercept.size
    rows = Tensor(body, f"{body.prefix}X")
    scores = _scores_of_block(rows, predictor)
    ends = {rows.name: (np.float32, (None, None))}, {scores.name: (np.float64, (None, n_columns))}
    shape: Any = X.apply("Shape")
    n_rows, width = shape.apply("Gather", [0]), shape.apply("Gather", [1])
    size = np.maximum(np.minimum(n_rows, [_ROWS_AT_A_TIME]), [1])
    # Round up to at least one block: Scan over no blocks would lose the shape.
    n_blocks = (np.maximum(n_rows, [1]) - [1]) // size + [1]
    pads = X.graph.add("Concat", [0], [0], n_blocks * size - n_rows, [0], axis=0)
    blocks = X.apply("Pad", pads).apply("Reshape", n_blocks.apply("Concat", size, width, axis=0))
    by_block = blocks.apply("Scan", body=body.proto(*ends), num_scan_inputs=1)
    return by_block.reshape(-1, n_columns).apply("Slice", [0], n_rows, [0])


def _scores_of_block(X: Tensor, predictor: TablePredictor) -> Tensor:
    cells, tables, n_before = [], [], 0
    for maps, table in predictor.families:
        if maps.n_groups:
            cells.append(_codes(maps, X) + (n_before + maps.cells.offsets[:-1]))
            tables.append(table)
            n_before += len(table)
    intercept = predictor.intercept[None, :]
    if not cells:
        shape = X.apply("Shape").apply("Gather", [0]).apply("Concat", [1], axis=0)
        return X.graph.add("Expand", intercept, shape)
    return _table_sums(np.concatenate(tables), X.graph.add("Concat", *cells, axis=1)) + intercept


def _table_sums(tables: NDArray, cells: Tensor) -> Tensor:
    """Return the sum of the table entries of each row; tables are float32 unless that overflows."""
    single = to_float32(tables)
    tables = single if np.isfinite(single).all() else tables
    if tables.shape[1] > 1:
        entries = cells.graph.add("Gather", tables, cells, axis=0).cast(np.float64)
        return entries.apply("ReduceSum", [1], keepdims=0)
    entries = cells.looked_up(tables[:, 0]).cast(np.float64).apply("Reshape", cells.apply("Shape"))
    return entries.apply("ReduceSum", [1], keepdims=1)


@singledispatch
def _codes(maps: Any, X: Tensor) -> Tensor:
    """Return the cell of each group of a family: int64 of shape (n_rows, n_groups).

    The cell is the number of thresholds below the value, found by bisection, and 0 for NaN.
    """
    offsets, thresholds = maps.edges.offsets, maps.edges.thresholds.astype(np.float32)
    values = X.apply("Gather", maps.features, axis=1)
    place: Any = offsets[:-1]
    n_left = np.diff(offsets)
    # All groups take the same number of steps; groups that are done take steps of zero.
    while n_left.max() > 1:
        step = n_left // 2
        place = _exceeds(values, thresholds, place + (step - 1)) * step + place
        n_left = n_left - step
    return _exceeds(values, thresholds, place) + (place - offsets[:-1])


def _exceeds(values: Tensor, thresholds: NDArray, place) -> Tensor:
    """Return 1 where a value exceeds its threshold, and 0 elsewhere."""
    return (values > values.graph.add("Gather", thresholds, place)).cast(np.int64)


# ---------------------------------------------------------------- ferns


@_codes.register
def _(maps: FernMaps, X: Tensor) -> Tensor:
    """Compare, hash the outcomes, and look up the numbers of the cells."""
    columns = X.apply("Transpose", perm=[1, 0])
    width = -(-np.diff(maps.offsets) // _DEPTH_STEP) * _DEPTH_STEP
    order = np.argsort(width, kind="stable")
    alike = np.split(order, np.flatnonzero(np.diff(width[order])) + 1)
    products = [_products(columns, maps, ferns, int(width[ferns[0]])) for ferns in alike]
    hashed = X.graph.add("Concat", *products, axis=0)
    n_bits = np.log2(maps.n_raw[order]).astype(np.uint64)[:, None]
    raw = hashed.apply("BitShift", 64 - n_bits, direction="RIGHT").cast(np.int64)
    flat = (raw + maps.raw_offsets[order][:, None]).looked_up(maps.numbers)
    numbers = flat.cast(np.int64).reshape(maps.n_maps, -1)
    return numbers.apply("Gather", np.argsort(order), axis=0).apply("Transpose", perm=[1, 0])


def _products(columns: Tensor, maps: FernMaps, ferns: NDArray, width: int) -> Tensor:
    """Return outcome times factor, whose top bits are the raw cell, of (n_ferns, n_rows)."""
    depths = np.diff(maps.offsets)[ferns]
    place = np.arange(width)
    is_stump = place < depths[:, None]
    stumps = np.where(is_stump, maps.offsets[ferns][:, None] + place, 0)
    digits = np.where(is_stump, depths[:, None] - 1 - place, 0).astype(np.uint64)
    n_bits = np.log2(maps.n_raw[ferns]).astype(np.int64)
    # In a shallow fern the outcome itself is the raw cell: shift it to the top bits, like a hash.
    shift = np.uint64(1) << (64 - n_bits).astype(np.uint64)
    factors = np.where(depths > n_bits, maps.factors[ferns], shift)
    weights = np.where(is_stump, factors[:, None] << digits, np.uint64(0))
    answers = _answers(columns, maps, stumps.ravel()).reshape(ferns.size, width, -1)
    return (weights[:, None, :] @ answers).reshape(ferns.size, -1)


def _answers(columns: Tensor, maps: FernMaps, stumps: NDArray) -> Tensor:
    """Return the answers to stumps as uint64, of shape (n_stumps, n_rows)."""
    has_set = np.isnan(maps.thresholds[stumps])
    order = np.argsort(has_set, kind="stable")
    compared, in_sets = np.split(stumps[order], [np.count_nonzero(~has_set)])
    answers = []
    if compared.size:
        values = columns.apply("Gather", maps.features[compared].astype(np.int32), axis=0)
        yes = values > maps.thresholds[compared, None].astype(np.float32)
        answers.append(yes.cast(np.uint64))
    if in_sets.size and maps.sets is not None:
        features = maps.features[in_sets].astype(np.int32)
        levels = _level_cells(columns, maps.sets).apply("Gather", features, axis=0)
        cells = levels + maps.sets.starts[in_sets, None]
        is_member = cells.looked_up(maps.sets.members.astype(np.uint8))
        answers.append(is_member.cast(np.uint64).reshape(in_sets.size, -1))
    if len(answers) == 1:
        return answers[0]
    together = columns.graph.add("Concat", *answers, axis=0)
    return together.apply("Gather", np.argsort(order), axis=0)


def _level_cells(columns: Tensor, sets: LevelSets) -> Tensor:
    """Return the cells of level numbers, of shape (n_features, n_rows); 0 for missing values."""
    before = np.float32(-1.0)
    number = np.isnan(columns).apply("Where", before, columns)
    within = np.minimum(np.maximum(number, before), sets.n_levels.astype(np.float32)[:, None])
    return within.cast(np.int64) + 1


# ---------------------------------------------------------------- projections


@_codes.register
def _(maps: ProjectionMaps, X: Tensor) -> Tensor:
    """Return the cells of the projections, as float32, among the thresholds of stumps."""
    scaled = (X.cast(np.float64) - maps.centre) / maps.scale
    # A missing value counts as the centre, which is 0 when scaled.
    inputs = np.isnan(scaled).apply("Where", 0.0, scaled)
    dense = sparse.csc_array(maps.directions).toarray()
    return _codes(maps.stumps, (inputs @ dense).cast(np.float32))
