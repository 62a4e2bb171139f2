"""Elements that data choose: NonZero and Compress.

count   parallel over blocks of elements: how many of the block are chosen
        serial over the blocks: where each block's share of the result begins
build   parallel over blocks: the chosen ones, from there on
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.loops.build import Builder, cast
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Counted, Position, Site
from sardonyx.ops.lowerings.windows import place_at
from sardonyx.sizes import Size, ceil_div, min_of, product

__all__ = ["COMPRESS", "NON_ZERO"]

BLOCK = 4096


def _count_chosen(site: Site, size: Size, chosen: Callable[[Size], Expr]) -> Expr:
    """How many of `size` elements are chosen; keeps where each block's share begins."""
    b, blocks = site.b, ceil_div(size, BLOCK)
    begins = site.kept("i64", blocks)
    with b.parallel((blocks,), 2 * BLOCK) as (block,):
        found = b.local(const(0, "i64"))
        start = block * BLOCK
        with b.loop(min_of(size - start, BLOCK), "vector") as turn:
            b.set(found, found + cast(chosen(place_at(b, start + turn, size)), "i64"))
        b.store(begins, block, found)
    total = b.local(const(0, "i64"))
    with b.loop(blocks) as block:
        here = b.let(b.load(begins, block))
        b.store(begins, block, total)
        b.set(total, total + here)
    return total


def _for_chosen(
    site: Site, size: Size, chosen: Callable[[Size], Expr], total: Size, body: _Body
) -> None:
    """body(where it is, which of the chosen it is), for each of them."""
    b, blocks = site.b, ceil_div(size, BLOCK)
    begins = site.kept("i64", blocks)
    with b.parallel((blocks,), 4 * BLOCK) as (block,):
        number = b.local(b.load(begins, block))
        start = block * BLOCK
        with b.loop(min_of(size - start, BLOCK)) as turn:
            at = place_at(b, start + turn, size)
            with b.when(chosen(at)):
                body(b, at, b.index(number, total))
                b.set(number, number + 1)


_Body = Callable[[Builder, Size, Size], None]


def _is_not_zero(site: Site, at: Size) -> Expr:
    return apply("ne", site.operand(0, unflatten(at, site.shape(0), site.b.ranges)), 0)


def _count_non_zero(site: Site) -> Expr:
    return _count_chosen(site, product(site.shape(0)), lambda at: _is_not_zero(site, at))


def _non_zero(site: Site) -> None:
    shape = site.shape(0)

    def store(b: Builder, at: Size, number: Size) -> None:
        for axis, index in enumerate(unflatten(at, shape, b.ranges)):
            site.store((axis, number), b.size(index))

    total = site.out_shape()[1]
    _for_chosen(site, product(shape), lambda at: _is_not_zero(site, at), total, store)


def _limit(site: Site) -> Size:
    """How many elements, or slices along the axis, there are to choose from."""
    axis, shape = site.call.attr("axis"), site.shape(0)
    return product(shape) if axis is None else shape[site.call.axis(int(axis), len(shape))]


def _count_compress(site: Site) -> Expr:
    (length,), limit = site.shape(1), _limit(site)
    b = site.b
    begins_after = b.local(const(-1, "i64"))
    with b.loop(length, "vector") as i:
        last = apply("mul", cast(site.read(1, (i,)), "i64"), b.size(i + 1)) - 1
        b.set(begins_after, apply("max", begins_after, last))
    reason = "the condition chooses number {value} of {limit}"
    b.fail_if(begins_after >= b.size(limit), reason, begins_after, b.size(limit))
    return _count_chosen(site, length, lambda i: site.read(1, (i,)))


def _compress(site: Site) -> None:
    (length,), shape, axis = site.shape(1), site.shape(0), site.call.attr("axis")
    around: Position = ()
    if axis is not None:
        at_axis = site.call.axis(int(axis), len(shape))
        around = (*shape[:at_axis], *shape[at_axis + 1 :])
        total = site.out_shape()[at_axis]
    else:
        total = site.out_shape()[0]

    def store(b: Builder, i: Size, number: Size) -> None:
        index = b.index(b.size(i), _limit(site))
        if axis is None:
            site.store((number,), site.read(0, unflatten(index, shape, b.ranges)))
            return
        with b.loops(around) as rest:
            source = (*rest[:at_axis], index, *rest[at_axis:])
            target = (*rest[:at_axis], number, *rest[at_axis:])
            site.store(target, site.read(0, source))

    _for_chosen(site, length, lambda i: site.read(1, (i,)), total, store)


NON_ZERO = Counted(_count_non_zero, _non_zero)
COMPRESS = Counted(_count_compress, _compress)
