"""NonMaxSuppression: for every batch and class, the best boxes that overlap no better one.

parallel over batches and classes
  a heap of the boxes whose score is high enough, the best on top: of equal ones the first
  while one is left and fewer than the limit are chosen
    the top is taken off, and chosen unless it overlaps one that was

What is chosen lies in blocks, side by side, so that a vector of them is compared with a box at once:

  low y  × 16 | low x × 16 | high y × 16 | high x × 16 | area × 16 | low y × 16 …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sardonyx.loops.build import cast, maximum, minimum, where
from sardonyx.loops.nodes import Const, Expr, Var, apply, const
from sardonyx.ops.lowering import Counted, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.heaps import Heap
from sardonyx.ops.lowerings.parameters import whole
from sardonyx.ops.lowerings.ranks import entries_of, entry, place_of, rank
from sardonyx.sizes import Size, ceil_div, min_of

__all__ = ["NON_MAX_SUPPRESSION"]

BOXES, SCORES, LIMIT, OVERLAP, LEAST = range(5)
COMPARISON = 32  # what one box costs, in the units of a parallel loop's grain
BLOCK = 16  # boxes that are compared at a time
SIDES = 5  # the sides of a box, and its area


@dataclass(frozen=True)
class _Kept:
    """What is chosen of each class: which boxes, from where on in the result, and how many."""

    chosen: str
    begins: str
    counts: str


def _kept(site: Site) -> _Kept:
    batches, classes, _ = site.shape(SCORES)
    pairs = batches * classes
    return _Kept(
        site.kept("i64", pairs * _room(site)), site.kept("i64", pairs), site.kept("i64", pairs)
    )


def _room(site: Site) -> Size:
    """How many boxes of a class are chosen at most."""
    boxes = site.shape(SCORES)[2]
    if not _given(site, LIMIT):
        return 0
    known = site.call.value(LIMIT)
    limit = None if known is None else known.reshape(-1)[0]
    return min_of(boxes, max(limit, 0)) if isinstance(limit, int) else boxes


def _count(site: Site) -> Expr:
    b, (batches, classes, boxes) = site.b, site.shape(SCORES)
    require_equal(site, site.shape(BOXES)[0], batches, "batches of boxes and scores")
    require_equal(site, site.shape(BOXES)[1], boxes, "boxes and scores")
    kept, room, pairs = _kept(site), _room(site), batches * classes
    candidates = entries_of(site, "f32", pairs * boxes, boxes)
    blocks = ceil_div(room, BLOCK)
    sides = site.scratch("f32", pairs * blocks * SIDES * BLOCK)
    limit = whole(site, LIMIT) if _given(site, LIMIT) else const(0, "i64")
    overlap = _overlap(site)
    with b.parallel((batches, classes), boxes * COMPARISON) as (batch, label):
        pair = batch * classes + label
        found = b.local(const(0, "i64"))
        if room != 0:
            heap = Heap(replace(candidates, base=pair * boxes), boxes)
            chosen = _Chosen(site, kept.chosen, pair * room, sides, pair * blocks, room)
            _Search(site, batch, label, heap, chosen).run(found, limit, overlap)
        b.store(kept.counts, pair, found)
    total = b.local(const(0, "i64"))
    with b.loop(pairs) as pair:
        b.store(kept.begins, pair, total)
        b.set(total, total + b.load(kept.counts, pair))
    return total


def _given(site: Site, index: int) -> bool:
    return site.call.has(index) and site.shape(index) != (0,)


def _overlap(site: Site) -> Expr:
    if not _given(site, OVERLAP):
        return const(0, "f32")
    b = site.b
    overlap = b.let(site.operand(OVERLAP, (0,) * len(site.shape(OVERLAP))))
    outside = ~((overlap >= 0) & (overlap <= 1))
    b.fail_if(outside, "iou_threshold is outside 0..1, about {value}", cast(overlap, "i64"))
    return overlap


@dataclass(frozen=True)
class _Search:
    """The choice among the boxes of one batch for one class."""

    site: Site
    batch: Size
    label: Size
    heap: Heap
    chosen: _Chosen

    def run(self, found: Var, limit: Expr, overlap: Expr) -> None:
        """Counts in `found` how many are chosen."""
        b, boxes, entries = self.site.b, self.site.shape(SCORES)[2], self.heap.entries
        left = self.admit()
        self.heap.arrange(left)
        with b.repeat((left > 0) & (found < limit)):
            best = b.let(place_of(entries.at(0)))
            b.set(left, left - 1)
            self.heap.sink(const(0, "i64"), entries.at(b.index(left, boxes)), left)
            box = [b.let(side) for side in self.box(b.index(best, boxes))]
            with b.when(self.chosen.is_clear_of(box, found, overlap)):
                self.chosen.add(best, box, found)
                b.set(found, found + 1)

    def admit(self) -> Var:
        """The boxes whose score is high enough, and how many."""
        b, boxes = self.site.b, self.site.shape(SCORES)[2]
        least = None
        if _given(self.site, LEAST):
            least = b.let(self.site.operand(LEAST, (0,) * len(self.site.shape(LEAST))))
        left = b.local(const(0, "i64"))
        with b.loop(boxes) as i:
            score = b.let(self.site.operand(SCORES, (self.batch, self.label, i)))
            best_first = apply("not", rank(b, score))
            # Where it is not, the next one takes its place: there is nothing to guess wrong.
            self.heap.entries.put(b.index(left, boxes), entry(best_first, b.size(i)))
            admitted = ~apply("isnan", score) if least is None else score > least
            b.set(left, left + cast(admitted, "i64"))
        return left

    def box(self, i: Size) -> list[Expr]:
        """low y, low x, high y, high x, area"""
        sides = [self.site.operand(BOXES, (self.batch, i, side)) for side in range(4)]
        if self.site.call.int_attr("center_point_box"):
            x, y, width, height = sides
            ends = [y - height / 2, x - width / 2, y + height / 2, x + width / 2]
        else:
            y0, x0, y1, x1 = sides
            ends = [minimum(y0, y1), minimum(x0, x1), maximum(y0, y1), maximum(x0, x1)]
        low_y, low_x, high_y, high_x = (self.site.b.let(end) for end in ends)
        return [low_y, low_x, high_y, high_x, (high_y - low_y) * (high_x - low_x)]


@dataclass(frozen=True)
class _Chosen:
    """The boxes of one class that were chosen so far."""

    site: Site
    numbers: str
    first_number: Size
    sides: str
    first_block: Size
    room: Size

    def is_clear_of(self, box: Sequence[Expr], count: Expr, overlap: Expr) -> Expr:
        """Whether a box overlaps none of them."""
        b = self.site.b
        block, clear = b.local(const(0, "i64")), b.local(Const(True, "bool"))
        with b.repeat(clear & (block * BLOCK < count)):
            here = b.index(block, ceil_div(self.room, BLOCK))
            hits = b.array("i32", BLOCK)
            with b.loop(BLOCK, "vector") as lane:
                other = [b.let(b.load(self.sides, self.at(here, n, lane))) for n in range(SIDES)]
                hit = _shared(self.site, box, other) > overlap
                b.put(hits, lane, where(hit, const(1, "i32"), 0))
            any_hit = b.local(const(0, "i32"))
            with b.loop(BLOCK, "vector") as lane:
                b.set(any_hit, any_hit | b.element(hits, lane))
            b.set(clear, apply("eq", any_hit, 0))
            b.set(block, block + 1)
        return clear

    def add(self, number: Expr, box: Sequence[Expr], count: Expr) -> None:
        b = self.site.b
        at = b.index(count, self.room)
        block = b.index(count / BLOCK, ceil_div(self.room, BLOCK))
        lane = b.index(count & (BLOCK - 1), BLOCK)
        begins = apply("eq", b.size(lane), 0)
        with b.when(begins), b.loop(SIDES * BLOCK, "vector") as i:
            b.store(self.sides, self.at(block, 0, i), const(0, "f32"))  # overlaps nothing
        b.store(self.numbers, self.first_number + at, number)
        for n, side in enumerate(box):
            b.store(self.sides, self.at(block, n, lane), side)

    def at(self, block: Size, side: int, lane: Size) -> Size:
        return (self.first_block + block) * (SIDES * BLOCK) + side * BLOCK + lane


def _shared(site: Site, one: Sequence[Expr], other: Sequence[Expr]) -> Expr:
    """The common part of two boxes' area; 0 where one has none, or is not a number."""
    b = site.b
    height = maximum(minimum(one[2], other[2]) - maximum(one[0], other[0]), 0)
    width = maximum(minimum(one[3], other[3]) - maximum(one[1], other[1]), 0)
    common = b.let(height * width)
    union = b.let(one[4] + other[4] - common)
    real = b.let((common > 0) & (one[4] > 0) & (other[4] > 0) & (union > 0))
    return where(real, common / where(real, union, 1.0), 0.0)


def _store(site: Site) -> None:
    b, (batches, classes, _) = site.b, site.shape(SCORES)
    kept, room, total = _kept(site), _room(site), site.out_shape()[0]
    with b.parallel((batches, classes), room) as (batch, label):
        pair = batch * classes + label
        begin = b.index(b.load(kept.begins, pair), total + 1)
        with b.loop(b.index(b.load(kept.counts, pair), room + 1)) as number:
            row = b.index(b.size(begin + number), total)
            box = b.load(kept.chosen, pair * room + number)
            for column, value in enumerate((b.size(batch), b.size(label), box)):
                site.store((row, column), value)


NON_MAX_SUPPRESSION = Counted(_count, _store)
