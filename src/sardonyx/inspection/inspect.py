"""What is in a model and what one run of it costs: the bill, node by node and in all.

bill = inspect("bert.onnx")
bill.totals.macs                               # an expression: 85054464*batch*seq + …
inspect("bert.onnx", dims={"batch": 1, "seq": 128}).totals.macs      # a number
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from sardonyx.inspection.bill import (
    ControlFlow,
    Inspection,
    NodeRow,
    PortRow,
    Totals,
    WeightRow,
    add_up,
    bind,
)
from sardonyx.inspection.check import source_name
from sardonyx.model.external_data import MappedTensor
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load
from sardonyx.model.opset import normal_domain
from sardonyx.model.source import describe, source_line
from sardonyx.ops import Cost, Facts, cost_of
from sardonyx.passes.shapes import Shapes, infer_shapes
from sardonyx.runtime.declared_ports import port_of
from sardonyx.sizes import Size, check_given

__all__ = ["inspect"]

_WEIGHT = 64  # elements from which a Constant is a weight and not a number of the arithmetic
_CONTROL_FLOW = ("If", "Loop", "Scan", "SequenceMap")


def inspect(
    source: Source,
    *,
    dims: Mapping[str, int] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    base_dir: str | os.PathLike[str] | None = None,
) -> Inspection:
    """Describe a model: what it takes and gives, what it holds, and what running it costs.

    Args:
        source: whatever `sardonyx.load` takes.
        dims: values for symbolic dimensions; sizes that depend on others stay expressions.

    Raises:
        ModelError: the model does not load.
        ShapeError: its shapes contradict each other.
        InputError: `dims` names a dimension that the model does not have.
    """
    model = load(source, limits=limits, base_dir=base_dir)
    expanded = _inlined(model)
    shapes = infer_shapes(expanded)
    graph = expanded.graph
    dims = dict(dims or {})
    check_given(dims, shapes.input_symbols | shapes.data_symbols)
    nodes = tuple(_rows(graph, shapes, expanded.opset_imports, dims))
    return Inspection(
        name=source_name(source),
        file_bytes=_file_bytes(source),
        external_files=_external_files(model),
        ir_version=model.ir_version,
        producer=" ".join(filter(None, (model.producer_name, model.producer_version))),
        model_version=model.model_version or 0,
        opsets={domain or "ai.onnx": v for domain, v in sorted(model.opset_imports.items())},
        functions=tuple(sorted(_qualified(d, n) for d, n, _ in model.functions)),
        metadata=dict(model.metadata_props),
        inputs=tuple(
            _port(v, shapes, dims) for v in graph.inputs if v.name not in graph.initializers
        ),
        outputs=tuple(_port(v, shapes, dims) for v in graph.outputs),
        weights=_weights(model),
        operators=_operators(model),
        nodes=nodes,
        totals=_totals(nodes),
        dims=dims,
    )


def _inlined(model: ir.Model) -> ir.Model:
    """The model with every function call written out: a function costs what its body costs at each call."""
    if not model.functions:
        return model
    return InlinePass()(model.clone()).model


def _rows(
    graph: ir.Graph,
    shapes: Shapes,
    opsets: Mapping[str, int],
    dims: Mapping[str, int],
    inside: str | None = None,
) -> list[NodeRow]:
    """One row a node, in order; the nodes of a subgraph follow the node that owns it."""
    rows: list[NodeRow] = []
    for node in graph:
        outputs = [shapes.of(value) for value in node.outputs]
        cost = _cost(node, outputs, shapes, opsets)
        rows.append(
            NodeRow(
                name=node.name or next((v.name for v in node.outputs if v.name), ""),
                op=_qualified(node.domain, node.op_type),
                source=source_line(node),
                inside=inside,
                outputs=tuple(_facts_text(facts, dims) for facts in outputs),
                macs=bind(cost.macs, dims),
                flops=bind(cost.flops, dims),
                bytes_read=bind(cost.bytes_read, dims),
                bytes_written=bind(cost.bytes_written, dims),
            )
        )
        for attribute in node.attributes.values():
            if attribute.is_ref():
                continue
            if attribute.type == ir.AttributeType.GRAPH:
                rows += _rows(attribute.as_graph(), shapes, opsets, dims, describe(node))
            elif attribute.type == ir.AttributeType.GRAPHS:
                for subgraph in attribute.as_graphs():
                    rows += _rows(subgraph, shapes, opsets, dims, describe(node))
    return rows


def _cost(node: ir.Node, outputs: list[Facts], shapes: Shapes, opsets: Mapping[str, int]) -> Cost:
    domain = normal_domain(node.domain)
    if node.op_type in _CONTROL_FLOW and not domain:
        return Cost()  # its body has rows of its own
    inputs = [None if value is None else shapes.of(value) for value in node.inputs]
    return cost_of(node, inputs, outputs, opsets.get(domain, 1))


def _totals(nodes: tuple[NodeRow, ...]) -> Totals:
    bodies = {row.inside for row in nodes if row.inside is not None}
    return Totals(
        macs=add_up(row.macs for row in nodes),
        flops=add_up(row.flops for row in nodes),
        bytes_read=add_up(row.bytes_read for row in nodes),
        bytes_written=add_up(row.bytes_written for row in nodes),
        unknown=sum(1 for row in nodes if not row.known),
        control_flow=ControlFlow(len(bodies), sum(1 for row in nodes if row.inside is not None)),
    )


def _port(value: ir.Value, shapes: Shapes, dims: Mapping[str, int]) -> PortRow:
    """What a caller sees, with the sizes that inference found where it found any."""
    declared = port_of(value)
    facts = shapes.of(value)
    shape: tuple[Size | str | None, ...] | None = declared.shape
    if facts.kind == "tensor" and facts.shape is not None:
        shape = tuple(bind(size, dims) for size in facts.shape)
    return PortRow(declared.name, declared.type, shape)


def _facts_text(facts: Facts, dims: Mapping[str, int]) -> str:
    if facts.kind != "tensor" or facts.shape is None:
        return str(facts)
    shape = tuple(bind(size, dims) for size in facts.shape)
    return str(Facts(facts.kind, facts.dtype, shape))  # type: ignore[arg-type]


def _weights(model: ir.Model) -> tuple[WeightRow, ...]:
    """Weights by element type, the largest first; a tensor that two names share counts once.

    Initializers, and what exporters like Paddle's put into Constant nodes, from 64 elements on.
    """
    seen: set[int] = set()
    tensors: Counter[str] = Counter()
    elements: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    for tensor in _stored_tensors(model):
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        name = tensor.dtype.name.lower()
        tensors[name] += 1
        elements[name] += tensor.size
        stored[name] += tensor.nbytes if tensor.dtype != ir.DataType.STRING else 0
    names = sorted(tensors, key=lambda name: (-stored[name], name))
    return tuple(WeightRow(n, tensors[n], elements[n], stored[n]) for n in names)


def _stored_tensors(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None:
                yield value.const_value
    bodies: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for node in (n for body in bodies for n in body.all_nodes() if n.op_type == "Constant"):
        attribute = node.attributes.get("value")
        if attribute is not None and not attribute.is_ref() and attribute.value.size >= _WEIGHT:
            yield attribute.value


def _operators(model: ir.Model) -> dict[str, int]:
    """Nodes by operator as the model has them written, the most frequent first."""
    bodies: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    counted = Counter(_qualified(n.domain, n.op_type) for body in bodies for n in body.all_nodes())
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def _qualified(domain: str, name: str) -> str:
    domain = normal_domain(domain)
    return f"{domain}::{name}" if domain else name


def _file_bytes(source: Source) -> int | None:
    if isinstance(source, bytes):
        return len(source)
    if isinstance(source, str | os.PathLike) and Path(source).is_file():
        return Path(source).stat().st_size
    return None


def _external_files(model: ir.Model) -> dict[str, int]:
    """The data files beside the model, with their sizes."""
    locations = {
        str(value.const_value.location): len(value.const_value.file.data)
        for graph in model.graphs()
        for value in graph.initializers.values()
        if isinstance(value.const_value, MappedTensor)
    }
    return dict(sorted(locations.items()))
