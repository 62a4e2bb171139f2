"""Resize by sizes of which the first are the image's own: only the other axes are resized.

    size = Concat(Slice(Shape(x)), wanted)      wanted: two numbers that only a run knows
    y = Resize(x, , , size)                     →   Resize<axes = [2, 3]>(x, , , wanted)

So the batch and the channels of the result are known. Exporters write it the first way.
"""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.preparing.expand import Expanded, copy_of, inferred
from sardonyx.passes.shapes import Shapes

__all__ = ["resize_what_changes"]

SIZES = 3  # the input of Resize, from version 11 on


def resize_what_changes(expanded: Expanded) -> Expanded:
    """The model with fewer axes to resize; the same one where that helps nowhere."""
    graph, shapes = expanded.model.graph, expanded.shapes
    found = {node: parts for node in graph if (parts := _own_sizes(node, shapes))}
    if not found:
        return expanded
    copied = copy_of(expanded)
    origins = dict(copied.expanded.origins)
    for node, (inputs, axes) in found.items():
        twin = copied.nodes[node]
        listed = twin.inputs[SIZES]
        joined = None if listed is None else listed.producer()
        assert joined is not None, "it was one just now"
        concat = ir.Node("", "Concat", joined.inputs[inputs:], [ir.AttrInt64("axis", 0)])
        concat.outputs[0].name = f"{twin.outputs[0].name}.sizes"
        copied.expanded.model.graph.insert_before(twin, concat)
        origins[concat] = origins[joined]
        twin.replace_input_with(SIZES, concat.outputs[0])
        twin.attributes["axes"] = ir.AttrInt64s("axes", axes)
    return inferred(copied, origins) or expanded


def _own_sizes(node: ir.Node, shapes: Shapes) -> tuple[int, list[int]] | None:
    """How many inputs of the Concat are sizes of the image itself, and the axes that are left."""
    if node.op_type != "Resize" or normal_domain(node.domain) or "axes" in node.attributes:
        return None
    image, sizes = node.inputs[0], node.inputs[SIZES] if len(node.inputs) > SIZES else None
    policy = node.attributes.get("keep_aspect_ratio_policy")
    if image is None or sizes is None or (policy and policy.as_string() != "stretch"):
        return None
    joined, shape = sizes.producer(), shapes.of(image).shape
    if joined is None or joined.op_type != "Concat" or normal_domain(joined.domain):
        return None
    length = shapes.of(sizes).shape
    if shape is None or shapes.of(sizes).value is not None or length != (len(shape),):
        return None
    own = inputs = 0
    for value in joined.inputs:
        known = None if value is None else shapes.of(value).value
        if known is None or tuple(known.tolist()) != shape[own : own + known.size]:
            break
        own, inputs = own + known.size, inputs + 1
    return (inputs, list(range(own, len(shape)))) if 0 < own < len(shape) else None
