"""Which types a model declares for its values (`value_info`), and in which order.

`onnx_ir` writes a declaration for every value it knows something about, initializers included, in an order of
its own, and leaves out those of a graph's outputs. What a model came with is remembered in the graph's meta, and
`restore` brings it back.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from sardonyx.model.contents import Body, pairs

__all__ = ["remember", "restore"]

_KEY = "sardonyx.value_info"  # in Graph.meta: name -> place among the declarations


def remember(proto: onnx.ModelProto, model: ir.Model) -> None:
    for stored, body in pairs(proto, model):
        order = {value.name: i for i, value in enumerate(stored.value_info)}
        if order:
            body.meta[_KEY] = order


def restore(proto: onnx.ModelProto, model: ir.Model) -> None:
    """Declare what was declared, in the order it stood; new values come last."""
    for stored, body in pairs(proto, model):
        order: dict[str, int] = body.meta.get(_KEY, {})
        wanted = _wanted(stored, order)
        wanted.sort(key=lambda value: order.get(value.name, len(order)))
        if [v.name for v in wanted] != [v.name for v in stored.value_info]:
            copied = onnx.GraphProto(value_info=wanted)
            stored.ClearField("value_info")
            stored.value_info.MergeFrom(copied.value_info)


def _wanted(stored: Body, order: dict[str, int]) -> list[onnx.ValueInfoProto]:
    if isinstance(stored, onnx.FunctionProto):
        return list(stored.value_info)
    initializers = {tensor.name for tensor in stored.initializer}
    present = {value.name for value in stored.value_info}
    kept = [
        value
        for value in stored.value_info
        if value.name in order or value.name not in initializers or value.metadata_props
    ]
    return kept + [v for v in stored.output if v.name in order and v.name not in present]
