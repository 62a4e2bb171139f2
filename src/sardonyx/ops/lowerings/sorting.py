"""TopK: a heap of the k best so far, the worst of them on top.

    for each row
      the first k elements, ordered into a heap
      for every other element: better than the top? it takes its place and sinks
      for i = k - 1 … 0: out[i] = top; the last one takes its place and sinks

n log k steps at worst, for any k. NaN is the largest; of equal elements the lower index is better.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from sardonyx.loops.build import Builder
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Const, Expr, apply
from sardonyx.loops.operations import FLOATS
from sardonyx.ops.lowering import Nest, Position, Site
from sardonyx.ops.lowerings.checks import require_at_most
from sardonyx.ops.lowerings.parameters import require_size, whole
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.sizes import Size, at_least, product

__all__ = ["TOP_K"]

COMPARISON = 4  # what one element costs to look at, in the units of a parallel loop's grain


def _top_k(site: Site) -> None:
    b, shape, k = site.b, site.shape(0), _count(site)
    axis = _axis(site)
    if site.call.version >= 10:
        require_size(site, whole(site, 1), k, "k")
    require_at_most(site, k, shape[axis], "k")
    rest = (*shape[:axis], *shape[axis + 1 :])
    values = site.scratch(sum_dtype(site.dtype(0)), product(rest) * k)
    places = site.scratch("i64", product(rest) * k)
    largest = bool(site.call.int_attr("largest", 1))
    with b.parallel(rest, shape[axis] * COMPARISON) as around:
        heap = _Heap(b, values, places, flatten(around, rest) * k, k, largest)
        _select(site, heap, around)
        with b.loop(k) as turn:
            last = k - 1 - turn
            at = (*around[:axis], last, *around[axis:])
            best, place = heap.at(0)
            moved = heap.at(last)
            site.store(at, best, 0)
            site.store(at, place, 1)
            heap.sink(0, moved, last)


def _axis(site: Site) -> int:
    return site.call.axis(site.call.int_attr("axis", -1), len(site.shape(0)))


def _count(site: Site) -> Size:
    return site.out_shape()[_axis(site)]


def _select(site: Site, heap: _Heap, around: Position) -> None:
    """The k best of a row, as a heap."""
    b, axis, k = site.b, _axis(site), heap.k

    def element(at: Size) -> _Entry:
        value = b.let(site.operand(0, (*around[:axis], at, *around[axis:])))
        return value, b.size(at)

    with b.loop(k) as i:
        heap.put(i, element(i))
    with b.loop(k // 2) as turn:
        hole = k // 2 - 1 - turn
        heap.sink(hole, heap.at(hole), k)
    full = nullcontext() if at_least(k, 1) else b.when(b.size(k) > 0)  # else there is no top
    with full, b.loop(site.shape(0)[axis] - k) as i:
        entry = element(k + i)
        # It stands behind all that are in the heap: of equal ones, they win.
        with b.when(heap.better(entry[0], heap.at(0)[0])):
            heap.sink(0, entry, k)


_Entry = tuple[Expr, Expr]  # a value, and where it was found


@dataclass(frozen=True)
class _Heap:
    """k entries from `base` on in two buffers; no entry is better than those below it."""

    b: Builder
    values: str
    places: str
    base: Size
    k: Size
    largest: bool

    def at(self, index: Size) -> _Entry:
        b = self.b
        value = b.let(b.load(self.values, self.base + index))
        return value, b.let(b.load(self.places, self.base + index))

    def put(self, index: Size, entry: _Entry) -> None:
        self.b.store(self.values, self.base + index, entry[0])
        self.b.store(self.places, self.base + index, entry[1])

    def better(self, a: Expr, b: Expr) -> Expr:
        if a.dtype not in FLOATS:
            return a > b if self.largest else a < b
        if self.largest:
            return (a > b) | (apply("isnan", a) & ~apply("isnan", b))
        return (a < b) | (apply("isnan", b) & ~apply("isnan", a))

    def worse(self, a: _Entry, b: _Entry) -> Expr:
        equal = ~self.better(a[0], b[0])  # where the other is not better either
        return self.better(b[0], a[0]) | (equal & (a[1] > b[1]))

    def sink(self, hole: Size, entry: _Entry, count: Size) -> None:
        """Put an entry into the hole, or further down, past those that are worse."""
        b = self.b
        place = b.local(b.size(hole))
        going = b.local(Const(True, "bool"))
        with b.repeat(going):
            child = b.local(place * 2 + 1)
            b.set(going, child < b.size(count))
            with b.when(going):
                left = b.index(child, self.k)
                with (
                    b.when(child + 1 < b.size(count)),
                    b.when(self.worse(self.at(left + 1), self.at(left))),
                ):
                    b.set(child, child + 1)
                worst = self.at(b.index(child, self.k))
                b.set(going, self.worse(worst, entry))
                with b.when(going):
                    self.put(b.index(place, self.k), worst)
                    b.set(place, child)
        self.put(b.index(place, self.k), entry)


TOP_K = Nest(_top_k)
