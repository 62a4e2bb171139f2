"""Map types (what ZipMap gives): `onnx_ir` has none, so they ride along beside the values that have them."""

from __future__ import annotations

import onnx
import onnx_ir as ir

__all__ = ["declared_type", "has_maps", "hide", "remember", "show"]

_KEY = "sardonyx.type"  # in Value.meta: the TypeProto of a value whose type holds a map

MapTypes = dict[str, onnx.TypeProto]


def _holds_map(type_proto: onnx.TypeProto) -> bool:
    while True:
        kind = type_proto.WhichOneof("value")
        if kind == "map_type":
            return True
        if kind not in ("sequence_type", "optional_type"):
            return False
        type_proto = getattr(type_proto, kind).elem_type


def has_maps(graph: onnx.GraphProto) -> bool:
    return any(_holds_map(v.type) for v in (*graph.input, *graph.output, *graph.value_info))


def hide(graph: onnx.GraphProto) -> MapTypes:
    """Take the map types out of a graph's declarations; the result has them by value name."""
    found: MapTypes = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        if _holds_map(value.type):
            kept = onnx.TypeProto()
            kept.CopyFrom(value.type)
            found[value.name] = kept
            value.ClearField("type")
    return found


def remember(graph: ir.Graph, types: MapTypes) -> None:
    for value in (*graph.inputs, *graph.outputs):
        if value.name in types:
            value.meta[_KEY] = types[value.name]


def show(graph: onnx.GraphProto, model_graph: ir.Graph) -> None:
    """Put the map types back into the declarations of inputs and outputs."""
    types = {
        v.name: v.meta[_KEY] for v in (*model_graph.inputs, *model_graph.outputs) if _KEY in v.meta
    }
    for value in (*graph.input, *graph.output):
        if value.name in types:
            value.type.CopyFrom(types[value.name])


def declared_type(value: ir.Value) -> onnx.TypeProto | None:
    """The map type that a value was declared with, or None."""
    found = value.meta.get(_KEY)
    return found if isinstance(found, onnx.TypeProto) else None
