"""Model -> Plan."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.model.source import describe, source_line
from sardonyx.ops import find_operator
from sardonyx.ops.call import Call
from sardonyx.ops.facts import as_array
from sardonyx.ops.lowering import NotNative
from sardonyx.passes.shapes import Shapes
from sardonyx.plan.graph import Graph, Work
from sardonyx.plan.group import Group, group_nodes
from sardonyx.plan.plan import Constant, Place, Plan, PlannedNode, Slot, Step, Tensor
from sardonyx.plan.write import Argument, Scratch, Written, write_group

__all__ = ["make_plan"]


def make_plan(model: ir.Model, shapes: Shapes) -> Plan:
    """Plan a model whose every node runs native; NotNative says which does not, and why."""
    graph = read_graph(model, shapes)
    grouping = group_nodes(graph, ())
    written = [(group, write_group(graph, group, grouping.stored, {})) for group in grouping.groups]
    return Assembly(graph).plan(written)


def read_graph(model: ir.Model, shapes: Shapes) -> Graph:
    """The nodes that must run; what is known before a run needs none."""
    versions = {normal_domain(domain): v for domain, v in model.opset_imports.items()}
    constants = _constants(model, shapes)
    needed: set[ir.Value] = set(model.graph.outputs)
    works: list[Work] = []
    for node in reversed(list(model.graph)):
        if not any(value in needed and value not in constants for value in node.outputs):
            continue
        inputs = [None if v is None else shapes.of(v) for v in node.inputs]
        call = Call(node, inputs, versions.get(normal_domain(node.domain), 1))
        operator = find_operator(normal_domain(node.domain), node.op_type, call.version)
        if operator is None or operator.lower is None:
            raise NotNative(f"{node.op_type} has no native code")
        works.append(Work(node, call, tuple(shapes.of(v) for v in node.outputs), operator.lower))
        needed.update(v for v in node.inputs if v is not None and v not in constants)
    works.reverse()
    return Graph(model, shapes, constants, works)


def _constants(model: ir.Model, shapes: Shapes) -> dict[ir.Value, npt.NDArray[Any]]:
    graph = model.graph
    fed = set(graph.inputs)
    found: dict[ir.Value, npt.NDArray[Any]] = {}
    for value in graph.initializers.values():
        if value.const_value is not None and value not in fed:
            found[value] = value.const_value.numpy()
    for node in graph:
        for value in node.outputs:
            array = as_array(shapes.of(value)) if shapes.of(value).kind == "tensor" else None
            if array is not None:
                found[value] = array
    return found


class Assembly:
    """Numbers tensors, kernels, constants and slots while the steps are put in order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tensors: list[Tensor] = []
        self.constants: list[Constant] = []
        self.spans: list[list[int]] = []  # of each slot: first and last step
        self.kernels: dict[Any, int] = {}
        self.steps: list[Step] = []
        self.numbers: dict[ir.Value, int] = {}

    def plan(self, written: list[tuple[Group, Written]]) -> Plan:
        model = self.graph.model.graph
        inputs = [v for v in model.inputs if v.name not in model.initializers]
        fed = tuple(self._tensor(v, Place("input", n)) for n, v in enumerate(inputs))
        results = tuple(self._tensor(v, Place("output", n)) for n, v in enumerate(model.outputs))
        for group, one in written:
            self._step(group, one)
        slots = [Slot(0, first, last) for first, last in self.spans]
        for tensor in self.tensors:
            if tensor.place.kind == "slot":
                slot = slots[tensor.place.number]
                slots[tensor.place.number] = Slot(tensor.bytes, slot.first, slot.last)
        return Plan(
            fed,
            results,
            tuple(sorted(self.graph.shapes.input_symbols)),
            tuple(self.tensors),
            tuple(self.constants),
            tuple(slots),
            tuple(self.kernels),
            tuple(self.steps),
            tuple(
                PlannedNode(describe(n), n.op_type, True, "compiled", source_line(n)) for n in model
            ),
        )

    def _step(self, group: Group, written: Written) -> None:
        number = len(self.steps)
        kernel = self.kernels.setdefault(written.kernel, len(self.kernels))
        tensors = tuple(self._argument(argument, number) for argument in written.arguments)
        nodes = tuple(work.name for work in (group.root, *group.tail))
        self.steps.append(Step(kernel, tensors, written.kernel.symbols, nodes))

    def _argument(self, argument: Argument, step: int) -> int:
        if isinstance(argument, Scratch):
            place = Place("slot", len(self.spans))
            self.spans.append([step, step])
            return self._add(Tensor("", argument.dtype, (argument.size,), (0,), place))
        if argument not in self.numbers:
            if argument in self.graph.constants:
                self.constants.append(Constant(argument.name or ""))
                self._tensor(argument, Place("constant", len(self.constants) - 1))
            else:
                self._tensor(argument, Place("slot", len(self.spans)))
                self.spans.append([step, step])
        number = self.numbers[argument]
        place = self.tensors[number].place
        if place.kind == "slot":
            self.spans[place.number][1] = step
        return number

    def _tensor(self, value: ir.Value, place: Place) -> int:
        shape = self.graph.shape(value)
        order = tuple(range(len(shape)))
        number = self._add(Tensor(value.name or "", self.graph.dtype(value), shape, order, place))
        self.numbers[value] = number
        return number

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1
