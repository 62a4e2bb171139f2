"""What Slice and Pad are asked to do: the axes, and how far along each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.ops.call import Call
from sardonyx.sizes import Size, at_least

__all__ = ["bound_position", "pad_plan", "slice_plan", "slice_range"]


def slice_plan(call: Call, rank: int) -> list[tuple[int, Any, Any, Any]] | None:
    """(axis, start, end, step) for each sliced axis; None when the axes are not known."""
    starts: Sequence[Any] | None
    ends: Sequence[Any] | None
    axes: Sequence[int] | None
    steps: Sequence[Any] | None
    if call.version < 10:
        starts, ends = call.ints_attr("starts") or (), call.ints_attr("ends") or ()
        axes, steps = call.ints_attr("axes") or range(len(starts)), (1,) * len(starts)
    else:
        starts, ends = call.vector(1), call.vector(2)
        count = len(starts or ())
        axes = call.integers(3) if call.has(3) else range(count)
        steps = call.vector(4) if call.has(4) else (1,) * count
    if starts is None or ends is None or axes is None or steps is None:
        return None
    if not len(starts) == len(ends) == len(axes) == len(steps):
        call.fail(
            f"starts, ends, axes and steps have {len(starts)}, {len(ends)}, {len(axes)} and "
            f"{len(steps)} entries, which must be equal"
        )
    return list(zip(call.axes(axes, rank), starts, ends, steps, strict=True))


def slice_range(dim: int, start: int, end: int, step: int) -> range:
    """The positions that a slice takes.

    As Python's, but for one case: going backwards, a start before the front is clamped to it, so
    that the first element is still taken.
    """
    low, high = (0, dim) if step > 0 else (-1, dim - 1)
    first = min(max(start + dim if start < 0 else start, 0), high)
    last = min(max(end + dim if end < 0 else end, low), high)
    return range(first, last, step)


def bound_position(bound: Size, dim: Size) -> Size | None:
    """A bound counted from the front; negative ones count from the back. None: sign unknown."""
    if at_least(bound, 0):
        return dim if isinstance(bound, int) and bound >= (1 << 31) - 1 else bound
    return bound + dim if at_least(-1, bound) else None


def pad_plan(call: Call, rank: int) -> list[tuple[int, Any, Any]] | None:
    """(axis, begin, end) for each padded axis."""
    if call.version < 11:
        pads: Sequence[Any] | None = call.ints_attr("pads") or call.ints_attr("paddings")
        if pads is None:
            call.fail("attribute pads is missing")
        axes: Sequence[int] | None = range(rank)
    else:
        call.input(1)
        pads = call.vector(1)
        axes = call.integers(3) if call.has(3) else range(rank)
    if pads is None or axes is None:
        return None
    found = call.axes(axes, rank)
    if len(pads) != 2 * len(found):
        call.fail(
            f"pads has {len(pads)} entries, but {len(found)} dimensions need {2 * len(found)}"
        )
    return list(zip(found, pads[: len(found)], pads[len(found) :], strict=True))
