"""A subgraph as a model: in one piece, or every operator by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import onnx_ir as ir

from sardonyx.conversion.tflite.graph import OPSET, Graph, onnx_type
from sardonyx.conversion.tflite.schema import Tensor
from sardonyx.conversion.tflite.subject import Subject
from sardonyx.conversion.tflite.variables import KINDS
from sardonyx.conversion.tflite.walk import Walker
from sardonyx.passes.opset.convert import ir_version_for
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.runtime.folding import MAX_FOLDED_BYTES, fold_node

__all__ = ["Pieces", "assemble", "cut_apart"]


def assemble(subject: Subject, opset: int | None) -> ir.Model:
    """The file's operators as one model, cleaned up: what is known before a run is computed, transposes meet."""
    graph = Graph()
    for name in (*subject.inputs, *subject.outputs, *subject.left):
        graph.reserve(name)
    ports = []
    for name in subject.inputs:
        port = graph.value("port", subject.tensor(name).dtype, _declared(subject, name))
        port.name = name
        ports.append(port)
    begins = {each: graph.parameter(each.name, each.begin) for each in subject.variables}
    walker = Walker(graph, subject.model, subject.held_from, begins)
    results = walker.inline(subject.number, ports)
    subgraph = subject.model.subgraphs[subject.number]
    dtypes = [subgraph.tensors[index].dtype for index in subgraph.outputs]
    for variable in subject.carried:
        ports.append(begins[variable])
        results.append(walker.variables[variable])
        dtypes.append(variable.tensor.dtype)
    given = []
    names = (*subject.outputs, *subject.left)
    for value, name, dtype in zip(results, names, dtypes, strict=True):
        copy = graph.op("Identity", value)
        copy.name, copy.type = name, onnx_type(dtype)
        given.append(copy)
    model = _model(graph, ports, given)
    fold = partial(fold_node, most=MAX_FOLDED_BYTES)
    return optimize(model, Settings(2, opset=opset), evaluate=fold).model


def _declared(subject: Subject, name: str) -> list[int | str | None] | None:
    tensor = subject.tensor(name)
    if tensor.shape is None:
        return None
    axes = subject.dynamic.get(name, {})
    return [axes.get(axis, size) for axis, size in enumerate(tensor.sizes)]


def _model(graph: Graph, ports: Sequence[ir.Value], given: Sequence[ir.Value]) -> ir.Model:
    made = ir.Graph(
        ports,
        given,
        nodes=graph.nodes,
        initializers=[v for v in graph.initializers if v.uses() or v in ports],
        opset_imports={"": OPSET},
        name="tflite",
    )
    return ir.Model(made, ir_version=ir_version_for(OPSET))


@dataclass(frozen=True)
class Pieces:
    """Every operator by itself, between values that are fed and values that are answered.

    Attributes:
        model: reads a tensor from the input `in.N` and gives it as `out.N`.
        fed, made: the tensors' numbers, in order of the inputs and of the outputs.
        tensors: what the file says of those that are made.
    """

    model: ir.Model
    fed: tuple[int, ...]
    made: tuple[int, ...]
    tensors: Mapping[int, Tensor]


def cut_apart(subject: Subject) -> Pieces:
    """The operators of the subgraph, each on inputs of its own."""
    graph = Graph()
    walker = Walker(graph, subject.model, subject.held_from)
    subgraph = subject.model.subgraphs[subject.number]
    ports: dict[int, ir.Value] = {}
    given: dict[int, ir.Value] = {}
    for index, operator in enumerate(subgraph.operators):
        if operator.kind in KINDS:
            continue
        for number in operator.inputs:
            if number < 0 or number in ports:
                continue
            tensor = subgraph.tensors[number]
            if tensor.data is None and not tensor.variable:
                pairs = int(tensor.dtype.kind == "c")
                sizes = None if tensor.shape is None else [None] * (len(tensor.shape) + pairs)
                ports[number] = graph.value(f"in.{number}", tensor.dtype, sizes)
        results = walker.write(subject.number, index, ports, {})
        for number, value in zip(operator.outputs, results, strict=True):
            copy = graph.op("Identity", value)
            copy.name = graph.reserve(f"out.{number}")
            copy.type = onnx_type(subgraph.tensors[number].dtype)
            given[number] = copy
    tensors = {number: subgraph.tensors[number] for number in given}
    model = _model(graph, list(ports.values()), list(given.values()))
    return Pieces(model, tuple(ports), tuple(given), tensors)
