"""Sums, products and extremes so far; and reductions by a function of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax
from jax.extend.core import jaxpr_as_fun

from sardonyx.conversion.jax.graph import dtype_of, is_known
from sardonyx.conversion.jax.primitives.calls import closed
from sardonyx.conversion.jax.table import Site, lowered, primitive

__all__ = ["elementwise_of"]


@primitive("cumsum")
def cumsum(site: Site, x: ir.Value) -> ir.Value:
    graph, own = site.graph, dtype_of(x)
    if own.kind in "iu" and own.itemsize < 4:
        x = graph.cast(x, np.uint32 if own.kind == "u" else np.int32)
    axis = graph.constant(int(site.params["axis"]), np.int64)
    made = graph.op("CumSum", x, axis, reverse=int(site.params["reverse"]))
    return graph.cast(made, own)


@lowered("cumprod")
def cumprod(x: Any, *, axis: int, reverse: bool) -> Any:
    return _so_far(lax.mul, lambda _: 1, x, axis, reverse)


@lowered("cummax")
def cummax(x: Any, *, axis: int, reverse: bool) -> Any:
    return _so_far(lax.max, _lowest, x, axis, reverse)


@lowered("cummin")
def cummin(x: Any, *, axis: int, reverse: bool) -> Any:
    return _so_far(lax.min, _highest, x, axis, reverse)


@lowered("cumlogsumexp")
def cumlogsumexp(x: Any, *, axis: int, reverse: bool) -> Any:
    return _so_far(jnp.logaddexp, _lowest, x, axis, reverse)


def _lowest(dtype: Any) -> Any:
    return np.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.integer) else -jnp.inf


def _highest(dtype: Any) -> Any:
    return np.iinfo(dtype).max if jnp.issubdtype(dtype, jnp.integer) else jnp.inf


def _so_far(
    combine: Callable[[Any, Any], Any],
    neutral: Callable[[Any], Any],
    x: Any,
    axis: int,
    reverse: bool,
) -> Any:
    """In log2(n) steps: after the k-th, every element has met the 2^k before it. One by one where n is open."""
    if reverse:
        return lax.rev(_so_far(combine, neutral, lax.rev(x, (axis,)), axis, False), (axis,))
    size = x.shape[axis]
    if not is_known((size,)):
        rows = jnp.moveaxis(x, axis, 0)

        def step(carry: Any, row: Any) -> Any:
            met = combine(carry, row)
            return met, met

        begin = jnp.full(rows.shape[1:], neutral(x.dtype), x.dtype)
        return jnp.moveaxis(lax.scan(step, begin, rows)[1], 0, axis)
    reach = 1
    while reach < size:
        head = lax.slice_in_dim(x, 0, reach, axis=axis)
        earlier = lax.slice_in_dim(x, 0, size - reach, axis=axis)
        later = lax.slice_in_dim(x, reach, size, axis=axis)
        x = lax.concatenate([head, combine(earlier, later)], axis)
        reach *= 2
    return x


def elementwise_of(jaxpr: Any) -> Callable[..., Sequence[Any]]:
    """A jaxpr between scalars, as a function between arrays of one shape."""

    def apply(*arrays: Any) -> Sequence[Any]:
        function: Any = jaxpr_as_fun(closed(jaxpr))
        for _ in range(arrays[0].ndim):
            function = jax.vmap(function)
        found: Sequence[Any] = function(*arrays)
        return found

    return apply


@lowered("reduce")
def reduce_by(*operands: Any, jaxpr: Any, dimensions: Any, **_: Any) -> Any:
    """By a function of the user's own: axis after axis, neighbours combined with neighbours."""
    count = len(operands) // 2
    arrays, starts = operands[:count], operands[count:]
    combine = elementwise_of(jaxpr)
    for axis in sorted((int(axis) for axis in dimensions), reverse=True):
        size = arrays[0].shape[axis]
        while size > 1:
            even = [lax.slice_in_dim(a, 0, size - size % 2, 2, axis) for a in arrays]
            odd = [lax.slice_in_dim(a, 1, size, 2, axis) for a in arrays]
            met = list(combine(*even, *odd))
            if size % 2:
                last = [lax.slice_in_dim(a, size - 1, size, axis=axis) for a in arrays]
                met = [lax.concatenate([m, r], axis) for m, r in zip(met, last, strict=True)]
            arrays, size = tuple(met), met[0].shape[axis]
        if size:
            arrays = tuple(jnp.squeeze(a, axis) for a in arrays)
        else:
            shape = tuple(d for place, d in enumerate(arrays[0].shape) if place != axis)
            arrays = tuple(jnp.broadcast_to(s, shape) for s in starts)
    begin = [jnp.broadcast_to(s, a.shape) for s, a in zip(starts, arrays, strict=True)]
    return list(combine(*begin, *arrays))
