"""Elements that data choose: NonZero and Compress.

count   parallel over blocks of elements: how many of the block are chosen
        serial over the blocks: where each block's share of the result begins
build   parallel over blocks: the chosen ones, from there on

Slices along an axis are few, and long: their numbers are kept instead, and then copied in parallel.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.loops.build import Builder, cast
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Counted, Site
from sardonyx.ops.lowerings.copying import COST
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


def _axis(site: Site) -> int | None:
    axis = site.call.attr("axis")
    return None if axis is None else site.call.axis(int(axis), len(site.shape(0)))


def _count_compress(site: Site) -> Expr:
    (length,), shape, axis = site.shape(1), site.shape(0), _axis(site)
    _require_inside(site, length, product(shape) if axis is None else shape[axis])
    if axis is None:
        return _count_chosen(site, length, lambda i: site.read(1, (i,)))
    b, chosen = site.b, site.kept("i64", length)
    found = b.local(const(0, "i64"))
    with b.loop(length) as i:
        # Where it is not chosen, the next one takes its place: there is nothing to guess wrong.
        b.store(chosen, b.index(found, length), b.size(i))
        b.set(found, found + cast(site.read(1, (i,)), "i64"))
    return found


def _require_inside(site: Site, length: Size, limit: Size) -> None:
    """Stop the run where the condition chooses past the end."""
    b = site.b
    last = b.local(const(-1, "i64"))
    with b.loop(length, "vector") as i:
        here = apply("mul", cast(site.read(1, (i,)), "i64"), b.size(i + 1)) - 1
        b.set(last, apply("max", last, here))
    reason = "the condition chooses number {value} of {limit}"
    b.fail_if(last >= b.size(limit), reason, last, b.size(limit))


def _compress(site: Site) -> None:
    axis = _axis(site)
    if axis is None:
        _compress_elements(site)
    else:
        _compress_slices(site, axis)


def _compress_elements(site: Site) -> None:
    (length,), shape = site.shape(1), site.shape(0)

    def store(b: Builder, i: Size, number: Size) -> None:
        index = b.index(b.size(i), product(shape))
        site.store((number,), site.read(0, unflatten(index, shape, b.ranges)))

    _for_chosen(site, length, lambda i: site.read(1, (i,)), site.out_shape()[0], store)


def _compress_slices(site: Site, axis: int) -> None:
    b, (length,), shape = site.b, site.shape(1), site.shape(0)
    chosen = site.kept("i64", length)
    inner = shape[axis + 1 :]
    outer = (*shape[:axis], site.out_shape()[axis])
    with b.parallel(outer, product(inner) * COST) as at:
        index = b.index(b.load(chosen, at[axis]), shape[axis])
        with b.loop(product(inner), "vector") as flat:
            rest = unflatten(flat, inner, b.ranges)
            site.store((*at, *rest), site.read(0, (*at[:axis], index, *rest)))


NON_ZERO = Counted(_count_non_zero, _non_zero)
COMPRESS = Counted(_count_compress, _compress)
