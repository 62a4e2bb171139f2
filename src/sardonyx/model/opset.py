"""What the ONNX schemas say: domains, versions, and each operator's signature."""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass

import onnx

__all__ = [
    "IR_VERSIONS",
    "Signature",
    "latest_opset",
    "nearest_domain",
    "nearest_operator",
    "normal_domain",
    "signature",
    "standard_domains",
]

IR_VERSIONS = range(1, onnx.IR_VERSION + 1)


@dataclass(frozen=True)
class Signature:
    """How an operator may be called at one opset version."""

    name: str
    since: int
    deprecated: bool
    inputs: tuple[int, int]  # fewest, most
    outputs: tuple[int, int]
    required_inputs: int  # leading inputs that may not be the empty name
    attributes: dict[str, int]  # name -> AttributeProto.AttributeType
    required_attributes: tuple[str, ...]


def normal_domain(domain: str) -> str:
    """The default domain has two spellings; the empty one is used here."""
    return "" if domain == "ai.onnx" else domain


@functools.cache
def standard_domains() -> dict[str, int]:
    """The domains of the standard, with the newest version of each that this onnx knows."""
    newest: dict[str, int] = {}
    released = [(normal_domain(d), v) for d, v in onnx.helper.OP_SET_ID_VERSION_MAP]
    schemas = [(s.domain, s.since_version) for s in onnx.defs.get_all_schemas_with_history()]
    for domain, version in released + schemas:
        newest[domain] = max(newest.get(domain, 0), version)
    return dict(sorted(newest.items()))


def latest_opset(domain: str) -> int | None:
    return standard_domains().get(normal_domain(domain))


@functools.lru_cache(4096)  # a model's own words are among the keys, so the cache has an end
def signature(domain: str, op_type: str, version: int) -> Signature | None:
    """The signature in force at an opset version, or None when the standard has no such operator."""
    try:
        schema = onnx.defs.get_schema(op_type, version, normal_domain(domain))
    except onnx.defs.SchemaError:
        return None
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    required = 0
    for i, parameter in enumerate(schema.inputs):
        if parameter.option == single:
            required = i + 1
    attributes = schema.attributes
    return Signature(
        name=op_type,
        since=schema.since_version,
        deprecated=schema.deprecated,
        inputs=(schema.min_input, schema.max_input),
        outputs=(schema.min_output, schema.max_output),
        required_inputs=required,
        attributes={name: int(a.type.value) for name, a in attributes.items()},  # type: ignore[attr-defined]
        required_attributes=tuple(sorted(name for name, a in attributes.items() if a.required)),
    )


@functools.cache
def _operators() -> dict[str, tuple[str, ...]]:
    names: dict[str, set[str]] = {}
    for schema in onnx.defs.get_all_schemas():
        names.setdefault(schema.domain, set()).add(schema.name)
    return {domain: tuple(sorted(ops)) for domain, ops in sorted(names.items())}


def nearest_operator(domain: str, op_type: str) -> str | None:
    """The standard operator whose name is nearest, as `Domain::Op`, or None."""
    domain = normal_domain(domain)
    for candidate in (domain, *(d for d in _operators() if d != domain)):
        found = difflib.get_close_matches(
            op_type[:200], _operators().get(candidate, ()), n=1, cutoff=0.7
        )
        if found:
            return f"{candidate}::{found[0]}" if candidate != domain and candidate else found[0]
    return None


def nearest_domain(domain: str) -> str | None:
    found = difflib.get_close_matches(domain[:200], [d for d in _operators() if d], n=1, cutoff=0.7)
    return found[0] if found else None
