"""scatter in its kinds and dynamic_update_slice: ScatterND over the grid of all places that are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import dtype_of
from sardonyx.conversion.jax.primitives.indices import (
    Windows,
    all_of,
    along,
    column,
    counted,
    fills,
    grid,
    inside,
    lifted,
    same_size,
    within,
)
from sardonyx.conversion.jax.primitives.views import move_axes, slice_axes
from sardonyx.conversion.jax.table import Site, primitive

__all__: list[str] = []

_REDUCTIONS = {
    "scatter": "none",
    "scatter-add": "add",
    "scatter_add": "add",
    "scatter-sub": "add",
    "scatter_sub": "add",
    "scatter-mul": "mul",
    "scatter_mul": "mul",
    "scatter-min": "min",
    "scatter_min": "min",
    "scatter-max": "max",
    "scatter_max": "max",
}


@primitive(*_REDUCTIONS)
def scatter(site: Site, x: ir.Value, indices: ir.Value, updates: ir.Value) -> ir.Value:
    graph, own, kind = site.graph, dtype_of(x), _REDUCTIONS[site.name]
    if kind == "none" and not _replaces(site.params["update_jaxpr"]):
        raise site.refuse("elements are changed by a function of the user's own (scatter_apply).")
    if own == np.bool_ and kind != "none":
        x, updates = graph.cast(x, np.int32), graph.cast(updates, np.int32)
    if site.name.endswith("sub"):
        updates = graph.op("Neg", updates)
    return graph.cast(_scatter(site, x, indices, updates, kind), own)


def _replaces(jaxpr: Any) -> bool:
    """Whether the new element stands for the old one."""
    return jaxpr is None or (not jaxpr.eqns and jaxpr.outvars[0] is jaxpr.invars[1])


def _scatter(site: Site, x: ir.Value, indices: ir.Value, updates: ir.Value, kind: str) -> ir.Value:
    graph, numbers = site.graph, site.params["dimension_numbers"]
    shape, given = site.ins[0].shape, site.ins[2].shape
    pairs = zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    paired = {int(axis): int(place) for axis, place in pairs}
    gone = {*map(int, numbers.inserted_window_dims), *paired}
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    placed = dict(zip(kept, sorted(map(int, numbers.update_window_dims)), strict=True))
    singles = [place for place in range(len(given)) if place not in placed.values()]
    windows = Windows(
        shape,
        {axis: given[place] for axis, place in placed.items()},
        tuple(map(int, numbers.scatter_dims_to_operand_dims)),
        paired,
        tuple(given[place] for place in singles),
    )
    order = (*windows.indexed, *windows.whole)
    x = move_axes(graph, x, order)
    back = [placed[axis] for axis in (*windows.parts, *windows.whole)]
    updates = move_axes(graph, updates, (*singles, *back))
    if windows.indexed:
        made = _written(site, x, indices, updates, windows, kind)
    else:  # the updates cover everything
        made = updates if kind == "none" else graph.op(kind.capitalize(), x, updates)
    return move_axes(graph, made, np.argsort(order).tolist())


def _written(
    site: Site, x: ir.Value, indices: ir.Value, updates: ir.Value, windows: Windows, kind: str
) -> ir.Value:
    """[indexed…, whole…] with the updates [windows…, parts…, whole…] written into it."""
    graph, rank = site.graph, len(site.ins[1].shape)
    indices = graph.cast(indices, np.int64)
    starts: dict[int, ir.Value] = {}
    truths: list[ir.Value] = []
    for place, axis in enumerate(windows.mapped):
        start = column(graph, indices, place, len(windows.mapped), rank)
        most = windows.shape[axis] - windows.sizes.get(axis, 1)
        starts[axis] = within(graph, start, most)
        if fills(site.params["mode"]):
            truths.append(inside(graph, start, most))
    places = windows.places(graph, starts)
    if not truths:
        return graph.op("ScatterND", x, grid(graph, places, windows.dims), updates, reduction=kind)
    truth = lifted(graph, all_of(graph, truths), len(windows.batch), len(windows.dims))
    if kind != "none":
        neutral = graph.constant(_neutral(kind, dtype_of(x)), like=x)
        kept = lifted(graph, truth, len(windows.dims), len(site.ins[2].shape))
        updates = graph.op("Where", kept, updates, neutral)
        return graph.op("ScatterND", x, grid(graph, places, windows.dims), updates, reduction=kind)
    # What falls outside is written to a row of its own, which is cut away.
    rows = windows.shape[windows.indexed[0]]
    places[0] = graph.op("Where", truth, places[0], graph.scalar_size(rows))
    pads = [0] * (2 * len(windows.shape))
    pads[len(windows.shape)] = 1
    x = graph.op("Pad", x, graph.constant(pads, np.int64))
    made = graph.op("ScatterND", x, grid(graph, places, windows.dims), updates)
    return slice_axes(graph, made, [0], [0], [rows])


def _neutral(kind: str, dtype: np.dtype[Any]) -> Any:
    if kind in ("add", "mul"):
        return 0 if kind == "add" else 1
    if dtype.kind in "iu":
        return np.iinfo(dtype).max if kind == "min" else np.iinfo(dtype).min
    return np.inf if kind == "min" else -np.inf


@primitive("dynamic_update_slice")
def dynamic_update_slice(site: Site, x: ir.Value, update: ir.Value, *starts: ir.Value) -> ir.Value:
    graph, shape, sizes = site.graph, site.ins[0].shape, site.ins[1].shape
    parts = [axis for axis in range(len(shape)) if not same_size(shape[axis], sizes[axis])]
    if not parts:
        return update
    whole = [axis for axis in range(len(shape)) if axis not in parts]
    dims = tuple(sizes[axis] for axis in parts)
    places = []
    for place, axis in enumerate(parts):
        first = within(graph, graph.cast(starts[axis], np.int64), shape[axis] - sizes[axis])
        rows = along(graph, counted(graph, sizes[axis]), place, len(parts))
        places.append(graph.op("Add", first, rows))
    order = (*parts, *whole)
    made = graph.op(
        "ScatterND",
        move_axes(graph, x, order),
        grid(graph, places, dims),
        move_axes(graph, update, order),
    )
    return move_axes(graph, made, np.argsort(order).tolist())
