"""Is a node called as its operator allows? Domain, arity and attributes against the schema."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from sardonyx.errors import LimitError, StructureError, UnsupportedError
from sardonyx.model.limits import Limits
from sardonyx.model.opset import (
    Signature,
    latest_opset,
    nearest_domain,
    nearest_operator,
    normal_domain,
    signature,
)

__all__ = ["attribute_key", "check_node", "name_of"]

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
_KIND = {field: _A.AttributeType.Name(number).lower() for number, field in _FIELD.items()}


def attribute_key(name: str) -> str:
    return name if len(name) <= 120 else name[:117] + "…"


def name_of(node: onnx.NodeProto) -> str:
    """`Conv 'layer1.0'`; a node without a name goes by its first output."""
    name = node.name or next((f"→ {o}" for o in node.output if o), "")
    domain = f"{node.domain}::" if normal_domain(node.domain) else ""
    return f"{domain}{attribute_key(node.op_type)} {attribute_key(name)!r}"


def check_node(
    node: onnx.NodeProto,
    opsets: Mapping[str, int],
    functions: Mapping[tuple[str, str, str], onnx.FunctionProto],
    limits: Limits,
    *,
    in_function: frozenset[str] | None,
) -> None:
    """Refuse a node that its operator does not allow. `in_function` has the attributes a body may refer to."""
    domain = normal_domain(node.domain)
    for text in (node.name, node.op_type, *node.input, *node.output):
        if len(text) > limits.name_bytes:
            raise LimitError(
                f"a name of {len(text):,} characters; the limit is {limits.name_bytes:,} (Limits.name_bytes).",
                where=name_of(node),
                value=len(text),
                limit=limits.name_bytes,
            )
    if not node.op_type:
        raise StructureError("the node has no op_type.", where=name_of(node))
    _check_attributes(node, in_function)
    function = functions.get((domain, node.op_type, node.overload))
    if function is not None:
        _check_call(node, function)
        return
    if domain not in opsets:
        near = nearest_domain(node.domain)
        raise StructureError(
            f"its domain {attribute_key(node.domain)!r} is not among the model's opset imports "
            f"({', '.join(repr(d or 'ai.onnx') for d in sorted(opsets))}).",
            where=name_of(node),
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
            hint="Export the model again with a newer exporter.",
        )
    _check_signature(node, found)


def _unknown(node: onnx.NodeProto, domain: str, version: int) -> UnsupportedError:
    newest = latest_opset(domain) or version
    later = signature(domain, node.op_type, newest)
    if later is not None:
        hint: str | None = f"It came with opset {later.since}; the model imports {version}."
    else:
        near = nearest_operator(domain, node.op_type)
        hint = f"Did you mean {near}?" if near else None
    return UnsupportedError(
        f"there is no operator {attribute_key(node.op_type)!r} in {domain or 'ai.onnx'} opset {version}.",
        where=name_of(node),
        value=node.op_type,
        hint=hint,
    )


def _check_call(node: onnx.NodeProto, function: onnx.FunctionProto) -> None:
    for what, have, most in (
        ("inputs", len(node.input), len(function.input)),
        ("outputs", len(node.output), len(function.output)),
    ):
        if have > most:
            raise StructureError(
                f"{have} {what}, but the function takes {most}.", where=name_of(node), value=have
            )
    given = {a.name for a in node.attribute}
    known = set(function.attribute) | {a.name for a in function.attribute_proto}
    for name in sorted(given - known):
        raise StructureError(
            f"attribute {attribute_key(name)!r} is not one of the function's.",
            where=name_of(node),
            value=name,
        )
    missing = sorted(set(function.attribute) - given - {a.name for a in function.attribute_proto})
    used = {a.ref_attr_name for n in function.node for a in n.attribute if a.ref_attr_name}
    for name in missing:
        if name in used and not _optional_everywhere(function, name):
            raise StructureError(
                f"the function's attribute {attribute_key(name)!r} is not given.",
                where=name_of(node),
                value=name,
            )


def _optional_everywhere(function: onnx.FunctionProto, name: str) -> bool:
    """An attribute may be left out of a call when every use of it in the body is itself optional."""
    opsets = {normal_domain(o.domain): o.version for o in function.opset_import}
    for node in function.node:
        for attribute in node.attribute:
            if attribute.ref_attr_name != name:
                continue
            domain = normal_domain(node.domain)
            found = (
                signature(domain, node.op_type, opsets.get(domain, 1))
                if latest_opset(domain)
                else None
            )
            if found and attribute.name in found.required_attributes:
                return False
    return True


def _check_signature(node: onnx.NodeProto, found: Signature) -> None:
    fewest, most = found.inputs
    if not fewest <= len(node.input) <= most:
        raise StructureError(
            f"{len(node.input)} inputs, but the operator takes {_range(fewest, most)}.",
            where=name_of(node),
            value=len(node.input),
        )
    for i, name in enumerate(node.input[: found.required_inputs]):
        if not name:
            raise StructureError(f"input {i} is required, but it is left out.", where=name_of(node))
    fewest, most = found.outputs
    if not fewest <= len(node.output) <= most:
        raise StructureError(
            f"{len(node.output)} outputs, but the operator gives {_range(fewest, most)}.",
            where=name_of(node),
            value=len(node.output),
        )
    given: dict[str, int] = {a.name: a.type for a in node.attribute}
    for name, kind in given.items():
        expected = found.attributes.get(name)
        if expected is None:
            known = ", ".join(sorted(found.attributes)) or "none"
            raise StructureError(
                f"{attribute_key(name)!r} is not an attribute of {node.op_type}-{found.since}.",
                where=name_of(node),
                value=name,
                hint=f"It has: {known}.",
            )
        if kind != expected:
            raise StructureError(
                f"attribute {name!r} is of type {_type_name(kind)}, but {node.op_type} takes {_type_name(expected)}.",
                where=name_of(node),
                value=_type_name(kind),
            )
    for name in found.required_attributes:
        if name not in given:
            raise StructureError(
                f"attribute {name!r} is required, but it is missing.", where=name_of(node)
            )


def _check_attributes(node: onnx.NodeProto, in_function: frozenset[str] | None) -> None:
    seen: set[str] = set()
    for attribute in node.attribute:
        name = attribute.name
        shown = f"attribute {attribute_key(name)!r}"
        if not name:
            raise StructureError("an attribute has no name.", where=name_of(node))
        if name in seen:
            raise StructureError(f"{shown} is given twice.", where=name_of(node), value=name)
        seen.add(name)
        if attribute.ref_attr_name:
            if in_function is None or attribute.ref_attr_name not in in_function:
                raise StructureError(
                    f"{shown} refers to {attribute_key(attribute.ref_attr_name)!r}, "
                    "which is no attribute of an enclosing function.",
                    where=name_of(node),
                )
            continue
        field = _FIELD.get(attribute.type)
        if field is None:
            raise StructureError(
                f"{shown} has the unknown type {attribute.type}.", where=name_of(node)
            )
        present = [f for f in _SINGULAR if attribute.HasField(f)]
        present += [f for f in _FIELD.values() if f not in _SINGULAR and len(getattr(attribute, f))]
        if field in _SINGULAR and field not in present:
            held = f"holds {_KIND[present[0]]}" if present else "holds nothing"
            raise StructureError(f"{shown} says {_KIND[field]}, but {held}.", where=name_of(node))
        for other in present:
            if other != field:
                raise StructureError(
                    f"{shown} says {_KIND[field]}, but holds {_KIND[other]}.", where=name_of(node)
                )


def _type_name(kind: int) -> str:
    return _KIND[_FIELD[kind]] if kind in _FIELD else "undefined"


def _range(fewest: int, most: int) -> str:
    if fewest == most:
        return str(fewest)
    return f"{fewest} or more" if most > 1 << 20 else f"{fewest} to {most}"
