"""Unique: elements, or slices along an axis, that differ from each other.

count   order = the numbers of all slices, sorted by what they hold (equals stay in order): elements by the bytes of
                their ranks, slices of several elements by merging
        equal neighbours are one group: its first slice, its size, and the group of every slice
        unless sorted, groups are numbered anew, in the order of their first slices
build   the first slice of every group, and what was kept about it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sardonyx.loops.build import Builder, minimum
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Const, Expr, apply, const
from sardonyx.loops.operations import FLOATS
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import Counted, Position, Site
from sardonyx.ops.lowerings.radix import Sorting
from sardonyx.ops.lowerings.ranks import entries_of, entry, place_of, rank, rank_of
from sardonyx.sizes import Size, product

__all__ = ["UNIQUE"]

FIRSTS, GROUPS, SIZES = 1, 2, 3  # outputs


@dataclass(frozen=True)
class _Slices:
    """`count` slices of `around` elements each."""

    site: Site
    axis: int | None
    count: Size
    around: Shape

    def position(self, number: Size, rest: Position) -> Position:
        if self.axis is None:
            return unflatten(number, self.site.shape(0), self.site.b.ranges)
        return (*rest[: self.axis], number, *rest[self.axis :])

    def element(self, number: Size, flat: Size) -> Expr:
        rest = unflatten(flat, self.around, self.site.b.ranges)
        return self.site.operand(0, self.position(number, rest))

    def less(self, a: Size, b: Size) -> Expr:
        """Whether slice a comes before slice b: by their first elements that differ; NaN is last."""
        if not self.around:
            return _below(self.element(a, 0), self.element(b, 0))
        builder, size = self.site.b, product(self.around)
        verdict, at = builder.local(const(0, "i64")), builder.local(const(0, "i64"))
        with builder.repeat((at < builder.size(size)) & apply("eq", verdict, 0)):
            here = builder.index(at, size)
            left, right = builder.let(self.element(a, here)), builder.let(self.element(b, here))
            with builder.when(_below(left, right)):
                builder.set(verdict, const(1, "i64"))
            with builder.when(_below(right, left)):
                builder.set(verdict, const(-1, "i64"))
            builder.set(at, at + 1)
        return verdict > 0


def _below(a: Expr, b: Expr) -> Expr:
    if a.dtype == "bool":
        return ~a & b
    return (a < b) | (apply("isnan", b) & ~apply("isnan", a)) if a.dtype in FLOATS else a < b


def _slices(site: Site) -> _Slices:
    shape, axis = site.shape(0), site.call.attr("axis")
    if axis is None:
        return _Slices(site, None, product(shape), ())
    at = site.call.axis(int(axis), len(shape))
    return _Slices(site, at, shape[at], (*shape[:at], *shape[at + 1 :]))


@dataclass(frozen=True)
class _Kept:
    """Of each group its first slice and its size; of each slice its group. None for what nobody asks for."""

    first: str
    sizes: str | None
    group: str | None


def _kept(site: Site, count: Size) -> _Kept:
    outputs = len(site.outputs)
    return _Kept(
        site.kept("i64", count),
        site.kept("i64", count) if outputs > SIZES else None,
        site.kept("i64", count) if outputs > GROUPS or not _is_sorted(site) else None,
    )


def _is_sorted(site: Site) -> bool:
    return bool(site.call.int_attr("sorted", 1))


# From a turn in the sorted order to its slice, and whether that differs from the one before.
_Turn: TypeAlias = Callable[[Size], tuple[Size, Expr]]


def _count(site: Site) -> Expr:
    b, slices = site.b, _slices(site)
    size = slices.count
    kept, groups = _kept(site, size), b.local(const(0, "i64"))
    take = _merged(slices) if slices.around else _ranked(slices)
    with b.loop(size) as turn:
        here, opens_a_group = take(turn)
        with b.when(opens_a_group):
            number = b.index(groups, size)
            b.store(kept.first, number, b.size(here))
            if kept.sizes:
                b.store(kept.sizes, number, b.size(turn))  # until all groups' beginnings are known
            b.set(groups, groups + 1)
        if kept.group:
            b.store(kept.group, here, groups - 1)
    if kept.sizes:
        _measure(b, kept.sizes, b.index(groups, size + 1), size)
    if not _is_sorted(site):
        _renumber(site, kept, size)
    return groups


def _measure(b: Builder, sizes: str, groups: Size, size: Size) -> None:
    """The sizes of groups, in the place of their beginnings."""
    with b.loop(groups) as number:
        end = b.local(b.size(size))
        with b.when(b.size(number + 1) < b.size(groups)):
            b.set(end, b.load(sizes, number + 1))
        b.store(sizes, number, end - b.load(sizes, number))


def _ranked(slices: _Slices) -> _Turn:
    """Elements, sorted by ranks."""
    site, b, size = slices.site, slices.site.b, slices.count
    entries = entries_of(site, site.dtype(0), 2 * size, size)
    with b.loop(size, "vector") as i:
        entries.put(i, entry(rank(b, b.let(slices.element(i, 0))), b.size(i)))
    begin = Sorting(entries, size).run()
    before = b.local(const(0, "u64"))

    def take(turn: Size) -> tuple[Size, Expr]:
        one = entries.at(b.index(begin + b.size(turn), 2 * size))
        mine = b.let(rank_of(one))
        differs = b.let(apply("ne", mine, before) | apply("eq", b.size(turn), 0))
        b.set(before, mine)
        return b.index(place_of(one), size), differs

    return take


def _merged(slices: _Slices) -> _Turn:
    """Slices, sorted by comparing them: runs of 1, 2, 4 … are merged, each pass from `order` by `other`."""
    site, b, size = slices.site, slices.site.b, slices.count
    order, other = (site.scratch("i64", size) for _ in range(2))
    with b.loop(size, "vector") as i:
        b.store(order, i, b.size(i))
    width, end = b.local(const(1, "i64")), b.size(size)
    with b.repeat(width < end):
        start = b.local(const(0, "i64"))
        with b.repeat(start < end):
            middle = b.let(minimum(start + width, end))
            stop = b.let(minimum(start + width + width, end))
            _merge(slices, order, other, start, middle, stop)
            b.set(start, stop)
        with b.loop(size, "vector") as i:
            b.store(order, i, b.load(other, i))
        b.set(width, width + width)

    def take(turn: Size) -> tuple[Size, Expr]:
        here = b.index(b.load(order, turn), size)
        differs = b.local(Const(True, "bool"))
        with b.when(b.size(turn) > 0):
            before = b.index(b.load(order, b.index(b.size(turn) - 1, size)), size)
            b.set(differs, slices.less(before, here))
        return here, differs

    return take


def _merge(slices: _Slices, order: str, other: str, start: Expr, middle: Expr, stop: Expr) -> None:
    b, size = slices.site.b, slices.count
    left, right, at = b.local(start), b.local(middle), b.local(start)
    with b.repeat(at < stop):
        from_right = b.local(left >= middle)
        with b.when((left < middle) & (right < stop)):
            a = b.index(b.load(order, b.index(left, size)), size)
            c = b.index(b.load(order, b.index(right, size)), size)
            b.set(from_right, slices.less(c, a))
        with b.when(from_right):
            b.store(other, b.index(at, size), b.load(order, b.index(right, size)))
            b.set(right, right + 1)
        with b.otherwise():
            b.store(other, b.index(at, size), b.load(order, b.index(left, size)))
            b.set(left, left + 1)
        b.set(at, at + 1)


def _renumber(site: Site, kept: _Kept, size: Size) -> None:
    """Groups in the order of their first slices."""
    assert kept.group is not None
    b, found = site.b, site.b.local(const(0, "i64"))
    place, sizes = site.scratch("i64", size), site.scratch("i64", size)
    with b.loop(size) as i:
        group = b.index(b.load(kept.group, i), size)
        with b.when(apply("eq", b.load(kept.first, group), b.size(i))):
            b.store(place, group, found)
            if kept.sizes:
                b.store(sizes, b.index(found, size), b.load(kept.sizes, group))
            b.set(found, found + 1)
        b.store(kept.group, i, b.load(place, group))
    # A group's first slice is the first that has its new number.
    number = b.local(const(0, "i64"))
    with b.loop(size) as i, b.when(apply("eq", b.load(kept.group, i), number)):
        at = b.index(number, size)
        b.store(kept.first, at, b.size(i))
        if kept.sizes:
            b.store(kept.sizes, at, b.load(sizes, at))
        b.set(number, number + 1)


def _store(site: Site) -> None:
    b, slices = site.b, _slices(site)
    kept, outputs = _kept(site, slices.count), len(site.outputs)
    total = site.out_shape()[slices.axis or 0]
    with b.parallel((total,), 4 * product(slices.around)) as (number,):
        first = b.index(b.load(kept.first, number), slices.count)
        with b.loops(slices.around) as rest:
            source = slices.position(first, rest)
            target = (number,) if slices.axis is None else slices.position(number, rest)
            site.store(target, site.read(0, source))
        if outputs > FIRSTS:
            site.store((number,), b.size(first), FIRSTS)
        if kept.sizes:
            site.store((number,), b.load(kept.sizes, number), SIZES)
    if kept.group and outputs > GROUPS:
        with b.parallel((slices.count,), 2) as (i,):
            site.store((i,), b.load(kept.group, i), GROUPS)


UNIQUE = Counted(_count, _store)
