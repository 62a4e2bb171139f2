"""Operators that choose: the largest, the true, the distinct. Often data decides how many."""

from __future__ import annotations

import numpy as np

from sardonyx.ops.call import Call
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, as_array
from sardonyx.ops.lowerings.choosing import COMPRESS, NON_ZERO
from sardonyx.ops.lowerings.distinct import UNIQUE
from sardonyx.ops.lowerings.gathering import REVERSE_SEQUENCE
from sardonyx.ops.lowerings.generating import ONE_HOT, TRILU
from sardonyx.ops.lowerings.sorting import TOP_K
from sardonyx.ops.lowerings.suppression import NON_MAX_SUPPRESSION
from sardonyx.ops.plain import data_decides, flops_per_input, move_all, move_first
from sardonyx.sizes import Size

__all__ = ["OPERATORS"]


def top_k(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None), call.out(None, 1)]
    axis = call.axis(call.int_attr("axis", -1), len(shape))
    k: Size | None = call.int_attr("k") if call.version < 10 else call.scalar(1)
    size = shape[axis]
    if isinstance(k, int) and k < 0:
        call.fail(f"k is {k}; it cannot be negative")
    if isinstance(k, int) and isinstance(size, int) and k > size:
        call.fail(f"k is {k}, but dimension {axis} has only {size} elements")
    return [
        call.out((*shape[:axis], call.fresh(axis, i) if k is None else k, *shape[axis + 1 :]), i)
        for i in (0, 1)
    ]


def non_zero(call: Call) -> list[Facts]:
    """One column for each non-zero element; one row for each dimension."""
    shape, known = call.input(0).shape, as_array(call.input(0))
    if known is not None and known.ndim:
        found = np.stack(np.nonzero(known))
        return [call.out(found.shape, value=found.astype(object))]
    return [call.out((call.fresh(0) if shape is None else len(shape), call.fresh(1)))]


def compress(call: Call) -> list[Facts]:
    shape, axis = call.input(0).shape, call.attr("axis")
    chosen = as_array(call.input(1))
    count = None if chosen is None else int(np.count_nonzero(chosen))
    if axis is None:
        return [call.out((call.fresh(0) if count is None else count,))]
    if shape is None:
        return [call.out(None)]
    at = call.axis(int(axis), len(shape))
    kept = call.fresh(at) if count is None else count
    return [call.out((*shape[:at], kept, *shape[at + 1 :]))]


def unique(call: Call) -> list[Facts]:
    shape, axis = call.input(0).shape, call.attr("axis")
    if axis is None:
        count: Size = call.fresh(0)
        first = call.out((count,))
        length = call.input(0).elements
    else:
        if shape is None:
            return [call.out(None), *(call.out((call.fresh(0, i),), i) for i in (1, 2, 3))]
        at = call.axis(int(axis), len(shape))
        count = call.fresh(at)
        first = call.out((*shape[:at], count, *shape[at + 1 :]))
        length = shape[at]
    inverse = call.fresh(0, 2) if length is None else length
    return [first, call.out((count,), 1), call.out((inverse,), 2), call.out((count,), 3)]


def non_max_suppression(call: Call) -> list[Facts]:
    boxes, scores = call.need_rank(0, 3), call.need_rank(1, 3)
    if boxes is not None:
        call.agree(boxes[2], 4, "the last dimension of boxes and the 4 coordinates")
        if scores is not None:
            call.agree(boxes[0], scores[0], "batches of boxes and scores")
            call.agree(boxes[1], scores[2], "boxes and scores")
    return [call.out((call.fresh(0), 3))]


def one_hot(call: Call) -> list[Facts]:
    shape, depth = call.input(0).shape, call.whole(1)
    call.input(2)
    if shape is None:
        return [call.out(None)]
    axis = call.axis(call.int_attr("axis", -1), len(shape) + 1)
    if isinstance(depth, int) and depth < 0:
        call.fail(f"depth is {depth}; it cannot be negative")
    size = call.fresh(axis) if depth is None else depth
    return [call.out((*shape[:axis], size, *shape[axis:]))]


def reverse_sequence(call: Call) -> list[Facts]:
    shape, lengths = call.input(0).shape, call.need_rank(1, 1)
    if shape is not None:
        if len(shape) < 2:
            call.fail(f"input has rank {len(shape)}, but time and batch need two dimensions")
        batch = call.axis(call.int_attr("batch_axis", 1), len(shape), what="batch_axis")
        if lengths is not None:
            call.agree(shape[batch], lengths[0], "the batch and sequence_lens")
    return [call.same()]


def trilu(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is not None and len(shape) < 2:
        call.fail(f"input has rank {len(shape)}, but a matrix is needed")
    return [call.same()]


OPERATORS = (
    Operator("TopK", "opaque", top_k, None, flops_per_input(1), TOP_K),
    Operator("NonZero", "opaque", non_zero, None, flops_per_input(1), NON_ZERO),
    Operator("Compress", "opaque", compress, None, move_all, COMPRESS),
    Operator("Unique", "opaque", unique, None, flops_per_input(1), UNIQUE),
    Operator(
        "NonMaxSuppression",
        "opaque",
        non_max_suppression,
        None,
        data_decides,
        NON_MAX_SUPPRESSION,
    ),
    Operator("OneHot", "opaque", one_hot, None, move_first, ONE_HOT),
    Operator("ReverseSequence", "opaque", reverse_sequence, None, move_all, REVERSE_SEQUENCE),
    Operator("Trilu", "opaque", trilu, None, move_all, TRILU),
)
