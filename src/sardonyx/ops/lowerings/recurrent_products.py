"""The two products of a recurrent layer: weights times all inputs at once, and weights times the state of a step.

given[d, t, b, g] = W x + the bias of W
sums[row, gate, unit] = R[gate, unit] · h[row]      then the cell, on the units of a strip side by side

A thread does the rows of a strip one after the other, so that the strip's weights stay in its cache, step by step. Where
that holds all weights, it does the strips of some rows instead: their states never leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TypeAlias

from sardonyx.loops.build import Builder
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Expr, Var, const
from sardonyx.ops.lowerings.panels import WIDTH, Panels, holds, sum_panels
from sardonyx.ops.lowerings.recurrent_layer import (
    BIAS,
    INPUT_ROWS,
    Group,
    Layer,
    R,
    Unit,
    W,
)
from sardonyx.ops.lowerings.windows import place_at
from sardonyx.sizes import Size, ceil_div, min_of

__all__ = ["Cell", "Source", "each_unit", "multiply_input", "shared_rows"]

UNITS = WIDTH  # hidden units whose activations are computed side by side
ROWS, MOST_ROWS = 4, 8  # of a batch that share each load of the weights; where registers are many
COLUMNS = (
    4  # gates of the input's product that share each load of the input, where there are no panels
)
STRIP = 64  # columns of the input's product in one piece of work
TILES = 8  # of rows in one piece of work: they find a panel of weights in the first-level cache

# Multiplies weights with a state and does something to every unit's sums.
Cell: TypeAlias = Callable[[Unit], None]
Source: TypeAlias = Callable[[Size, Size, Size], Expr]


def _clamped(b: Builder, place: Size, size: Size, *, exact: bool) -> Size:
    """A place that may be past the end as the last one: it is computed twice, to the same answer."""
    return place if exact else b.index(b.size(min_of(place, size - 1)), size)


def _lanes(b: Builder, start: Size, size: Size, width: int) -> Size:
    """How many of a strip's places are there."""
    if _divides(width, size):
        return width
    return b.index(b.size(min_of(size - start, width)), width + 1)


def _divides(part: int, size: Size) -> bool:
    return isinstance(size, int) and size % part == 0


