"""What Slice and Pad are asked to do: the axes, and how far along each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.ops.call import Call
from sardonyx.sizes import Size, at_least, ceil_div, max_of, min_of

__all__ = ["bound_position", "pad_plan", "slice_length", "slice_plan", "slice_range"]

FAR = (1 << 31) - 1  # past the end of any dimension


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
    """A bound counted from the front; negative ones count from the back. None: sign unknown.

    Exporters write "to the end" and "from the front" as the ends of int32 or int64.
    """
    if isinstance(bound, int) and abs(bound) >= FAR:
        return dim if bound > 0 else 0
    if at_least(bound, 0):
        return bound
    return bound + dim if at_least(-1, bound) else None


def slice_length(dim: Size, start: Any, end: Any, step: Any) -> Size | None:
    """How many elements a slice takes, as an expression; None when signs are not known."""
    if not isinstance(step, int):
        return None
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int):
        return len(slice_range(dim, start, end, step))
    if step < 0:
        return _backward_length(dim, start, end, step)
    begin, stop = bound_position(start, dim), bound_position(end, dim)
    if begin is None or stop is None:
        return None
    if at_least(begin, 0):
        reach = min_of(stop, dim) - begin
    elif stop == dim or at_least(stop, dim):
        reach = min_of(dim, dim - begin)  # the last dim - begin elements, or all of them
    else:
        reach = min_of(max_of(stop, 0), dim) - min_of(max_of(begin, 0), dim)
    return ceil_div(max_of(reach, 0), step)


def _backward_length(dim: Size, start: Any, end: Any, step: int) -> Size | None:
    """Only a walk from the very end to the very front is common, and told."""
    from_end = start == -1 or (isinstance(start, int) and start >= 1 << 31) or start == dim - 1
    to_front = isinstance(end, int) and end <= -(1 << 31) + 1
    if from_end and to_front:
        return ceil_div(dim, -step)
    return None


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
