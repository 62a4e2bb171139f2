"""Axes that a node names by attribute or by input."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ops.call import Call

__all__ = ["reduced_axes"]


def reduced_axes(call: Call, rank: int) -> tuple[int, ...] | None:
    """The axes to reduce, from attribute or input; None when only data knows them."""
    axes: Sequence[int] | None = call.ints_attr("axes")
    if axes is None and call.has(1):
        axes = [] if call.shape(1) == (0,) else call.integers(1)
        if axes is None:
            return None
    if not axes:
        return () if call.int_attr("noop_with_empty_axes") else tuple(range(rank))
    return call.axes(axes, rank)
