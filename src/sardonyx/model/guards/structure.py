"""Does the model keep the rules of the specification? Checked on the parsed protobuf, before anything is built.

One work list, no recursion: every graph is checked once, with the names that are visible from outside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx

from sardonyx.errors import StructureError, UnsupportedError
from sardonyx.model.contents import Body, bodies_below, tensors_of
from sardonyx.model.guards.functions import Function, FunctionKey, check_expansion, function_of
from sardonyx.model.guards.nodes import check_attribute, check_name, check_node
from sardonyx.model.guards.sparse_check import check_sparse_tensor
from sardonyx.model.guards.tensors import Weights, check_tensor
from sardonyx.model.guards.value_types import check_type, check_value_info, holds_map
from sardonyx.model.limits import Limits
from sardonyx.model.names import name_of, quote
from sardonyx.model.opset import IR_VERSIONS, latest_opset, normal_domain

__all__ = ["check_structure"]

_A = onnx.AttributeProto
_CONTAINERS = frozenset(
    {
        _A.TENSOR,
        _A.TENSORS,
        _A.SPARSE_TENSOR,
        _A.SPARSE_TENSORS,
        _A.GRAPH,
        _A.GRAPHS,
        _A.TYPE_PROTO,
        _A.TYPE_PROTOS,
    }
)


@dataclass(frozen=True)
class Scope:
    """One graph or function body to check: where it sits, and what its nodes may see and call."""

    body: Body
    where: str
    depth: int
    opsets: Mapping[str, int]
    attributes: frozenset[str] | None  # of the enclosing function
    outer: tuple[
        tuple[Mapping[str, int], int], ...
    ] = ()  # enclosing names, and where each was left

    def sees(self, name: str) -> bool:
        """Is the name defined in an enclosing graph, before the node that holds this one?"""
        return any(names.get(name, end) < end for names, end in self.outer)


def check_structure(model: onnx.ModelProto, weights: Weights, limits: Limits) -> None:
    """Refuse a model that breaks the specification, naming the node or tensor and the rule.

    `weights` has the data that was lifted out of the message before it was parsed.
    """
    _check_ir_version(model)
    opsets = _opsets(model.opset_import, "model")
    if not opsets and model.ir_version >= 3:
        raise StructureError(
            "the model imports no opset; it must say which version of ONNX it uses.", where="model"
        )
    opsets = opsets or {"": 1}
    functions = _functions(model, opsets, limits)
    checker = _Checker(functions, weights, limits)
    todo = [
        Scope(f.proto, f"function {quote(key[1])}", 0, f.opsets, f.attributes)
        for key, f in functions.items()
    ]
    todo.append(Scope(model.graph, "graph", 0, opsets, None))
    written = 0
    while todo:
        scope = todo.pop()
        written += len(scope.body.node)
        limits.check("nodes", written, "nodes", scope.where)
        todo.extend(checker.check(scope))
    for function in functions.values():
        checker.check_defaults(function.proto)
    check_expansion(model.graph, functions, limits)
    _check_training(model)


def _check_ir_version(model: onnx.ModelProto) -> None:
    if model.ir_version not in IR_VERSIONS:
        raise UnsupportedError(
            f"IR version {model.ir_version}; this release reads {IR_VERSIONS[0]} to {IR_VERSIONS[-1]}.",
            where="model",
            value=model.ir_version,
            limit=IR_VERSIONS[-1],
            hint="Upgrade sardonyx, or export the model for an older version.",
        )


def _opsets(imports: Iterable[onnx.OperatorSetIdProto], where: str) -> dict[str, int]:
    opsets: dict[str, int] = {}
    for entry in imports:
        domain = normal_domain(entry.domain)
        shown = quote(domain or "ai.onnx")
        # Some exporters write one line for every piece that they joined: the same version says nothing new.
        if opsets.get(domain, entry.version) != entry.version:
            raise StructureError(
                f"the domain {shown} is imported twice, as version {opsets[domain]} and {entry.version}.",
                where=where,
                value=domain,
            )
        newest = latest_opset(domain)
        if entry.version < 1 or (newest is not None and entry.version > newest):
            raise UnsupportedError(
                f"opset {entry.version} of {shown}"
                + (f"; this release knows 1 to {newest}." if newest else " is not a version."),
                where=where,
                value=entry.version,
                limit=newest if newest is not None else 1,
                hint="Upgrade sardonyx, or export the model for an older opset.",
            )
        opsets[domain] = entry.version
    return opsets


def _functions(
    model: onnx.ModelProto, opsets: Mapping[str, int], limits: Limits
) -> dict[FunctionKey, Function]:
    functions: dict[FunctionKey, Function] = {}
    for proto in model.functions:
        where = f"function {quote(proto.name)}"
        for name in (proto.name, proto.domain, proto.overload, *proto.attribute):
            check_name(name, limits, where)
        if not proto.name:
            raise StructureError("a function has no name.", where="functions")
        key = (normal_domain(proto.domain), proto.name, proto.overload)
        if key in functions:
            raise StructureError("the function is defined twice.", where=where, value=proto.name)
        attributes = [*proto.attribute, *(a.name for a in proto.attribute_proto)]
        if len(set(attributes)) != len(attributes):
            raise StructureError("an attribute is declared twice.", where=where)
        functions[key] = function_of(proto, _opsets(proto.opset_import, where) or opsets)
    return functions


class _Checker:
    def __init__(
        self, functions: Mapping[FunctionKey, Function], weights: Weights, limits: Limits
    ) -> None:
        self._functions = functions
        self._weights = weights
        self._limits = limits

    def check(self, scope: Scope) -> list[Scope]:
        """Check one graph or function body; give back the subgraphs inside it, to be checked next."""
        self._limits.check("graph_depth", scope.depth, "subgraphs inside each other", scope.where)
        known = self._declared(scope)
        inner: list[tuple[onnx.GraphProto, str, int]] = []
        for node in scope.body.node:
            check_node(
                node, scope.opsets, self._functions, self._limits, in_function=scope.attributes
            )
            for name in node.input:
                if name and name not in known and not scope.sees(name):
                    raise _undefined(scope, node, name)
            for attribute in node.attribute:
                if attribute.type in _CONTAINERS:
                    found = self._contents(attribute, name_of(node))
                    inner += [(graph, where, len(known)) for graph, where in found]
            for name in node.output:
                if name in known or scope.sees(name):
                    raise StructureError(
                        f"its output {quote(name)} is already defined; every value may be assigned once.",
                        where=name_of(node),
                        value=name,
                    )
                if name:
                    known[name] = len(known)
        self._check_outputs(scope, known)
        for value in scope.body.value_info:
            check_value_info(value, self._limits, required=False)
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

    def check_defaults(self, function: onnx.FunctionProto) -> None:
        """The attributes that a function has defaults for."""
        where = f"function {quote(function.name)}"
        for attribute in function.attribute_proto:
            if attribute.ref_attr_name:
                raise StructureError("the default of an attribute is a reference.", where=where)
            check_name(attribute.name, self._limits, where)
            check_attribute(attribute, where, standard=True)
            if self._contents(attribute, where):
                raise UnsupportedError(
                    f"a graph as the default of attribute {quote(attribute.name)}.", where=where
                )

    def _declared(self, scope: Scope) -> dict[str, int]:
        """The names that a body starts with, in order: its inputs and initializers, each once."""
        known: dict[str, int] = {}
        body = scope.body
        for entry in body.input:
            self._add_name(known, entry if isinstance(entry, str) else entry.name, "input", scope)
            if not isinstance(entry, str):
                check_value_info(entry, self._limits, required=scope.depth == 0)
        if isinstance(body, onnx.FunctionProto):
            return known
        constants: dict[str, int] = {}
        for tensor in body.initializer:
            self._add_name(constants, tensor.name, "initializer", scope)
            check_tensor(
                tensor, self._limits, where=f"tensor {quote(tensor.name)}", weights=self._weights
            )
        for sparse in body.sparse_initializer:
            self._add_name(constants, sparse.values.name, "initializer", scope)
            check_sparse_tensor(
                sparse, self._limits, where=f"sparse tensor {quote(sparse.values.name)}"
            )
        for name in constants:
            known.setdefault(name, len(known))  # an initializer may be an input's default
        return known

    def _add_name(self, known: dict[str, int], name: str, what: str, scope: Scope) -> None:
        if not name:
            raise StructureError(f"an {what} has no name.", where=scope.where)
        check_name(name, self._limits, f"{what} {quote(name)}")
        if name in known:
            raise StructureError(
                f"the {what} {quote(name)} is defined twice.", where=scope.where, value=name
            )
        if scope.sees(name):
            raise StructureError(
                f"the {what} {quote(name)} hides a value of the same name outside the subgraph.",
                where=scope.where,
                value=name,
            )
        known[name] = len(known)

    def _check_outputs(self, scope: Scope, known: Mapping[str, int]) -> None:
        seen: set[str] = set()
        for entry in scope.body.output:
            name = entry if isinstance(entry, str) else entry.name
            if name in seen:
                raise StructureError(
                    f"the output {quote(name)} is listed twice.", where=scope.where, value=name
                )
            seen.add(name)
            if name not in known:
                outside = scope.sees(name)
                raise StructureError(
                    f"no node computes the output {quote(name)}"
                    + (" here; it belongs to the graph outside." if outside else "."),
                    where=scope.where,
                    value=name,
                    hint="Return it through an Identity node." if outside else None,
                )
            if not isinstance(entry, str):
                check_value_info(entry, self._limits, required=scope.depth == 0)

    def _contents(
        self, attribute: onnx.AttributeProto, owner: str
    ) -> list[tuple[onnx.GraphProto, str]]:
        """Check the tensors and types in an attribute, and give back its graphs."""
        where = f"attribute {quote(attribute.name)} of {owner}"
        tensors = [*attribute.tensors, *((attribute.t,) if attribute.HasField("t") else ())]
        for tensor in tensors:
            check_tensor(tensor, self._limits, where=where, weights=self._weights)
        sparse = [*attribute.sparse_tensors]
        if attribute.HasField("sparse_tensor"):
            sparse.append(attribute.sparse_tensor)
        for tensor in sparse:
            check_sparse_tensor(tensor, self._limits, where=where)
        types = [*attribute.type_protos, *((attribute.tp,) if attribute.HasField("tp") else ())]
        for declared in types:
            check_type(declared, self._limits, where, complete=False)
            if holds_map(declared):
                raise UnsupportedError("a map type as an attribute.", where=where)
        graphs = [*attribute.graphs, *((attribute.g,) if attribute.HasField("g") else ())]
        return [(graph, where) for graph in graphs]


def _check_training(model: onnx.ModelProto) -> None:
    """Training information is carried along unread; data files of its own would be lost on the way."""
    graphs = [g for info in model.training_info for g in (info.initialization, info.algorithm)]
    for graph in graphs:
        for body in bodies_below(graph):
            for tensor, where in tensors_of(body):
                if tensor.data_location == onnx.TensorProto.EXTERNAL:
                    raise UnsupportedError("external data in training information.", where=where)


def _undefined(scope: Scope, node: onnx.NodeProto, name: str) -> StructureError:
    producers = {o: n for n in scope.body.node for o in n.output if o}
    if name not in producers:
        return StructureError(
            f"nothing defines its input {quote(name)}.",
            where=name_of(node),
            value=name,
            hint="Export the model again.",
        )
    if _depends_on(producers, name, set(node.output)):
        return StructureError(
            f"it depends on its own output (through {quote(name)}); the graph has a cycle.",
            where=name_of(node),
            value=name,
        )
    return StructureError(
        f"it reads {quote(name)} before {name_of(producers[name])} computes it; nodes must stand in order.",
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
