"""Indices of gathers and scatters: what is inside the bounds, and the whole grid of places that a window covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import Dim, Graph, dtype_of, is_known

__all__ = [
    "Windows",
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


@dataclass(frozen=True)
class Windows:
    """Windows of an operand, one for every index.

    Attributes:
        shape: of the operand.
        sizes: of a window, by the axes that it keeps; along all others it is one place.
        mapped: the axes that indices have a start for.
        paired: axes that go along with one of the indices' own.
        batch: how many windows there are.
    """

    shape: tuple[Dim, ...]
    sizes: Mapping[int, Dim]
    mapped: tuple[int, ...]
    paired: Mapping[int, int]
    batch: tuple[Dim, ...]

    @property
    def whole(self) -> list[int]:
        """Axes that are taken as they are."""
        return [
            axis
            for axis, size in self.sizes.items()
            if axis not in self.mapped and same_size(self.shape[axis], size)
        ]

    @property
    def parts(self) -> list[int]:
        return [axis for axis in self.sizes if axis not in self.whole]

    @property
    def indexed(self) -> list[int]:
        return [axis for axis in range(len(self.shape)) if axis not in self.whole]

    @property
    def dims(self) -> tuple[Dim, ...]:
        """Of the grid of places."""
        return (*self.batch, *(self.sizes[axis] for axis in self.parts))

    def places(self, graph: Graph, starts: Mapping[int, ir.Value]) -> list[ir.Value]:
        """For every indexed axis, where the grid's places are along it."""
        rank, found = len(self.dims), []
        for axis in self.indexed:
            terms = []
            if axis in starts:
                start = graph.cast(starts[axis], np.int64)
                terms.append(lifted(graph, start, len(self.batch), rank))
            if axis in self.paired:
                row = counted(graph, self.shape[axis])
                terms.append(along(graph, row, self.paired[axis], rank))
            if axis in self.parts and not same_size(self.sizes[axis], 1):
                own = len(self.batch) + self.parts.index(axis)
                terms.append(along(graph, counted(graph, self.sizes[axis]), own, rank))
            first = terms[0] if terms else graph.constant(0, np.int64)
            found.append(first if len(terms) < 2 else graph.op("Add", *terms))
        return found
