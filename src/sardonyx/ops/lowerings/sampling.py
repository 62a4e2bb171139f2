"""Sampling at computed places: GridSample and AffineGrid.

    parallel over places of the grid
      index[corner], weight[corner]              from the coordinates, once for all channels
    parallel over channels
      for places: y[…] = Σ weight[corner] * x[…, index[corner]]

Where channels lie last, or are few, they are taken place by place, and there is no table.
Coordinates are float64: a place between two elements must not slip over one of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from sardonyx.loops.build import Builder, cast, maximum, minimum, where
from sardonyx.loops.index import flatten, unflatten
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.ops.lowering import Element, Nest, Position, Site
from sardonyx.ops.lowerings.windows import check_same
from sardonyx.sizes import Size, at_least, ceil_div, product

__all__ = ["AFFINE_GRID", "GRID_SAMPLE"]

MODES = {"bilinear": "linear", "bicubic": "cubic"}
PADDINGS = ("zeros", "border", "reflection")
FAR = 1e15  # beyond any image; no index leaves 64 bits
CUBIC_A = -0.75
FEW_CHANNELS = 7  # that no table is worth
MOST_CORNERS = 16  # that are written out for several channels
TOGETHER = 4  # channels that share what is read of a table


def _grid_sample(site: Site) -> None:
    b, call = site.b, site.call
    x, grid = site.shape(0), site.shape(1)
    mode = call.str_attr("mode", "bilinear" if call.version < 20 else "linear")
    mode, padding = MODES.get(mode, mode), call.str_attr("padding_mode", "zeros")
    if mode not in ("nearest", "linear", "cubic") or padding not in PADDINGS:
        site.refuse(f"mode {mode!r} with padding {padding!r} has no native code")
    check_same(b, x[0], grid[0], "the input has a batch of {value}, the grid one of {limit}")
    rank = "the grid has {value} coordinates for {limit} dimensions"
    check_same(b, grid[-1], len(x) - 2, rank)
    dtype: Dtype = "f32" if site.dtype(0) in ("f16", "bf16", "f32") else "f64"
    taps = {"nearest": 1, "linear": 2, "cubic": 4}[mode]
    sample = Sample(site, mode, padding, dtype, taps ** (len(x) - 2))
    few = at_least(FEW_CHANNELS, x[1])
    if site.channels_last or few:
        _by_places(sample)
    else:
        _by_channels(sample)


@dataclass(frozen=True)
class Sample:
    """What is sampled how: `corners` elements of the input make one."""

    site: Site
    mode: str
    padding: str
    dtype: Dtype
    corners: int

    def taken(self, n: Size, at: Sequence[Size]) -> list[tuple[Position, Expr]]:
        """The places of the corners for one place of the grid, and their weights."""
        sampled = [
            _taps(self.site, (n, *at), axis, self.mode, self.padding) for axis in range(len(at))
        ]
        return [
            (
                tuple(index for index, _ in corner),
                cast(reduce(lambda a, c: a * c, (weight for _, weight in corner)), self.dtype),
            )
            for corner in itertools.product(*sampled)
        ]

    def total(self, n: Size, c: Size, taken: Iterable[tuple[Position, Expr]]) -> Expr:
        """The sum of the corners; 0 where the input is empty."""
        site, b = self.site, self.site.b
        full = reduce(lambda a, c: a & c, (b.size(size) > 0 for size in site.shape(0)[2:]))
        total = b.local(const(0, self.dtype))
        with b.when(full):
            for place, weight in taken:
                value = cast(site.operand(0, (n, c, *place)), self.dtype)
                b.set(total, total + value * weight)
        return total


def _by_places(sample: Sample) -> None:
    """A place after the other, and vectors along its channels."""
    b, (batch, channels, *space) = sample.site.b, sample.site.out_shape()
    work = channels * sample.corners * 2 + 16 * len(space)
    with b.parallel((batch, *space), work) as (n, *at):
        taken = [(place, b.let(weight)) for place, weight in sample.taken(n, at)]
        with b.loop(channels, "vector") as c:
            sample.site.store((n, c, *at), sample.total(n, c, taken))


def _tables(sample: Sample) -> tuple[str, str]:
    """The corners of all places, one after the other: where they are in the image, and their weights."""
    site, b = sample.site, sample.site.b
    image, (batch, _, *space) = site.shape(0)[2:], site.out_shape()
    corners, count = sample.corners, batch * product(space) * sample.corners
    kind: Dtype = "i32" if at_least(2**31, product(image)) else "i64"
    indices, weights = site.scratch(kind, count), site.scratch(sample.dtype, count)
    with b.parallel((batch, *space), 16 * len(space) + 4 * corners) as (n, *at):
        entry = flatten((n, *at), (batch, *space)) * corners
        for corner, (place, weight) in enumerate(sample.taken(n, at)):
            b.store(indices, entry + corner, cast(b.size(flatten(place, image)), kind))
            b.store(weights, entry + corner, weight)
    return indices, weights


def _by_channels(sample: Sample) -> None:
    """A few channels after the others, by tables."""
    site, b = sample.site, sample.site.b
    image, (batch, channels, *space) = site.shape(0)[2:], site.out_shape()
    places, corners = product(space), sample.corners
    indices, weights = _tables(sample)
    whole = isinstance(channels, int) and channels % TOGETHER == 0
    together = TOGETHER if whole and corners <= MOST_CORNERS else 1
    blocks = (batch, ceil_div(channels, together))
    with b.parallel(blocks, corners * places * 2 * together) as (n, c), b.loop(places) as flat:
        entries = [(n * places + flat) * corners + corner for corner in range(corners)]
        found = [b.index(b.load(indices, entry), product(image)) for entry in entries]
        taken = [
            (unflatten(index, image, b.ranges), b.let(b.load(weights, entry)))
            for index, entry in zip(found, entries, strict=True)
        ]
        place = unflatten(flat, space, b.ranges)
        for channel in range(together):
            one = c * together + channel
            site.store((n, one, *place), sample.total(n, one, taken))


def _taps(
    site: Site, place: Position, axis: int, mode: str, padding: str
) -> list[tuple[Size, Expr]]:
    """For one axis: which elements a sample takes, and with what weight, f64."""
    b, rank = site.b, len(place) - 1
    length = site.shape(0)[2 + axis]
    size = cast(b.size(length), "f64")
    aligned = bool(site.call.int_attr("align_corners"))
    given = cast(site.operand(1, (*place, rank - 1 - axis)), "f64")  # the last axis comes first
    given = b.let(where(apply("isnan", given), -1, given))
    at = (given + 1.0) / 2.0 * (size - 1.0) if aligned else ((given + 1.0) * size - 1.0) / 2.0
    at = b.let(maximum(minimum(at, FAR), -FAR))
    if mode == "nearest":
        at = b.let(apply("round", at))
    ends = (const(0, "f64"), size - 1.0) if aligned else (const(-0.5, "f64"), size - 0.5)
    if padding == "border" and mode != "cubic":
        at = b.let(_within(at, size))
    elif padding == "reflection" and mode != "cubic":
        at = b.let(_reflected(b, at, *ends))

    def tap(index: Expr, weight: Expr) -> tuple[Size, Expr]:
        index = b.let(index)
        if padding == "zeros":
            weight = where((index >= 0) & (index < size), weight, 0)
        elif padding == "reflection":
            index = apply("round", _reflected(b, index, *ends))
        return b.index(cast(_within(index, size), "i64"), length), b.let(weight)

    if mode == "nearest":
        return [tap(apply("round", at), const(1, "f64"))]
    base = b.let(apply("floor", at))
    ratio = b.let(at - base)
    offsets = (0, 1) if mode == "linear" else (-1, 0, 1, 2)
    return [tap(base + offset, _weight(b, ratio - offset, mode)) for offset in offsets]


def _within(place: Expr, size: Expr) -> Expr:
    """The nearest place that the axis has; 0 where it has none."""
    return maximum(minimum(place, size - 1.0), 0)


def _weight(b: Builder, distance: Expr, mode: str) -> Expr:
    x = b.let(apply("abs", distance))
    if mode == "linear":
        return 1.0 - x
    a = CUBIC_A
    near = ((a + 2) * x - (a + 3)) * x * x + 1.0
    return where(x <= 1, near, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a)


def _reflected(b: Builder, place: Expr, low: Expr, high: Expr) -> Expr:
    span = b.let(high - low)
    folded = b.let(apply("mod", place - low, span * 2.0))
    inside = low + where(folded > span, span * 2.0 - folded, folded)
    return where(span <= 0, low, inside)


def _affine_grid(site: Site, position: Position) -> Expr:
    """A row of theta times the place's coordinates, which run from -1 to 1; the innermost axis first."""
    b, call = site.b, site.call
    n, *at, row = position
    space = site.out_shape()[1:-1]
    if call.vector(1) is None:
        _check_size(site)
    for axis, size in enumerate((site.out_shape()[0], len(space), len(space) + 1)):
        reason = "theta has a dimension of {value}, where {limit} is needed"
        check_same(b, site.shape(0)[axis], size, reason)
    aligned = bool(call.int_attr("align_corners"))
    total = cast(site.operand(0, (n, row, len(space))), "f64")
    for axis, (one, side) in enumerate(zip(at, space, strict=True)):
        place, count = cast(b.size(one), "f64"), cast(b.size(side), "f64")
        if aligned:
            along = where(count > 1, place * 2.0 / maximum(count - 1.0, 1) - 1.0, 0)
        else:
            along = (place * 2.0 + 1.0) / count - 1.0
        theta = cast(site.operand(0, (n, row, len(space) - 1 - axis)), "f64")
        total = b.let(total + theta * along)
    return total


def _check_size(site: Site) -> None:
    """A size that is data must be the one that was declared."""
    b, (batch, *space, _) = site.b, site.out_shape()
    for axis, side in {0: batch, **dict(enumerate(space, 2))}.items():
        if axis and side == site.call.fresh(axis - 1):
            site.refuse("the size of the grid is not known before it runs")
        found = b.let(site.read(1, (axis,)))
        reason = "the size has {value} where {limit} is declared"
        b.fail_if(apply("ne", found, b.size(side)), reason, found, b.size(side))


AFFINE_GRID = Element(_affine_grid, weight=16)
GRID_SAMPLE = Nest(_grid_sample)
