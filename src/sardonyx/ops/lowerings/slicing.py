"""Cutting tensors apart and joining them."""

from __future__ import annotations

from typing import Any

from sardonyx.loops.nodes import Expr
from sardonyx.ops.cuts import bound_position, slice_plan, slice_range
from sardonyx.ops.lowering import Element, Nest, Position, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.copying import copy_loops
from sardonyx.sizes import Size, at_least, max_of, min_of, product

__all__ = ["CONCAT", "SLICE"]

LONG_RUN = 64  # elements that lie together, worth a loop of their own


def _slice(site: Site, position: Position) -> Expr:
    shape = site.shape(0)
    plan = slice_plan(site.call, len(shape))
    if plan is None:
        site.refuse("the bounds of the slice are not known before it runs")
    source = list(position)
    for axis, start, end, step in plan:
        source[axis] = _first(site, shape[axis], start, end, step) + position[axis] * step
    return site.read(0, source)


def _first(site: Site, dim: Size, start: Any, end: Any, step: Any) -> Size:
    """The first element taken; where none is, any number will do."""
    if not isinstance(step, int):
        site.refuse("the step of the slice is not known before it runs")
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int):
        return slice_range(dim, start, end, step).start
    if isinstance(start, int) and start <= -(1 << 31) + 1:
        return 0
    begin = bound_position(start, dim)
    if begin is None:
        site.refuse("whether a bound counts from the end is not known before it runs")
    begin = max_of(begin, 0)
    return begin if step > 0 else min_of(begin, dim - 1)


def _concat(site: Site) -> None:
    """One copy for each input, into its place."""
    out = site.out_shape()
    axis = site.call.axis(site.call.int_attr("axis", 1), len(out))
    count = len(site.call.inputs)
    for index in range(count):
        for other, (size, expected) in enumerate(zip(site.shape(index), out, strict=True)):
            if other != axis:
                require_equal(site, size, expected, f"the inputs' sizes of axis {other}")
    offset: Size = 0
    for index in range(count):
        shape = site.shape(index)
        # Rows of this axis are a loop of their own where they are long: more to share among threads.
        cut = axis + 1 if at_least(product(shape[axis + 1 :]), LONG_RUN) else axis
        with copy_loops(site.b, shape[:cut], shape[cut:]) as at:
            target = (*at[:axis], at[axis] + offset, *at[axis + 1 :])
            site.store(target, site.read(index, at))
        offset = offset + shape[axis]


SLICE = Element(_slice, weight=0)
CONCAT = Nest(_concat, reads_once=True)
