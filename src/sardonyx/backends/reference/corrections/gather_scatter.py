"""Gather and Scatter families: indices may count from the end; outside they are an error."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.backends.reference.corrections.axes import normalize_axis
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_BOUNDS = "indices outside their axis are an error, and negative ones count from the end"

_COMBINE: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def checked_indices(indices: Array, size: int) -> Array:
    """Indices into an axis of `size`, negative ones resolved."""
    wide = indices.astype(np.int64, copy=False)
    outside = (wide < -size) | (wide >= size)
    if outside.any():
        first = int(wide[outside].flat[0])
        raise RunError(f"index {first} is outside an axis of {size}", value=first, limit=size)
    return np.where(wide < 0, wide + size, wide)


@corrects("Gather", reason=_BOUNDS)
def gather(call: Call, data: Array, indices: Array) -> Array:
    axis = normalize_axis(call.attr("axis", 0), data.ndim)
    return np.take(data, checked_indices(indices, data.shape[axis]), axis)


@corrects("GatherElements", reason=_BOUNDS)
def gather_elements(call: Call, data: Array, indices: Array) -> Array:
    axis = normalize_axis(call.attr("axis", 0), data.ndim)
    return data[_element_index(data, indices, axis)]


@corrects("GatherND", reason=_BOUNDS)
def gather_nd(call: Call, data: Array, indices: Array) -> Array:
    batch_dims = int(call.attr("batch_dims", 0))
    _check_nd(data, indices, batch_dims)
    index = _nd_index(data, indices, batch_dims)
    return np.asarray(data[index], dtype=data.dtype)  # one element too: a scalar, not [1]


@corrects("Scatter", "ScatterElements", reason=_BOUNDS)
def scatter_elements(call: Call, data: Array, indices: Array, updates: Array) -> Array:
    axis = normalize_axis(call.attr("axis", 0), data.ndim)
    if indices.shape != updates.shape:
        raise RunError(
            f"indices {list(indices.shape)} and updates {list(updates.shape)} differ in shape",
            value=updates.shape,
            limit=indices.shape,
        )
    return _scattered(call, data, _element_index(data, indices, axis), updates)


@corrects("ScatterND", reason=_BOUNDS)
def scatter_nd(call: Call, data: Array, indices: Array, updates: Array) -> Array:
    _check_nd(data, indices, 0)
    expected = indices.shape[:-1] + data.shape[indices.shape[-1] :]
    if updates.shape != expected:
        raise RunError(
            f"updates have shape {list(updates.shape)}, where {list(expected)} is needed",
            value=updates.shape,
            limit=expected,
        )
    return _scattered(call, data, _nd_index(data, indices, 0), updates)


def _scattered(call: Call, data: Array, index: tuple[Array, ...], updates: Array) -> Array:
    result = data.copy()
    reduction = call.attr("reduction", "none")
    if reduction == "none":
        result[index] = updates
    elif reduction in _COMBINE:
        _COMBINE[reduction].at(result, index, updates)
    else:
        raise RunError(f"reduction {reduction!r} is unknown", value=reduction, limit=list(_COMBINE))
    return result


def _element_index(data: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    if indices.ndim != data.ndim:
        raise RunError(
            f"indices have rank {indices.ndim}, data has rank {data.ndim}",
            value=indices.ndim,
            limit=data.ndim,
        )
    for other, (size, limit) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if other != axis and size > limit:
            raise RunError(
                f"indices have {size} on axis {other}, data has {limit}", value=size, limit=limit
            )
    index = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    index[axis] = checked_indices(indices, data.shape[axis])
    return tuple(index)


def _check_nd(data: Array, indices: Array, batch_dims: int) -> None:
    if indices.ndim == 0 or not 1 <= indices.shape[-1] <= data.ndim - batch_dims:
        raise RunError(
            f"indices of shape {list(indices.shape)} do not fit data of rank {data.ndim}"
            + (f" with batch_dims {batch_dims}" if batch_dims else ""),
            value=indices.shape,
            limit=data.ndim,
        )
    if batch_dims and indices.shape[:batch_dims] != data.shape[:batch_dims]:
        raise RunError(
            f"the batch dimensions of data {list(data.shape)} and indices {list(indices.shape)} "
            "differ",
            value=indices.shape,
            limit=data.shape[:batch_dims],
        )


def _nd_index(data: Array, indices: Array, batch_dims: int) -> tuple[Array, ...]:
    columns = [
        checked_indices(indices[..., column], data.shape[batch_dims + column])
        for column in range(indices.shape[-1])
    ]
    inner = indices.ndim - 1 - batch_dims
    batches = [
        np.arange(size).reshape([-1 if i == axis else 1 for i in range(batch_dims + inner)])
        for axis, size in enumerate(indices.shape[:batch_dims])
    ]
    return (*batches, *columns)
