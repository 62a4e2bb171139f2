"""scatter in its kinds and dynamic_update_slice: ScatterND over the grid of all places that are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import dtype_of
from sardonyx.conversion.jax.primitives.indices import (
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
    paired = dict(
        zip(
            map(int, numbers.operand_batching_dims),
            map(int, numbers.scatter_indices_batching_dims),
            strict=True,
        )
    )
    inserted = {int(axis) for axis in numbers.inserted_window_dims}
    mapped = [int(axis) for axis in numbers.scatter_dims_to_operand_dims]
    window = [axis for axis in range(len(shape)) if axis not in inserted and axis not in paired]
    placed = dict(zip(window, sorted(map(int, numbers.update_window_dims)), strict=True))
    sizes = {axis: given[placed[axis]] for axis in window}
    whole = [a for a in window if a not in mapped and same_size(shape[a], sizes[a])]
    parts = [axis for axis in window if axis not in whole]
    indexed = [axis for axis in range(len(shape)) if axis not in whole]
    singles = [place for place in range(len(given)) if place not in placed.values()]
    dims = (*(given[place] for place in singles), *(sizes[axis] for axis in parts))
    fill = fills(site.params["mode"])
    indices = graph.cast(indices, np.int64)
    places: list[ir.Value] = []
    truths: list[ir.Value] = []
    for axis in indexed:
        terms = []
        if axis in mapped:
            start = column(graph, indices, mapped.index(axis), len(mapped), len(site.ins[1].shape))
            most = shape[axis] - sizes.get(axis, 1)
            if fill:
                truths.append(inside(graph, start, most))
            start = within(graph, start, most)
            terms.append(lifted(graph, start, len(singles), len(dims)))
        if axis in paired:
            terms.append(along(graph, counted(graph, shape[axis]), paired[axis], len(dims)))
        if axis in parts and not same_size(sizes[axis], 1):
            own = len(singles) + parts.index(axis)
            terms.append(along(graph, counted(graph, sizes[axis]), own, len(dims)))
        places.append(
            graph.op("Add", *terms)
            if len(terms) == 2
            else (terms or [graph.constant(0, np.int64)])[0]
        )
    x = move_axes(graph, x, (*indexed, *whole))
    order = (*singles, *(placed[axis] for axis in (*parts, *whole)))
    updates = move_axes(graph, updates, order)
    if not indexed:
        indexed_rows = _whole(site, x, updates, kind, truths)
        return move_axes(graph, indexed_rows, np.argsort((*indexed, *whole)).tolist())
    spare = False
    if truths:
        truth = lifted(graph, all_of(graph, truths), len(singles), len(dims))
        if kind == "none":  # what falls outside is written to a row of its own, and cut away
            spare = True
            row = graph.scalar_size(shape[indexed[0]])
            places[0] = graph.op("Where", truth, places[0], row)
            pads = [0] * (2 * len(shape))
            pads[len(shape)] = 1
            x = graph.op("Pad", x, graph.constant(pads, np.int64))
        else:
            neutral = graph.constant(_neutral(kind, dtype_of(x)), like=x)
            updates = graph.op(
                "Where", lifted(graph, truth, len(dims), len(given)), updates, neutral
            )
    made = graph.op("ScatterND", x, grid(graph, places, dims), updates, reduction=kind)
    if spare:
        made = slice_axes(graph, made, [0], [0], [shape[indexed[0]]])
    return move_axes(graph, made, np.argsort((*indexed, *whole)).tolist())


def _whole(
    site: Site, x: ir.Value, updates: ir.Value, kind: str, truths: list[ir.Value]
) -> ir.Value:
    """Nothing is indexed: the updates cover everything."""
    if kind == "none":
        return updates
    return site.graph.op({"add": "Add", "mul": "Mul", "min": "Min", "max": "Max"}[kind], x, updates)


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
