"""Calls replaced by what they stand for: the model's own functions, and operators that ONNX defines by others.

expanded = expand(model, shapes)
expanded.model                    # without such calls; the model that was given is as it was
expanded.origins[node]            # the nodes of the given model that a node comes from
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import onnx
import onnx_ir as ir

from sardonyx.errors import ShapeError
from sardonyx.model.opset import normal_domain
from sardonyx.ops import find_operator
from sardonyx.ops.schema import find_schema
from sardonyx.passes.inference.functions import schema_body
from sardonyx.passes.preparing.inlining import (
    inline,
    is_affordable,
    name_nodes,
    nodes_of_model,
    objections,
)
from sardonyx.passes.shapes import Shapes, infer_shapes

__all__ = [
    "Border",
    "Copied",
    "Expanded",
    "copy_of",
    "expand",
    "has_native_code",
    "inferred",
    "nodes_of_model",
    "put_in_place",
    "values_of",
]

MARK = "sardonyx.node."  # metadata of a node's copy, followed by the number of the node
DOMAIN = "sardonyx.operators"  # of functions that stand for operators
Known: TypeAlias = Callable[[str, str, int], bool]  # domain, operator, version

STAGES = 4  # operators that are defined by operators that are defined by others, and so on


@dataclass(frozen=True)
class Border:
    """Where callers have something else than the model that is planned.

    Attributes:
        known: by their numbers, the strings of the model (`texts.number_texts`).
        texts: values that are such numbers, and strings for callers.
        squeezed: values that callers get without their dimensions of 1 (`squeezes.keep_ones`).
        notes: what is told of nodes that are planned otherwise for it.
    """

    known: tuple[str, ...] = ()
    texts: frozenset[ir.Value] = frozenset()
    squeezed: frozenset[ir.Value] = frozenset()
    notes: Mapping[ir.Node, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Expanded:
    """A model to plan.

    Attributes:
        shapes: of its values.
        origins: for its nodes, those of the given model: of a call and of what is inside of the function.
    """

    model: ir.Model
    shapes: Shapes
    origins: Mapping[ir.Node, tuple[ir.Node, ...]]
    border: Border = Border()


@dataclass(frozen=True)
class Copied:
    """A copy that may be changed, with the way from the original to it.

    Attributes:
        values: of the main graph.
        nodes: of the main graph and its subgraphs.
    """

    expanded: Expanded
    values: Mapping[ir.Value, ir.Value]
    nodes: Mapping[ir.Node, ir.Node]


def copy_of(expanded: Expanded) -> Copied:
    """A copy; what is known of its shapes is to be found out again."""
    model, border = expanded.model, expanded.border
    copy = model.clone()
    values = dict(zip(values_of(model.graph), values_of(copy.graph), strict=True))
    nodes = dict(zip(model.graph.all_nodes(), copy.graph.all_nodes(), strict=True))
    border = Border(
        border.known,
        frozenset(values[value] for value in border.texts),
        frozenset(values[value] for value in border.squeezed),
        {nodes[node]: note for node, note in border.notes.items()},
    )
    origins = {nodes[node]: expanded.origins[node] for node in nodes}
    return Copied(replace(expanded, model=copy, origins=origins, border=border), values, nodes)


def put_in_place(new: ir.Value, old: ir.Value) -> None:
    """All that read `old`, callers among them, read `new` by the same name."""
    name, old.name = old.name, f"{old.name}.replaced"
    new.name, new.type, new.shape = name, old.type, old.shape
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)


def inferred(copied: Copied, origins: Mapping[ir.Node, tuple[ir.Node, ...]]) -> Expanded | None:
    """The changed copy, with what is known of its shapes now; None where they contradict each other."""
    try:
        known = infer_shapes(copied.expanded.model)
    except ShapeError:
        return None
    return replace(copied.expanded, shapes=known, origins=origins)


def values_of(graph: ir.Graph) -> list[ir.Value]:
    """All values of a graph, without those of its subgraphs, each once."""
    outputs = (value for node in graph for value in node.outputs)
    return list(dict.fromkeys((*graph.inputs, *graph.initializers.values(), *outputs)))


def has_native_code(domain: str, operator: str, version: int) -> bool:
    """Whether nodes of an operator can be compiled."""
    found = find_operator(domain, operator, version)
    return found is not None and found.lower is not None


def expand(model: ir.Model, shapes: Shapes, known: Known = has_native_code) -> Expanded:
    """The model without calls that can be done without; the same one where there are none.

    Args:
        known: operators that stay as they are; others are written by these, where ONNX defines them so.
    """
    nodes = list(nodes_of_model(model))
    same = Expanded(model, shapes, {node: (node,) for node in nodes})
    if not model.functions and not any(_operators(model, known)):
        return same
    if not is_affordable(model):
        return same
    copy = model.clone()
    name_nodes(copy)
    for number, node in enumerate(nodes_of_model(copy)):
        node.metadata_props[f"{MARK}{number}"] = ""
    try:
        left = objections(copy)
        changed = inline(copy, lambda function: function.identifier() not in left)
        for _ in range(STAGES):
            if not _expand_operators(copy, infer_shapes(copy), known):
                break
            changed = True
        if not changed:
            return same
        found = infer_shapes(copy)
    except (ShapeError, ValueError, RuntimeError, ir.passes.PassError):
        return same  # what the inliner does not take, the reference backend does
    return Expanded(copy, found, {node: _origins(node, nodes) for node in copy.graph.all_nodes()})


def _origins(node: ir.Node, nodes: Sequence[ir.Node]) -> tuple[ir.Node, ...]:
    """What the marks say; they are taken off."""
    marks = [key for key in node.metadata_props if key.startswith(MARK)]
    for key in marks:
        del node.metadata_props[key]
    return tuple(nodes[number] for number in sorted(int(key[len(MARK) :]) for key in marks))


# Operators that ONNX defines by others


def _operators(model: ir.Model, known: Known) -> Iterator[tuple[ir.Node, onnx.defs.OpSchema]]:
    """Nodes whose operator is not known, and has a body."""
    versions = {normal_domain(domain): v for domain, v in model.opset_imports.items()}
    for node in model.graph.all_nodes():
        domain = normal_domain(node.domain)
        version = versions.get(domain)
        if version is None or known(domain, node.op_type, version):
            continue
        schema = find_schema(domain, node.op_type, version)
        if schema is not None and _has_body(schema):
            yield node, schema


def _has_body(schema: Any) -> bool:  # the package's stubs do not have these members
    return bool(schema.has_function or schema.has_context_dependent_function)


def _expand_operators(model: ir.Model, shapes: Shapes, known: Known) -> bool:
    """Turn operators into calls of functions made from their bodies, and inline those."""
    versions = {normal_domain(domain): v for domain, v in model.opset_imports.items()}
    found = False
    for number, (node, schema) in enumerate(list(_operators(model, known))):
        inputs = [None if value is None else shapes.of(value) for value in node.inputs]
        body = schema_body(node, schema, inputs)
        if body is None or not _means_the_same(body, versions, known) or not _is_closed(body):
            continue
        body.domain, body.name = DOMAIN, f"{node.op_type}_{number}"
        function = ir.serde.deserialize_function(body)
        for name, attribute in schema.attributes.items():
            if attribute.default_value.type and name not in node.attributes:
                node.attributes[name] = ir.serde.deserialize_attribute(attribute.default_value)
        function.opset_imports.clear()
        function.opset_imports.update(model.opset_imports)
        if len(node.outputs) != len(function.outputs):
            continue
        _drop_graphs(node)
        node.domain, node.op_type = function.domain, function.name
        model.functions[function.identifier()] = function
        found = True
    return found and inline(model, lambda function: function.domain == DOMAIN)


def _means_the_same(body: onnx.FunctionProto, versions: Mapping[str, int], known: Known) -> bool:
    """Whether every operator of the body is known, and the same in the model's operator sets."""
    meant = {normal_domain(one.domain): one.version for one in body.opset_import}
    for node in body.node:
        domain = normal_domain(node.domain)
        if domain not in versions:
            return False
        here = find_schema(domain, node.op_type, versions[domain])
        there = find_schema(domain, node.op_type, meant.get(domain, versions[domain]))
        if here is None or there is None or here.since_version != there.since_version:
            return False
        if not known(domain, node.op_type, versions[domain]) and node.op_type != "Constant":
            return False
    return True


def _is_closed(body: onnx.FunctionProto) -> bool:
    """Whether a body reads nothing but its inputs and its own values."""
    made = {"", *body.input, *(name for node in body.node for name in node.output)}
    return all(name in made for node in body.node for name in node.input)


def _drop_graphs(node: ir.Node) -> None:
    """Take off the subgraphs that have become nodes of the body; they come from the same place now."""
    for name, attribute in list(node.attributes.items()):
        if attribute.type == ir.AttributeType.GRAPH:
            for inner in attribute.as_graph().all_nodes():
                marks = (key for key in inner.metadata_props if key.startswith(MARK))
                node.metadata_props.update(dict.fromkeys(marks, ""))
            del node.attributes[name]
