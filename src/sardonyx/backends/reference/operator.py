"""A node as its implementation sees it: operator, version, attributes, wanted outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import onnx
import onnx_ir as ir

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference.values import stored_tensor, tensor_array
from sardonyx.model.source import describe, source_line

__all__ = ["Call", "Operator", "Schema", "find_schema", "make_operator", "resolve_references"]


@dataclass(frozen=True)
class Operator:
    """One node of a compiled graph.

    Attributes:
        version: the opset version that the node runs under.
        since: the version of the operator's definition that this selects.
        attributes: plain Python values, with the defaults of the definition filled in.
        wanted: for each output, whether anything receives it.
        node: the node itself, every attribute reference resolved.
        label: `Op 'name'`, for people.
        source: the user's own source line, where the exporter recorded one.
    """

    domain: str
    name: str
    version: int
    since: int
    attributes: Mapping[str, Any]
    wanted: tuple[bool, ...]
    node: ir.Node
    label: str
    source: str | None


@dataclass(frozen=True, slots=True)
class Call:
    """One execution of an operator, under the guard of its run."""

    operator: Operator
    guard: Guard

    @property
    def since(self) -> int:
        return self.operator.since

    @property
    def outputs(self) -> int:
        return len(self.operator.wanted)

    def wants(self, index: int) -> bool:
        """Whether output `index` is received by anything."""
        return index < len(self.operator.wanted) and self.operator.wanted[index]

    def has(self, name: str) -> bool:
        """Whether an attribute is given or has a default."""
        return self.operator.attributes.get(name) is not None

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute's value; the definition's default; else `default`."""
        value = self.operator.attributes.get(name)
        return default if value is None else value

    def check(self) -> None:
        """Poll the deadline and the cancel flag; for loops inside one operator."""
        self.guard.check(self.operator.label)

    def claim(self, nbytes: int) -> None:
        """Refuse a scratch allocation that the budget has no room for."""
        self.guard.reserve(nbytes, self.operator.label)
        self.guard.release(nbytes)


Schema: TypeAlias = Any  # onnx.defs.OpSchema; its type stub lacks the members about functions


def find_schema(domain: str, name: str, version: int) -> Schema | None:
    """The operator's definition under an opset version; a deprecated one gives its last valid form."""
    try:
        schema = onnx.defs.get_schema(name, version, domain)
        if schema.deprecated and not schema.inputs and schema.since_version > 1:
            schema = onnx.defs.get_schema(name, schema.since_version - 1, domain)
    except onnx.defs.SchemaError:
        return None
    return schema


@cache
def _defaults(domain: str, name: str, since: int) -> Mapping[str, Any]:
    schema = onnx.defs.get_schema(name, since, domain)
    defaults = {}
    for key, attribute in schema.attributes.items():
        proto = attribute.default_value
        # A default tensor without a type is the schema's way to say that inputs decide.
        if proto.type == 0 or (proto.type == 4 and proto.t.data_type == 0):
            continue
        defaults[key] = plain_attribute(ir.from_proto(proto))
    return defaults


def plain_attribute(attribute: ir.Attr) -> Any:
    """An attribute as Python and numpy values; graphs stay graphs."""
    value = attribute.value
    if attribute.type == ir.AttributeType.TENSOR:
        return stored_tensor(value)
    if attribute.type == ir.AttributeType.TENSORS:
        return tuple(tensor_array(tensor) for tensor in value)
    if attribute.type == ir.AttributeType.STRING and isinstance(value, bytes):
        return value.decode("utf-8")
    return value


def make_operator(node: ir.Node, opsets: Mapping[str, int]) -> Operator:
    """Look a node's operator up under the versions that its graph imports."""
    version = node.version or opsets.get(node.domain)
    if version is None:
        # The domain of a model's own functions need not be imported to be understood.
        version = 1
    schema = find_schema(node.domain, node.op_type, version)
    return Operator(
        domain=node.domain,
        name=node.op_type,
        version=version,
        since=version if schema is None else schema.since_version,
        attributes=_plain_attributes(node, schema),
        wanted=tuple(bool(value.name) for value in node.outputs),
        node=node,
        label=describe(node),
        source=source_line(node),
    )


def resolve_references(node: ir.Node, bindings: Mapping[str, ir.Attr] | None) -> ir.Node:
    """A node whose attributes refer to those of the enclosing function, with the values put in.

    The copy stands alone, so that the graph does not count it as a user of its values.
    """
    if not any(attribute.is_ref() for attribute in node.attributes.values()):
        return node
    resolved = []
    for name, attribute in node.attributes.items():
        if not attribute.is_ref():
            resolved.append(attribute)
        elif bindings and attribute.ref_attr_name in bindings:
            bound = bindings[attribute.ref_attr_name or ""]
            resolved.append(ir.Attr(name, bound.type, bound.value))
    copy = ir.Node(
        node.domain,
        node.op_type,
        [None] * len(node.inputs),
        resolved,
        overload=node.overload,
        num_outputs=len(node.outputs),
        version=node.version,
        name=node.name,
        metadata_props=dict(node.metadata_props),
    )
    for mine, original in zip(copy.outputs, node.outputs, strict=True):
        mine.name = original.name
    return copy


def _plain_attributes(node: ir.Node, schema: Schema | None) -> Mapping[str, Any]:
    """Every attribute of a node, over the defaults of its definition."""
    given = {name: plain_attribute(attribute) for name, attribute in node.attributes.items()}
    if schema is None:
        return given
    return {**_defaults(schema.domain, schema.name, schema.since_version), **given}
