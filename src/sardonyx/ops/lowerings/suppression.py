"""NonMaxSuppression: for every batch and class, the best boxes that overlap no better one.

parallel over batches and classes
  left[i] = box i may still be chosen
  while one is left and fewer than the limit are chosen
    the best score that is left, then the first box that has it
    vector over the boxes: left[i] = left[i] and box i does not overlap the chosen one
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.loops.build import cast, maximum, minimum, where
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Counted, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.parameters import whole
from sardonyx.ops.lowerings.reductions import lowest
from sardonyx.sizes import Size

__all__ = ["NON_MAX_SUPPRESSION"]

BOXES, SCORES, LIMIT, OVERLAP, LEAST = range(5)
COMPARISON = 32  # what one box costs, in the units of a parallel loop's grain


@dataclass(frozen=True)
class _Kept:
    """What is chosen of each class: which boxes, from where on in the result, and how many."""

    chosen: str
    begins: str
    counts: str


def _kept(site: Site) -> _Kept:
    batches, classes, boxes = site.shape(SCORES)
    pairs = batches * classes
    return _Kept(site.kept("i64", pairs * boxes), site.kept("i64", pairs), site.kept("i64", pairs))


def _count(site: Site) -> Expr:
    b, (batches, classes, boxes) = site.b, site.shape(SCORES)
    require_equal(site, site.shape(BOXES)[0], batches, "batches of boxes and scores")
    require_equal(site, site.shape(BOXES)[1], boxes, "boxes and scores")
    kept, left = _kept(site), site.scratch("bool", batches * classes * boxes)
    limit = whole(site, LIMIT) if _given(site, LIMIT) else const(0, "i64")
    overlap = _overlap(site)
    with b.parallel((batches, classes), boxes * COMPARISON) as (batch, label):
        pair = batch * classes + label
        found = _Search(site, left, batch, label, pair * boxes).run(kept, limit, overlap)
        b.store(kept.counts, pair, found)
    total = b.local(const(0, "i64"))
    with b.loop(batches * classes) as pair:
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
    left: str
    batch: Size
    label: Size
    base: Size

    def run(self, kept: _Kept, limit: Expr, overlap: Expr) -> Expr:
        """How many are chosen; which, is kept."""
        b, boxes = self.site.b, self.site.shape(SCORES)[2]
        with b.loop(boxes, "vector") as i:
            b.store(self.left, self.base + i, self.admitted(self.score(i)))
        number = b.local(const(0, "i64"))
        going = b.local(limit > 0)
        with b.repeat(going):
            best = b.let(self.first_of_the_best())
            b.set(going, best < b.size(boxes))
            with b.when(going):
                at = b.index(best, boxes)
                b.store(kept.chosen, self.base + b.index(number, boxes), best)
                b.set(number, number + 1)
                self.suppress(at, overlap)
                b.set(going, number < limit)
        return number

    def score(self, i: Size) -> Expr:
        return self.site.operand(SCORES, (self.batch, self.label, i))

    def admitted(self, score: Expr) -> Expr:
        if not _given(self.site, LEAST):
            return ~apply("isnan", score)
        return score > self.site.operand(LEAST, (0,) * len(self.site.shape(LEAST)))

    def first_of_the_best(self) -> Expr:
        """The first box of the highest score that is left; the number of boxes where none is."""
        b, boxes = self.site.b, self.site.shape(SCORES)[2]
        bottom = lowest("f32")
        top = b.local(bottom)
        with b.loop(boxes, "vector") as i:
            b.set(top, maximum(top, where(self.is_left(i), self.score(i), bottom)))
        found = b.local(b.size(boxes))
        with b.loop(boxes, "vector") as i:
            same = self.is_left(i) & apply("eq", self.score(i), top)
            b.set(found, minimum(found, where(same, b.size(i), b.size(boxes))))
        return found

    def is_left(self, i: Size) -> Expr:
        return self.site.b.load(self.left, self.base + i)

    def suppress(self, best: Size, overlap: Expr) -> None:
        b, boxes = self.site.b, self.site.shape(SCORES)[2]
        mine = [b.let(side) for side in self.corners(best)]
        with b.loop(boxes, "vector") as i:
            theirs = [b.let(side) for side in self.corners(i)]
            stays = ~(_shared(mine, theirs) > overlap) & apply("ne", b.size(i), b.size(best))
            b.store(self.left, self.base + i, self.is_left(i) & stays)

    def corners(self, i: Size) -> tuple[Expr, Expr, Expr, Expr]:
        """low y, low x, high y, high x"""
        sides = [self.site.operand(BOXES, (self.batch, i, side)) for side in range(4)]
        if self.site.call.int_attr("center_point_box"):
            x, y, width, height = sides
            return y - height / 2, x - width / 2, y + height / 2, x + width / 2
        y0, x0, y1, x1 = sides
        return minimum(y0, y1), minimum(x0, x1), maximum(y0, y1), maximum(x0, x1)


def _shared(a: list[Expr], b: list[Expr]) -> Expr:
    """The common part of two boxes' area; 0 where one has none, or is not a number."""
    height = maximum(minimum(a[2], b[2]) - maximum(a[0], b[0]), 0)
    width = maximum(minimum(a[3], b[3]) - maximum(a[1], b[1]), 0)
    common, first, second = height * width, _area(a), _area(b)
    union = first + second - common
    real = (common > 0) & (first > 0) & (second > 0) & (union > 0)
    return where(real, common / where(real, union, 1.0), 0.0)


def _area(box: list[Expr]) -> Expr:
    return (box[2] - box[0]) * (box[3] - box[1])


def _store(site: Site) -> None:
    b, (batches, classes, boxes) = site.b, site.shape(SCORES)
    kept, total = _kept(site), site.out_shape()[0]
    with b.parallel((batches, classes), boxes) as (batch, label):
        pair = batch * classes + label
        begin = b.index(b.load(kept.begins, pair), total + 1)
        with b.loop(b.index(b.load(kept.counts, pair), boxes + 1)) as number:
            row = b.index(b.size(begin + number), total)
            box = b.load(kept.chosen, pair * boxes + number)
            for column, value in enumerate((b.size(batch), b.size(label), box)):
                site.store((row, column), value)


NON_MAX_SUPPRESSION = Counted(_count, _store)
