"""Loops over sets of elements that fold to one number each, whatever axes they span.

    rows       the innermost axis is folded         columns    the innermost axis is kept
      parallel over the kept axes                     parallel over kept axes and blocks of columns
        v = start                                       vector: a[lane] = start
        serial over the outer folded axes               serial over the folded axes
          vector over the innermost: v = v + x            vector over the lanes: a[lane] = a[lane] + x

Both read memory in unit stride. A rule says what happens to an element and is written into either;
what it accumulates is a `Cell`: a number of the row, or one a column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile

from sardonyx.loops.build import Builder, cast
from sardonyx.loops.index import flatten, unflatten
from sardonyx.loops.nodes import Dtype, Expr, LoopKind, Var, const
from sardonyx.loops.operations import INTEGERS
from sardonyx.ops.lowering import Position
from sardonyx.sizes import Size, ceil_div, min_of, product

__all__ = ["BLOCK", "Cell", "Folding"]

ROW_PIECE = 1024  # terms of a row that are summed at a time, in many lanes; more lose more
COLUMN_PIECE = 128  # and of a column, in one
BLOCK = 64  # columns that one pass folds: their float32 accumulators fit into the registers
SMALLEST_BLOCK = 16


class Cell:
    """One number for each set at hand; `get` and `set` are those of the element being visited."""

    def __init__(self, folding: Folding, name: str, dtype: Dtype) -> None:
        self._folding = folding
        self._name = name
        self.dtype = dtype

    def get(self) -> Expr:
        if self._folding.by_columns:
            return self._folding.b.element(self._name, self._folding.lane)
        return Var(self._name, self.dtype)

    def set(self, value: Expr) -> None:
        if self._folding.by_columns:
            self._folding.b.put(self._name, self._folding.lane, value)
        else:
            self._folding.b.set(Var(self._name, self.dtype), value)


class Folding:
    """The elements of a shape as sets that span some of its axes.

    Args:
        order: the axes as they lie in memory, outermost first; as they are numbered unless given.
        unit: columns that belong together: blocks have whole units.

    Attributes:
        size: how many elements a set has.
        by_columns: whether neighbours in memory belong to different sets.
        lane: the column being visited, within its block.
    """

    def __init__(
        self,
        b: Builder,
        shape: Sequence[Size],
        axes: Sequence[int],
        order: Sequence[int] | None = None,
        unit: int = 1,
    ) -> None:
        self.b = b
        self.unit = unit
        self.shape = tuple(shape)
        self.axes = tuple(sorted(axes))
        nested = range(len(self.shape)) if order is None else order
        live = self._live = [axis for axis in nested if self.shape[axis] != 1]
        self._folded = [axis for axis in live if axis in self.axes]
        self._kept = [axis for axis in live if axis not in self.axes]
        self.by_columns = bool(live) and live[-1] not in self.axes
        alike = self._kept if self.by_columns else self._folded
        run = 0
        while run < len(alike) and alike[-run - 1 :] == live[-run - 1 :]:
            run += 1
        self._inner = alike[len(alike) - run :]  # the axes of the innermost loop, as one
        self.size: Size = product(self.shape[axis] for axis in self.axes)
        self.lane: Size = 0
        self._at: dict[int, Size] = {}
        self._first_column: Size = 0
        self._lanes: Size = 1
        self._block = 1

    # Loops

    @contextmanager
    def sets(self, work: int = 1) -> Iterator[None]:
        """The parallel loop over the sets; an element costs `work`."""
        if not self.by_columns:
            with self._over(self._kept, work * self.size) as self._at:
                yield
            return
        outer = self._kept[: len(self._kept) - len(self._inner)]
        columns = product(self._sizes(self._inner))
        self._block = _block_of(columns, self.unit)
        extents = (*self._sizes(outer), ceil_div(columns, self._block))
        with self.b.parallel(extents, work * self.size * self._block) as (*kept, block):
            self._at = dict(zip(outer, kept, strict=True))
            self._first_column = block * self._block
            left = columns - self._first_column
            whole = isinstance(columns, int) and columns % self._block == 0
            self._lanes = self._block if whole else min_of(self._block, left)
            yield

    def each(
        self,
        body: Callable[[Position], None],
        *,
        kind: LoopKind = "vector",
        merge_from: int = 0,
    ) -> None:
        """Visit every element of the set or sets at hand, the innermost loop being of this kind.

        Trailing axes before `merge_from` have loops of their own, for bodies whose reads follow them.
        """
        if self.by_columns:
            with self.b.loops(self._sizes(self._folded)) as folded:
                self._visit_lanes(dict(zip(self._folded, folded, strict=True)), body)
            return
        merged = list(takewhile(lambda axis: axis >= merge_from, reversed(self._inner)))[::-1]
        merged = merged or self._inner[-1:]
        outer = self._folded[: len(self._folded) - len(merged)]
        sizes = self._sizes(merged)
        with self.b.loops(self._sizes(outer)) as apart, self.b.loop(product(sizes), kind) as flat:
            at = dict(zip(outer, apart, strict=True))
            at.update(zip(merged, unflatten(flat, sizes, self.b.ranges), strict=True))
            body(self._position(at))

    def for_sets(self, body: Callable[[Position], None]) -> None:
        """Once for each set at hand; the position is that of its first element."""
        if self.by_columns:
            self._visit_lanes({}, body)
        else:
            body(self._position({}))

    # Cells

    def fold(
        self, start: Expr, step: Callable[[Expr, Position], Expr], kind: LoopKind = "vector"
    ) -> Cell:
        """What `step` makes of a set, element by element; in no given order where kind is vector."""
        cell = self._cell(start)
        self.each(lambda position: cell.set(step(cell.get(), position)), kind=kind)
        return cell

    def sum(self, dtype: Dtype, term: Callable[[Position], Expr]) -> Cell:
        """The sum over a set. Long ones are put together from pieces: their errors grow with their length."""
        most = COLUMN_PIECE if self.by_columns else ROW_PIECE
        zero = const(0, dtype)
        if dtype in INTEGERS or (isinstance(self.size, int) and self.size <= most):
            return self.fold(zero, lambda total, position: total + term(position))
        total, part = self._cell(zero), self._cell(zero)
        # Of a row, the run in memory is cut; elements of a column are rows of lanes, in any order of axes.
        run = self._folded if self.by_columns else self._inner
        outer = self._folded[: len(self._folded) - len(run)]
        sizes = self._sizes(run)
        length = product(sizes)
        with (
            self.b.loops(self._sizes(outer)) as apart,
            self.b.loop(ceil_div(length, most)) as piece,
        ):
            at = dict(zip(outer, apart, strict=True))
            first = piece * most
            self.for_sets(lambda position: part.set(zero))
            count = min_of(most, length - first)
            with self.b.loop(count, "serial" if self.by_columns else "vector") as number:
                at.update(zip(run, unflatten(first + number, sizes, self.b.ranges), strict=True))
                if self.by_columns:
                    self._visit_lanes(at, lambda position: part.set(part.get() + term(position)))
                else:
                    part.set(part.get() + term(self._position(at)))
            self.for_sets(lambda position: total.set(total.get() + part.get()))
        return total

    def derive(self, dtype: Dtype, value: Callable[[Position], Expr]) -> Cell:
        """A number for each set, from others and from what belongs to the set."""
        if not self.by_columns:
            named = self.b.local(cast(value(self._position({})), dtype))
            return Cell(self, named.name, dtype)
        cell = Cell(self, self.b.array(dtype, self._block), dtype)
        self.for_sets(lambda position: cell.set(value(position)))
        return cell

    def derive_of_units(self, cell: Cell, value: Callable[[Expr], Expr]) -> Cell:
        """A number for each column, from the sum of a cell over the columns of its unit."""
        b = self.b
        derived = Cell(self, b.array(cell.dtype, self._block), cell.dtype)
        with b.loop(ceil_div(self._lanes, self.unit)) as unit:
            total = b.local(const(0, cell.dtype))
            with b.loop(self.unit) as one:
                self.lane = unit * self.unit + one
                b.set(total, total + cell.get())
            number = b.let(value(total))
            with b.loop(self.unit, "vector") as one:
                self.lane = unit * self.unit + one
                derived.set(number)
        return derived

    def flat(self, position: Position) -> Size:
        """The number of an element in its set."""
        axes = sorted(self._folded)
        return flatten([position[axis] for axis in axes], self._sizes(axes))

    # Inside

    @contextmanager
    def _over(self, axes: Sequence[int], work: Size) -> Iterator[dict[int, Size]]:
        """The parallel loop; axes that are neighbours need no division to become one offset."""
        sizes = self._sizes(axes)
        if axes and list(axes) != self._live[: len(axes)]:
            with self.b.parallel(sizes, work) as apart:
                yield dict(zip(axes, apart, strict=True))
            return
        with self.b.parallel((product(sizes),), work) as (row,):
            yield dict(zip(axes, unflatten(row, sizes, self.b.ranges), strict=True))

    def _sizes(self, axes: Sequence[int]) -> list[Size]:
        return [self.shape[axis] for axis in axes]

    def _position(self, at: dict[int, Size]) -> Position:
        known = self._at | at
        return tuple(known.get(axis, 0) for axis in range(len(self.shape)))

    def _cell(self, start: Expr) -> Cell:
        if not self.by_columns:
            return Cell(self, self.b.local(start).name, start.dtype)
        cell = Cell(self, self.b.array(start.dtype, self._block), start.dtype)
        self.for_sets(lambda position: cell.set(start))
        return cell

    def _visit_lanes(self, at: dict[int, Size], body: Callable[[Position], None]) -> None:
        sizes = self._sizes(self._inner)
        with self.b.loop(self._lanes, "vector") as self.lane:
            columns = unflatten(self._first_column + self.lane, sizes, self.b.ranges)
            body(self._position(at | dict(zip(self._inner, columns, strict=True))))


def _block_of(columns: Size, unit: int) -> int:
    """Columns of one block, in whole units: whole vectors that divide them, or the most there may be.

    Half of them rather than all, so that two threads have their share.
    """
    if not isinstance(columns, int):
        return BLOCK
    most = max(min(BLOCK, columns // 2 // unit * unit), unit, SMALLEST_BLOCK)
    for vectors in (16, 8, 4):
        step = math.lcm(vectors, unit)
        for block in range(most // step * step, SMALLEST_BLOCK - 1, -step):
            if columns % block == 0:
                return block
    return max(min(BLOCK, columns) // unit * unit, unit)
