"""Operators that give the same elements another shape or order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.ops.broadcast import broadcast_shapes
from sardonyx.ops.call import Call
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape, Values, objects
from sardonyx.ops.lowerings.views import (
    EXPAND,
    IDENTITY,
    RELABEL,
    RESHAPE,
    SHAPE,
    SIZE,
    TILE,
    TRANSPOSE,
)
from sardonyx.ops.plain import free, move_first
from sardonyx.sizes import Expr, Size, at_least, equal_where_elements, exact_div, product

__all__ = ["OPERATORS", "concrete_shape"]


def concrete_shape(facts: Facts) -> tuple[int, ...] | None:
    """The shape when it is all numbers."""
    if facts.shape is None or not all(isinstance(dim, int) for dim in facts.shape):
        return None
    return tuple(dim for dim in facts.shape if isinstance(dim, int))


def reshaped_values(call: Call, output: Facts) -> Values | None:
    """The input's elements in the output's shape."""
    value, shape = call.value(0), concrete_shape(output)
    if value is None or shape is None or int(np.prod(shape)) != value.size:
        return None
    return value.reshape(shape)


# Reshape


def reshape(call: Call) -> list[Facts]:
    target = reshape_target(call)
    shape = call.input(0).shape
    if target is None:
        listed = call.shape(1)
        if listed is not None and len(listed) == 1 and isinstance(listed[0], int):
            return [call.out(call.fresh_shape(listed[0]))]
        return [call.out(None)]
    copies = not call.int_attr("allowzero")
    result: list[Size] = []
    hole: int | None = None
    for axis, size in enumerate(target):
        if size == -1:
            if hole is not None:
                call.fail(f"shape {[str(s) for s in target]} has two -1; only one can be inferred")
            hole = axis
        elif isinstance(size, int) and size < -1:
            call.fail(f"shape has the entry {size}; sizes are not negative")
        result.append(_kept(call, shape, axis) if size == 0 and copies else size)
    if hole is not None:
        if not copies and 0 in target:
            call.fail("shape has both 0 and -1 with allowzero=1; the -1 cannot be inferred")
        result[hole] = _inferred(call, shape, result, hole)
    else:
        _check_count(call, shape, result)
    result = [size if axis == hole else _as_given(size, shape) for axis, size in enumerate(result)]
    return [call.out(result)]


def reshape_target(call: Call) -> list[Size] | None:
    if call.version < 5:
        attribute = call.ints_attr("shape")
        return None if attribute is None else list(attribute)
    call.input(1)
    return call.vector(1)


def _as_given(size: Size, shape: Shape | None) -> Size:
    """A size as the input has it, where a model computes the same one otherwise; whether it is, a run looks."""
    if isinstance(size, int) or shape is None or size in shape:
        return size
    others = (one for one in shape if isinstance(one, Expr))
    return next((one for one in others if equal_where_elements(size, one, shape)), size)


def _kept(call: Call, shape: Shape | None, axis: int) -> Size:
    """A 0 in the target copies the input's dimension."""
    if shape is None:
        return call.fresh(axis)
    if axis >= len(shape):
        call.fail(f"shape has 0 at {axis}, but the input has only {len(shape)} dimensions to copy")
    return shape[axis]


def _inferred(call: Call, shape: Shape | None, result: Sequence[Size], hole: int) -> Size:
    if shape is None:
        return call.fresh(hole)
    # Dimensions that input and target share cancel first: the rest divides where products may not.
    left = list(shape)
    others: list[Size] = []
    for axis, size in enumerate(result):
        if axis == hole:
            continue
        if isinstance(size, Expr) and size in left:
            left.remove(size)
        else:
            others.append(size)
    count, known = product(left), product(others)
    if isinstance(count, int) and isinstance(known, int) and not (known and count % known == 0):
        if count == 0 and known == 0:
            call.fail(f"any size would do for the -1 at {hole}, beside a size of 0")
        call.fail(f"{product(shape)} elements do not divide into {known} for the -1 at {hole}")
    if known == 0:
        return call.fresh(hole)
    return exact_div(count, known)


def _check_count(call: Call, shape: Shape | None, result: Sequence[Size]) -> None:
    if shape is None:
        return
    before, after = product(shape), product(result)
    if isinstance(before, int) and isinstance(after, int) and before != after:
        call.fail(
            f"{before} elements of shape {list(map(str, shape))} do not fit {list(map(str, result))}"
        )


