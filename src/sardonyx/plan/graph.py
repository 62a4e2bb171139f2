"""The graph as planning sees it: nodes with their facts, entries and lowerings, and who reads what."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from sardonyx.loops.nodes import Dtype
from sardonyx.ops.call import Call
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowering import Lowering, NotNative, loop_dtype
from sardonyx.passes.shapes import Shapes

__all__ = ["Graph", "Work"]


@dataclass(frozen=True, eq=False)
class Work:
    """A node to be planned. Identity is the node's."""

    node: ir.Node
    call: Call
    outputs: tuple[Facts, ...]
    lowering: Lowering

    @property
    def name(self) -> str:
        return self.node.name or self.node.op_type


@dataclass(eq=False)
class Graph:
    """The nodes that must run, in order, with what is known about every value."""

    model: ir.Model
    shapes: Shapes
    constants: dict[ir.Value, npt.NDArray[Any]]
    works: list[Work] = field(default_factory=list)

    @cached_property
    def producer(self) -> dict[ir.Value, Work]:
        return {value: work for work in self.works for value in work.node.outputs}

    @cached_property
    def readers(self) -> dict[ir.Value, list[Work]]:
        found: dict[ir.Value, list[Work]] = {}
        for work in self.works:
            for value in dict.fromkeys(work.node.inputs):
                if value is not None:
                    found.setdefault(value, []).append(work)
        return found

    @cached_property
    def outputs(self) -> frozenset[ir.Value]:
        return frozenset(self.model.graph.outputs)

    def facts(self, value: ir.Value) -> Facts:
        return self.shapes.of(value)

    def shape(self, value: ir.Value) -> Shape:
        shape = self.facts(value).shape
        if shape is None:
            raise NotNative(f"the rank of {value.name!r} is not known before it runs")
        return shape

    def dtype(self, value: ir.Value) -> Dtype:
        return loop_dtype(self.facts(value).dtype)
