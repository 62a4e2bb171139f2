"""Operators that move elements: their output reads an input at another position."""

from __future__ import annotations

from sardonyx.loops.build import cast, where
from sardonyx.loops.index import remainder
from sardonyx.loops.nodes import Expr, apply
from sardonyx.ops.call import Call
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import Element, Nest, Position, Relabel, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.generating import number
from sardonyx.ops.lowerings.parameters import length_of, require_size, whole
from sardonyx.sizes import Size, product

__all__ = [
    "DEPTH_TO_SPACE",
    "DROPOUT",
    "EXPAND",
    "IDENTITY",
    "RELABEL",
    "RESHAPE",
    "SHAPE",
    "SIZE",
    "SPACE_TO_DEPTH",
    "TILE",
    "TRANSPOSE",
    "is_foretold",
]

MAX_UNROLLED = 8  # a block's columns that are written out one by one


def _check_count(site: Site) -> None:
    """Symbolic sizes may turn out not to fit: an axis to squeeze that is not 1, say."""
    before, after = product(site.shape(0)), product(site.out_shape())
    require_equal(site, before, after, "the numbers of elements before and after")


def is_foretold(call: Call, shape: Shape) -> bool:
    """Whether it is certain that a Reshape gives this shape, as far as its target says so."""
    target = None if call.version < 5 else call.vector(1)
    if target is None:
        return call.version < 5
    return all(size in (0, -1) or size == own for size, own in zip(target, shape, strict=True))


def _check_reshape(site: Site) -> None:
    _check_count(site)
    if is_foretold(site.call, site.out_shape()):
        return
    b, shape, inferred = site.b, site.shape(0), site.b.size(0)
    copies = not site.call.int_attr("allowzero")
    for axis, size in enumerate(site.out_shape()):
        target = whole(site, 1, axis)
        hole = b.let(apply("eq", target, -1))
        inferred = b.let(inferred + cast(hole, "i64"))
        b.fail_if(inferred > 1, "the shape has {value} entries of -1", inferred)
        found = where(hole, b.size(size), target)
        if copies and axis < len(shape):
            found = where(apply("eq", target, 0), b.size(shape[axis]), found)
        require_size(site, b.let(found), size, f"axis {axis} of the shape")


def _identity(site: Site, position: Position) -> Expr:
    return site.read(0, position)


def _dropout(site: Site, position: Position) -> Expr:
    """Nothing is dropped, but for training; the mask says so."""
    call = site.call
    if call.version < 7 and not call.int_attr("is_test"):
        site.refuse("this Dropout trains")
    if call.version >= 12 and call.has(2) and call.scalar(2) is not False:
        site.refuse("whether this Dropout trains is not known before it runs")
    if call.version >= 12 and call.has(1):
        with site.b.once():
            ratio = site.operand(1, (0,) * len(site.shape(1)))
            inside = (ratio >= 0) & (ratio < 1)
            site.b.fail_if(~inside, "the ratio, about {value}, is outside 0 … 1", ratio)
    return number(1, site.out_dtype(1)) if site.output else site.read(0, position)


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
    return site.read(0, site.spread(site.shape(0), position, site.out_shape()))


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

    def move(n: Size, c: Size, y: Size, dy: Size, x: Size, dx: Size) -> None:
        inside = dy * block + dx
        channel = c * block * block + inside if columns_first else inside * depth + c
        site.store((n, c, y * block + dy, x * block + dx), site.read(0, (n, channel, y, x)))

    if site.channels_last:
        extents = (batch, height, block, width, block)
        with b.parallel(extents, depth * 4) as (n, y, dy, x, dx), b.loop(depth, "vector") as c:
            move(n, c, y, dy, x, dx)
        return
    kind = "unroll" if block <= MAX_UNROLLED else "serial"
    with (
        b.parallel((batch, depth, height, block), width * block * 4) as (n, c, y, dy),
        b.loop(width, "vector") as x,
        b.loop(block, kind) as dx,  # type: ignore[arg-type]
    ):
        move(n, c, y, dy, x, dx)


def _space_to_depth(site: Site) -> None:
    b, block = site.b, site.call.int_attr("blocksize")
    batch, channels, rows, columns = site.shape(0)
    height, width = site.out_shape()[2:]
    require_equal(site, height * block, rows, "rows and the blocks' rows")
    require_equal(site, width * block, columns, "columns and the blocks' columns")
    columns_first = site.call.str_attr("mode", "DCR") == "CRD"

    def move(n: Size, c: Size, y: Size, dy: Size, x: Size, dx: Size) -> None:
        inside = dy * block + dx
        channel = c * block * block + inside if columns_first else inside * channels + c
        source = (n, c, y * block + dy, x * block + dx)
        site.store((n, channel, y, x), site.read(0, source))

    if site.channels_last:
        pixels = (batch, height, width, block, block)
        with (
            b.parallel(pixels, channels * 4) as (n, y, x, dy, dx),
            b.loop(channels, "vector") as c,
        ):
            move(n, c, y, dy, x, dx)
        return
    extents = (batch, block, block, channels, height)
    with b.parallel(extents, width * 4) as (n, dy, dx, c, y), b.loop(width, "vector") as x:
        move(n, c, y, dy, x, dx)


# Sizes as data


def _shape(site: Site) -> None:
    end = site.call.attr("end")
    shape = site.shape(0)[site.call.int_attr("start") : None if end is None else int(end)]
    for axis, size in enumerate(shape):
        site.store((axis,), site.b.size(size))


def _size(site: Site, position: Position) -> Expr:
    return site.b.size(product(site.shape(0)))


# Not a Relabel: what lies channels last stays so.
IDENTITY = Element(_identity, weight=0, pointwise=True, narrow=True)
RELABEL = Relabel(_check_count)
RESHAPE = Relabel(_check_reshape)
DROPOUT = Element(_dropout, weight=0, pointwise=True)
TRANSPOSE = Element(_transpose, weight=0, narrow=True)
EXPAND = Element(_expand, weight=0)
TILE = Element(_tile, weight=1)
DEPTH_TO_SPACE = Nest(_depth_to_space, reads_once=True)
SPACE_TO_DEPTH = Nest(_space_to_depth, reads_once=True)
SHAPE = Nest(_shape)
SIZE = Element(_size, weight=0)
