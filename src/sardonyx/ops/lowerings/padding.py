"""Pad: rows of the output, each as margin, copied part, margin.

for row                                a row that lies in the margin of an outer axis is all fill
  for j < lead:   out[row, j] = fill
  for j < kept:   out[row, lead + j] = x[…, first + j]
  for j < trail:  out[row, lead + kept + j] = fill
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from sardonyx.loops.build import maximum, minimum, where
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Expr, apply
from sardonyx.ops.cuts import pad_plan
from sardonyx.ops.lowering import Nest, Position, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.copying import COST
from sardonyx.ops.lowerings.generating import number
from sardonyx.ops.lowerings.parameters import axes_of, length_of, spread, whole
from sardonyx.sizes import Size, at_least, max_of, min_of, product

__all__ = ["PAD"]


@dataclass(frozen=True)
class Margin:
    """One axis of the output: `lead` places, then `kept` from the input's `first` on, then more places."""

    size: Size  # of the output
    before: Size  # how much was asked for in front; what is cut is none
    first: Size
    kept: Size

    @property
    def lead(self) -> Size:
        return min_of(self.before, self.size)

    @property
    def padded(self) -> bool:
        return self.size != self.kept

    @property
    def moved(self) -> bool:
        return self.padded or self.first != 0


def _margins(site: Site) -> list[Margin]:
    shape, out = site.shape(0), site.out_shape()
    plan = pad_plan(site.call, len(shape))
    widths = _read_widths(site) if plan is None else {a: (begin, end) for a, begin, end in plan}
    found: list[Margin] = []
    for axis, size in enumerate(shape):
        begin, end = widths.get(axis, (0, 0))
        require_equal(site, size + begin + end, out[axis], f"axis {axis}, padded, and the output's")
        kept = max_of(size + min_of(begin, 0) + min_of(end, 0), 0)
        found.append(Margin(out[axis], max_of(begin, 0), max_of(-begin, 0), kept))
    return found


def _read_widths(site: Site) -> dict[int, tuple[Size, Size]]:
    b, rank = site.b, len(site.shape(0))
    numbers = [whole(site, 1, at) for at in range(length_of(site, 1))]
    count = len(numbers) // 2
    axes = axes_of(site, 3, count, rank)
    if len(numbers) != 2 * len(axes):
        site.refuse("pads does not hold two numbers for every axis")
    begins = spread(site, axes, numbers[:count], [b.size(0)] * rank)
    ends = spread(site, axes, numbers[count:], [b.size(0)] * rank)
    return {axis: (b.index(begins[axis]), b.index(ends[axis])) for axis in range(rank)}


def _pad(site: Site) -> None:
    found = _margins(site)
    margins = [found[axis] for axis in site.memory_order()]
    mode = site.call.str_attr("mode", "constant")
    if mode == "constant":
        _Constant(site, margins).write()
    elif mode in SOURCES:
        _Repeating(site, margins, mode).write()
    else:
        site.refuse(f"Pad has no mode {mode!r}")


class _Rows(ABC):
    """Axes from `cut` on form the rows; they are one axis with margins, or several without.

    Axes and positions are in the order of memory here.
    """

    def __init__(self, site: Site, margins: Sequence[Margin]) -> None:
        self.site, self.b = site, site.b
        order = site.memory_order()
        self._places = [order.index(axis) for axis in range(len(order))]
        cut = len(margins)
        while cut and not margins[cut - 1].moved:
            cut -= 1
        if cut == len(margins):
            cut = max(cut - 1, 0)
        self.outer, self.inner = margins[:cut], margins[cut:]
        self.sizes = [margin.size for margin in self.inner]
        self.extent = product(self.sizes)
        last = self.inner[0] if len(self.inner) == 1 else None
        self.row = last or Margin(self.extent, 0, 0, self.extent)

    def write(self) -> None:
        outer = [margin.size for margin in self.outer]
        with self.b.parallel(outer, self.extent * COST) as at:
            self.write_row(at)

    @abstractmethod
    def write_row(self, at: Position) -> None: ...

    def read(self, at: Position) -> Expr:
        return self.site.read(0, tuple(at[place] for place in self._places))

    def store(self, at: Position, element: Expr) -> None:
        self.site.store(tuple(at[place] for place in self._places), element)

    def copy(self, at: Position, source: Position) -> None:
        """The part of a row that the input has."""
        row = self.row
        with self.b.loop(row.kept, "vector") as j:
            here = unflatten(row.lead + j, self.sizes, self.b.ranges)
            there = unflatten(row.first + j, self.sizes, self.b.ranges)
            self.store((*at, *here), self.read((*source, *there)))


