"""Sums, extremes and truths along axes, and where an extreme stands."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import dtype_of
from sardonyx.conversion.jax.table import Site, lowered, primitive

__all__: list[str] = []

_NARROW = ("int8", "int16", "uint8", "uint16")  # in few reductions of ONNX, or in none


def _reduce(kind: str, site: Site, x: ir.Value) -> ir.Value:
    """Integers of few bits are counted in 32 and cut again, as adding them one by one would."""
    graph, own = site.graph, dtype_of(x)
    axes = [int(axis) for axis in site.params["axes"]]
    if not axes:
        return x
    if own.name in _NARROW:
        x = graph.cast(x, np.uint32 if own.kind == "u" else np.int32)
    made = graph.op(kind, x, graph.constant(axes, np.int64), keepdims=0)
    return graph.cast(made, own)


for _name, _kind in {
    "reduce_sum": "ReduceSum",
    "reduce_prod": "ReduceProd",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
}.items():
    primitive(_name)(functools.partial(_reduce, _kind))


@primitive("reduce_or", "reduce_and")
def truths(site: Site, x: ir.Value) -> ir.Value:
    if dtype_of(x) != np.bool_:
        raise site.refuse(f"ONNX has no {site.name} of the bits of {dtype_of(x)}.")
    graph = site.graph
    if not site.params["axes"]:  # none at all, where ONNX would take all
        return x
    axes = graph.constant([int(axis) for axis in site.params["axes"]], np.int64)
    kind = "ReduceMax" if site.name == "reduce_or" else "ReduceMin"
    numbers = graph.cast(x, np.int32)
    return graph.cast(graph.op(kind, numbers, axes, keepdims=0), np.bool_)


@lowered("reduce_xor")
def parity(x: Any, *, axes: Any, **_: Any) -> Any:
    if x.dtype == jnp.bool_:
        return jnp.sum(x.astype(jnp.int32), axes) % 2 == 1
    total = jnp.zeros((), x.dtype)
    for bit in range(8 * x.dtype.itemsize):
        ones = jnp.sum((x >> bit) & 1, axes, dtype=x.dtype) & 1
        total = total | (ones << bit)
    return total


@primitive("argmax", "argmin")
def place(site: Site, x: ir.Value) -> ir.Value:
    """The first of equal ones; a NaN is the extreme of either."""
    graph = site.graph
    (axis,) = (int(axis) for axis in site.params["axes"])
    kind = "ArgMax" if site.name == "argmax" else "ArgMin"
    if dtype_of(x) == np.bool_:
        x = graph.cast(x, np.int32)
    found = graph.op(kind, x, axis=axis, keepdims=0, dtype=np.int64)
    return graph.cast(found, site.params["index_dtype"])
