"""Filters that only a run knows: a kernel of loops lays them out as the convolution behind it reads constants.

laid[group][panel][taps][channel][lane]     in panels of filters, the last one filled up with zeros
laid[taps][filter]                          where every channel is by itself
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sardonyx.loops.build import cast, where
from sardonyx.loops.index import flatten, unflatten
from sardonyx.loops.nodes import Dtype, Expr, const
from sardonyx.ops.lowering import Site
from sardonyx.plan.group import Group
from sardonyx.plan.write import Kept, Writer, Written
from sardonyx.sizes import Size, min_of, product

__all__ = ["Filters", "lay_filters"]

RUN, LINES = 64, 16  # weights of a block, of each of so many filters
WEIGHT = 8  # of an element, where work is divided among threads: it is read across its lines


@dataclass(frozen=True)
class Filters:
    """What a kernel wants of an operand W[OC, IC/groups, kernel…], or W[IC, OC/groups, kernel…] where that is transposed.

    Attributes:
        channels: of a group.
        each: filters of a group.
        taps: of every axis, which are read in this order, at even distances.
        panel: filters side by side; None where every channel is by itself.
    """

    groups: int
    channels: int
    each: int
    taps: tuple[tuple[int, ...], ...]
    dtype: Dtype
    panel: int | None
    transposed: bool

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(map(len, self.taps))

    def read(self, site: Site, group: Size, channel: Size, one: Size, taps: Sequence[Size]) -> Expr:
        """A weight, by the group, what it multiplies there, the filter of the group, and the tap."""
        at = [
            own[0] + (own[1] - own[0]) * tap if len(own) > 1 else own[0]
            for own, tap in zip(self.taps, taps, strict=True)
        ]
        if self.transposed:
            position = (group * self.channels + channel, one, *at)
        else:
            position = (group * self.each + one, channel, *at)
        return cast(site.operand(1, position), self.dtype)


def lay_filters(
    writer: Writer, group: Group, filters: Filters, number: int
) -> tuple[Written, Kept]:
    """The kernel, and the buffer that it fills: the node's own of that number."""
    site = writer.site(group)
    write = _write_columns if filters.panel is None else _write_panels
    size = product((filters.groups, filters.channels, *filters.counts))
    size *= filters.each if filters.panel is None else _panels(filters) * filters.panel
    kept = Kept(group.root.node, number, filters.dtype, size)
    buffer = writer.extra(kept, filters.dtype, "out")
    write(writer, site, filters, lambda at, value: writer.b.store(buffer, at, value))
    return writer.done(), kept


def _panels(filters: Filters) -> int:
    assert filters.panel is not None
    return -(-filters.each // filters.panel)


def _write_panels(
    writer: Writer, site: Site, filters: Filters, store: Callable[[Size, Expr], None]
) -> None:
    b, panel, each, counts = writer.b, filters.panel, filters.each, filters.counts
    assert panel is not None
    # A block of weights that lie side by side, of a few filters at a time: the cache has room for so many lines.
    channels, lanes = filters.channels, math.gcd(panel, LINES)
    block = min(channels, max(1, RUN // math.prod(counts)))
    outer = (filters.groups, _panels(filters), -(-channels // block))
    shape = (filters.groups, _panels(filters), *counts, channels, panel)
    with (
        b.parallel(outer, block * product(counts) * panel * WEIGHT) as (g, number, part),
        b.loop(panel // lanes) as several,
        b.loop(block if channels % block == 0 else min_of(block, channels - part * block)) as near,
    ):
        channel = b.named(part * block + near, channels)
        with b.loops(counts) as taps, b.loop(lanes, "vector") as inner:
            lane = several * lanes + inner
            one = number * panel + lane
            if each % panel == 0:
                value = filters.read(site, g, channel, one, taps)
            else:
                inside = b.index(b.size(min_of(one, each - 1)), each)
                value = filters.read(site, g, channel, inside, taps)
                value = where(b.size(one) < each, value, const(0, filters.dtype))
            store(flatten((g, number, *taps, channel, lane), shape), value)


def _write_columns(
    writer: Writer, site: Site, filters: Filters, store: Callable[[Size, Expr], None]
) -> None:
    b, shape = writer.b, (filters.groups, filters.each)
    with (
        b.parallel(filters.counts, product(shape) * WEIGHT) as taps,
        b.loop(product(shape), "vector") as column,
    ):
        g, one = unflatten(column, shape, b.ranges)
        value = filters.read(site, g, 0, one, taps)
        store(flatten((*taps, column), (*filters.counts, product(shape))), value)
