"""Views: merged, with their shapes written as constants."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.ops.facts import Shape
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule

__all__ = ["RULES"]

_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def _target(source: Shape, target: Shape) -> list[int] | None:
    """How to write a shape in a Reshape: 0 where a size is the input's own, -1 for one other unknown.

    None where it cannot be said, or where -1 would not be unique: beside a size that may be 0.
    """
    found: list[int] = []
    inferred = 0
    for axis, size in enumerate(target):
        if isinstance(size, int):
            if size == 0:
                return None  # would mean: as in the input
            found.append(size)
        elif axis < len(source) and source[axis] == size:
            found.append(0)
        else:
            found.append(-1)
            inferred += 1
    if inferred > 1 or (inferred == 1 and 0 in found):
        return None
    return found


@rule("Reshape")
def constant_target(node: ir.Node, draft: Draft) -> Outcome:
    """Reshape to a shape that is computed at run time, but known over the input's, has a constant one."""
    value, shape = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
    if shape is None or draft.is_constant(shape) or draft.attribute(node, "allowzero", 0):
        return None
    source, target = draft.shape(value), draft.shape(node.outputs[0])
    if source is None or target is None:
        return None
    written = _target(source, target)
    if written is None:
        return Refusal(f"the shape {_text(target)} of {_text(source)} cannot be said by constants")
    return draft.call("Reshape", value, draft.ints(written))


def _text(shape: Shape) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


@rule(*_VIEWS)
def view_of_view(node: ir.Node, draft: Draft) -> Outcome:
    """Two views in a row are one."""
    inner = draft.made_by(node.inputs[0], *_VIEWS)
    if inner is None or inner.inputs[0] is None:
        return None
    source, target = draft.shape(inner.inputs[0]), draft.shape(node.outputs[0])
    if source is None or target is None:
        return None
    if source == target:
        return inner.inputs[0]
    if not draft.is_only_use(inner.outputs[0]):
        return Refusal("the shape between the two is read elsewhere too")
    written = _target(source, target)
    if written is None:
        return Refusal(f"the shape {_text(target)} of {_text(source)} cannot be said by constants")
    return draft.call("Reshape", inner.inputs[0], draft.ints(written))


@rule("Expand")
def constant_expand(node: ir.Node, draft: Draft) -> Outcome:
    """Expand to a shape that is known has a constant one."""
    shape = node.inputs[1]
    target = draft.shape(node.outputs[0])
    source = draft.shape(node.inputs[0])
    if draft.is_constant(shape) or target is None or source is None:
        return None
    # Expand broadcasts both ways: 1 leaves a size of the input as it is.
    padded: Shape = (1,) * (len(target) - len(source)) + source
    written = [1 if was == size else size for was, size in zip(padded, target, strict=True)]
    sizes = [size for size in written if isinstance(size, int)]
    if len(sizes) < len(written):
        return Refusal(f"the shape {_text(target)} depends on symbols")
    return draft.call("Expand", node.inputs[0], draft.ints(sizes))


@rule("Add", "Sub", "Mul", "Div", "Where", "Equal", "Less", "Greater", "And", "Or", "Pow")
def expand_before_broadcast(node: ir.Node, draft: Draft) -> Outcome:
    """Expand before an operator that broadcasts anyway goes."""
    inputs = list(node.inputs)
    for index, value in enumerate(inputs):
        inner = draft.made_by(value, "Expand")
        if inner is None:
            continue
        inputs[index] = inner.inputs[0]
        shape = draft.copy(node, inputs)[0]
        if draft.shape(shape) == draft.shape(node.outputs[0]) and draft.shape(shape) is not None:
            return shape
        draft.discard()
        inputs[index] = value
    return None


RULES = (constant_target, view_of_view, constant_expand, expand_before_broadcast)
