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


_BROADCASTING = (
    *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Sum", "Mean", "Where"),
    *("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor"),
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "MatMul"),
)


@rule(*_BROADCASTING)
def expand_before_broadcast(node: ir.Node, draft: Draft) -> Outcome:
    """Expand, or Tile of axes of size 1, before an operator that broadcasts anyway goes."""
    if draft.opset < 8:
        return None  # some operators before it broadcast by an attribute, or not at all
    inputs = list(node.inputs)
    for index, value in enumerate(inputs):
        inner = draft.made_by(value, "Expand", "Tile")
        if inner is None or not _only_repeats(inner, node.op_type == "MatMul", draft):
            continue
        inputs[index] = inner.inputs[0]
        shape = draft.copy(node, inputs)[0]
        if draft.shape(shape) == draft.shape(node.outputs[0]) and draft.shape(shape) is not None:
            return shape
        draft.discard()
        inputs[index] = value
    return None


def _only_repeats(node: ir.Node, is_matrix: bool, draft: Draft) -> bool:
    """Whether broadcasting does what the node does: no axis that grows is longer than 1, or of a matrix."""
    source, target = draft.shape(node.inputs[0]), draft.shape(node.outputs[0])
    if source is None or target is None:
        return False
    if is_matrix and (len(source) < 2 or source[-2:] != target[-2:]):
        return False
    if node.op_type == "Expand":
        return True
    return all(was in (1, now) for was, now in zip(source, target, strict=True))


@rule("Reshape")
def reshape_of_view(node: ir.Node, draft: Draft) -> Outcome:
    """Reshape of a view is a Reshape of what the view shows."""
    inner = draft.made_by(node.inputs[0], *_VIEWS)
    target = draft.integers(node.inputs[1]) if draft.opset >= 5 else None
    if inner is None or target is None:
        return None
    if not draft.is_only_use(inner.outputs[0]):
        return None
    source, shown = draft.shape(inner.inputs[0]), draft.shape(inner.outputs[0])
    if not draft.attribute(node, "allowzero", 0):
        for axis, size in enumerate(target):
            if size != 0:
                continue
            if source is None or shown is None or axis >= min(len(source), len(shown)):
                return None
            if source[axis] != shown[axis]:
                return None
    return draft.copy(node, [inner.inputs[0], node.inputs[1]])[0]


@rule("Unsqueeze", "Squeeze")
def axes_together(node: ir.Node, draft: Draft) -> Outcome:
    """Two Unsqueezes, or two Squeezes, in a row are one."""
    inner = draft.made_by(node.inputs[0], node.op_type)
    if inner is None or not draft.is_only_use(inner.outputs[0]):
        return None
    first, second = _axes(inner, draft), _axes(node, draft)
    ranks = [draft.rank(inner.inputs[0]), draft.rank(inner.outputs[0]), draft.rank(node.outputs[0])]
    if first is None or second is None or any(rank is None for rank in ranks):
        return None
    small, middle, large = (rank or 0 for rank in ranks)
    if node.op_type == "Unsqueeze":
        new = {axis % large for axis in second}
        left = [axis for axis in range(large) if axis not in new]
        axes = sorted(new | {left[axis % middle] for axis in first})
    else:
        gone = {axis % small for axis in first}
        left = [axis for axis in range(small) if axis not in gone]
        axes = sorted(gone | {left[axis % middle] for axis in second})
    if draft.opset >= 13:
        return draft.call(node.op_type, inner.inputs[0], draft.ints(axes))
    return draft.call(node.op_type, inner.inputs[0], axes=axes)


def _axes(node: ir.Node, draft: Draft) -> list[int] | None:
    if draft.opset < 13:
        found = draft.attribute(node, "axes")
        return None if found is None else [int(axis) for axis in found]
    return draft.integers(node.inputs[1]) if len(node.inputs) > 1 else None


@rule("Tile")
def tile_by_ones(node: ir.Node, draft: Draft) -> Outcome:
    """Tile that repeats nothing is x."""
    repeats = draft.integers(node.inputs[1]) if draft.opset >= 6 else None
    return node.inputs[0] if repeats is not None and all(n == 1 for n in repeats) else None


RULES = (
    constant_target,
    view_of_view,
    reshape_of_view,
    axes_together,
    tile_by_ones,
    constant_expand,
    expand_before_broadcast,
)
