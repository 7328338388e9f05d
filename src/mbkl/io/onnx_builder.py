"""A graph of ONNX operators under construction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.extras import require

# Operators keep their meaning from here to the latest version.
OPSET = 15
ML_OPSET = 3
ML_DOMAIN = "ai.onnx.ml"
_IR_VERSION = 8


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

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes) -> str:
        """Add an operator with one output; return the name of that."""
        output = self._name(kind)
        self.operators.append(Operator(kind, list(inputs), output, domain, attributes))
        return output

    def constant(self, values) -> str:
        """Add a constant; return its name."""
        name = self._name("constant")
        self.constants[name] = np.asarray(values, order="C")
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
