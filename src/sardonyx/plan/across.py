"""Loops over what is read across its lines: a block at a time, so that a line of the cache is used up while it is there.

    for j                                     for every block of j and of i
        for i                          ->         for j in the block
            y[j, i] = x[i, j]                         for i in the block
                                                          y[j, i] = x[i, j]

Few of the innermost axis, as colours of pixels, are written out instead: the loop over the others is a vector loop then, and
compilers have instructions that weave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from sardonyx.loops.build import Builder
from sardonyx.loops.index import coefficient
from sardonyx.loops.nodes import Load
from sardonyx.plan.plan import BYTES
from sardonyx.sizes import Size, ceil_div, min_of

__all__ = ["LINE", "Across", "across"]

LINE = 64  # bytes of a line of the cache
BLOCK = 16  # lines of a block: more may share their places in the cache, where they are a power of two apart
FEW = 4  # elements of the innermost axis that are written out

Places: TypeAlias = Callable[[], Iterable[tuple[tuple[Size, ...], Size]]]


@dataclass(frozen=True)
class Across:
    """An input is read along its lines by loop number `axis` of the outer ones; a line has `lanes` elements."""

    axis: int
    lanes: int

    @contextmanager
    def loops(self, b: Builder, outer: Sequence[Size], extent: Size) -> Iterator[Places]:
        """The loops over `outer` and then `extent`; the places that one turn of the innermost has."""
        if isinstance(extent, int) and extent <= FEW and self.axis == len(outer) - 1:
            work = 4 * outer[-1] * extent
            with b.parallel(outer[:-1], work) as where, b.loop(outer[-1], "vector") as last:
                yield lambda: (((*where, last), index) for index in range(extent))
            return
        along = outer[self.axis]
        blocks = [*outer, ceil_div(extent, BLOCK)]
        blocks[self.axis] = ceil_div(along, self.lanes)
        with b.parallel(blocks, 4 * self.lanes * BLOCK) as (*at, far):
            first = self.lanes * at[self.axis]
            with b.loop(_rest(along, first, self.lanes)) as near:
                at[self.axis] = b.named(first + near, along)
                with b.loop(_rest(extent, BLOCK * far, BLOCK), "vector") as inner:
                    where, flat = tuple(at), b.named(BLOCK * far + inner, extent)
                    yield lambda: [(where, flat)]


def across(loads: Iterable[Load], at: Sequence[Size], extents: Sequence[Size]) -> Across | None:
    """What the loads say, of which the last of the loops `at` is the innermost; None where that reads all along its lines."""
    names = [size.lone_symbol if not isinstance(size, int) else None for size in at]
    for load in loads:
        lanes = LINE // BYTES[load.dtype]
        steps = [coefficient(load.offset, name)[0] if name else 0 for name in names]
        if 1 not in steps[:-1] or (isinstance(steps[-1], int) and abs(steps[-1]) < lanes):
            continue
        axis = steps.index(1)
        along = extents[axis]
        if not isinstance(along, int) or along >= lanes // 2:
            return Across(axis, lanes)
    return None


def _rest(extent: Size, first: Size, block: int) -> Size:
    """How many of a block are inside."""
    return block if extent % block == 0 else min_of(block, extent - first)
