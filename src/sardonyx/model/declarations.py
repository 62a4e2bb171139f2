"""Which types a model declares for its values (`value_info`), and in which order.

`onnx_ir` writes a declaration for every value it knows something about, initializers included, in an order of
its own. What a model came with is remembered in the graph's meta, and `restore` brings it back.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from sardonyx.model.contents import pairs

__all__ = ["remember", "restore"]

_KEY = "sardonyx.value_info"  # in Graph.meta: the names declared, in order


def remember(proto: onnx.ModelProto, model: ir.Model) -> None:
    for stored, body in pairs(proto, model):
        names = {value.name: i for i, value in enumerate(stored.value_info)}
        if names:
            body.meta[_KEY] = names


def restore(proto: onnx.ModelProto, model: ir.Model) -> None:
    """Drop the declarations of initializers that were not there, and sort the others as they stood."""
    for stored, body in pairs(proto, model):
        order = body.meta.get(_KEY, {})
        initializers = {t.name for t in getattr(stored, "initializer", ())}
        kept = [
            value
            for value in stored.value_info
            if value.name in order or value.name not in initializers or value.metadata_props
        ]
        kept.sort(
            key=lambda value: order.get(value.name, len(order))
        )  # new ones last, as they came
        if [v.name for v in kept] != [v.name for v in stored.value_info]:
            copied = onnx.GraphProto(value_info=kept)
            stored.ClearField("value_info")
            stored.value_info.MergeFrom(copied.value_info)
