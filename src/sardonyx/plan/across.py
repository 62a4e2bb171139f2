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

__all__ = ["Across", "across"]

LINE = 64  # bytes of a line of the cache
RUN = 256  # bytes that a block has along the lines: processors fetch the next line themselves
LINES = 16  # of a block, side by side
# Fewer where they are so many bytes, or times as many, apart: all would have the same place in the cache.
CLOSE = ((1 << 14, 4), (1 << 12, 8))
FEW = 4  # elements of the innermost axis that are written out

Places: TypeAlias = Callable[[], Iterable[tuple[tuple[Size, ...], Size]]]


@dataclass(frozen=True)
class Across:
    """An input is read along its lines by loop number `axis` of the outer ones.

    Attributes:
        along: elements of a block along the lines.
        lines: lines of a block, which the innermost loop goes over.
    """

    axis: int
    along: int
    lines: int

    @contextmanager
    def loops(self, b: Builder, outer: Sequence[Size], extent: Size) -> Iterator[Places]:
        """The loops over `outer` and then `extent`; the places that one turn of the innermost has."""
        if isinstance(extent, int) and extent <= FEW and self.axis == len(outer) - 1:
            work = 4 * outer[-1] * extent
            with b.parallel(outer[:-1], work) as where, b.loop(outer[-1], "vector") as last:
                yield lambda: (((*where, last), index) for index in range(extent))
            return
        size = outer[self.axis]
        blocks = [*outer, ceil_div(extent, self.lines)]
        blocks[self.axis] = ceil_div(size, self.along)
        with b.parallel(blocks, 4 * self.along * self.lines) as (*at, block):
            first, line = self.along * at[self.axis], self.lines * block
            with b.loop(_rest(size, first, self.along)) as near:
                at[self.axis] = b.named(first + near, size)
                with b.loop(_rest(extent, line, self.lines), "vector") as inner:
                    where, flat = tuple(at), b.named(line + inner, extent)
                    yield lambda: [(where, flat)]


def across(loads: Iterable[Load], at: Sequence[Size], extents: Sequence[Size]) -> Across | None:
    """What the loads say, of which the last of the loops `at` is the innermost; None where that reads all along its lines."""
    names = [size.lone_symbol if not isinstance(size, int) else None for size in at]
    for load in loads:
        each = BYTES[load.dtype]
        steps = [coefficient(load.offset, name)[0] if name else 0 for name in names]
        step = steps[-1]
        if 1 not in steps[:-1] or (isinstance(step, int) and abs(step) * each < LINE):
            continue
        axis = steps.index(1)
        size = extents[axis]
        if not isinstance(size, int) or size * each >= LINE // 2:
            return Across(axis, RUN // each, _lines(step * each))
    return None


def _lines(apart: Size) -> int:
    """How many lines a block has, by the bytes from one to the next."""
    if not isinstance(apart, int):
        return LINES
    return next((lines for places, lines in CLOSE if apart % places == 0), LINES)


def _rest(extent: Size, first: Size, block: int) -> Size:
    """How many of a block are inside."""
    return block if extent % block == 0 else min_of(block, extent - first)
