"""The small kernels around the bodies of If, Loop and Scan.

counting     how many turns there will be, and which one this is
carrying     a value becomes the variable that the next turn reads
slicing      one turn's part of what a Scan goes over
stacking     one turn's result becomes a part of what all turns give

The number of the turn is a symbol, so that all of it is index arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.loops.build import cast, maximum, where
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Element, Nest, Position, Site
from sardonyx.sizes import Size

__all__ = ["CARRY", "counted", "limited", "number", "sliced", "stacked"]

ENDLESS = 2**63 - 1


def _carry(site: Site, position: Position) -> Expr:
    return site.read(0, position)


CARRY = Element(_carry, weight=0)


def number(size: Size) -> Element:
    """A size as an element of type i64."""

    def value(site: Site, position: Position) -> Expr:
        return site.b.size(size)

    return Element(value, weight=0)


def limited(limit: int | None, condition: int | None, sizes: Sequence[Size]) -> Element:
    """How many turns a Loop has at most: inputs of these numbers are its limit and its condition.

    The sizes are what the model says that there are, which nobody else checks.
    """

    def value(site: Site, position: Position) -> Expr:
        def scalar(index: int) -> Expr:
            return site.read(index, (0,) * len(site.shape(index)))

        turns: Expr = const(ENDLESS, "i64")
        if limit is not None:
            turns = maximum(cast(scalar(limit), "i64"), 0)
        if condition is not None:
            turns = where(scalar(condition), turns, 0)
        reason = "it takes {value} turns, where {limit} were declared"
        for size in dict.fromkeys(sizes):
            site.b.fail_if(apply("ne", turns, site.b.size(size)), reason, turns, site.b.size(size))
        return turns

    return Element(value)


def counted(sizes: Sequence[Size]) -> Element:
    """How many turns a Scan has: what it goes over must have as many slices all of it."""

    def value(site: Site, position: Position) -> Expr:
        b = site.b
        turns = b.size(sizes[0])
        reason = "what is scanned has {value} and {limit} slices, which must be equal"
        for other in dict.fromkeys(size for size in sizes if size != sizes[0]):
            with b.once():
                size = b.size(other)
                b.fail_if(apply("ne", turns, size), reason, turns, size)
        return turns

    return Element(value)


def sliced(axis: int, at: Size) -> Element:
    """The slice number `at` along an axis."""

    def value(site: Site, position: Position) -> Expr:
        return site.read(0, (*position[:axis], at, *position[axis:]))

    return Element(value, weight=0)


def stacked(axis: int, at: Size) -> Nest:
    """The input becomes slice number `at` of the output, along an axis of that."""

    def build(site: Site) -> None:
        b, shape = site.b, site.shape(0)

        def put(position: Position) -> None:
            element = site.read(0, position)
            site.store((*position[:axis], at, *position[axis:]), element)

        if not shape:
            put(())
            return
        with b.parallel(shape[:-1], 4 * shape[-1]) as rows, b.loop(shape[-1], "vector") as last:
            put((*rows, last))

    return Nest(build, reads_once=True, stores_once=False)
