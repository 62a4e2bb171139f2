"""Does the model keep the rules of the specification? Checked on the parsed protobuf, before anything is built.

One work list, no recursion: every graph is checked once, with the names that are visible from outside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx

from sardonyx.errors import LimitError, StructureError, UnsupportedError
from sardonyx.model.functions import FunctionKey, check_expansion, nodes_below
from sardonyx.model.limits import Limits
from sardonyx.model.nodes import attribute_key, check_node, name_of
from sardonyx.model.opset import IR_VERSIONS, latest_opset, normal_domain
from sardonyx.model.tensors import check_sparse_tensor, check_tensor, data_type

__all__ = ["check_structure"]


@dataclass(frozen=True)
class Scope:
    """One graph to check: where it sits, and what its nodes may see and call."""

    graph: onnx.GraphProto | onnx.FunctionProto
    where: str
    depth: int
    opsets: Mapping[str, int]
    attributes: frozenset[str] | None  # of the enclosing function
    outer: tuple[
        tuple[Mapping[str, int], int], ...
    ] = ()  # an enclosing graph's names, and where it was left
    lifted: Mapping[int, memoryview] = field(default_factory=dict)

    def sees(self, name: str) -> bool:
        """Is the name defined in an enclosing graph, before the node that holds this one?"""
        return any(names.get(name, end) < end for names, end in self.outer)


def check_structure(
    model: onnx.ModelProto, lifted: Mapping[int, memoryview], limits: Limits
) -> None:
    """Refuse a model that breaks the specification, naming the node or tensor and the rule."""
    _check_ir_version(model)
    opsets = _opsets(model.opset_import, "model")
    if not opsets and model.ir_version >= 3:
        raise StructureError(
            "the model imports no opset; it must say which version of ONNX it uses.", where="model"
        )
    opsets = opsets or {"": 1}
    functions = _functions(model)
    todo = [Scope(model.graph, "graph", 0, opsets, None, lifted=lifted)]
    for key, function in functions.items():
        todo.append(_function_scope(key, function, opsets))
    written = 0
    while todo:
        scope = todo.pop()
        written += len(scope.graph.node)
        if written > limits.nodes:
            raise LimitError(
                f"more than {limits.nodes:,} nodes (Limits.nodes).",
                where=scope.where,
                value=written,
                limit=limits.nodes,
            )
        todo.extend(_check_graph(scope, functions, limits))
    check_expansion(nodes_below(model.graph.node), functions, limits)


def _check_ir_version(model: onnx.ModelProto) -> None:
    if model.ir_version not in IR_VERSIONS:
        raise UnsupportedError(
            f"IR version {model.ir_version}; this release reads {IR_VERSIONS[0]} to {IR_VERSIONS[-1]}.",
            where="model",
            value=model.ir_version,
            limit=IR_VERSIONS[-1],
            hint="Upgrade sardonyx, or export the model for an older version.",
        )


def _opsets(imports: object, where: str) -> dict[str, int]:
    opsets: dict[str, int] = {}
    for entry in imports:  # type: ignore[attr-defined]
        domain = normal_domain(entry.domain)
        shown = attribute_key(domain) or "ai.onnx"
        if domain in opsets:
            raise StructureError(
                f"the domain {shown!r} is imported twice.", where=where, value=shown
            )
        newest = latest_opset(domain)
        if entry.version < 1 or (newest is not None and entry.version > newest):
            raise UnsupportedError(
                f"opset {entry.version} of {shown!r}"
                + (f"; this release knows 1 to {newest}." if newest else " is not a version."),
                where=where,
                value=entry.version,
                limit=newest,
                hint="Upgrade sardonyx, or export the model for an older opset.",
            )
        opsets[domain] = entry.version
    return opsets


def _functions(model: onnx.ModelProto) -> dict[FunctionKey, onnx.FunctionProto]:
    functions: dict[FunctionKey, onnx.FunctionProto] = {}
    for function in model.functions:
        key = (normal_domain(function.domain), function.name, function.overload)
        if not function.name:
            raise StructureError("a function has no name.", where="functions")
        if key in functions:
            raise StructureError(
                "the function is defined twice.", where=f"function {attribute_key(function.name)!r}"
            )
        functions[key] = function
    return functions


def _function_scope(
    key: FunctionKey, function: onnx.FunctionProto, opsets: Mapping[str, int]
) -> Scope:
    where = f"function {attribute_key(key[1])!r}"
    own = _opsets(function.opset_import, where)
    attributes = [*function.attribute, *(a.name for a in function.attribute_proto)]
    if len(set(attributes)) != len(attributes):
        raise StructureError("an attribute is declared twice.", where=where)
    return Scope(function, where, 0, own or opsets, frozenset(attributes))


def _check_graph(
    scope: Scope, functions: Mapping[FunctionKey, onnx.FunctionProto], limits: Limits
) -> list[Scope]:
    """Check one graph or function body; give back the subgraphs inside it, to be checked next."""
    if scope.depth > limits.graph_depth:
        raise LimitError(
            f"subgraphs are nested more than {limits.graph_depth} deep (Limits.graph_depth).",
            where=scope.where,
            value=scope.depth,
            limit=limits.graph_depth,
        )
    known = _declared(scope, limits)
    inner: list[tuple[onnx.GraphProto, str, int]] = []
    for node in scope.graph.node:
        check_node(node, scope.opsets, functions, limits, in_function=scope.attributes)
        for name in node.input:
            if name and name not in known and not scope.sees(name):
                raise _undefined(scope, node, name)
        inner.extend(
            (graph, where, len(known)) for graph, where in _attribute_contents(node, limits)
        )
        for name in node.output:
            if name in known or scope.sees(name):
                raise StructureError(
                    f"its output {attribute_key(name)!r} is already defined; every value may be assigned once.",
                    where=name_of(node),
                    value=name,
                )
            if name:
                known[name] = len(known)
    _check_outputs(scope, known)
    return [
        Scope(
            graph,
            where,
            scope.depth + 1,
            scope.opsets,
            scope.attributes,
            (*scope.outer, (known, end)),
        )
        for graph, where, end in inner
    ]


def _declared(scope: Scope, limits: Limits) -> dict[str, int]:
    """The names that a graph starts with, in order: its inputs and initializers, each once."""
    known: dict[str, int] = {}
    graph = scope.graph
    if isinstance(graph, onnx.FunctionProto):
        for name in graph.input:
            _add_name(known, name, "input", scope, limits)
        return known
    for value in graph.input:
        _add_name(known, value.name, "input", scope, limits)
        if scope.depth == 0:
            _check_type(value)
    constants: dict[str, int] = {}
    for index, tensor in enumerate(graph.initializer):
        _add_name(constants, tensor.name, "initializer", scope, limits)
        where = f"tensor {attribute_key(tensor.name)!r}"
        check_tensor(tensor, limits, where=where, lifted=scope.lifted.get(index))
    for sparse in graph.sparse_initializer:
        _add_name(constants, sparse.values.name, "initializer", scope, limits)
        check_sparse_tensor(
            sparse, limits, where=f"sparse tensor {attribute_key(sparse.values.name)!r}"
        )
    for name in constants:
        known.setdefault(name, len(known))  # before IR version 4, an initializer is an input too
    return known


def _add_name(known: dict[str, int], name: str, what: str, scope: Scope, limits: Limits) -> None:
    if not name:
        raise StructureError(f"an {what} has no name.", where=scope.where)
    if len(name) > limits.name_bytes:
        raise LimitError(
            f"a name of {len(name):,} characters; the limit is {limits.name_bytes:,} (Limits.name_bytes).",
            where=f"{what} {attribute_key(name)!r}",
            value=len(name),
            limit=limits.name_bytes,
        )
    if name in known:
        raise StructureError(
            f"the {what} {attribute_key(name)!r} is defined twice.", where=scope.where, value=name
        )
    if scope.sees(name):
        raise StructureError(
            f"the {what} {attribute_key(name)!r} hides a value of the same name outside the subgraph.",
            where=scope.where,
            value=name,
        )
    known[name] = len(known)


def _check_type(value: onnx.ValueInfoProto) -> None:
    where = f"value {attribute_key(value.name)!r}"
    kind = value.type.WhichOneof("value")
    if kind is None:
        raise StructureError("it has no type.", where=where)
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(value.type, kind)
        data_type(tensor.elem_type, where)
        for dim in tensor.shape.dim:
            # Paddle's exporter writes -1 for an unknown dimension, and every runtime reads it so.
            if dim.HasField("dim_value") and dim.dim_value < -1:
                raise StructureError(
                    f"negative dimension {dim.dim_value}.", where=where, value=dim.dim_value
                )


def _check_outputs(scope: Scope, known: Mapping[str, int]) -> None:
    graph = scope.graph
    seen: set[str] = set()
    for entry in graph.output:
        name = entry if isinstance(entry, str) else entry.name
        if name in seen:
            raise StructureError(
                f"the output {attribute_key(name)!r} is listed twice.",
                where=scope.where,
                value=name,
            )
        seen.add(name)
        if name not in known and not scope.sees(name):
            raise StructureError(
                f"no node computes the output {attribute_key(name)!r}.",
                where=scope.where,
                value=name,
            )
        if scope.depth == 0 and not isinstance(entry, str):
            _check_type(entry)


def _attribute_contents(node: onnx.NodeProto, limits: Limits) -> list[tuple[onnx.GraphProto, str]]:
    """Check the tensors among a node's attributes, and give back its subgraphs."""
    graphs: list[tuple[onnx.GraphProto, str]] = []
    for attribute in node.attribute:
        where = f"attribute {attribute_key(attribute.name)!r} of {name_of(node)}"
        if attribute.HasField("t"):
            check_tensor(attribute.t, limits, where=where)
        for tensor in attribute.tensors:
            check_tensor(tensor, limits, where=where)
        if attribute.HasField("sparse_tensor"):
            check_sparse_tensor(attribute.sparse_tensor, limits, where=where)
        for sparse in attribute.sparse_tensors:
            check_sparse_tensor(sparse, limits, where=where)
        if attribute.HasField("g"):
            graphs.append((attribute.g, where))
        graphs.extend((graph, where) for graph in attribute.graphs)
    return graphs


def _undefined(scope: Scope, node: onnx.NodeProto, name: str) -> StructureError:
    shown = attribute_key(name)
    producers = {o: n for n in scope.graph.node for o in n.output if o}
    if name not in producers:
        return StructureError(
            f"nothing defines its input {shown!r}.",
            where=name_of(node),
            value=name,
            hint="Export the model again.",
        )
    if _depends_on(producers, name, set(node.output)):
        return StructureError(
            f"it depends on its own output (through {shown!r}); the graph has a cycle.",
            where=name_of(node),
            value=name,
        )
    return StructureError(
        f"it reads {shown!r} before {name_of(producers[name])} computes it; nodes must stand in order.",
        where=name_of(node),
        value=name,
    )


def _depends_on(producers: Mapping[str, onnx.NodeProto], start: str, targets: set[str]) -> bool:
    todo, seen = [start], {start}
    while todo:
        name = todo.pop()
        if name in targets:
            return True
        if name in producers:
            new = [i for i in producers[name].input if i and i not in seen]
            seen.update(new)
            todo.extend(new)
    return False
