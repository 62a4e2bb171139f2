"""TopK: a heap of the k best so far, the worst of them on top, or all elements sorted.

    for each row, where k is small
      the first k elements, ordered into a heap
      for every block of others: is one better than the top? only then one by one: it takes the top's place and sinks
      for i = k - 1 … 0: out[i] = top; the last one takes its place and sinks

NaN is the largest; of equal elements the lower index is better.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

from sardonyx.loops.build import where
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Expr, Var, apply, const
from sardonyx.loops.operations import FLOATS
from sardonyx.ops.lowering import Nest, Position, Site
from sardonyx.ops.lowerings.checks import require_at_most
from sardonyx.ops.lowerings.heaps import Heap
from sardonyx.ops.lowerings.parameters import require_size, whole
from sardonyx.ops.lowerings.radix import Sorting
from sardonyx.ops.lowerings.ranks import (
    Entries,
    Entry,
    before,
    complement,
    entries_of,
    entry,
    place_of,
    rank,
)
from sardonyx.sizes import Size, at_least, ceil_div, min_of, product

__all__ = ["TOP_K"]

COMPARISON = 4  # what one element costs to look at, in the units of a parallel loop's grain
BLOCK = 64  # elements that are compared with the worst of the best at a time
FEW = 48  # below so many a heap is best
SHARE = 12  # of this part of a row, or more, sorting all of it is sooner done


def _top_k(site: Site) -> None:
    b, shape, k = site.b, site.shape(0), _count(site)
    axis = _axis(site)
    size = shape[axis]
    if site.call.version >= 10:
        require_size(site, whole(site, 1), k, "k")
    require_at_most(site, k, size, "k")
    rest = (*shape[:axis], *shape[axis + 1 :])
    sorts = _sorts(size, k)
    room = {True: 2 * size, False: k, None: 2 * min_of(size, SHARE * k)}[sorts]
    memory = entries_of(site, site.dtype(0), product(rest) * room, size)
    with b.parallel(rest, size * COMPARISON) as around:
        row = _Row(site, axis, around, size, k, replace(memory, base=flatten(around, rest) * room))
        if sorts is None:
            with b.when((b.size(k) >= FEW) & (b.size(SHARE * k) >= b.size(size))):
                row.sort()
            with b.otherwise():
                row.select()
        elif sorts:
            row.sort()
        else:
            row.select()


def _axis(site: Site) -> int:
    return site.call.axis(site.call.int_attr("axis", -1), len(site.shape(0)))


def _count(site: Site) -> Size:
    return site.out_shape()[_axis(site)]


def _sorts(size: Size, k: Size) -> bool | None:
    """Whether a whole row is sorted; None where only a run can tell."""
    if at_least(k, FEW) and at_least(SHARE * k, size):
        return True
    return False if at_least(FEW - 1, k) or at_least(size, SHARE * k + 1) else None


@dataclass(frozen=True)
class _Row:
    """One row of `size` elements, and memory for entries; what comes first is less."""

    site: Site
    axis: int
    around: Position
    size: Size
    k: Size
    entries: Entries

    def sort(self) -> None:
        """The k best, of all of them sorted."""
        b = self.site.b
        with b.loop(self.size, "vector") as i:
            self.entries.put(i, self.entry(i))
        begin = Sorting(self.entries, self.size).run()
        with b.loop(self.k) as i:
            self.store(i, self.entries.at(b.index(begin + b.size(i), 2 * self.size)))

    def select(self) -> None:
        """The k best, by a heap of complements: what comes last is on top."""
        b, k = self.site.b, self.k
        heap = Heap(self.entries, k)
        with b.loop(k, "vector") as i:
            self.entries.put(i, complement(self.entry(i)))
        heap.arrange(b.size(k))
        full = nullcontext() if at_least(k, 1) else b.when(b.size(k) > 0)  # else there is no top
        with full:
            self.look_through(heap)
        with b.loop(k) as turn:
            last = k - 1 - turn
            top, moved = self.entries.at(0), self.entries.at(last)
            self.store(last, complement(top))
            heap.sink(const(0, "i64"), moved, b.size(last))

    def look_through(self, heap: Heap) -> None:
        """Those behind the first k, block by block."""
        b, k = self.site.b, self.k
        worst = b.local(self.worst())
        with b.loop(ceil_div(self.size - k, BLOCK)) as block:
            start = k + block * BLOCK
            extent = min_of(self.size - start, BLOCK)
            found = b.local(const(0, "i32"))
            with b.loop(extent, "vector") as i:
                better = self.may_be_better(self.value(start + i), worst)
                b.set(found, found | where(better, const(1, "i32"), 0))
            with b.when(apply("ne", found, 0)), b.loop(extent) as i:
                self.offer(start + i, heap, worst)

    def offer(self, at: Size, heap: Heap, worst: Var) -> None:
        b = self.site.b
        with b.when(self.may_be_better(b.let(self.value(at)), worst)):
            one = tuple(b.let(part) for part in complement(self.entry(at)))
            with b.when(before(self.entries.at(0), one)):
                heap.sink(const(0, "i64"), one, b.size(self.k))
                b.set(worst, self.worst())

    def may_be_better(self, value: Expr, worst: Expr) -> Expr:
        """Whether it is better than the worst of the best; true of NaN too, whatever it is worth."""
        largest = self.site.call.int_attr("largest", 1)
        if value.dtype in FLOATS:
            return ~(value <= worst if largest else value >= worst)
        return value > worst if largest else value < worst

    def worst(self) -> Expr:
        """The value of the one on top of the heap."""
        b = self.site.b
        return self.value(b.index(place_of(complement(self.entries.at(0))), self.size))

    def value(self, at: Size) -> Expr:
        return self.site.operand(0, self.position(at))

    def position(self, at: Size) -> Position:
        return (*self.around[: self.axis], at, *self.around[self.axis :])

    def entry(self, at: Size) -> Entry:
        b = self.site.b
        number = rank(b, b.let(self.value(at)))
        first = apply("not", number) if self.site.call.int_attr("largest", 1) else number
        return entry(first, b.size(at))

    def store(self, at: Size, one: Entry) -> None:
        place = self.site.b.index(place_of(one), self.size)
        self.site.store(self.position(at), self.site.read(0, self.position(place)), 0)
        self.site.store(self.position(at), self.site.b.size(place), 1)


TOP_K = Nest(_top_k)
