"""Function calls: the body walked at each call site, with that site's facts and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir

from sardonyx.model.limits import DEFAULT_LIMITS
from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import Facts, fact_symbols, unknown
from sardonyx.ops.fallback import type_proto

if TYPE_CHECKING:
    from sardonyx.passes.inference.walk import Scope, Walk

__all__ = ["Calls", "call_function", "expand_schema", "schema_body"]


@dataclass
class Calls:
    """What earlier calls answered, and how much work they were.

    A chain of functions that each call the last one twice doubles at every link: equal calls are
    answered from memory, and nodes inside bodies are counted against a limit.
    """

    answers: dict[Any, list[Facts]] = field(default_factory=dict)
    nodes: int = 0


def call_function(
    walk: Walk,
    node: ir.Node,
    function: ir.Function,
    inputs: Sequence[Facts | None],
    scope: Scope,
) -> list[Facts]:
    """Facts about the outputs of a call."""
    count = len(node.outputs)
    calls = walk.calls
    calls.nodes += len(function)
    if scope.depth >= DEFAULT_LIMITS.function_depth or calls.nodes > DEFAULT_LIMITS.expanded_nodes:
        return [unknown()] * count
    bound = _bind(node, function, scope)
    given = [facts or unknown() for facts in inputs]
    given += [unknown()] * (len(function.inputs) - len(given))
    key = (function.identifier(), tuple(given), _attribute_key(bound))
    answer = calls.answers.get(key)
    if answer is None:
        inner = replace(
            scope,
            versions={normal_domain(d): v for d, v in function.opset_imports.items()},
            facts={},
            prefix=f"{scope.prefix}{node.outputs[0].name or node.name}/",
            bound=bound,
            depth=scope.depth + 1,
        )
        answer = walk.graph(function.graph, given, inner)
        # An answer with symbols of its own belongs to this call alone.
        if _symbols(answer) <= _symbols(given):
            calls.answers[key] = answer
    return [*answer[:count], *([unknown()] * (count - len(answer)))]


def _bind(node: ir.Node, function: ir.Function, scope: Scope) -> dict[str, ir.Attr]:
    """The function's defaults, then what the call says, itself perhaps bound one level up."""
    bound = {
        name: attribute
        for name, attribute in function.attributes.items()
        if attribute.value is not None
    }
    for name, attribute in node.attributes.items():
        if not attribute.is_ref():
            bound[name] = attribute
        elif scope.bound is not None and (attribute.ref_attr_name or "") in scope.bound:
            bound[name] = scope.bound[attribute.ref_attr_name or ""]
    return bound


def _attribute_key(bound: Mapping[str, ir.Attr]) -> tuple[Any, ...]:
    # Tensors and graphs are told apart by identity: they live as long as the model.
    plain = (int, float, str, bytes, tuple)
    return tuple(
        (name, attr.type, attr.value if isinstance(attr.value, plain) else id(attr.value))
        for name, attr in sorted(bound.items())
    )


def _symbols(facts: Sequence[Facts]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    return found.union(*map(fact_symbols, facts))


def expand_schema(
    walk: Walk,
    node: ir.Node,
    schema: onnx.defs.OpSchema,
    inputs: Sequence[Facts | None],
    found: Sequence[Facts],
    scope: Scope,
) -> Sequence[Facts]:
    """Through the operator's own function body, when it has one."""
    body = schema_body(node, schema, inputs)
    if body is None:
        return found
    function = ir.serde.deserialize_function(body)
    for name, attribute in schema.attributes.items():
        # The body may refer to attributes that the node leaves at their defaults.
        if attribute.default_value.type:
            function.attributes[name] = ir.serde.deserialize_attribute(attribute.default_value)
    answers = call_function(walk, node, function, inputs, scope)
    return [
        answer if answer.shape is not None or answer.kind != "tensor" else old
        for answer, old in zip(answers, found, strict=True)
    ]


def schema_body(
    node: ir.Node,
    schema: Any,  # the package's stubs do not have these members
    inputs: Sequence[Facts | None],
) -> onnx.FunctionProto | None:
    """The function that an operator is defined by, for a node with these inputs."""
    if schema.has_function:
        body: onnx.FunctionProto = schema.function_body
        return body
    if not schema.has_context_dependent_function:
        return None
    types = [b"" if f is None else type_proto(f, {}).SerializeToString() for f in inputs]
    proto = ir.serde.serialize_node(node).SerializeToString()
    text = schema.get_context_dependent_function(proto, types)
    return onnx.FunctionProto.FromString(text) if text else None
