"""Gather with constant indices, and parts of a shape."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule
from sardonyx.passes.rules.slices import Cut, cuts_of, slice_by

__all__ = ["RULES"]


@rule("Gather")
def gather_in_order(node: ir.Node, draft: Draft) -> Outcome:
    """Gather of indices at equal distances is a Slice, or all of x."""
    value, indices = node.inputs[0], draft.constant(node.inputs[1])
    shape = draft.shape(value)
    if indices is None or indices.ndim != 1 or indices.size < 1 or shape is None:
        return None
    axis = int(draft.attribute(node, "axis", 0)) % len(shape)
    size = shape[axis]
    if not isinstance(size, int):
        if np.unique(np.diff(indices)).size > 1:
            return None
        return Refusal(f"the size {size} of axis {axis} is not known: Slice would not check it")
    if not (-size <= indices.min() and indices.max() < size):
        return Refusal("an index is out of range")
    taken = np.where(indices < 0, indices + size, indices)
    step = int(taken[1] - taken[0]) if taken.size > 1 else 1
    if step == 0 or not np.array_equal(taken, taken[0] + step * np.arange(taken.size)):
        return None
    if taken.size == size and step == 1:
        return value
    if step != 1 and draft.opset < 10:
        return Refusal("before opset 10, Slice has no steps")
    end = int(taken[-1]) + (1 if step > 0 else -1)
    return slice_by(value, {axis: Cut(int(taken[0]), -size - 1 if end < 0 else end, step)}, draft)


@rule("Gather", "Slice")
def part_of_shape(node: ir.Node, draft: Draft) -> Outcome:
    """Gather or Slice of some neighbouring sizes of a shape is a Shape of these axes."""
    inner = draft.made_by(node.inputs[0], "Shape")
    if inner is None or draft.opset < 15:
        return None
    if any(draft.attribute(inner, name) is not None for name in ("start", "end")):
        return None
    rank = draft.rank(inner.inputs[0])
    if rank is None:
        return None
    if node.op_type == "Slice":
        cuts = cuts_of(node, draft)
        if cuts is None or set(cuts) != {0} or cuts[0].step != 1:
            return None
        start, end, _ = slice(cuts[0].start, cuts[0].end).indices(rank)
    else:
        indices = draft.constant(node.inputs[1])
        if indices is None or indices.ndim != 1 or indices.size == 0:
            return None
        taken = np.where(indices < 0, indices + rank, indices)
        start, end = int(taken[0]), int(taken[-1]) + 1
        if not np.array_equal(taken, np.arange(start, end)):
            return None
    if not 0 <= start < end <= rank:
        return None
    return draft.call("Shape", inner.inputs[0], start=start, end=end)


RULES = (part_of_shape, gather_in_order)
