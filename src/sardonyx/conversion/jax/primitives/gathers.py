"""gather and dynamic_slice: Gather where one axis is indexed, else GatherND over the grid of all places."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import Dim, Graph, dtype_of, is_known
from sardonyx.conversion.jax.primitives.indices import (
    Windows,
    all_of,
    column,
    counted,
    fills,
    grid,
    inside,
    same_size,
    within,
)
from sardonyx.conversion.jax.primitives.views import move_axes, slice_axes
from sardonyx.conversion.jax.table import Site, primitive

__all__: list[str] = []


@primitive("gather")
def gather(site: Site, x: ir.Value, indices: ir.Value) -> ir.Value:
    graph, numbers = site.graph, site.params["dimension_numbers"]
    shape, slices = site.ins[0].shape, site.params["slice_sizes"]
    mapped = [int(axis) for axis in numbers.start_index_map]
    fill = fills(site.params["mode"])
    if dtype_of(indices).name not in ("int32", "int64"):
        indices = graph.cast(indices, np.int64)
    rank = len(site.ins[1].shape)
    starts: dict[int, ir.Value] = {}
    truths: list[ir.Value] = []
    for place, axis in enumerate(mapped):
        start = column(graph, indices, place, len(mapped), rank)
        most = shape[axis] - slices[axis]
        if fill:
            truths.append(inside(graph, start, most))
        starts[axis] = within(graph, start, most)
    made = _window(site, x, starts) or _simple(site, x, starts) or _general(site, x, starts)
    if truths:
        return _filled(site, made, all_of(graph, truths))
    return made


def _filled(site: Site, made: ir.Value, truth: ir.Value) -> ir.Value:
    graph, dtype = site.graph, np.dtype(site.outs[0].dtype)
    filler: Any = site.params["fill_value"]
    if filler is None:
        if dtype.kind == "b":
            filler = True
        elif dtype.kind in "iu":
            filler = np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
        else:
            filler = np.nan
    offsets = [int(axis) for axis in site.params["dimension_numbers"].offset_dims]
    if offsets and len(site.ins[1].shape) > 1:
        truth = graph.op("Unsqueeze", truth, graph.constant(offsets, np.int64))
    return graph.op("Where", truth, made, graph.constant(filler, dtype))


def _part(graph: Graph, x: ir.Value, axis: int, first: ir.Value, size: Dim) -> ir.Value:
    """So many from the first on; rows are counted where their number is known, so that it stays known."""
    known = graph.known(first)
    if known is not None and is_known((size,)):
        begin = int(known.reshape(()))
        return slice_axes(graph, x, [axis], [begin], [begin + int(size)])
    first = graph.cast(first, np.int64)
    if is_known((size,)):
        return graph.op("Gather", x, graph.op("Add", first, counted(graph, size)), axis=axis)
    begins = graph.op("Reshape", first, graph.constant([1], np.int64))
    ends = graph.op("Add", begins, graph.size(size))
    return graph.op("Slice", x, begins, ends, graph.constant([axis], np.int64))


def _window(site: Site, x: ir.Value, starts: dict[int, ir.Value]) -> ir.Value | None:
    """One window alone: a part of every axis that is indexed."""
    graph, numbers = site.graph, site.params["dimension_numbers"]
    shape, slices = site.ins[0].shape, site.params["slice_sizes"]
    whole = all(same_size(n, shape[a]) for a, n in enumerate(slices) if a not in starts)
    if len(site.ins[1].shape) != 1 or numbers.operand_batching_dims or not whole:
        return None
    gone = sorted(int(axis) for axis in numbers.collapsed_slice_dims)
    for axis, first in starts.items():
        if not same_size(shape[axis], slices[axis]):
            x = _part(graph, x, axis, first, slices[axis])
    return graph.op("Squeeze", x, graph.constant(gone, np.int64)) if gone else x


def _simple(site: Site, x: ir.Value, starts: dict[int, ir.Value]) -> ir.Value | None:
    """One axis is indexed by single places, and all of the others are taken whole."""
    graph, numbers = site.graph, site.params["dimension_numbers"]
    shape, slices = site.ins[0].shape, site.params["slice_sizes"]
    if len(starts) != 1 or numbers.operand_batching_dims:
        return None
    ((axis, index),) = starts.items()
    others = [place for place in range(len(shape)) if place != axis]
    if list(numbers.collapsed_slice_dims) != [axis]:
        return None
    if not all(same_size(shape[place], slices[place]) for place in others):
        return None
    made = graph.op("Gather", x, index, axis=axis)
    batch = len(site.ins[1].shape) - 1
    offsets = sorted(int(place) for place in numbers.offset_dims)
    order, windows, singles = [], 0, 0
    for place in range(len(site.outs[0].shape)):
        if place in offsets:
            order.append(windows if windows < axis else windows + batch)
            windows += 1
        else:
            order.append(axis + singles)
            singles += 1
    return move_axes(graph, made, order)


def _general(site: Site, x: ir.Value, starts: dict[int, ir.Value]) -> ir.Value:
    graph, numbers = site.graph, site.params["dimension_numbers"]
    shape, slices = site.ins[0].shape, site.params["slice_sizes"]
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    paired = {int(axis): int(place) for axis, place in pairs}
    gone = {*map(int, numbers.collapsed_slice_dims), *paired}
    sizes = {axis: slices[axis] for axis in range(len(shape)) if axis not in gone}
    windows = Windows(shape, sizes, tuple(starts), paired, tuple(site.ins[1].shape[:-1]))
    x = move_axes(graph, x, (*windows.indexed, *windows.whole))
    made = graph.op("GatherND", x, grid(graph, windows.places(graph, starts), windows.dims))
    # Now [batch…, parts…, whole…]; windows go where offset_dims has them.
    batch = len(windows.batch)
    now = {axis: batch + i for i, axis in enumerate((*windows.parts, *windows.whole))}
    singles = iter(range(batch))
    targets = dict(zip(sorted(map(int, numbers.offset_dims)), sizes, strict=True))
    order = [
        now[targets[place]] if place in targets else next(singles)
        for place in range(len(site.outs[0].shape))
    ]
    return move_axes(graph, made, order)


@primitive("dynamic_slice")
def dynamic_slice(site: Site, x: ir.Value, *starts: ir.Value) -> ir.Value:
    """Rows counted from the start, so that sizes are known whatever the start is."""
    graph, shape, slices = site.graph, site.ins[0].shape, site.params["slice_sizes"]
    for axis, start in enumerate(starts[: len(shape)]):
        size = slices[axis]
        if same_size(shape[axis], size):
            continue
        x = _part(graph, x, axis, within(graph, start, shape[axis] - size), size)
    return x
