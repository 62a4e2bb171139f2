"""Primitives that move elements and compute none: shapes, axes, parts, padding; and numbers counted up."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import Dim, Graph, is_known
from sardonyx.conversion.jax.table import Site, primitive

__all__ = ["move_axes", "reshape_to", "slice_axes"]

_MOST_COUNTED = 1 << 12  # elements of a counted constant


def reshape_to(graph: Graph, x: ir.Value, dims: tuple[Dim, ...]) -> ir.Value:
    """Other axes of the same elements; one size that is no number need not be computed."""
    known = graph.known(x)
    if known is not None and x in graph.names and is_known(dims):
        return graph.view(x, known.reshape([int(dim) for dim in dims]))
    unknown = [axis for axis, dim in enumerate(dims) if not is_known((dim,))]
    if len(unknown) == 1 and 0 not in [dim for dim in dims if is_known((dim,))]:
        dims = tuple(-1 if axis == unknown[0] else dim for axis, dim in enumerate(dims))
    return graph.op("Reshape", x, graph.sizes(dims))


def move_axes(graph: Graph, x: ir.Value, order: tuple[int, ...] | list[int]) -> ir.Value:
    """Transposed, unless the order is the one that there is."""
    if list(order) == list(range(len(order))):
        return x
    known = graph.known(x)
    if known is not None and x in graph.names:
        return graph.view(x, np.ascontiguousarray(known.transpose([int(axis) for axis in order])))
    return graph.op("Transpose", x, perm=[int(axis) for axis in order])


def slice_axes(
    graph: Graph,
    x: ir.Value,
    axes: list[int],
    starts: list[Dim],
    ends: list[Dim],
    steps: list[int] | None = None,
) -> ir.Value:
    if not axes:
        return x
    strides = graph.constant(steps, np.int64) if steps and set(steps) != {1} else None
    where = graph.constant(axes, np.int64)
    return graph.op("Slice", x, graph.sizes(starts), graph.sizes(ends), where, strides)


@primitive("reshape")
def reshape(site: Site, x: ir.Value) -> ir.Value:
    if site.params["dimensions"] is not None:
        x = move_axes(site.graph, x, site.params["dimensions"])
    return reshape_to(site.graph, x, site.outs[0].shape)


@primitive("transpose")
def transpose(site: Site, x: ir.Value) -> ir.Value:
    return move_axes(site.graph, x, site.params["permutation"])


@primitive("squeeze")
def squeeze(site: Site, x: ir.Value) -> ir.Value:
    if not site.params["dimensions"]:
        return x
    if x in site.graph.names:
        return reshape_to(site.graph, x, site.outs[0].shape)
    axes = [int(axis) for axis in site.params["dimensions"]]
    return site.graph.op("Squeeze", x, site.graph.constant(axes, np.int64))


@primitive("expand_dims")
def expand_dims(site: Site, x: ir.Value) -> ir.Value:
    axes = [int(axis) for axis in site.params["dimensions"]]
    return site.graph.op("Unsqueeze", x, site.graph.constant(axes, np.int64))


@primitive("broadcast_in_dim")
def broadcast(site: Site, x: ir.Value, *_: ir.Value) -> ir.Value:
    """New axes first, then as large as they are to be."""
    graph, kept = site.graph, [int(axis) for axis in site.params["broadcast_dimensions"]]
    wanted, given = site.outs[0].shape, site.ins[0].shape
    known = graph.known(x)
    if known is not None and known.size == 1 and is_known(wanted) and _count(wanted) <= 64:
        return graph.constant(np.full([int(d) for d in wanted], known.reshape(())[()], known.dtype))
    fresh = [axis for axis in range(len(wanted)) if axis not in kept]
    if fresh and given:
        x = _kept(graph, x, fresh) or _unsqueezed(graph, x, fresh, len(wanted))
    placed = dict(zip(kept, given, strict=True))
    if all(
        placed.get(axis, 1) is dim or _same(placed.get(axis, 1), dim)
        for axis, dim in enumerate(wanted)
    ) and (given or not wanted):
        return x
    return graph.op("Expand", x, graph.sizes(wanted))


def _unsqueezed(graph: Graph, x: ir.Value, axes: list[int], rank: int) -> ir.Value:
    if x in graph.names:
        known = graph.known(x)
        sizes = iter(() if known is None else known.shape)
        return reshape_to(graph, x, tuple(1 if a in axes else next(sizes) for a in range(rank)))
    return graph.op("Unsqueeze", x, graph.constant(axes, np.int64))


def _kept(graph: Graph, x: ir.Value, axes: list[int]) -> ir.Value | None:
    """A reduction whose axes come back is one that keeps them."""
    node = x.producer()
    if node is None or not node.op_type.startswith("Reduce") or len(node.inputs) < 2:
        return None
    reduced = None if node.inputs[1] is None else graph.known(node.inputs[1])
    if reduced is None or reduced.tolist() != axes or node.attributes["keepdims"].as_int():
        return None
    return graph.op(node.op_type, *node.inputs, keepdims=1)


def _same(a: Dim, b: Dim) -> bool:
    return bool(is_known((a,)) == is_known((b,)) and a == b)


def _count(dims: tuple[Dim, ...]) -> int:
    return int(np.prod([int(dim) for dim in dims], dtype=np.int64))


@primitive("concatenate")
def concatenate(site: Site, *parts: ir.Value) -> ir.Value:
    return site.graph.op("Concat", *parts, axis=int(site.params["dimension"]))


@primitive("stack")
def stack(site: Site, *parts: ir.Value) -> ir.Value:
    axis = int(site.params["axis"])
    new = site.graph.constant([axis], np.int64)
    return site.graph.op("Concat", *(site.graph.op("Unsqueeze", p, new) for p in parts), axis=axis)


@primitive("split")
def split(site: Site, x: ir.Value) -> list[ir.Value]:
    sizes = site.graph.sizes(site.params["sizes"])
    axis = int(site.params["axis"])
    return list(site.graph.node("Split", [x, sizes], [None] * len(site.outs), axis=axis))


@primitive("slice")
def slice_(site: Site, x: ir.Value) -> ir.Value:
    starts, ends = site.params["start_indices"], site.params["limit_indices"]
    steps = site.params["strides"] or (1,) * len(starts)
    shape = site.ins[0].shape
    axes = [
        axis
        for axis in range(len(shape))
        if not (_same(starts[axis], 0) and _same(ends[axis], shape[axis]) and steps[axis] == 1)
    ]
    return slice_axes(
        site.graph,
        x,
        axes,
        [starts[axis] for axis in axes],
        [ends[axis] for axis in axes],
        [int(steps[axis]) for axis in axes],
    )


@primitive("rev")
def reverse(site: Site, x: ir.Value) -> ir.Value:
    axes = [int(axis) for axis in site.params["dimensions"]]
    count, lowest = len(axes), np.iinfo(np.int64).min
    return slice_axes(site.graph, x, axes, [-1] * count, [int(lowest)] * count, [-1] * count)


@primitive("pad")
def pad(site: Site, x: ir.Value, value: ir.Value) -> ir.Value:
    """Between the elements first, then around them; widths below 0 cut."""
    graph, widths = site.graph, site.params["padding_config"]
    shape = list(site.ins[0].shape)
    for axis, (_, _, between) in enumerate(widths):
        if between:
            x = _spread(graph, x, value, shape, axis, int(between))
            shape[axis] = shape[axis] * (between + 1) - between
    lows, highs = [w[0] for w in widths], [w[1] for w in widths]
    if all(_same(width, 0) for width in (*lows, *highs)):
        return x
    return graph.op("Pad", x, graph.sizes((*lows, *highs)), value)


def _spread(
    graph: Graph, x: ir.Value, value: ir.Value, shape: list[Dim], axis: int, between: int
) -> ir.Value:
    """[a, b] → [a, 0, b]: an axis of its own for the gaps, joined with the elements' and cut behind the last."""
    x = graph.op("Unsqueeze", x, graph.constant([axis + 1], np.int64))
    rank = len(shape) + 1
    ends = [between if place == axis + 1 else 0 for place in range(rank)]
    x = graph.op("Pad", x, graph.constant([0] * rank + ends, np.int64), value)
    joined = (*shape[:axis], shape[axis] * (between + 1), *shape[axis + 1 :])
    x = reshape_to(graph, x, tuple(joined))
    return slice_axes(graph, x, [axis], [0], [shape[axis] * (between + 1) - between])


