"""Elements by their places."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import (
    places,
    scatter_elements,
    take,
    whole,
    xp,
)

__all__ = ["gather_nd", "one_hot", "reversed_places", "tensor_scatter", "wrap_indices"]


def wrap_indices(indices: Any, size: Any) -> Any:
    """Places that count from the end, counted from the beginning."""
    return xp.where(indices < 0, indices + size, indices)


def gather_nd(x: Any, indices: Any, batch: int) -> Any:
    """Slices of `x` at the places that the last axis of `indices` names; both have `batch` axes in front."""
    count = indices.shape[-1]
    sizes = x.shape[batch : batch + count]
    rest = tuple(x.shape[batch + count :])
    flat = 0
    for axis in range(count):
        place = indices[..., axis]
        flat = flat * sizes[axis] + xp.where(place < 0, place + sizes[axis], place)
    total = 1
    for size in sizes:
        total = total * size
    groups = 1
    for size in x.shape[:batch]:
        groups = groups * size
    shape = tuple(indices.shape[:-1])
    if batch:
        each = xp.arange(groups) * total
        flat = xp.reshape(flat, (groups, -1)) + each[:, None]
    rows = xp.reshape(x, (groups * total, *rest))
    return xp.reshape(take(rows, xp.reshape(flat, (-1,)), 0), (*shape, *rest))


def one_hot(indices: Any, places: Any, values: Any, axis: int) -> Any:
    """values[1] where a new axis is at the index, values[0] elsewhere."""
    depth = len(places)
    rank = len(indices.shape) + 1
    wrapped = xp.where(indices < 0, indices + depth, indices)
    wide = xp.reshape(wrapped, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    line = xp.reshape(places, (1,) * axis + (depth,) + (1,) * (rank - 1 - axis))
    return xp.where(wide == line, values[1], values[0])


def reversed_places(x: Any, lengths: Any, batch: int, time: int) -> Any:
    """Where every element comes from when sequences are turned around, each as long as it is."""
    rank = len(x.shape)
    place = places(x.shape[time], x)[(slice(None), *(None,) * (rank - 1 - time))]
    length = xp.reshape(lengths, (-1,) + (1,) * (rank - 1 - batch))
    turned = xp.where(place < length, length - 1 - place, place + length * 0)
    return whole(xp.broadcast_to(turned, tuple(x.shape)))


def tensor_scatter(x: Any, update: Any, starts: Any, axis: int, circular: bool) -> Any:
    """A cache with rows written into it, from a place of every batch's own on."""
    rank = len(x.shape)
    place = places(update.shape[axis], x)[(slice(None), *(None,) * (rank - 1 - axis))]
    if starts is not None:
        place = place + xp.reshape(starts, (-1,) + (1,) * (rank - 1))
    if circular:
        place = place % x.shape[axis]
    where = whole(xp.broadcast_to(place, tuple(update.shape)))
    return scatter_elements(x, where, update, axis, "none")
