"""Operators that cut tensors apart, join them, and put margins around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.ops.call import Call
from sardonyx.ops.cuts import pad_plan, slice_length, slice_plan, slice_range
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape, Values
from sardonyx.ops.lowerings.centering import CENTER_CROP_PAD
from sardonyx.ops.lowerings.padding import PAD
from sardonyx.ops.lowerings.slicing import CONCAT, SLICE, SPLIT
from sardonyx.ops.plain import move_all, move_first, move_taken
from sardonyx.sizes import Expr, Size, ceil_div, max_of, min_of

__all__ = ["OPERATORS"]


# Concat


def concat(call: Call) -> list[Facts]:
    if not call.inputs:
        call.fail("there is nothing to join")
    shapes = [call.input(index).shape for index in range(len(call.inputs))]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return [call.out(None)]
    rank = len(known[0])
    if any(len(shape) != rank for shape in known):
        call.fail(f"inputs have the ranks {[len(shape) for shape in known]}, which must be equal")
    axis = call.axis(call.int_attr("axis", 1), rank)  # only Concat-1 has a default
    dims = list(known[0])
    for shape in known[1:]:
        for at, dim in enumerate(shape):
            if at == axis:
                dims[at] = dims[at] + dim
            elif dim is not dims[at]:
                dims[at] = call.agree(dims[at], dim, f"dimension {at} of the inputs")
    if len(known) < len(shapes):
        dims[axis] = call.fresh(axis)
    return [call.out(dims)]


def concat_values(call: Call, output: Facts) -> Values | None:
    values = [call.value(index) for index in range(len(call.inputs))]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return np.concatenate(known, axis=call.int_attr("axis", 1))


# Split


def split(call: Call) -> list[Facts]:
    shape, count = call.input(0).shape, len(call.node.outputs)
    if shape is None:
        return [call.out(None, index) for index in range(count)]
    axis = call.axis(call.int_attr("axis"), len(shape))
    sizes = _split_sizes(call, shape[axis], axis, count)
    outputs = [
        call.out((*shape[:axis], size, *shape[axis + 1 :]), index)
        for index, size in enumerate(sizes)
    ]
    value = call.value(0)
    if value is not None and all(isinstance(size, int) for size in sizes):
        cuts = np.cumsum([size for size in sizes if isinstance(size, int)])[:-1]
        parts = np.split(value, cuts, axis=axis)
        return [facts.with_value(part) for facts, part in zip(outputs, parts, strict=True)]
    return outputs


def _split_sizes(call: Call, size: Size, axis: int, count: int) -> list[Size]:
    given: Sequence[Size] | None = call.ints_attr("split")
    if given is None and call.has(1):
        given = call.sizes(1)  # Split-1 has them in the data's own type
        if given is None:
            return [call.fresh(axis, index) for index in range(count)]
    if given is None:
        return _even_split(call, size, count)
    if len(given) != count:
        call.fail(f"split has {len(given)} sizes for {count} outputs")
    if any(isinstance(part, int) and part < 0 for part in given):
        call.fail(f"split {list(map(str, given))} has a negative size")
    whole = sum(given[1:], given[0])
    call.agree(whole, size, f"the sum of split and dimension {axis}")
    return list(given)


def _even_split(call: Call, size: Size, count: int) -> list[Size]:
    """Equal parts; since opset 18 the last ones may be smaller, before it that was an error."""
    parts = call.int_attr("num_outputs", count)
    if parts != count:
        call.fail(f"num_outputs is {parts}, but the node has {count} outputs")
    if isinstance(size, int) and size % count and call.version < 18:
        call.fail(f"dimension of {size} does not split into {count} equal parts")
    if call.version < 18:
        part = size // count
        return [*([part] * (count - 1)), max_of(size - part * (count - 1), 0)]
    part = ceil_div(size, count)
    return [max_of(min_of(part, size - part * index), 0) for index in range(count)]


# Slice


def slice_(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    plan = slice_plan(call, len(shape))
    if plan is None:
        return [call.out(_slice_unknown(call, shape))]
    dims = list(shape)
    for axis, start, end, step in plan:
        if step == 0:
            call.fail(f"the step along axis {axis} is 0")
        length = slice_length(dims[axis], start, end, step)
        dims[axis] = call.fresh(axis) if length is None else length
    return [call.out(dims)]


def _slice_unknown(call: Call, shape: Shape) -> Shape:
    """Bounds are data; the axes that they belong to may still be known."""
    axes = call.integers(3) if call.has(3) else None
    if axes is None:
        return call.fresh_shape(len(shape))
    cut = call.axes(axes, len(shape))
    return tuple(call.fresh(axis) if axis in cut else dim for axis, dim in enumerate(shape))


def slice_values(call: Call, output: Facts) -> Values | None:
    value = call.value(0)
    if value is None:
        return None
    plan = slice_plan(call, value.ndim)
    if plan is None:
        return None
    for axis, start, end, step in plan:
        if any(isinstance(bound, Expr) for bound in (start, end, step)):
            return None
        value = value.take(slice_range(value.shape[axis], start, end, step), axis)
    return value


# Pad


def pad(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    plan = pad_plan(call, len(shape))
    if plan is None:
        return [call.out(_pad_unknown(call, shape))]
    dims = list(shape)
    for axis, begin, end in plan:
        padded: Size = shape[axis] + begin + end
        if isinstance(padded, int) and padded < 0:
            call.fail(
                f"pads {begin} and {end} take more than dimension {axis} of {shape[axis]} has"
            )
        if call.str_attr("mode", "constant") != "constant" and shape[axis] == 0 and padded != 0:
            call.fail(f"dimension {axis} is empty and has nothing to pad with")
        dims[axis] = padded
    return [call.out(dims)]


def _pad_unknown(call: Call, shape: Shape) -> Shape:
    axes = call.integers(3) if call.has(3) else None
    if axes is None:
        return call.fresh_shape(len(shape))
    padded = call.axes(axes, len(shape))
    return tuple(call.fresh(axis) if axis in padded else dim for axis, dim in enumerate(shape))


def center_crop_pad(call: Call) -> list[Facts]:
    shape, target = call.input(0).shape, call.vector(1)
    if shape is None:
        return [call.out(None)]
    axes = call.ints_attr("axes")
    found = call.axes(range(len(shape)) if axes is None else axes, len(shape))
    if target is None:
        return [
            call.out(call.fresh(axis) if axis in found else dim for axis, dim in enumerate(shape))
        ]
    if len(target) != len(found):
        call.fail(f"shape has {len(target)} entries for {len(found)} axes")
    sizes = dict(zip(found, target, strict=True))
    return [call.out(sizes.get(axis, dim) for axis, dim in enumerate(shape))]


OPERATORS = (
    Operator("Concat", "opaque", concat, concat_values, move_all, CONCAT),
    Operator("Split", "view", split, None, move_first, SPLIT),
    Operator("Slice", "view", slice_, slice_values, move_taken, SLICE),
    Operator("Pad", "opaque", pad, None, move_first, PAD),
    Operator("CenterCropPad", "opaque", center_crop_pad, None, move_first, CENTER_CROP_PAD),
)
