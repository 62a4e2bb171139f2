"""Operators that copy a tensor and then put elements where data says.

Updates of one place are applied in the order in which they stand, on one thread, whatever their number:
the result is the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sardonyx.loops.build import cast
from sardonyx.loops.index import flatten, unflatten
from sardonyx.loops.nodes import Expr, apply
from sardonyx.ops.lowering import Nest, Position, Site
from sardonyx.ops.lowerings.checks import checked_index, require_at_most, require_equal
from sardonyx.ops.lowerings.copying import COST, copy_all
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.sizes import Size, product

__all__ = ["SCATTER_ELEMENTS", "SCATTER_ND", "TENSOR_SCATTER"]

Put: TypeAlias = Callable[[Position, Expr], None]
Updates: TypeAlias = Callable[[Site, Put], None]

COMBINE = {"add": "add", "mul": "mul", "max": "max", "min": "min"}


def _scattered(updates: Updates) -> Nest:
    def build(site: Site) -> None:
        reduction = site.call.str_attr("reduction", "none")
        if reduction == "none":
            with copy_all(site.b, site.shape(0)) as at:
                site.store(at, site.read(0, at))
            updates(site, site.store)
        elif reduction in COMBINE:
            _reduced(site, COMBINE[reduction], updates)
        else:
            site.refuse(f"{site.call.node.op_type} has no reduction {reduction!r}")

    return Nest(build, stores_once=False)


def _reduced(site: Site, op: str, updates: Updates) -> None:
    """Sums build up in memory of their own, in the type that arithmetic uses."""
    b, shape, dtype = site.b, site.shape(0), sum_dtype(site.dtype(0))
    if dtype == "bool":
        site.refuse(f"truth values have no reduction {op!r}")
    totals = site.scratch(dtype, product(shape))
    with copy_all(b, shape) as at:
        b.store(totals, flatten(at, shape), site.operand(0, at))

    def combine(position: Position, update: Expr) -> None:
        place = flatten(position, shape)
        b.store(totals, place, apply(op, b.load(totals, place), cast(update, dtype)))

    updates(site, combine)
    with copy_all(b, shape) as at:
        site.store(at, b.load(totals, flatten(at, shape)))


def _update_elements(site: Site, put: Put) -> None:
    """Only updates along the axis can meet at one place: the rest of the axes run in parallel."""
    b, data, indices = site.b, site.shape(0), site.shape(1)
    axis = site.call.axis(site.call.int_attr("axis"), len(data))
    for other, (size, count) in enumerate(zip(indices, site.shape(2), strict=True)):
        require_equal(site, size, count, f"the sizes of indices and updates of axis {other}")
        if other != axis:
            require_at_most(site, size, data[other], f"the size of indices of axis {other}")
    rest = (*indices[:axis], *indices[axis + 1 :])
    with b.parallel(rest, indices[axis] * COST) as around, b.loop(indices[axis]) as along:
        at = (*around[:axis], along, *around[axis:])
        index = checked_index(site, site.read(1, at), data[axis])
        put((*at[:axis], index, *at[axis + 1 :]), site.read(2, at))


def _update_slices(site: Site, put: Put) -> None:
    b, data, indices = site.b, site.shape(0), site.shape(1)
    depth = indices[-1]
    if not isinstance(depth, int):
        site.refuse("how many coordinates an index has is not known before it runs")
    expected = (*indices[:-1], *data[depth:])
    for axis, (size, wanted) in enumerate(zip(site.shape(2), expected, strict=True)):
        require_equal(site, size, wanted, f"axis {axis} of updates and what indices select")
    inner = data[depth:]
    with b.loops(indices[:-1]) as at:
        found = [
            checked_index(site, site.read(1, (*at, column)), data[column])
            for column in range(depth)
        ]
        with b.loop(product(inner), "vector") as flat:
            rest = unflatten(flat, inner, b.ranges)
            put((*found, *rest), site.read(2, (*at, *rest)))


def _tensor_scatter(site: Site) -> None:
    """Every row of the cache comes from the update, or from what was there before."""
    b, call, cache, update = site.b, site.call, site.shape(0), site.shape(1)
    axis = call.axis(call.int_attr("axis", -2), len(cache))
    mode = call.str_attr("mode", "linear")
    if mode not in ("linear", "circular") or axis == 0:
        site.refuse(f"TensorScatter has no mode {mode!r} along axis {axis}")
    for other, (size, wanted) in enumerate(zip(update, cache, strict=True)):
        if other != axis:
            require_equal(site, size, wanted, f"the sizes of update and cache of axis {other}")
    require_at_most(site, update[axis], cache[axis], "the length of update")
    if call.has(2):
        require_equal(site, site.shape(2)[0], cache[0], "write_indices and the batch")
    inner = cache[axis + 1 :]
    count, limit = b.size(update[axis]), b.size(cache[axis])
    with b.parallel(cache[: axis + 1], product(inner) * COST) as at:
        first = b.let(site.read(2, (at[0],)) if call.has(2) else b.size(0))
        last = first + count if mode == "linear" else first
        outside = (first < 0) | (last > limit) if mode == "linear" else first < 0
        b.fail_if(outside, "a write at {value} passes the cache of {limit}", first, limit)
        offset = b.size(at[axis]) - first
        offset = b.let(apply("mod", offset, limit) if mode == "circular" else offset)
        with b.when((offset >= 0) & (offset < count)):
            row = b.index(offset, update[axis])
            _copy_row(site, 1, at, (*at[:axis], row), inner)
        with b.otherwise():
            _copy_row(site, 0, at, at, inner)


def _copy_row(
    site: Site, index: int, target: Position, source: Position, inner: tuple[Size, ...]
) -> None:
    with site.b.loop(product(inner), "vector") as flat:
        rest = unflatten(flat, inner, site.b.ranges)
        site.store((*target, *rest), site.read(index, (*source, *rest)))


SCATTER_ELEMENTS = _scattered(_update_elements)
SCATTER_ND = _scattered(_update_slices)
TENSOR_SCATTER = Nest(_tensor_scatter, reads_once=True)
