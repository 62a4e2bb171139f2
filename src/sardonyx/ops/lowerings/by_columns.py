"""Pools by columns: down the columns under a row of windows first, then along the row.

parallel over rows of windows
  vector column
    columns[column] = max of x[rows under the windows][column]     -inf beside the input
  vector window
    y[…] = max of columns[window * stride + tap * dilation]

A window of 5×5 takes 8 comparisons instead of 24; sums of windows go the same way. A row beside the input stands for the nearest
one on it, which is under the same windows: a maximum does not mind an element that it has seen, and a sum takes 0 in its place.
Where channels lie last, a column has some of them side by side, and vectors run along those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import product as combinations

from sardonyx.loops.build import Builder, where
from sardonyx.loops.index import provably_below
from sardonyx.loops.nodes import Dtype, Expr, LoopKind, apply
from sardonyx.ops.lowering import Position, Site
from sardonyx.ops.lowerings.windows import Axis, Lanes, place_at
from sardonyx.sizes import Size, at_least, evaluate, max_of, min_of, product

__all__ = ["Fold", "is_separable", "pool_by_columns"]

MOST_TAPS = 16  # that are written out side by side
SIDE_BY_SIDE = 32  # channels of a column, and windows of a row, where channels lie last
MOST_COLUMNS = 128  # then: 16 KB of float32


@dataclass(frozen=True)
class Fold:
    """How elements become one.

    Attributes:
        start: what changes nothing.
        join: two of them, or two results of that.
        lift: an element as it is joined.
        finish: what becomes of the total, by the place of its window.
        again: whether an element may be joined twice.
    """

    start: Expr
    join: Callable[[Expr, Expr], Expr]
    lift: Callable[[Expr], Expr] = lambda element: element
    finish: Callable[[Position, Expr], Expr] = lambda position, total: total
    again: bool = False


def is_separable(axes: Sequence[Axis], channels_last: bool) -> bool:
    """Whether windows are small, each stands on some row of the input, and going by columns is worth it."""
    *outer, last = axes
    taps = product(axis.kernel for axis in outer)
    small = at_least(MOST_TAPS, max_of(taps, last.span))
    if not small or not all(_touches_input(axis) for axis in outer):
        return False
    if not channels_last:
        return at_least(last.span, last.stride)  # no column lies between windows
    fewer = at_least(taps * last.kernel - 1, taps * last.stride + last.kernel)
    return fewer and at_least(MOST_COLUMNS, _reach(last, SIDE_BY_SIDE))


def _touches_input(axis: Axis) -> bool:
    """Whether some tap of each window is on the input, if that has any rows: no window begins past its end."""
    padding = max_of(axis.begin, axis.end)
    return axis.dilation == 1 and at_least(axis.kernel - 1, padding)


def _reach(axis: Axis, windows: Size) -> Size:
    """How many columns so many windows have below them."""
    return (windows - 1) * axis.stride + axis.span


def _most(axis: Axis, windows: Lanes) -> int:
    """How many columns a block of windows has below it at most."""
    return evaluate(_reach(axis, windows.width), {})


@dataclass(frozen=True)
class Tile:
    """Windows side by side in a row, and some of their channels.

    Attributes:
        image, row: where they are in the batch, and along the outer axes.
        windows, channels: the first of each, and how many; one channel where they do not lie last.
        columns: an array for what the columns below the windows come to, one after the other.
        width: of a column.
    """

    b: Builder
    image: Size
    row: Sequence[Size]
    windows: tuple[Size, Size]
    channels: tuple[Size, Size]
    columns: str
    width: int

    @contextmanager
    def cells(self, count: Size) -> Iterator[tuple[Size, Size]]:
        """Loops over so many columns or windows, and the channels of each."""
        kind: LoopKind = "serial" if self.width > 1 else "vector"
        with self.b.loop(count, kind) as one, self.b.loop(self.channels[1], "vector") as lane:
            yield one, lane

    def element(self, column: Size, lane: Size) -> Expr:
        return self.b.element(self.columns, column * self.width + lane)

    def put(self, column: Size, lane: Size, value: Expr) -> None:
        self.b.put(self.columns, column * self.width + lane, value)


def pool_by_columns(site: Site, axes: Sequence[Axis], fold: Fold) -> None:
    """The pool itself."""
    with _tiles(site, axes, fold.start.dtype) as tile:
        _fill(site, axes, tile, fold)
        _store(site, axes[-1], tile, fold)


@contextmanager
def _tiles(site: Site, axes: Sequence[Axis], dtype: Dtype) -> Iterator[Tile]:
    b, (batch, channels, *rows, row) = site.b, site.out_shape()
    *outer, last = axes
    work = product(axis.kernel for axis in outer) * last.stride + last.kernel
    if site.channels_last:
        windows, lanes = Lanes(b, row, SIDE_BY_SIDE), Lanes(b, channels, SIDE_BY_SIDE)
        extents = (batch, *rows, windows.blocks, lanes.blocks)
        with b.parallel(extents, work * windows.width * lanes.width) as (n, *at, block, part):
            columns = b.array(dtype, _most(last, windows) * lanes.width)
            ends = windows.block(block), lanes.block(part)
            yield Tile(b, n, at, *ends, columns, lanes.width)
    else:
        windows = Lanes(b, row)
        extents = (batch, channels, *rows, windows.blocks)
        with b.parallel(extents, work * windows.width) as (n, c, *at, block):
            columns = b.array(dtype, _most(last, windows))
            yield Tile(b, n, at, windows.block(block), (c, 1), columns, 1)


def _fill(site: Site, axes: Sequence[Axis], tile: Tile, fold: Fold) -> None:
    """What each column below the windows comes to; those beside the input have no elements."""
    b, shape, axis = site.b, site.shape(0), axes[-1]
    start, count = tile.windows
    ahead, reach = axis.begin - start * axis.stride, _reach(axis, count)
    first = b.named(min_of(max_of(ahead, 0), reach), reach + 1)
    some = min_of(product(shape[2:-1]), 1)  # 0 where there are no rows
    end = b.named(min_of(max_of(axis.size * some + ahead, first), reach), reach + 1)
    below = _rows_below(b, axes[:-1], tile.row, fold)
    with tile.cells(first) as (column, lane):
        tile.put(column, lane, fold.start)
    with tile.cells(end - first) as (turn, lane):
        x = place_at(b, first + turn - ahead, axis.size)
        c = place_at(b, tile.channels[0] + lane, shape[1])
        elements = []
        for row, inside in below:
            element = fold.lift(site.operand(0, (tile.image, c, *row, x)))
            elements.append(element if inside is None else where(inside, element, fold.start))
        tile.put(first + turn, lane, reduce(fold.join, elements))
    with tile.cells(reach - end) as (turn, lane):
        tile.put(end + turn, lane, fold.start)


def _rows_below(
    b: Builder, outer: Sequence[Axis], at: Sequence[Size], fold: Fold
) -> list[tuple[Position, Expr | None]]:
    """The places of all taps of a window along the outer axes, and whether they count; None where they do."""
    rows = []
    every = [_places(b, axis, window, fold) for axis, window in zip(outer, at, strict=True)]
    for taps in combinations(*every):
        conditions = [inside for _, inside in taps if inside is not None]
        inside = b.let(reduce(lambda one, other: one & other, conditions)) if conditions else None
        rows.append((tuple(place for place, _ in taps), inside))
    return rows


def _places(b: Builder, axis: Axis, window: Size, fold: Fold) -> list[tuple[Size, Expr | None]]:
    """The places of its taps along one axis, or the nearest on the input."""
    found: list[tuple[Size, Expr | None]] = []
    for tap in range(evaluate(axis.kernel, {})):
        place = axis.place(window, tap)
        nearest = place_at(b, max_of(min_of(place, max_of(axis.size - 1, 0)), 0), axis.size)
        within = at_least(place, 0) and provably_below(place, axis.size, b.ranges)
        sure = fold.again or within
        found.append((nearest, None if sure else apply("eq", b.size(place), b.size(nearest))))
    return found


def _store(site: Site, axis: Axis, tile: Tile, fold: Fold) -> None:
    """What the columns below each window come to."""
    b, (_, channels, *_, row) = site.b, site.out_shape()
    start, count = tile.windows
    with tile.cells(count) as (window, lane):
        x, c = place_at(b, start + window, row), place_at(b, tile.channels[0] + lane, channels)
        taps = (
            window * axis.stride + tap * axis.dilation for tap in range(evaluate(axis.kernel, {}))
        )
        total = reduce(fold.join, (tile.element(tap, lane) for tap in taps))
        position = (tile.image, c, *tile.row, x)
        site.store(position, fold.finish(position, total))
