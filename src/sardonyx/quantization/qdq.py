"""Writing quantized values as the standard does: QuantizeLinear and DequantizeLinear around float operators.

v ─ QuantizeLinear ─ DequantizeLinear ─┬─ Conv(·, DequantizeLinear(w), DequantizeLinear(b))
                                       └─ Add(·, …)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.quantization.grid import Array, Grid

__all__ = ["Writer"]


class Writer:
    """A copy of a model, with pairs put into it. Nodes and values are named by those of the original."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model.clone()
        self.model.meta.update(model.meta)
        graph = self.model.graph
        self._nodes: Mapping[ir.Node, ir.Node] = dict(zip(model.graph, graph, strict=True))
        pairs = [*zip(model.graph.inputs, graph.inputs, strict=True)]
        for node, twin in self._nodes.items():
            pairs.extend(zip(node.outputs, twin.outputs, strict=True))
        self._values: dict[ir.Value, ir.Value] = dict(pairs)
        self._names = {v.name for v in (*self._values.values(), *graph.initializers.values())}
        self._constants: dict[tuple[object, ...], ir.Value] = {}
        self._found: dict[ir.Value, Sequence[ir.Value]] = {}
        self._first = next(iter(graph), None)

    def node(self, node: ir.Node) -> ir.Node:
        """The copy's own of a node."""
        return self._nodes[node]

    def value(self, value: ir.Value) -> ir.Value:
        return self._values[value]

    def call(
        self, op: str, inputs: Sequence[ir.Value | None], name: str, **attributes: Any
    ) -> ir.Node:
        """A new node with one output, not yet in the graph."""
        node = ir.Node("", op, inputs, ir.convenience.convert_attributes(attributes))
        node.name = node.outputs[0].name = self.fresh(name)
        return node

    def replace(self, value: ir.Value, new: ir.Value) -> None:
        """From now on, this is what the copy has for a value of the original."""
        self._values[value] = new

    def pair(self, value: ir.Value, grid: Grid) -> ir.Value:
        """The value, quantized and dequantized."""
        twin = self._values[value]
        base = twin.name or "value"
        scale, zero = self._parameters(base, grid)
        steps = self._call("QuantizeLinear", [twin, scale, zero], f"{base}.quantized", grid)
        steps.outputs[0].type = ir.TensorType(grid.dtype)
        back = self._call(
            "DequantizeLinear", [steps.outputs[0], scale, zero], f"{base}.dequantized", grid
        )
        for node in (steps, back):
            node.outputs[0].shape = twin.shape
        back.outputs[0].type = twin.type
        self.insert_behind(twin, [steps, back])
        return back.outputs[0]

    def weights(self, name: str, steps: Array, grid: Grid) -> ir.Value:
        """Constant steps of a grid, dequantized in the graph; the same for all who ask the same."""
        key = (name, grid.dtype, grid.axis, grid.block, grid.scale.tobytes())
        known = self._constants.get(key)
        if known is None:
            stored = self.initializer(f"{name}.quantized", steps, grid.dtype)
            back = self._dequantize(stored, grid, name)
            assert self._first is not None
            self.model.graph.insert_before(self._first, [back])
            known = self._constants[key] = back.outputs[0]
        return known

    def dequantize_result(self, twin: ir.Node, name: str, steps: Array, grid: Grid) -> None:
        """Have a lookup read steps, and dequantize what it finds: its last axis is the table's."""
        old = twin.outputs[0]
        rank = None if old.shape is None else len(old.shape)
        whole = replace(grid, axis=None if grid.axis is None else -1 if rank is None else rank - 1)
        twin.replace_input_with(0, self.initializer(f"{name}.quantized", steps, grid.dtype))
        back = self._dequantize(old, whole, name)
        self.stand_in(old, back.outputs[0], [back])
        old.type = ir.TensorType(grid.dtype)

    def stand_in(self, old: ir.Value, new: ir.Value, nodes: Sequence[ir.Node]) -> None:
        """Have all others read a value that these new nodes make of it, or beside it, under its name."""
        new.type, new.shape = old.type, old.shape
        producer = old.producer()
        assert producer is not None
        reading = [(n, i) for n in nodes for i, value in enumerate(n.inputs) if value is old]
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        for node, number in reading:
            node.replace_input_with(number, old)
        old.name, new.name = self.fresh(f"{old.name}.before"), old.name
        self.model.graph.insert_after(producer, nodes)

    def quantized_at_run_time(self, value: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Steps, scale and zero of a value of the copy, by the range that it has in a run; once for all who ask."""
        known = self._found.get(value)
        if known is None:
            node = ir.Node("", "DynamicQuantizeLinear", [value], num_outputs=3)
            for output, part in zip(node.outputs, ("quantized", "scale", "zero"), strict=True):
                output.name = self.fresh(f"{value.name}.{part}")
            node.name = node.outputs[0].name
            self.insert_behind(value, [node])
            known = self._found[value] = node.outputs
        steps, scale, zero = known
        return steps, scale, zero

    def shared(self, name: str, array: Array, dtype: ir.DataType | None = None) -> ir.Value:
        """An initializer; the same one for all who ask by this name."""
        if (name,) not in self._constants:
            self._constants[(name,)] = self.initializer(name, array, dtype)
        return self._constants[(name,)]

    def insert_behind(self, value: ir.Value, nodes: Sequence[ir.Node]) -> None:
        """Put nodes where a value of the copy is first known."""
        producer = value.producer()
        if producer is not None:
            self.model.graph.insert_after(producer, nodes)
        else:
            assert self._first is not None
            self.model.graph.insert_before(self._first, nodes)

    def _dequantize(self, steps: ir.Value, grid: Grid, name: str) -> ir.Node:
        scale, zero = self._parameters(name, grid)
        back = self._call("DequantizeLinear", [steps, scale, zero], f"{name}.dequantized", grid)
        back.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
        back.outputs[0].shape = steps.shape
        return back

    def initializer(self, name: str, array: Array, dtype: ir.DataType | None = None) -> ir.Value:
        tensor = ir.tensor(np.asarray(array, order="C"), dtype=dtype, name=self.fresh(name))
        value = ir.Value(
            name=tensor.name,
            const_value=tensor,
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape(array.shape),
        )
        self.model.graph.register_initializer(value)
        return value

    def drop_unread(self) -> None:
        """Take out constants that nothing reads any more."""
        initializers = self.model.graph.initializers
        for name, value in list(initializers.items()):
            if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
                del initializers[name]

    def _parameters(self, base: str, grid: Grid) -> tuple[ir.Value, ir.Value]:
        return (
            self.initializer(f"{base}.scale", grid.scale),
            self.initializer(f"{base}.zero", grid.zero, grid.dtype),
        )

    def _call(self, op: str, inputs: list[ir.Value], name: str, grid: Grid) -> ir.Node:
        attributes: dict[str, int] = {}
        if grid.axis is not None:
            attributes["axis"] = grid.axis
        if grid.block:
            attributes["block_size"] = grid.block
        return self.call(op, inputs, name, **attributes)

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        found, number = name, 1
        while found in self._names:
            number += 1
            found = f"{name}.{number}"
        self._names.add(found)
        return found
