"""Operators whose output reads an input where data says."""

from __future__ import annotations

from sardonyx.loops.build import cast, where
from sardonyx.loops.nodes import Expr
from sardonyx.ops.lowering import Element, Position, Site
from sardonyx.ops.lowerings.checks import checked_index
from sardonyx.sizes import at_least

__all__ = ["GATHER", "GATHER_ELEMENTS", "GATHER_ND", "REVERSE_SEQUENCE"]


def _gather(site: Site, position: Position) -> Expr:
    data, rank = site.shape(0), len(site.shape(1))
    axis = site.call.axis(site.call.int_attr("axis"), len(data))
    at = position[axis : axis + rank]
    with site.b.outside(at):
        index = checked_index(site, site.read(1, at), data[axis])
    return site.read(0, (*position[:axis], index, *position[axis + rank :]))


def _gather_elements(site: Site, position: Position) -> Expr:
    b, data, indices = site.b, site.shape(0), site.shape(1)
    axis = site.call.axis(site.call.int_attr("axis"), len(data))
    for other, at in enumerate(position):
        if other != axis and not at_least(data[other], indices[other]):
            place, limit = b.size(at), b.size(data[other])
            b.fail_if(place >= limit, "indices reach {value}, past {limit} of data", place, limit)
    index = checked_index(site, site.read(1, position), data[axis])
    return site.read(0, (*position[:axis], index, *position[axis + 1 :]))


def _gather_nd(site: Site, position: Position) -> Expr:
    data, indices = site.shape(0), site.shape(1)
    batch, depth = site.call.int_attr("batch_dims"), indices[-1]
    if not isinstance(depth, int):
        site.refuse("how many coordinates an index has is not known before it runs")
    if data[:batch] != indices[:batch]:
        site.refuse("whether data and indices have one batch is not known before it runs")
    at, rest = position[: len(indices) - 1], position[len(indices) - 1 :]
    with site.b.outside(at):
        found = [
            checked_index(site, site.read(1, (*at, column)), data[batch + column])
            for column in range(depth)
        ]
    return site.read(0, (*at[:batch], *found, *rest))


def _reverse_sequence(site: Site, position: Position) -> Expr:
    b, call, shape = site.b, site.call, site.shape(0)
    batch, time = call.int_attr("batch_axis", 1), call.int_attr("time_axis", 0)
    if {batch, time} != {0, 1}:
        site.refuse(f"batch_axis {batch} and time_axis {time} are not 0 and 1")
    if site.shape(1) != (shape[batch],):
        site.refuse("whether every sequence has a length is not known before it runs")
    at, limit = b.size(position[time]), b.size(shape[time])
    source = list(position)
    with b.outside((position[batch],)):
        length = b.let(cast(site.read(1, (position[batch],)), "i64"))
        outside = (length < 0) | (length > limit)
        b.fail_if(outside, "a sequence of {value} is outside 0 … {limit}", length, limit)
    with b.outside((position[batch], position[time])):
        source[time] = b.index(where(at < length, length - 1 - at, at), shape[time])
    return site.read(0, source)


GATHER = Element(_gather, weight=2)
GATHER_ELEMENTS = Element(_gather_elements, weight=2)
GATHER_ND = Element(_gather_nd, weight=4)
REVERSE_SEQUENCE = Element(_reverse_sequence, weight=2)
