"""Resize and Upsample, in every mode.

Interpolation is separable: along each axis an output element weighs a few input elements. Which ones, and
how much, depends on its place along that axis alone, so tables hold it, made before the image is:

    index[x, tap], weight[x, tap]          for every axis that changes
    y[j, i] = Σ_t weight[i, t] * (Σ_s weight[j, s] * x[index[j, s], index[i, t]])

Where there are many taps, or more elements than before, the sums over s of a whole row come first, and are kept: the same
sums, each once.
Coordinates are float32, as the scales are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sardonyx.loops.build import Builder, cast, maximum, minimum, where
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.ops.lowering import Nest, Position, Site
from sardonyx.ops.lowerings.scaling import (
    Axis,
    Style,
    coordinate,
    plan_resize,
    plan_upsample,
    turns_out_the_same,
)
from sardonyx.sizes import Size, product

__all__ = ["RESIZE", "UPSAMPLE"]

MAX_UNROLLED = 16  # neighbours of one element that are written out; more are looped over
MAX_REPEATS = 16
FEW = 4  # entries of a table that are read at once
SHORT = 2048  # elements of a row that are an array on the stack


@dataclass(frozen=True)
class Table:
    """Of one axis: the inputs of every output, `taps` of them; and whether it lies outside the input."""

    axis: Axis
    taps: int
    indices: str
    weights: str | None
    outside: str | None

    def index(self, b: Builder, at: Size, tap: Size) -> Size:
        return b.index(b.load(self.indices, at * self.taps + tap), self.axis.size)

    def weight(self, b: Builder, at: Size, tap: Size) -> Expr | None:
        if self.weights is None:
            return None
        return b.let(b.load(self.weights, at * self.taps + tap))


def _resize(site: Site) -> None:
    _resized(site, *plan_resize(site))


def _upsample(site: Site) -> None:
    _resized(site, *plan_upsample(site))


def _resized(site: Site, axes: Sequence[Axis], style: Style) -> None:
    b, shape = site.b, site.out_shape()
    dtype: Dtype = "f32" if site.dtype(0) in ("f16", "bf16", "f32") else "f64"
    if style.mode != "nearest" and site.dtype(0) == "bool":
        site.refuse("truth values cannot be interpolated")
    for axis in axes:
        fault = apply("eq", b.size(axis.size), 0) & apply("ne", b.size(axis.output), 0)
        reason = "{value} elements cannot be made of an empty axis"
        b.fail_if(fault, reason, b.size(axis.output))
    if not shape:
        site.store((), site.read(0, ()))
        return
    along = 1 if site.channels_last else len(shape) - 1  # the axis that lies innermost in memory
    repeats = next((_repeats(axis, style) for axis in axes if axis.axis == along), 1)
    tables = {
        axis.axis: _table(site, axis, style, dtype)
        for axis in axes
        if not axis.unchanged and (repeats == 1 or axis.axis != along)
    }
    last_two = list(tables)[1:] == [along] == [len(shape) - 1]
    in_rows = style.mode != "nearest" and last_two
    if in_rows and (not _is_written_out(tables) or _enlarges(tables[along].axis)):
        down, innermost = tables.values()
        _by_rows(site, down, innermost, style, dtype)
        return
    work = shape[along] * product(table.taps for table in tables.values()) * 2
    with b.parallel((*shape[:along], *shape[along + 1 :]), work) as around:
        picked = {
            number: Picked(b, table, around[number - (number > along)])
            for number, table in tables.items()
            if number != along
        }
        with b.loop(shape[along] if repeats == 1 else site.shape(0)[along], "vector") as lane:
            if along in tables:
                picked[along] = Picked(b, tables[along], lane)
            place = (*around[:along], lane, *around[along:])
            value = _value(site, picked, place, style, dtype)
            for copy in range(repeats):
                at = lane * repeats + copy
                site.store((*around[:along], at, *around[along:]), value)


def _repeats(axis: Axis, style: Style) -> int:
    """How often every element is repeated, where nearest does just that: x // repeats; else 1.

    Rounding cannot spoil it: the coordinate is at least 1/(2*scale) away from where its rounding jumps.
    """
    if style.mode != "nearest" or axis.known is None or axis.region is not None:
        return 1
    times = int(axis.known)
    plain = (style.coordinates, style.nearest) in (
        ("asymmetric", "floor"),
        ("half_pixel", "round_prefer_floor"),
        ("half_pixel", "round_prefer_ceil"),
    )
    whole = times == axis.known and 1 < times <= MAX_REPEATS and axis.output == axis.size * times
    return times if plain and whole else 1


# Tables


def _table(site: Site, axis: Axis, style: Style, dtype: Dtype) -> Table:
    b = site.b
    exact = style.mode == "nearest"
    offsets = [0] if exact else _offsets(site, axis, style)
    taps = len(offsets)
    indices = site.scratch("i64", axis.output * taps)
    weights = None if exact else site.scratch(dtype, axis.output * taps)
    crops = style.coordinates == "tf_crop_and_resize"
    outside = site.scratch("bool", axis.output) if crops else None
    last = b.size(axis.size - 1)
    with b.parallel([axis.output], 8 * taps) as (at,):
        place = b.let(coordinate(b, axis, style, cast(b.size(at), "f32")))
        if outside is not None:
            b.store(outside, at, (place < 0) | (place > cast(last, "f32")))
        if weights is None:
            found = cast(_nearest(axis, style, place), "i64")
            b.store(indices, at, maximum(minimum(found, last), 0))
        else:
            _weigh(b, axis, style, (indices, weights), offsets, at, place)
    return Table(axis, taps, indices, weights, outside)


def _nearest(axis: Axis, style: Style, place: Expr) -> Expr:
    down, up = apply("floor", place), apply("ceil", place)
    if style.ceil_when_smaller:
        return where(axis.scale < 1, up, down)
    return {
        "round_prefer_floor": apply("ceil", place - 0.5),
        "round_prefer_ceil": apply("floor", place + 0.5),
        "floor": down,
        "ceil": up,
    }[style.nearest]


def _shrink(axis: Axis, style: Style) -> Expr:
    """How much the distance to a neighbour counts: less than 1 for a filter that must not alias."""
    if not style.antialias:
        return const(1, "f64")
    if axis.known is not None:
        return const(min(axis.known, 1.0), "f64")
    return minimum(cast(axis.scale, "f64"), 1)


def _offsets(site: Site, axis: Axis, style: Style) -> list[int]:
    """Which neighbours may weigh anything, counted from the one on the left of the place."""
    least = axis.least if style.antialias else 1.0
    if not least:
        site.refuse("the scale, which decides the width of an antialiased Resize, is not known")
    reach = 1 if style.mode == "linear" else 2
    first = math.floor(-reach / min(least, 1.0)) + 1
    return list(range(first, 2 - first))


def _weigh(
    b: Builder,
    axis: Axis,
    style: Style,
    tables: tuple[str, str],
    offsets: Sequence[int],
    at: Size,
    place: Expr,
) -> None:
    """The neighbours of one place and their weights, which sum to 1 where some are left out."""
    indices, weights = tables
    taps, last = len(offsets), b.size(axis.size - 1)
    # The neighbour on the left counts as near even where the place is exact.
    base = b.let(apply("ceil", place) - 1.0)
    ratio = b.let(cast(place - base, "f64"))
    left = b.let(cast(base, "i64"))
    shrink = b.let(_shrink(axis, style))
    sum_of = b.local(const(0, "f64"))
    with b.loop(taps) as tap:
        offset = b.size(tap + offsets[0])
        index = b.let(left + offset)
        distance = (cast(offset, "f64") - ratio) * shrink
        weight = b.let(_filter(b, b.let(apply("abs", distance)), style))
        if style.exclude_outside:
            weight = where((index < 0) | (index > last), 0, weight)
        b.set(sum_of, sum_of + weight)
        b.store(indices, at * taps + tap, maximum(minimum(index, last), 0))
        b.store(weights, at * taps + tap, weight)
    if style.exclude_outside or style.antialias:
        with b.loop(taps) as tap:
            weight = cast(b.load(weights, at * taps + tap), "f64")
            b.store(weights, at * taps + tap, weight / sum_of)


def _filter(b: Builder, x: Expr, style: Style) -> Expr:
    if style.mode == "linear":
        return minimum(maximum(1.0 - x, 0), 1)
    a = style.cubic_a
    near = ((a + 2) * x - (a + 3)) * x * x + 1.0
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return where(x <= 1, near, where(x < 2, far, 0))


# Elements


class Picked:
    """The entries of a table for one place; few of them are read at once, many tap by tap."""

    def __init__(self, b: Builder, table: Table, at: Size) -> None:
        self.table = table
        self.at = at
        self.outside = None if table.outside is None else b.let(b.load(table.outside, at))
        few = table.taps <= FEW
        self.entries = [self.entry(b, tap) for tap in range(table.taps)] if few else []

    def entry(self, b: Builder, tap: Size) -> tuple[Size, Expr | None]:
        return self.table.index(b, self.at, tap), self.table.weight(b, self.at, tap)


def _value(
    site: Site, picked: Mapping[int, Picked], position: Position, style: Style, dtype: Dtype
) -> Expr:
    axes = [picked[number] for number in sorted(picked)]
    if style.mode == "nearest":
        place = list(position)
        for one in axes:
            place[one.table.axis.axis] = one.entries[0][0]
        value = site.read(0, place)
    else:
        written_out = _is_written_out({one.table.axis.axis: one.table for one in axes})
        value = _blend(site, axes, position, dtype, written_out)
    return _or_beyond(value, axes, style, dtype)


def _or_beyond(value: Expr, axes: Sequence[Picked], style: Style, dtype: Dtype) -> Expr:
    """The value, or what stands for one outside of the input."""
    outside = [one.outside for one in axes if one.outside is not None]
    if not outside:
        return value
    anywhere = reduce(lambda a, c: a | c, outside)
    beyond = const(style.extrapolation, "f64")
    wide = dtype if value.dtype in ("f16", "bf16") else value.dtype
    return where(anywhere, cast(beyond, wide), cast(value, wide))


def _blend(
    site: Site, axes: Sequence[Picked], position: Position, dtype: Dtype, written_out: bool
) -> Expr:
    """The weighted neighbours along the last of the axes, each blended along the others."""
    if not axes:
        return cast(site.operand(0, position), dtype)
    b, (*others, last) = site.b, axes

    def term(entry: tuple[Size, Expr | None]) -> Expr:
        index, weight = entry
        place = list(position)
        place[last.table.axis.axis] = index
        value = _blend(site, others, tuple(place), dtype, written_out)
        return _weighed(b, last.table.axis, weight, value)

    if written_out and last.entries:
        return reduce(lambda a, c: b.let(a + c), [term(entry) for entry in last.entries])
    total = b.local(const(0, dtype))
    with b.loop(last.table.taps) as tap:
        b.set(total, total + term(last.entry(b, tap)))
    return total


def _weighed(b: Builder, axis: Axis, weight: Expr | None, value: Expr) -> Expr:
    assert weight is not None, "only nearest has no weights"
    weighed = weight * value
    same = turns_out_the_same(b, axis)
    # Neighbours along an axis that is left alone count for nothing, infinities and NaN too.
    return weighed if same is None else where(same & apply("eq", weight, 0), 0, weighed)


# Rows


def _is_written_out(tables: Mapping[int, Table]) -> bool:
    """Whether an element has so few neighbours that no loop runs over them."""
    return math.prod(table.taps for table in tables.values()) <= MAX_UNROLLED


def _by_rows(site: Site, down: Table, along: Table, style: Style, dtype: Dtype) -> None:
    """Two axes, the second of them innermost: a row is blended of rows, and then along itself.

    parallel over rows of y
      for tap: vector column
        row[column] += weight[tap] * x[index[tap], column]
      for element
        y[…] = Σ_t weight[t] * row[index[t]]
    """
    b, (*rows, length) = site.b, site.out_shape()
    width = site.shape(0)[-1]
    row = _Row.of(site, dtype, rows, width)
    with b.parallel(rows, down.taps * width + along.taps * length) as around:
        row = row.begun(around)
        picked = Picked(b, down, around[down.axis.axis])
        _blend_rows(site, picked, around, row)
        with b.loop(length, "vector" if along.taps <= FEW else "serial") as at:
            here = Picked(b, along, at)
            if here.entries:
                terms = [
                    _weighed(b, along.axis, weight, row.get(index))
                    for index, weight in here.entries
                ]
                total = reduce(lambda a, c: b.let(a + c), terms)
            else:
                total = b.local(const(0, dtype))
                with b.loop(along.taps) as tap:
                    index, weight = here.entry(b, tap)
                    b.set(total, total + _weighed(b, along.axis, weight, row.get(index)))
            site.store((*around, at), _or_beyond(total, (picked, here), style, dtype))


def _blend_rows(site: Site, picked: Picked, around: Position, row: _Row) -> None:
    b, axis = site.b, picked.table.axis

    def term(entry: tuple[Size, Expr | None], column: Size) -> Expr:
        place = list(around)
        place[axis.axis], weight = entry
        value = cast(site.operand(0, (*place, column)), row.dtype)
        return _weighed(b, axis, weight, value)

    if picked.entries:
        with b.loop(row.width, "vector") as column:
            terms = [term(entry, column) for entry in picked.entries]
            row.put(column, reduce(lambda a, c: b.let(a + c), terms))
        return
    with b.loop(row.width, "vector") as column:
        row.put(column, const(0, row.dtype))
    with b.loop(picked.table.taps) as tap:
        entry = picked.entry(b, tap)
        with b.loop(row.width, "vector") as column:
            row.put(column, row.get(column) + term(entry, column))


@dataclass(frozen=True)
class _Row:
    """A row of blended elements: an array of its own where it is short, else a part of a buffer of all."""

    b: Builder
    dtype: Dtype
    width: Size
    rows: Sequence[Size]
    place: str  # the buffer, or the array
    start: Size | None  # in the buffer

    @staticmethod
    def of(site: Site, dtype: Dtype, rows: Sequence[Size], width: Size) -> _Row:
        if isinstance(width, int) and width <= SHORT:
            return _Row(site.b, dtype, width, rows, "", None)
        return _Row(site.b, dtype, width, rows, site.scratch(dtype, product(rows) * width), 0)

    def begun(self, around: Sequence[Size]) -> _Row:
        if self.start is not None:
            return replace(self, start=flatten(tuple(around), self.rows) * self.width)
        assert isinstance(self.width, int)
        return replace(self, place=self.b.array(self.dtype, self.width))

    def get(self, at: Size) -> Expr:
        if self.start is None:
            return self.b.element(self.place, at)
        return self.b.load(self.place, self.start + at)

    def put(self, at: Size, value: Expr) -> None:
        if self.start is None:
            self.b.put(self.place, at, value)
        else:
            self.b.store(self.place, self.start + at, value)


def _enlarges(axis: Axis) -> bool:
    """Whether a row has no fewer elements than the one that it is made of."""
    return axis.region is None and axis.least is not None and axis.least >= 1


RESIZE = Nest(_resize)
UPSAMPLE = Nest(_upsample)