def shared_rows(layer: Layer) -> int:
    """How many rows of a large batch share each load of the weights."""
    if not layer.strips:
        return ROWS
    most = min(MOST_ROWS, layer.sums // (max(layer.passes) * WIDTH))
    if layer.near and isinstance(layer.batch, int):  # rows for two threads
        return max(ROWS, min(most, -(-layer.batch // 2)))
    return most


def multiply_input(layer: Layer) -> None:
    """given = W x + the bias of W, for all steps, tile by tile."""
    if layer.strips:
        _multiply_strips(layer)
        return
    b, columns = layer.b, layer.gates * layer.hidden
    rows = layer.steps * layer.batch
    tile = min(INPUT_ROWS, max(rows, 1)) if isinstance(rows, int) else INPUT_ROWS
    tiles, each = ceil_div(rows, tile), _together(layer, tile)
    extents = (layer.directions, ceil_div(tiles, TILES), ceil_div(columns, STRIP))
    with b.parallel(extents, TILES * tile * STRIP * layer.features) as (d, block, strip):
        start = strip * STRIP
        left = STRIP if _divides(STRIP, columns) else min_of(columns - start, STRIP)
        with (
            b.loop(ceil_div(left, each)) as part,
            b.loop(min_of(tiles - block * TILES, TILES)) as one,
        ):
            places = _rows_of_tile(layer, (block * TILES + one) * tile, tile)
            if layer.w is None:
                first, exact = start + part * each, _divides(each, columns)
                gates = [_clamped(b, first + n, columns, exact=exact) for n in range(each)]
                _tile_of_input(layer, d, places, gates)
            else:
                count, exact = layer.w.panels, _divides(each, columns)
                first = strip * (STRIP // WIDTH) + part * (each // WIDTH)
                panels = [_clamped(b, first + n, count, exact=exact) for n in range(each // WIDTH)]
                _panels_of_input(layer, layer.w, d, places, panels)


def _multiply_strips(layer: Layer) -> None:
    """The same for units in strips: all gates of one strip, or of some where a unit has few."""
    b, w, gates = layer.b, layer.w, layer.gates
    assert w is not None
    rows, each = layer.steps * layer.batch, max(1, COLUMNS // gates)
    tile = min(MOST_ROWS, layer.sums // (each * gates * WIDTH))
    tile = min(tile, max(rows, 1)) if isinstance(rows, int) else tile
    tiles, parts = ceil_div(rows, tile), ceil_div(w.panels, each)
    extents = (layer.directions, ceil_div(tiles, TILES), parts)
    with (
        b.parallel(extents, TILES * tile * each * gates * WIDTH * layer.features) as (
            d,
            block,
            part,
        ),
        b.loop(min_of(tiles - block * TILES, TILES)) as one,
    ):
        places = _rows_of_tile(layer, (block * TILES + one) * tile, tile)
        whole = w.panels % each == 0
        strips = [_clamped(b, part * each + n, w.panels, exact=whole) for n in range(each)]
        columns = [(gate, strip) for strip in strips for gate in range(gates)]
        sums = sum_panels(
            layer.site,
            layer.dtype,
            w,
            [partial(layer.x, step, row) for step, row in places],
            lambda k: [w.at(d, gate, strip, k) for gate, strip in columns],
        )
        for position, (gate, strip) in enumerate(columns):
            first = strip * WIDTH
            with b.loop(_lanes(b, first, layer.hidden, WIDTH), "vector") as lane:
                column = gate * layer.hidden + place_at(b, first + lane, layer.hidden)
                for number, (step, at) in enumerate(places):
                    total = b.element(sums, (number * len(columns) + position) * WIDTH + lane)
                    value = total + layer.bias(d, column) if layer.site.call.has(BIAS) else total
                    b.store(layer.given, layer.strip_at(d, step, strip, at, gate, lane), value)


def _together(layer: Layer, tile: int) -> int:
    """Columns that share each load of the input."""
    if layer.w is None:
        return COLUMNS
    found = WIDTH
    while found < STRIP and tile * 2 * found <= layer.site.sums and found < layer.w.panels * WIDTH:
        found *= 2
    return found


def _rows_of_tile(layer: Layer, first: Size, tile: int) -> list[tuple[Size, Size]]:
    """Step and place in the batch of each row of a tile."""
    b, rows = layer.b, layer.steps * layer.batch
    places = []
    for number in range(tile):
        row = _clamped(b, first + number, rows, exact=_divides(tile, rows))
        step, at = unflatten(row, (layer.steps, layer.batch), b.ranges)
        places.append((b.named(step, layer.steps), b.named(at, layer.batch)))
    return places


def _tile_of_input(
    layer: Layer, d: Size, places: Sequence[tuple[Size, Size]], gates: Sequence[Size]
) -> None:
    b, site = layer.b, layer.site
    totals = [[b.local(const(0, layer.dtype)) for _ in gates] for _ in places]
    with b.loop(layer.features, "vector") as feature:
        inputs = [layer.x(step, row, feature) for step, row in places]
        weights = [site.operand(W, (d, gate, feature)) for gate in gates]
        for row, x in zip(totals, inputs, strict=True):
            for total, weight in zip(row, weights, strict=True):
                b.set(total, total + x * weight)
    for row, (step, at) in zip(totals, places, strict=True):
        for total, gate in zip(row, gates, strict=True):
            value = total + layer.bias(d, gate) if site.call.has(BIAS) else total
            b.store(layer.given, layer.given_at(d, step, at, gate), value)


def _panels_of_input(
    layer: Layer,
    w: Panels,
    d: Size,
    places: Sequence[tuple[Size, Size]],
    panels: Sequence[Size],
) -> None:
    b = layer.b
    rows = [partial(layer.x, step, row) for step, row in places]
    sums = sum_panels(
        layer.site, layer.dtype, w, rows, lambda k: [w.at(d, 0, panel, k) for panel in panels]
    )
    columns = layer.gates * layer.hidden
    for position, panel in enumerate(panels):
        first = panel * WIDTH
        with b.loop(_lanes(b, first, columns, WIDTH), "vector") as lane:
            gate = place_at(b, first + lane, columns)
            for number, (step, at) in enumerate(places):
                total = b.element(sums, (number * len(panels) + position) * WIDTH + lane)
                value = total + layer.bias(d, gate) if layer.site.call.has(BIAS) else total
                b.store(layer.given, layer.given_at(d, step, at, gate), value)


def each_unit(
    layer: Layer, group: Group, step: Size, gates: Sequence[int], source: Source, cell: Cell
) -> None:
    """One pass over all units: their weights of some gates times a state, then the cell.

    Every other step goes backward, so that weights that are too many for a cache are found there in part.
    """
    b, hidden, tile = layer.b, layer.hidden, group.tile
    width = min(UNITS, max(hidden, 1)) if isinstance(hidden, int) else UNITS
    whole = _divides(tile, layer.batch)
    blocks, strips = ceil_div(layer.batch, tile), ceil_div(hidden, width)
    work = hidden * (len(gates) * tile * width)
    extents = (group.count, blocks, strips) if layer.near else (group.count, strips, blocks)
    with b.parallel(extents, work, backward=step % 2) as (number, outer, inner):
        block, strip = (outer, inner) if layer.near else (inner, outer)
        d, start = group.first + number, strip * width
        lanes = _lanes(b, start, hidden, width)
        rows = [_clamped(b, block * tile + n, layer.batch, exact=whole) for n in range(tile)]
        if layer.r is not None and holds(layer.site, tile, len(gates)):
            sums = _sums_of_panels(layer, layer.r, d, rows, gates, strip, source)
        else:
            sums = b.array(layer.dtype, tile * len(gates) * width)
            with b.loop(lanes) as lane:
                unit = place_at(b, start + lane, hidden)
                totals = _dots(layer, d, rows, [gate * hidden + unit for gate in gates], source)
                for number_, total in enumerate(totals):
                    b.put(sums, number_ * width + lane, total)
        for n, row in enumerate(rows):
            inside = b.size(block * tile + n) < b.size(layer.batch)
            with nullcontext() if whole else b.when(inside):
                at, live = layer.place(d, step, row)
                with b.loop(lanes, "vector") as lane:
                    found = [
                        b.let(b.element(sums, (n * len(gates) + g) * width + lane))
                        for g in range(len(gates))
                    ]
                    unit = place_at(b, start + lane, hidden)
                    cell(Unit(layer, d, row, unit, strip, lane, step, at, live, found))


def _sums_of_panels(
    layer: Layer,
    r: Panels,
    d: Size,
    rows: Sequence[Size],
    gates: Sequence[int],
    strip: Size,
    source: Source,
) -> str:
    return sum_panels(
        layer.site,
        layer.dtype,
        r,
        [partial(source, d, row) for row in rows],
        lambda k: [r.at(d, gate, strip, k) for gate in gates],
    )


def _dots(
    layer: Layer, d: Size, rows: Sequence[Size], columns: Sequence[Size], source: Source
) -> list[Var]:
    """Every row's state times every column's weights; the rows share the weights."""
    b = layer.b
    totals = [b.local(const(0, layer.dtype)) for _ in rows for _ in columns]
    with b.loop(layer.hidden, "vector") as k:
        states = [source(d, row, k) for row in rows]
        weights = [layer.site.operand(R, (d, column, k)) for column in columns]
        pairs = [(state, weight) for state in states for weight in weights]
        for total, (state, weight) in zip(totals, pairs, strict=True):
            b.set(total, total + state * weight)
    return totals
