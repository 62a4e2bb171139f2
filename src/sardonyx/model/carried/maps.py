"""Map types (what ZipMap gives): `onnx_ir` has none, so they ride along beside the values that have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
import onnx_ir as ir

from sardonyx.model.contents import Body, bodies_of, pairs
from sardonyx.model.guards.value_types import holds_map

__all__ = ["declared_type", "has_maps", "hide", "remember", "show"]

_KEY = "sardonyx.type"  # in Value.meta: the TypeProto of a value whose type holds a map

MapTypes = list[dict[str, onnx.TypeProto]]  # for each body of the model: the types by value name


def declared_type(value: ir.Value) -> onnx.TypeProto | None:
    """The map type that a value was declared with, or None."""
    found = value.meta.get(_KEY)
    return found if isinstance(found, onnx.TypeProto) else None


def has_maps(bodies: Iterable[Body]) -> bool:
    return any(holds_map(value.type) for body in bodies for value in _declarations(body))


def hide(model: onnx.ModelProto) -> MapTypes:
    """Take the map types out of the declarations."""
    hidden: MapTypes = []
    for body in bodies_of(model):
        found: dict[str, onnx.TypeProto] = {}
        for value in _declarations(body):
            if holds_map(value.type):
                found[value.name] = onnx.TypeProto()
                found[value.name].CopyFrom(value.type)
                value.ClearField("type")
        hidden.append(found)
    return hidden


def remember(proto: onnx.ModelProto, model: ir.Model, hidden: MapTypes) -> None:
    """Give the hidden types to the values that were built."""
    for (_, body), types in zip(pairs(proto, model), hidden, strict=True):
        if types:
            for value in _values(body):
                if value.name in types:
                    value.meta[_KEY] = types[value.name]


def show(proto: onnx.ModelProto, model: ir.Model) -> None:
    """Put the map types back into the declarations."""
    for stored, body in pairs(proto, model):
        types = {v.name: kind for v in _values(body) if (kind := declared_type(v)) is not None}
        if not types:
            continue
        for value in _declarations(stored):
            if value.name in types:
                value.type.CopyFrom(types.pop(value.name))
        for name, kind in types.items():
            stored.value_info.add(name=name, type=kind)


def _declarations(body: Body) -> Iterator[onnx.ValueInfoProto]:
    if isinstance(body, onnx.GraphProto):
        yield from body.input
        yield from body.output
    yield from body.value_info


def _values(body: ir.Graph | ir.Function) -> Iterator[ir.Value]:
    yield from body.inputs
    for node in body:
        yield from node.outputs
