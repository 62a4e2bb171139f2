"""Nodes that give back what they are given."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.ops.facts import Shape
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule

__all__ = ["RULES"]


@rule("Identity")
def identity(node: ir.Node, draft: Draft) -> Outcome:
    """Identity(x) is x."""
    value, output = node.inputs[0], node.outputs[0]
    if value is None:
        return None
    if output.is_graph_output() and not _may_take_name(node.graph, value):
        return None  # an output of the model needs a node that makes it
    return value


def _may_take_name(graph: ir.Graph | None, value: ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and producer.graph is graph and not value.is_graph_output()


@rule("Dropout")
def dropout_in_inference(node: ir.Node, draft: Draft) -> Outcome:
    """Dropout without training is x."""
    training = node.inputs[2] if len(node.inputs) > 2 else None
    if draft.opset < 7:
        if not draft.attribute(node, "is_test", 0):
            return Refusal("before opset 7, Dropout without is_test drops")
    elif training is not None and draft.number(training) is not False:
        return Refusal("training_mode is not known to be false")
    mask = node.outputs[1] if len(node.outputs) > 1 else None
    if mask is not None and (mask.uses() or mask.is_graph_output()):
        return Refusal("its mask is read")
    return [node.inputs[0], *([None] * (len(node.outputs) - 1))]


@rule("Cast", "CastLike")
def cast_to_same_type(node: ir.Node, draft: Draft) -> Outcome:
    """Cast to the type that x has is x."""
    value = node.inputs[0]
    known = draft.dtype(value)
    return value if known is not None and known == draft.dtype(node.outputs[0]) else None


@rule("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile")
def same_shape(node: ir.Node, draft: Draft) -> Outcome:
    """A view to the shape that x has is x."""
    value = node.inputs[0]
    shape = draft.shape(value)
    return value if shape is not None and shape == draft.shape(node.outputs[0]) else None


@rule("Transpose")
def transpose_in_order(node: ir.Node, draft: Draft) -> Outcome:
    """Transpose that leaves every axis where it is, is x."""
    value = node.inputs[0]
    rank = draft.rank(value)
    if rank is None:
        return None
    order = draft.attribute(node, "perm", list(range(rank))[::-1])
    return value if list(order) == list(range(rank)) else None


@rule("Concat", "Sum", "Mean", "Max", "Min")
def of_one_input(node: ir.Node, draft: Draft) -> Outcome:
    """Concat, Sum, Mean, Max or Min of one input is that input."""
    return node.inputs[0] if len(node.inputs) == 1 else None


@rule("Concat")
def empty_parts(node: ir.Node, draft: Draft) -> Outcome:
    """Concat without those of its parts that have no elements along its axis."""
    shape = draft.shape(node.outputs[0])
    if shape is None:
        return None
    axis = int(draft.attribute(node, "axis", 0)) % max(1, len(shape))
    kept = [v for v in node.inputs if not _is_empty(draft.shape(v), axis)]
    if len(kept) == len(node.inputs) or not kept:
        return None
    return draft.call("Concat", *kept, axis=axis)


def _is_empty(shape: Shape | None, axis: int) -> bool:
    return shape is not None and axis < len(shape) and shape[axis] == 0


@rule("Split")
def split_in_one(node: ir.Node, draft: Draft) -> Outcome:
    """Split into one part is x."""
    return node.inputs[0] if len(node.outputs) == 1 else None


@rule("Pad")
def pad_by_nothing(node: ir.Node, draft: Draft) -> Outcome:
    """Pad by zero on every side is x."""
    if draft.opset >= 11:
        pads = draft.integers(node.inputs[1]) if len(node.inputs) > 1 else None
    else:
        pads = draft.attribute(node, "pads", draft.attribute(node, "paddings"))
    return node.inputs[0] if pads is not None and not any(pads) else None


@rule("Slice")
def slice_of_all(node: ir.Node, draft: Draft) -> Outcome:
    """Slice from the first to the last element by steps of 1 is x."""
    value = node.inputs[0]
    shape = draft.shape(value)
    if shape is None or shape != draft.shape(node.outputs[0]):
        return None
    if draft.opset >= 10 and len(node.inputs) > 4 and node.inputs[4] is not None:
        steps = draft.integers(node.inputs[4])
        if steps is None or any(step != 1 for step in steps):
            return None
    return value


@rule("Resize", "Upsample")
def resize_by_one(node: ir.Node, draft: Draft) -> Outcome:
    """Resize by a factor of 1 in every direction is x."""
    value = node.inputs[0]
    shape = draft.shape(value)
    if shape is None or shape != draft.shape(node.outputs[0]):
        return None
    if draft.attribute(node, "coordinate_transformation_mode", "") == "tf_crop_and_resize":
        return Refusal("tf_crop_and_resize cuts a region out")
    at = 1 if node.op_type == "Upsample" or draft.opset < 11 else 2
    scales = node.inputs[at] if len(node.inputs) > at else None
    given = draft.constant(scales)
    if given is not None and given.size and any(given != 1):
        return None
    return value


@rule("Dropout", "GRU", "LSTM", "LayerNormalization", "MaxPool", "RNN", "Unique")
def unread_outputs(node: ir.Node, draft: Draft) -> Outcome:
    """Masks, indices, states and statistics that nothing reads are not given out."""
    count = len(node.outputs)
    while count > 1 and not _is_read(node.outputs[count - 1]):
        count -= 1
    if count == len(node.outputs) or not any(map(_is_read, node.outputs)):
        return None
    values = draft.copy(node, node.inputs, outputs=count)
    return [*values, *[None] * (len(node.outputs) - count)]


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


RULES = (
    identity,
    dropout_in_inference,
    cast_to_same_type,
    same_shape,
    transpose_in_order,
    of_one_input,
    empty_parts,
    split_in_one,
    pad_by_nothing,
    slice_of_all,
    resize_by_one,
    unread_outputs,
)
