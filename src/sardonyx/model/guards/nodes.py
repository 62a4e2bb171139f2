"""Is a node called as its operator allows? Domain, arity and attributes against the schema."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from sardonyx.errors import StructureError, UnsupportedError
from sardonyx.model.guards.functions import Function, FunctionKey, check_call, key_of
from sardonyx.model.limits import Limits
from sardonyx.model.names import name_of, quote
from sardonyx.model.opset import (
    Signature,
    latest_opset,
    nearest_domain,
    nearest_operator,
    normal_domain,
    signature,
)

__all__ = ["check_attribute", "check_name", "check_node"]

_A = onnx.AttributeProto
_FIELD: dict[int, str] = {
    _A.FLOAT: "f",
    _A.INT: "i",
    _A.STRING: "s",
    _A.TENSOR: "t",
    _A.GRAPH: "g",
    _A.SPARSE_TENSOR: "sparse_tensor",
    _A.TYPE_PROTO: "tp",
    _A.FLOATS: "floats",
    _A.INTS: "ints",
    _A.STRINGS: "strings",
    _A.TENSORS: "tensors",
    _A.GRAPHS: "graphs",
    _A.SPARSE_TENSORS: "sparse_tensors",
    _A.TYPE_PROTOS: "type_protos",
}
_SINGULAR = ("f", "i", "s", "t", "g", "sparse_tensor", "tp")
_PLURAL = tuple(field for field in _FIELD.values() if field not in _SINGULAR)
_KIND = {field: _A.AttributeType.Name(number).lower() for number, field in _FIELD.items()}


def check_name(name: str, limits: Limits, where: str) -> None:
    limits.check("name_bytes", len(name.encode()), "bytes of name", where)


def check_node(
    node: onnx.NodeProto,
    opsets: Mapping[str, int],
    functions: Mapping[FunctionKey, Function],
    limits: Limits,
    *,
    in_function: frozenset[str] | None,
) -> None:
    """Refuse a node that its operator does not allow. `in_function` has the attributes a body may refer to."""
    for text in (node.name, node.op_type, node.domain, *node.input, *node.output):
        if len(text) * 4 > limits.name_bytes:  # else it is short enough, whatever its characters
            check_name(text, limits, name_of(node))
    if not node.op_type:
        raise StructureError("the node has no op_type.", where=name_of(node))
    _check_attributes(node, limits, in_function)
    for placed in node.device_configurations:
        if not placed.configuration_id or not all(s.tensor_name for s in placed.sharding_spec):
            raise StructureError(
                "a device configuration does not say which one it is, or which tensor it shards.",
                where=name_of(node),
            )
    function = functions.get(key_of(node))
    if function is not None:
        check_call(node, function)
        return
    domain = normal_domain(node.domain)
    if domain not in opsets:
        near = nearest_domain(node.domain)
        imports = ", ".join(quote(d or "ai.onnx") for d in sorted(opsets)[:8])
        raise StructureError(
            f"its domain {quote(node.domain or 'ai.onnx')} is not among the opset imports ({imports}).",
            where=name_of(node),
            value=node.domain,
            hint=f"Did you mean {near!r}?" if near and near != node.domain else None,
        )
    if latest_opset(domain) is None:
        return  # someone's own domain: may be loaded and looked at; running it needs an implementation
    found = signature(domain, node.op_type, opsets[domain])
    if found is None:
        raise _unknown(node, domain, opsets[domain])
    if found.deprecated:
        raise UnsupportedError(
            f"{node.op_type} is deprecated since opset {found.since}, and the model uses {opsets[domain]}.",
            where=name_of(node),
            value=opsets[domain],
            limit=found.since - 1,
            hint="Export the model again with a newer exporter.",
        )
    _check_signature(node, found)


def _unknown(node: onnx.NodeProto, domain: str, version: int) -> UnsupportedError:
    newest = latest_opset(domain) or version
    later = signature(domain, node.op_type, newest)
    hint: str | None = None
    if later is not None:
        hint = f"It came with opset {later.since}; the model imports {version}."
    elif near := nearest_operator(domain, node.op_type):
        hint = f"Did you mean {near}?"
    return UnsupportedError(
        f"there is no operator {quote(node.op_type)} in {domain or 'ai.onnx'} opset {version}.",
        where=name_of(node),
        value=node.op_type,
        hint=hint,
    )


def _check_signature(node: onnx.NodeProto, found: Signature) -> None:
    for what, have, (fewest, most) in (
        ("inputs", len(node.input), found.inputs),
        ("outputs", len(node.output), found.outputs),
    ):
        if not fewest <= have <= most:
            raise StructureError(
                f"{have:,} {what}; {node.op_type}-{found.since} has {_range(fewest, most)}.",
                where=name_of(node),
                value=have,
                limit=most if have > most else fewest,
            )
    for i, name in enumerate(node.input[: found.required_inputs]):
        if not name:
            raise StructureError(
                f"input {i} is required, but it is left out.", where=name_of(node), value=i
            )
    given: dict[str, int] = {a.name: a.type for a in node.attribute}
    for name, kind in given.items():
        expected = found.attributes.get(name)
        if expected is None:
            known = ", ".join(sorted(found.attributes)) or "none"
            raise StructureError(
                f"{quote(name)} is not an attribute of {node.op_type}-{found.since}.",
                where=name_of(node),
                value=name,
                hint=f"It has: {known}.",
            )
        if kind != expected:
            raise StructureError(
                f"attribute {name!r} is of type {_type_name(kind)}, but {node.op_type} takes {_type_name(expected)}.",
                where=name_of(node),
                value=_type_name(kind),
                limit=_type_name(expected),
            )
    for name in found.required_attributes:
        if name not in given:
            raise StructureError(
                f"attribute {name!r} is required, but it is missing.",
                where=name_of(node),
                value=name,
            )
    if found.name == "Constant" and len(given) != 1:
        raise StructureError(
            f"it has {len(given)} values ({', '.join(sorted(given)) or 'none'}); a constant has one.",
            where=name_of(node),
            value=len(given),
            limit=1,
        )


def _check_attributes(
    node: onnx.NodeProto, limits: Limits, in_function: frozenset[str] | None
) -> None:
    if not node.attribute:
        return
    where = name_of(node)
    standard = latest_opset(node.domain) is not None
    seen: set[str] = set()
    for attribute in node.attribute:
        name, reference = attribute.name, attribute.ref_attr_name
        if not name:
            raise StructureError("an attribute has no name.", where=where)
        if name in seen:
            raise StructureError(
                f"attribute {quote(name)} is given twice.", where=where, value=name
            )
        seen.add(name)
        check_name(name, limits, where)
        if reference and (in_function is None or reference not in in_function):
            raise StructureError(
                f"attribute {quote(name)} refers to {quote(reference)}, "
                "which is no attribute of an enclosing function.",
                where=where,
                value=reference,
            )
        check_attribute(attribute, where, standard=standard)


def check_attribute(attribute: onnx.AttributeProto, where: str, *, standard: bool) -> None:
    """Refuse an attribute that does not hold what it says. Only foreign operators may keep bytes in a string."""
    shown = f"attribute {quote(attribute.name)}"
    field = _FIELD.get(attribute.type)
    if field is None:
        raise StructureError(
            f"{shown} has the unknown type {attribute.type}.", where=where, value=attribute.type
        )
    present = [f for f in _SINGULAR if attribute.HasField(f)]
    present += [f for f in _PLURAL if len(getattr(attribute, f))]
    says = f"{shown} is a reference" if attribute.ref_attr_name else f"{shown} says {_KIND[field]}"
    for other in present:
        if other != field or attribute.ref_attr_name:
            raise StructureError(
                f"{says}, but holds {_KIND[other]}.", where=where, value=_KIND[other]
            )
    if field in _SINGULAR and not present and not attribute.ref_attr_name:
        raise StructureError(f"{says}, but holds nothing.", where=where)
    texts = [*attribute.strings, *((attribute.s,) if standard else ())]
    for text in texts:
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise StructureError(
                f"{shown} is not UTF-8 ({error.reason} at byte {error.start}).",
                where=where,
                value=text[:40],
            ) from None


def _type_name(kind: int) -> str:
    return _KIND[_FIELD[kind]] if kind in _FIELD else "undefined"


def _range(fewest: int, most: int) -> str:
    if fewest == most:
        return str(fewest)
    return f"{fewest} or more" if most > 1 << 20 else f"{fewest} to {most}"
