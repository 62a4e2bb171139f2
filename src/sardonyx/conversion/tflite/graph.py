"""The ONNX graph under construction, and what is known of its values.

total = graph.op("Add", x, graph.constant(1.0))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.free_names import FreeNames
from sardonyx.conversion.tflite.schema import Array

__all__ = ["OPSET", "Graph", "in_pairs", "onnx_type"]

OPSET = 21  # quantized int16 and int4

_MOST_KEPT_ONCE = 1 << 12  # bytes; larger constants are not compared


def onnx_type(dtype: Any) -> ir.TensorType:
    """Of elements as ONNX has them: complex numbers are pairs of floats, on an axis of their own."""
    kind = np.float32 if np.dtype(dtype) == np.complex64 else dtype
    return ir.TensorType(ir.DataType.from_numpy(np.dtype(kind)))


def in_pairs(array: Array) -> Array:
    """Complex numbers as pairs of floats; everything else as it is."""
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


class Graph:
    """Nodes and constants as they are written.

    Attributes:
        initializers: the constants of the model, in the outermost graph.
    """

    def __init__(self) -> None:
        self.initializers: list[ir.Value] = []
        self._blocks: list[list[ir.Node]] = [[]]
        self._known: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        self._free = FreeNames()

    def reserve(self, name: str) -> str:
        """The name, with a number behind it where it is taken."""
        return self._free.reserve(name)

    def value(self, name: str, dtype: Any, shape: Sequence[int | str | None] | None) -> ir.Value:
        """A value that nobody has computed: an input of the graph or of a body."""
        sizes = None if shape is None else ir.Shape(list(shape))
        return ir.Value(name=self.reserve(name), type=onnx_type(dtype), shape=sizes)

    def constant(self, value: Any, dtype: Any = None) -> ir.Value:
        """A constant; small ones that are equal are kept once. Floats are float32 unless told otherwise."""
        array = np.asarray(value, dtype)
        if dtype is None and array.dtype == np.float64 and not isinstance(value, np.ndarray):
            array = array.astype(np.float32)
        if array.nbytes > _MOST_KEPT_ONCE:
            return self.parameter("const", array)
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.parameter("const", array)
        return self._known[key]

    def parameter(self, name: str, array: Array) -> ir.Value:
        """A constant by a name of its own."""
        made = self.value(name, array.dtype, array.shape)
        dense = np.ascontiguousarray(array).reshape(array.shape)  # numpy gives a scalar an axis
        made.const_value = ir.tensor(dense, dtype=made.dtype, name=made.name)
        self.initializers.append(made)
        return made

    def known(self, value: ir.Value) -> Array | None:
        """The numbers of a constant."""
        return None if value.const_value is None else value.const_value.numpy()

    def op(self, kind: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """Write a node with one output."""
        (made,) = self.node(kind, inputs, 1, **attributes)
        return made

    def node(
        self, kind: str, inputs: Sequence[ir.Value | None], count: int, **attributes: Any
    ) -> Sequence[ir.Value]:
        """Write a node with this many outputs."""
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        name = self.reserve(kind)
        made = ir.node(kind, given, attributes, num_outputs=count, name=name)
        for index, output in enumerate(made.outputs):
            output.name = name if index == 0 else self.reserve(f"{kind}_output")
        self._blocks[-1].append(made)
        return made.outputs

    def cast(self, value: ir.Value, dtype: Any) -> ir.Value:
        wanted = ir.DataType.from_numpy(np.dtype(dtype))
        if value.dtype == wanted:
            return value
        made = self.op("Cast", value, to=int(wanted))
        made.type = ir.TensorType(wanted)
        return made

    def numbers(self, value: ir.Value) -> ir.Value:
        """Sizes, places and axes as ONNX has them: int64."""
        known = self.known(value)
        return self.cast(value, np.int64) if known is None else self.constant(known, np.int64)

    @contextmanager
    def block(self) -> Iterator[list[ir.Node]]:
        """Nodes written inside belong to a body."""
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()

    @property
    def nodes(self) -> list[ir.Node]:
        """Of the outermost graph."""
        return self._blocks[0]
