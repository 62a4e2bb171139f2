"""A model's own functions: how each may be called, and how large the model becomes when they are inlined.

A chain of functions that each call the last one twice is 1 KB of file and 2^n nodes of work, so the
expansion is counted, never carried out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx

from sardonyx.errors import StructureError
from sardonyx.model.contents import Body, bodies_below
from sardonyx.model.limits import Limits
from sardonyx.model.names import name_of, quote
from sardonyx.model.opset import normal_domain, signature

__all__ = ["Function", "FunctionKey", "check_call", "check_expansion", "function_of", "key_of"]

FunctionKey = tuple[str, str, str]  # domain, name, overload


@dataclass(frozen=True)
class Function:
    """A function of the model, and how it may be called."""

    proto: onnx.FunctionProto
    opsets: Mapping[str, int]
    attributes: frozenset[str]
    required: frozenset[str]  # without a default, and needed by a node of the body


def key_of(call: onnx.NodeProto) -> FunctionKey:
    return normal_domain(call.domain), call.op_type, call.overload


def function_of(proto: onnx.FunctionProto, opsets: Mapping[str, int]) -> Function:
    """How a function may be called; an attribute is required when a node needs it that cannot do without."""
    needed: set[str] = set()
    for node in _nodes(proto):
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                domain = normal_domain(node.domain)
                found = signature(domain, node.op_type, opsets.get(domain, 1))
                if found is not None and attribute.name in found.required_attributes:
                    needed.add(attribute.ref_attr_name)
    defaults = {a.name for a in proto.attribute_proto}
    return Function(
        proto,
        opsets,
        attributes=frozenset(proto.attribute) | defaults,
        required=frozenset(proto.attribute) & needed - defaults,
    )


def check_call(node: onnx.NodeProto, function: Function) -> None:
    """Refuse a call with more inputs, outputs or other attributes than the function has."""
    for what, have, most in (
        ("inputs", len(node.input), len(function.proto.input)),
        ("outputs", len(node.output), len(function.proto.output)),
    ):
        if have > most:
            raise StructureError(
                f"{have:,} {what}, but the function has {most:,}.",
                where=name_of(node),
                value=have,
                limit=most,
            )
    given = {a.name for a in node.attribute}
    for name in sorted(given - function.attributes):
        raise StructureError(
            f"{quote(name)} is not an attribute of the function.", where=name_of(node), value=name
        )
    for name in sorted(function.required - given):
        raise StructureError(
            f"the function's attribute {quote(name)} is not given.", where=name_of(node), value=name
        )


def check_expansion(
    graph: onnx.GraphProto, functions: Mapping[FunctionKey, Function], limits: Limits
) -> None:
    """Refuse functions that call themselves, and models whose expansion passes the limits."""
    calls: dict[FunctionKey, list[FunctionKey]] = {}
    sizes: dict[FunctionKey, int] = {}
    for key, function in functions.items():
        called = [key_of(node) for node in _nodes(function.proto)]
        sizes[key] = len(called)
        calls[key] = [callee for callee in called if callee in functions]
    total: dict[FunctionKey, int] = {}
    depth: dict[FunctionKey, int] = {}
    for key in _callees_first(calls):
        total[key] = sizes[key] + sum(total[c] for c in calls[key])
        depth[key] = 1 + max((depth[c] for c in calls[key]), default=0)
        where = f"function {quote(key[1])}"
        limits.check("function_depth", depth[key], "functions calling each other", where)
    expanded = sum(1 + total.get(key_of(node), 0) for node in _nodes(graph))
    limits.check("expanded_nodes", expanded, "nodes once the functions are inlined", "functions")


def _nodes(body: Body) -> Iterator[onnx.NodeProto]:
    return (node for inner in bodies_below(body) for node in inner.node)


def _callees_first(calls: Mapping[FunctionKey, list[FunctionKey]]) -> list[FunctionKey]:
    order: list[FunctionKey] = []
    left: dict[FunctionKey, bool] = {}  # present: entered; True: left again
    for root in calls:
        todo = [(root, iter(calls[root]))] if root not in left else []
        left.setdefault(root, False)
        while todo:
            key, rest = todo[-1]
            callee = next(rest, None)
            if callee is None:
                left[key] = True
                order.append(key)
                todo.pop()
            elif callee not in left:
                left[callee] = False
                todo.append((callee, iter(calls[callee])))
            elif not left[callee]:
                raise StructureError(
                    f"it calls itself (through {quote(key[1])}); ONNX functions cannot recurse.",
                    where=f"function {quote(callee[1])}",
                    value=callee[1],
                )
    return order