def flatten(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(call.fresh_shape(2))]
    axis = call.int_attr("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        call.fail(f"axis {axis} is outside {-len(shape)} to {len(shape)}")
    return [call.out((product(shape[:axis]), product(shape[axis:])))]


# Dimensions of 1


def _axes(call: Call) -> tuple[Sequence[int] | None, bool]:
    """Axes from attribute or input, and whether they are given at all."""
    axes = call.ints_attr("axes")
    if axes is not None:
        return axes, True
    return (call.integers(1), True) if call.has(1) else (None, False)


def squeeze(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    axes, given = _axes(call)
    if shape is None:
        return [call.out(None)]
    if given and axes is None:
        listed = call.shape(1)
        if listed is not None and len(listed) == 1 and isinstance(listed[0], int):
            return [call.out(call.fresh_shape(len(shape) - listed[0]))]
        return [call.out(None)]
    if axes is None:
        # Which dimensions go depends on which are 1; a symbol that may be 1 hides the rank.
        if any(isinstance(dim, Expr) and not at_least(dim, 2) for dim in shape):
            return [call.out(None)]
        return [call.out(dim for dim in shape if dim != 1)]
    gone = call.axes(axes, len(shape))
    for axis in gone:
        if isinstance(shape[axis], int) and shape[axis] != 1:
            call.fail(f"dimension {axis} is {shape[axis]}; only dimensions of 1 can be squeezed")
    return [call.out(dim for axis, dim in enumerate(shape) if axis not in gone)]


def unsqueeze(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    axes, given = _axes(call)
    if not given:
        call.fail("axes are missing")
    if shape is None:
        return [call.out(None)]
    if axes is None:
        listed = call.shape(1)
        if listed is not None and len(listed) == 1 and isinstance(listed[0], int):
            return [call.out(call.fresh_shape(len(shape) + listed[0]))]
        return [call.out(None)]
    rank = len(shape) + len(axes)
    new = call.axes(axes, rank)
    old = iter(shape)
    return [call.out(1 if axis in new else next(old) for axis in range(rank))]


# Order


def transpose(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    return [call.out(shape[axis] for axis in _permutation(call, len(shape)))]


def _permutation(call: Call, rank: int) -> tuple[int, ...]:
    perm = call.ints_attr("perm")
    if perm is None:
        return tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        call.fail(f"perm {list(perm)} is not an order of the {rank} dimensions")
    return perm


def transpose_values(call: Call, output: Facts) -> Values | None:
    value = call.value(0)
    return None if value is None else value.transpose(_permutation(call, value.ndim))


def identity(call: Call) -> list[Facts]:
    return [call.input(0)]


# Shape and Size


def shape_of(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None or call.input(0).kind not in ("tensor", "sparse"):
        return [call.out((call.fresh(0),))]
    start, end = call.int_attr("start"), call.attr("end")
    return [call.out((len(shape[start : None if end is None else int(end)]),))]


def shape_values(call: Call, output: Facts) -> Values | None:
    shape = call.input(0).shape
    if shape is None:
        return None
    start, end = call.int_attr("start"), call.attr("end")
    return objects(shape[start : None if end is None else int(end)])


def size_of(call: Call) -> list[Facts]:
    return [call.out(())]


def size_values(call: Call, output: Facts) -> Values | None:
    count = call.input(0).elements
    return None if count is None else objects([count], ())


# Repetition


def expand(call: Call) -> list[Facts]:
    shape, target = call.input(0).shape, call.vector(1)
    if target is None:
        call.input(1)
        listed = call.shape(1)
        if shape is None or listed is None or len(listed) != 1 or not isinstance(listed[0], int):
            return [call.out(None)]
        rank = max(len(shape), listed[0])
        offset = rank - len(shape)
        return [call.out(_expanded(call, shape, axis, offset) for axis in range(rank))]
    for size in target:
        if isinstance(size, int) and size < 0:
            call.fail(f"shape has the entry {size}; sizes are not negative")
    return [call.out(broadcast_shapes(call, [shape, tuple(target)]))]


def _expanded(call: Call, shape: Shape, axis: int, offset: int) -> Size:
    dim = shape[axis - offset] if axis >= offset else 1
    return dim if isinstance(dim, int) and dim > 1 else call.fresh(axis)


def expand_values(call: Call, output: Facts) -> Values | None:
    value, shape = call.value(0), concrete_shape(output)
    return None if value is None or shape is None else np.broadcast_to(value, shape).copy()


def tile(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    if call.version < 6:
        return [call.out(_tile_one_axis(call, shape))]
    repeats = call.vector(1)
    call.input(1)
    if repeats is None:
        return [call.out(call.fresh_shape(len(shape)))]
    if len(repeats) != len(shape):
        call.fail(f"repeats has {len(repeats)} entries for {len(shape)} dimensions")
    for times in repeats:
        if isinstance(times, int) and times < 0:
            call.fail(f"repeats has the entry {times}; it cannot be negative")
    return [call.out(dim * times for dim, times in zip(shape, repeats, strict=True))]


def _tile_one_axis(call: Call, shape: Shape) -> Shape:
    """Tile-1: how often, and along which one axis."""
    times, axis = call.whole(1), call.whole(2)
    if times is None or not isinstance(axis, int):
        return call.fresh_shape(len(shape))
    at = call.axis(axis, len(shape))
    return tuple(dim * times if index == at else dim for index, dim in enumerate(shape))


def tile_values(call: Call, output: Facts) -> Values | None:
    if call.version < 6:
        return None
    value, repeats = call.value(0), call.integers(1)
    return None if value is None or repeats is None else np.tile(value, repeats)


OPERATORS = (
    Operator("Reshape", "view", reshape, reshaped_values, free, RESHAPE),
    Operator("Flatten", "view", flatten, reshaped_values, free, RELABEL),
    Operator("Squeeze", "view", squeeze, reshaped_values, free, RELABEL),
    Operator("Unsqueeze", "view", unsqueeze, reshaped_values, free, RELABEL),
    Operator("Identity", "view", identity, None, free, IDENTITY),
    Operator("Shape", "opaque", shape_of, shape_values, free, SHAPE),
    Operator("Size", "opaque", size_of, size_values, free, SIZE),
    Operator("Transpose", "view", transpose, transpose_values, move_first, TRANSPOSE),
    Operator("Expand", "view", expand, expand_values, move_first, EXPAND),
    Operator("Tile", "opaque", tile, tile_values, move_first, TILE),
)
