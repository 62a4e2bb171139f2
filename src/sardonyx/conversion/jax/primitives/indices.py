"""Indices of gathers and scatters: what is inside the bounds, and the whole grid of places that a window covers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import Dim, Graph, dtype_of, is_known

__all__ = [
    "all_of",
    "along",
    "column",
    "counted",
    "fills",
    "grid",
    "inside",
    "lifted",
    "same_size",
    "within",
]


def fills(mode: object) -> bool:
    """Whether indices outside are answered with a filler, and dropped by a scatter.

    Otherwise they are moved in: where they are promised to be inside, that is what XLA does with those that are not.
    """
    return str(getattr(mode, "name", mode)).startswith("FILL")


def same_size(a: Dim, b: Dim) -> bool:
    return bool(is_known((a,)) == is_known((b,)) and a == b)


def column(graph: Graph, indices: ir.Value, place: int, count: int, rank: int) -> ir.Value:
    """The starts along one axis: indices[..., place]."""
    if count == 1:
        return graph.op("Squeeze", indices, graph.constant([rank - 1], np.int64))
    return graph.op("Gather", indices, graph.constant(place, np.int64), axis=rank - 1)


def inside(graph: Graph, start: ir.Value, most: Dim) -> ir.Value:
    """Whether 0 <= start <= most."""
    last = graph.cast(graph.scalar_size(most), dtype_of(start))
    low = graph.op("GreaterOrEqual", start, graph.constant(0, like=start))
    return graph.op("And", low, graph.op("LessOrEqual", start, last))


def within(graph: Graph, start: ir.Value, most: Dim) -> ir.Value:
    """start moved into 0 … most."""
    known = graph.known(start)
    if known is not None and is_known((most,)):
        return graph.constant(np.clip(known, 0, int(most)))
    last = graph.cast(graph.scalar_size(most), dtype_of(start))
    return graph.op("Min", graph.op("Max", start, graph.constant(0, like=start)), last)


def counted(graph: Graph, size: Dim) -> ir.Value:
    """0, 1, … size - 1 as int64."""
    if is_known((size,)) and size <= 1 << 12:
        return graph.constant(np.arange(int(size)), np.int64)
    zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
    return graph.op("Range", zero, graph.scalar_size(size), one)


def along(graph: Graph, row: ir.Value, axis: int, rank: int) -> ir.Value:
    """A row as a tensor of some rank, along one of its axes."""
    if rank == 1:
        return row
    places = [-1 if place == axis else 1 for place in range(rank)]
    return graph.op("Reshape", row, graph.constant(places, np.int64))


def grid(graph: Graph, starts: Sequence[ir.Value], shape: Sequence[Dim]) -> ir.Value:
    """Indices [shape…, k] of k axes, from tensors that broadcast to the shape."""
    if not shape:
        parts = [graph.op("Reshape", start, graph.constant([1], np.int64)) for start in starts]
        return parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=0)
    sizes = graph.sizes(shape)
    last = graph.constant([len(shape)], np.int64)
    parts = [graph.op("Unsqueeze", graph.op("Expand", start, sizes), last) for start in starts]
    return parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=len(shape))


def all_of(graph: Graph, truths: Sequence[ir.Value]) -> ir.Value:
    return reduce(lambda a, b: graph.op("And", a, b), truths)


def lifted(graph: Graph, start: ir.Value, rank: int, wanted: int) -> ir.Value:
    """[batch…] with axes of 1 behind it."""
    if rank == wanted:
        return start
    return graph.op("Unsqueeze", start, graph.constant(list(range(rank, wanted)), np.int64))