class _Constant(_Rows):
    """The margins hold one value."""

    def __init__(self, site: Site, margins: Sequence[Margin]) -> None:
        super().__init__(site, margins)
        self.fill = _fill(site)

    def write_row(self, at: Position) -> None:
        b, row = self.b, self.row
        source = tuple(p - m.lead + m.first for p, m in zip(at, self.outer, strict=True))
        tests = [
            (b.size(p) >= b.size(m.lead)) & (b.size(p) < b.size(m.lead + m.kept))
            for p, m in zip(at, self.outer, strict=True)
            if m.padded
        ]
        if not tests:
            self._mixed(at, source)
            return
        with b.when(reduce(lambda x, y: x & y, tests)):
            self._mixed(at, source)
        with b.otherwise():
            self._margin(at, 0, row.size)

    def _mixed(self, at: Position, source: Position) -> None:
        row = self.row
        self._margin(at, 0, row.lead)
        self.copy(at, source)
        self._margin(at, row.lead + row.kept, row.size - row.lead - row.kept)

    def _margin(self, at: Position, start: Size, count: Size) -> None:
        if count == 0:
            return
        with self.b.loop(count, "vector") as j:
            here = unflatten(start + j, self.sizes, self.b.ranges)
            self.store((*at, *here), self.fill)


def _fill(site: Site) -> Expr:
    if site.call.version < 11:
        return number(site.call.attr("value", 0.0), site.dtype(0))
    if not site.call.has(2) or 0 in site.shape(2):
        return number(0, site.dtype(0))
    return site.operand(2, (0,) * len(site.shape(2)))


class _Repeating(_Rows):
    """The margins repeat what was kept of the axis."""

    def __init__(self, site: Site, margins: Sequence[Margin], mode: str) -> None:
        super().__init__(site, margins)
        self.source = SOURCES[mode]
        for margin in margins:
            if margin.padded and not at_least(margin.kept, 1):
                kept, size = self.b.size(margin.kept), self.b.size(margin.size)
                empty = (kept < 1) & (size > 0)
                self.b.fail_if(empty, f"mode {mode} has nothing to fill {{limit}} with", kept, size)

    def write_row(self, at: Position) -> None:
        source = tuple(
            self._mapped(p, m) if m.padded else p + m.first
            for p, m in zip(at, self.outer, strict=True)
        )
        row = self.row
        self._margin(at, source, 0, row.lead)
        self.copy(at, source)
        self._margin(at, source, row.lead + row.kept, row.size - row.lead - row.kept)

    def _margin(self, at: Position, source: Position, start: Size, count: Size) -> None:
        if count == 0:
            return
        with self.b.loop(count) as j:
            there = self._mapped(start + j, self.row)
            self.store((*at, start + j), self.read((*source, there)))

    def _mapped(self, place: Size, margin: Margin) -> Size:
        b = self.b
        kept = b.size(margin.kept)
        return b.index(self.source(b.size(place - margin.before), kept), margin.kept) + margin.first


def _edge(place: Expr, kept: Expr) -> Expr:
    return maximum(minimum(place, kept - 1), 0)


def _wrap(place: Expr, kept: Expr) -> Expr:
    return apply("mod", place, kept)


def _reflect(place: Expr, kept: Expr) -> Expr:
    """0 1 2 3 2 1 0 1 …: there and back again, as often as it takes."""
    period = maximum((kept - 1) * 2, 1)
    folded = apply("mod", apply("abs", place), period)
    return where(folded >= kept, period - folded, folded)


SOURCES = {"edge": _edge, "reflect": _reflect, "wrap": _wrap}

PAD = Nest(_pad, reads_once=True)
