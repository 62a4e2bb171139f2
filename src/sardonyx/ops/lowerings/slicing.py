"""Cutting tensors apart and joining them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from sardonyx.loops.build import maximum, minimum, where
from sardonyx.loops.nodes import Expr, apply
from sardonyx.ops.cuts import bound_position, slice_length, slice_plan, slice_range
from sardonyx.ops.lowering import Element, Nest, Position, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.copying import copy_loops
from sardonyx.ops.lowerings.parameters import axes_of, length_of, require_size, spread, whole
from sardonyx.sizes import Size, at_least, max_of, product

__all__ = ["CONCAT", "SLICE", "SPLIT"]

_Cut: TypeAlias = tuple[Size, Size]  # the first element of an axis that is taken, and the step

LONG_RUN = 64  # elements that lie together, worth a loop of their own


def _slice(site: Site, position: Position) -> Expr:
    cuts = _known_cuts(site)
    if cuts is None:
        cuts = _read_cuts(site)
    source = list(position)
    for axis, (first, step) in cuts.items():
        source[axis] = first + position[axis] * step
    return site.read(0, source)


def _known_cuts(site: Site) -> dict[int, _Cut] | None:
    """Where every cut begins, and its step; None where only the run can tell."""
    shape, out = site.shape(0), site.out_shape()
    plan = slice_plan(site.call, len(shape))
    if plan is None:
        return None
    found: dict[int, _Cut] = {}
    for axis, start, end, step in plan:
        dim = shape[axis]
        if slice_length(dim, start, end, step) != out[axis]:
            return None
        first: Size | None
        if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int):
            first = slice_range(dim, start, end, step).start
        elif step < 0:
            first = dim - 1  # of a symbolic dimension, only a walk from its end has a known length
        else:
            first = bound_position(start, dim)
        if first is None:
            return None
        found[axis] = (first if step < 0 else max_of(first, 0), step)
    return found


def _read_cuts(site: Site) -> dict[int, _Cut]:
    """Bounds are data: they are read, and how much they take is compared with the output's shape."""
    b, shape, out = site.b, site.shape(0), site.out_shape()
    rank, count = len(shape), length_of(site, 1)
    axes = axes_of(site, 3, count, rank)
    starts, ends = ([whole(site, index, at) for at in range(count)] for index in (1, 2))
    steps = [whole(site, 4, at) if site.call.has(4) else b.size(1) for at in range(count)]
    if len(axes) != count:
        site.refuse("starts and axes have different lengths")
    start = spread(site, axes, starts, [b.size(0)] * rank)
    end = spread(site, axes, ends, [b.size(dim) for dim in shape])
    step = spread(site, axes, steps, [b.size(1)] * rank)
    found: dict[int, _Cut] = {}
    for axis, dim in enumerate(shape):
        if (start[axis], end[axis], step[axis]) != (b.size(0), b.size(dim), b.size(1)):
            found[axis] = _read_cut(site, dim, start[axis], end[axis], step[axis], out[axis])
    return found


def _read_cut(site: Site, dim: Size, start: Expr, end: Expr, step: Expr, taken: Size) -> _Cut:
    b = site.b
    with b.once():
        size = b.size(dim)
        b.fail_if(apply("eq", step, 0), "the step of a slice is 0", step)
        # A step past the axis takes one element, however far it goes.
        step = b.let(maximum(minimum(step, b.size(dim + 1)), b.size(-1 - dim)))
        forward = b.let(step > 0)
        high = b.let(where(forward, size, size - 1))
        first, last = (b.let(where(at < 0, at + size, at)) for at in (start, end))
        first = b.let(minimum(maximum(first, 0), high))
        last = b.let(minimum(maximum(last, where(forward, b.size(0), b.size(-1))), high))
        distance = maximum(where(forward, last - first, first - last), 0)
        stride = apply("abs", step)
        count = b.let((distance + (stride - 1)) / stride)
        require_size(site, count, taken, "how much a slice takes")
        return b.index(first), b.index(step)


def _split(site: Site, position: Position) -> Expr:
    b, shape, count = site.b, site.shape(0), len(site.outputs)
    axis = site.call.axis(site.call.int_attr("axis"), len(shape))
    sizes = [site.out_shape(output)[axis] for output in range(count)]
    with b.once():
        require_equal(site, total(sizes), shape[axis], "the parts and the axis that is split")
    if site.call.has(1) and site.call.sizes(1) is None:
        for part, size in enumerate(sizes):
            require_size(site, whole(site, 1, part), size, f"part {part} of the split")
    source = list(position)
    source[axis] = position[axis] + total(sizes[: site.output])
    return site.read(0, source)


def total(sizes: Sequence[Size]) -> Size:
    return sum(sizes[1:], sizes[0]) if sizes else 0


def _concat(site: Site) -> None:
    """One copy for each input, into its place."""
    out = site.out_shape()
    axis = site.call.axis(site.call.int_attr("axis", 1), len(out))
    count = len(site.call.inputs)
    for index in range(count):
        for other, (size, expected) in enumerate(zip(site.shape(index), out, strict=True)):
            if other != axis:
                require_equal(site, size, expected, f"the inputs' sizes of axis {other}")
    order = site.memory_order()
    place = order.index(axis)
    offset: Size = 0
    for index in range(count):
        shape = site.shape(index)
        sizes = [shape[one] for one in order]
        # Rows of this axis are a loop of their own where they are long: more to share among threads.
        cut = place + 1 if at_least(product(sizes[place + 1 :]), LONG_RUN) else place
        with copy_loops(site.b, sizes[:cut], sizes[cut:]) as where_in_memory:
            at = [where_in_memory[order.index(one)] for one in range(len(shape))]
            target = (*at[:axis], at[axis] + offset, *at[axis + 1 :])
            site.store(target, site.read(index, at))
        offset = offset + shape[axis]


SLICE = Element(_slice, weight=0)
SPLIT = Element(_split, weight=0)
CONCAT = Nest(_concat, reads_once=True)
