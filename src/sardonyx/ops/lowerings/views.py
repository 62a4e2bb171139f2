"""Operators that move elements: their output reads an input at another position."""

from __future__ import annotations

from sardonyx.loops.build import where
from sardonyx.loops.index import remainder
from sardonyx.loops.nodes import Expr, apply
from sardonyx.ops.lowering import Element, Nest, Position, Relabel, Site, broadcast_position
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.parameters import length_of, require_size, whole
from sardonyx.sizes import Size, product

__all__ = [
    "DEPTH_TO_SPACE",
    "EXPAND",
    "RELABEL",
    "SHAPE",
    "SIZE",
    "SPACE_TO_DEPTH",
    "TILE",
    "TRANSPOSE",
]

RELABEL = Relabel()
MAX_UNROLLED = 8  # a block's columns that are written out one by one


def _transpose(site: Site, position: Position) -> Expr:
    rank = len(site.shape(0))
    perm = site.call.ints_attr("perm") or tuple(reversed(range(rank)))
    source: list[Size] = [0] * rank
    for axis, from_axis in enumerate(perm):
        source[from_axis] = position[axis]
    return site.read(0, source)


def _expand(site: Site, position: Position) -> Expr:
    if site.call.vector(1) is None:
        _check_expanded(site)
    return site.read(0, broadcast_position(site.shape(0), position, site.out_shape()))


def _check_expanded(site: Site) -> None:
    """The shape is data: a 1 in it leaves a dimension as it is."""
    b, shape, out = site.b, site.shape(0), site.out_shape()
    wanted = length_of(site, 1)
    for at in range(wanted):
        target, axis = whole(site, 1, at), len(out) - wanted + at
        from_end = wanted - at
        kept = b.size(shape[-from_end] if from_end <= len(shape) else 1)
        with b.once():
            size = b.let(where(apply("eq", target, 1), kept, target))
        require_size(site, size, out[axis], f"axis {axis} of the expanded shape")


def _tile(site: Site, position: Position) -> Expr:
    _check_repeats(site)
    source: list[Size] = []
    for at, size, repeated in zip(position, site.shape(0), site.out_shape(), strict=True):
        if size == repeated:
            source.append(at)
        else:
            source.append(0 if size in (0, 1) else remainder(at, size, site.b.ranges))
    return site.read(0, source)


def _check_repeats(site: Site) -> None:
    if site.call.version < 6:
        if site.call.whole(1) is None or not isinstance(site.call.whole(2), int):
            site.refuse("how often which axis is repeated is not known before it runs")
    elif site.call.vector(1) is None:
        for axis, (size, repeated) in enumerate(zip(site.shape(0), site.out_shape(), strict=True)):
            with site.b.once():
                result = site.b.let(whole(site, 1, axis) * site.b.size(size))
            require_size(site, result, repeated, f"axis {axis}, repeated,")


# Depth and space


def _depth_to_space(site: Site) -> None:
    """Rows of the output are woven from `block` rows of the input."""
    b, block = site.b, site.call.int_attr("blocksize")
    batch, channels, height, width = site.shape(0)
    depth = site.out_shape()[1]
    require_equal(site, depth * block * block, channels, "channels and the blocks' elements")
    columns_first = site.call.str_attr("mode", "DCR") == "CRD"
    kind = "unroll" if block <= MAX_UNROLLED else "serial"
    with (
        b.parallel((batch, depth, height, block), width * block * 4) as (n, c, y, dy),
        b.loop(width, "vector") as x,
        b.loop(block, kind) as dx,  # type: ignore[arg-type]
    ):
        inside = dy * block + dx
        channel = c * block * block + inside if columns_first else inside * depth + c
        site.store((n, c, y * block + dy, x * block + dx), site.read(0, (n, channel, y, x)))


def _space_to_depth(site: Site) -> None:
    b, block = site.b, site.call.int_attr("blocksize")
    batch, channels, rows, columns = site.shape(0)
    height, width = site.out_shape()[2:]
    require_equal(site, height * block, rows, "rows and the blocks' rows")
    require_equal(site, width * block, columns, "columns and the blocks' columns")
    extents = (batch, block, block, channels, height)
    with b.parallel(extents, width * 4) as (n, dy, dx, c, y), b.loop(width, "vector") as x:
        target = (n, (dy * block + dx) * channels + c, y, x)
        site.store(target, site.read(0, (n, c, y * block + dy, x * block + dx)))


# Sizes as data


def _shape(site: Site) -> None:
    end = site.call.attr("end")
    shape = site.shape(0)[site.call.int_attr("start") : None if end is None else int(end)]
    for axis, size in enumerate(shape):
        site.store((axis,), site.b.size(size))


def _size(site: Site, position: Position) -> Expr:
    return site.b.size(product(site.shape(0)))


TRANSPOSE = Element(_transpose, weight=0)
EXPAND = Element(_expand, weight=0)
TILE = Element(_tile, weight=1)
DEPTH_TO_SPACE = Nest(_depth_to_space, reads_once=True)
SPACE_TO_DEPTH = Nest(_space_to_depth, reads_once=True)
SHAPE = Nest(_shape)
SIZE = Element(_size, weight=0)