@primitive("iota")
def iota(site: Site, *_: ir.Value) -> ir.Value:
    graph, shape = site.graph, site.outs[0].shape
    axis, dtype = int(site.params["dimension"]), np.dtype(site.params["dtype"])
    length = shape[axis]
    if is_known((length,)) and length <= _MOST_COUNTED:
        row = graph.constant(np.arange(int(length)).astype(dtype))
    else:
        zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
        row = graph.cast(graph.op("Range", zero, graph.scalar_size(length), one), dtype)
    if len(shape) == 1:
        return row
    placed = [-1 if place == axis else 1 for place in range(len(shape))]
    row = graph.op("Reshape", row, graph.constant(placed, np.int64))
    return graph.op("Expand", row, graph.sizes(shape))


@primitive("dim_as_value")
def size_as_number(site: Site) -> ir.Value:
    return site.graph.cast(site.graph.scalar_size(site.params["dim"]), site.outs[0].dtype)


@primitive("shape_as_value")
def shape_as_numbers(site: Site) -> ir.Value:
    return site.graph.cast(site.graph.sizes(site.params["shape"]), site.outs[0].dtype)


@primitive("tile")
def tile(site: Site, x: ir.Value) -> ir.Value:
    return site.graph.op("Tile", x, site.graph.sizes(site.params["reps"]))
