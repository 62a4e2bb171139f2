"""RNN, GRU and LSTM: every direction, layout, activation, clip, peephole and sequence length.

    given[d, t, b, g] = W x + biases             for all steps at once: a matrix product
    for t                                        steps follow each other
      parallel over directions, rows, blocks of hidden units
        sums[row, gate, unit] = R[gate, unit] · h[row]
        vector over units: gates, activations, the new states, Y

States are kept in the type of the sums. h has two halves: one is read while the other is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sardonyx.loops.build import Builder, cast, where
from sardonyx.loops.index import flatten, unflatten
from sardonyx.loops.nodes import Dtype, Expr, Var, apply, const
from sardonyx.ops.lowering import Nest, Site
from sardonyx.ops.lowerings.activations import Activation, read_activations
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.panels import WIDTH, Panels, panels_of, sum_panels
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.ops.lowerings.windows import place_at
from sardonyx.sizes import Size, ceil_div, min_of

__all__ = ["GRU", "LSTM", "RNN"]

UNITS = WIDTH  # hidden units whose activations are computed side by side
ROWS = 4  # rows of a batch that share each load of the weights
COLUMNS = 4  # gates of the input's product that share each load of the input
STRIP = 64  # columns of the input's product in one piece of work

X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES = range(8)
LIMIT = "sequence_lens has {value}, outside 0 to {limit}"


class Layer:
    """One node: its sizes, and its memory."""

    def __init__(self, site: Site, gates: int) -> None:
        call = site.call
        self.site, self.b, self.gates = site, site.b, gates
        self.batch_first = bool(call.int_attr("layout"))
        first, second, self.features = site.shape(X)
        self.steps, self.batch = (second, first) if self.batch_first else (first, second)
        self.hidden: Size = site.shape(R)[2]
        direction = call.str_attr("direction", "forward")
        self.directions = 2 if direction == "bidirectional" else 1
        self.backward_from = 0 if direction == "reverse" else 1
        self.dtype: Dtype = sum_dtype(site.dtype(X))
        self._check_shapes()
        self.w = panels_of(site, W, self.dtype, self.gates * self.hidden)
        self.r = panels_of(site, R, self.dtype, self.hidden)
        self.given = site.scratch(self.dtype, self._given_size())
        self.h = site.scratch(self.dtype, 2 * self.state_size())

    def state_size(self) -> Size:
        return self.directions * self.batch * self.hidden

    def _given_size(self) -> Size:
        return self.steps * self.state_size() * self.gates

    def _check_shapes(self) -> None:
        """What the weights' shapes promise each other, where only a run can tell."""
        site, all_gates = self.site, self.gates * self.hidden
        states: tuple[Size, ...] = (self.directions, self.batch, self.hidden)
        if self.batch_first:
            states = (self.batch, self.directions, self.hidden)
        expected: dict[int, tuple[Size, ...]] = {
            W: (self.directions, all_gates, self.features),
            R: (self.directions, all_gates, self.hidden),
            BIAS: (self.directions, 2 * all_gates),
            LENGTHS: (self.batch,),
            INITIAL_H: states,
            INITIAL_C: states,
            PEEPHOLES: (self.directions, 3 * self.hidden),
        }
        names = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
        for index, wanted in expected.items():
            if not site.call.has(index):
                continue
            shape = site.shape(index)
            if len(shape) != len(wanted):
                site.refuse(f"{names[index]} has rank {len(shape)}, where {len(wanted)} is needed")
            for axis, (size, want) in enumerate(zip(shape, wanted, strict=True)):
                require_equal(site, size, want, f"axis {axis} of {names[index]} and what it serves")

    # Memory

    def x(self, step: Size, row: Size, feature: Size) -> Expr:
        at = (row, step) if self.batch_first else (step, row)
        return self.site.operand(X, (*at, feature))

    def state_at(self, d: Size, row: Size, unit: Size) -> Size:
        return flatten((d, row, unit), (self.directions, self.batch, self.hidden))

    def h_at(self, step: Size, d: Size, row: Size, unit: Size) -> Size:
        """Where the state that enters a step lies."""
        return (step % 2) * self.state_size() + self.state_at(d, row, unit)

    def given_at(self, d: Size, step: Size, row: Size, column: Size) -> Size:
        shape = (self.directions, self.steps, self.batch, self.gates * self.hidden)
        return flatten((d, step, row, column), shape)

    def store_step(self, step: Size, d: Size, row: Size, unit: Size, value: Expr) -> None:
        at = (row, step, d, unit) if self.batch_first else (step, d, row, unit)
        self.site.store(at, value)

    def bias(self, d: Size, column: Size) -> Expr:
        return self.site.operand(BIAS, (d, column))

    # Sequences

    def check_lengths(self) -> None:
        if not self.site.call.has(LENGTHS):
            return
        with self.b.loop(self.batch) as row:
            length, steps = self.length(row), self.b.size(self.steps)
            self.b.fail_if((length < 0) | (length > steps), LIMIT, length, steps)

    def length(self, row: Size) -> Expr:
        if not self.site.call.has(LENGTHS):
            return self.b.size(self.steps)
        return self.b.let(cast(self.site.operand(LENGTHS, (row,)), "i64"))

    def place(self, d: Size, step: Size, row: Size) -> tuple[Size, Expr | None]:
        """The time that a step stands for, and whether the sequence lives then; None if all do.

        Backward, each sequence starts at its own last step.
        """
        b, now, length = self.b, self.b.size(step), self.length(row)
        live = now < length if self.site.call.has(LENGTHS) else None
        last = b.let(length - 1 - now)
        if isinstance(d, int):
            if d < self.backward_from:
                return step, live
            turned = last if live is None else where(live, last, now)
        else:
            backward = b.size(d) > 0
            turned = where(backward if live is None else backward & live, last, now)
        return b.index(turned, self.steps), live


@dataclass(frozen=True)
class Unit:
    """One hidden unit of one row at one step, with what the weights made of its state."""

    layer: Layer
    d: Size
    row: Size
    unit: Size
    step: Size
    at: Size
    live: Expr | None
    sums: Sequence[Expr]

    def given(self, gate: int) -> Expr:
        """What the input adds to a gate."""
        column = gate * self.layer.hidden + self.unit
        return self.layer.b.load(
            self.layer.given, self.layer.given_at(self.d, self.at, self.row, column)
        )

    def recurrent(self, number: int, gate: int) -> Expr:
        """What the state adds to a gate, from the sum of that number."""
        if not self.layer.site.call.has(BIAS):
            return self.sums[number]
        offset = (self.layer.gates + gate) * self.layer.hidden
        return self.sums[number] + self.layer.bias(self.d, offset + self.unit)

    def h(self) -> Expr:
        layer = self.layer
        return layer.b.load(layer.h, layer.h_at(self.step, self.d, self.row, self.unit))

    def place(self) -> Size:
        return self.layer.state_at(self.d, self.row, self.unit)

    def kept(self, new: Expr, old: Expr) -> Expr:
        """The new state; a sequence that has ended keeps its own."""
        return new if self.live is None else where(self.live, new, old)

    def put(self, h: Expr) -> None:
        """The new output: a step of Y, and the state of the next step."""
        layer = self.layer
        h = layer.b.let(h)
        out = h if self.live is None else where(self.live, h, 0)
        layer.store_step(self.at, self.d, self.row, self.unit, out)
        place = layer.h_at(self.step + 1, self.d, self.row, self.unit)
        layer.b.store(layer.h, place, self.kept(h, self.h()))


@dataclass(frozen=True)
class Group:
    """Directions that run side by side, and how many rows of the batch at a time."""

    first: int
    count: int
    tile: int
    activations: tuple[Activation, ...]


# Multiplies weights with a state and does something to every unit's sums.
Cell: TypeAlias = Callable[[Unit], None]
Source: TypeAlias = Callable[[Size, Size, Size], Expr]


def _clamped(b: Builder, place: Size, size: Size, *, exact: bool) -> Size:
    """A place that may be past the end as the last one: it is computed twice, to the same answer."""
    return place if exact else b.index(b.size(min_of(place, size - 1)), size)


def _divides(part: int, size: Size) -> bool:
    return isinstance(size, int) and size % part == 0


def _multiply_input(layer: Layer) -> None:
    """given = W x + the bias of W, for all steps, tile by tile."""
    b, columns = layer.b, layer.gates * layer.hidden
    rows = layer.steps * layer.batch
    tile = min(ROWS, max(rows, 1)) if isinstance(rows, int) else ROWS
    extents = (layer.directions, ceil_div(rows, tile), ceil_div(columns, STRIP))
    with b.parallel(extents, tile * STRIP * layer.features) as (d, block, strip):
        places = []
        for number in range(tile):
            row = _clamped(b, block * tile + number, rows, exact=_divides(tile, rows))
            step, at = unflatten(row, (layer.steps, layer.batch), b.ranges)
            places.append((b.named(step, layer.steps), b.named(at, layer.batch)))
        start = strip * STRIP
        left = STRIP if _divides(STRIP, columns) else min_of(columns - start, STRIP)
        if layer.w is not None:
            with b.loop(left // WIDTH) as number_:
                _panel_of_input(layer, layer.w, d, places, strip * (STRIP // WIDTH) + number_)
            return
        with b.loop(ceil_div(left, COLUMNS)) as quad:
            first = start + quad * COLUMNS
            exact = _divides(COLUMNS, columns)
            gates = [_clamped(b, first + n, columns, exact=exact) for n in range(COLUMNS)]
            _tile_of_input(layer, d, places, gates)


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


def _panel_of_input(
    layer: Layer, w: Panels, d: Size, places: Sequence[tuple[Size, Size]], panel: Size
) -> None:
    b = layer.b
    rows = [partial(layer.x, step, row) for step, row in places]
    sums = sum_panels(b, layer.dtype, w, rows, lambda k: [w.at(d, panel, k)])
    with b.loop(WIDTH, "vector") as lane:
        gate = panel * WIDTH + lane
        for number, (step, at) in enumerate(places):
            total = b.element(sums, number * WIDTH + lane)
            value = total + layer.bias(d, gate) if layer.site.call.has(BIAS) else total
            b.store(layer.given, layer.given_at(d, step, at, gate), value)


def _each_unit(
    layer: Layer, group: Group, step: Size, gates: Sequence[int], source: Source, cell: Cell
) -> None:
    """One pass over all units: their weights of some gates times a state, then the cell."""
    b, hidden, tile = layer.b, layer.hidden, group.tile
    width = min(UNITS, max(hidden, 1)) if isinstance(hidden, int) else UNITS
    whole = _divides(tile, layer.batch)
    extents = (group.count, ceil_div(layer.batch, tile), ceil_div(hidden, width))
    work = hidden * (len(gates) * tile * width)
    with b.parallel(extents, work) as (number, block, strip):
        d, start = group.first + number, strip * width
        lanes: Size = width
        if not _divides(width, hidden):
            lanes = b.index(b.size(min_of(hidden - start, width)), width + 1)
        rows = [_clamped(b, block * tile + n, layer.batch, exact=whole) for n in range(tile)]
        if layer.r is not None and tile == 1:
            sums = _sums_of_panels(layer, layer.r, d, rows[0], gates, strip, source)
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
                    cell(Unit(layer, d, row, unit, step, at, live, found))


def _sums_of_panels(
    layer: Layer, r: Panels, d: Size, row: Size, gates: Sequence[int], strip: Size, source: Source
) -> str:
    each = r.panels // layer.gates  # panels of a gate
    return sum_panels(
        layer.b,
        layer.dtype,
        r,
        [partial(source, d, row)],
        lambda k: [r.at(d, gate * each + strip, k) for gate in gates],
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


# Walking the sequence


Step: TypeAlias = Callable[[Layer, Group, Size], None]


def _walk(layer: Layer, default: Sequence[str], advance: Step) -> None:
    """All steps, one after the other; directions of the same activations side by side."""
    b = layer.b
    activations = read_activations(layer.site, default, layer.directions)
    alike = len(set(activations)) == 1
    firsts = [0] if alike else range(layer.directions)

    def walk(tile: int) -> None:
        with b.loop(layer.steps) as step:
            for first in firsts:
                count = layer.directions if alike else 1
                advance(layer, Group(first, count, tile, activations[first]), step)

    if isinstance(layer.batch, int):
        walk(min(ROWS, max(layer.batch, 1)))
        return
    with b.when(apply("eq", b.size(layer.batch), 1)):
        walk(1)
    with b.otherwise():
        walk(ROWS)


def _start(layer: Layer, state: str, index: int) -> None:
    """The states before the first step: what is given, or zeros."""
    b, given = layer.b, layer.site.call.has(index)
    with (
        b.parallel((layer.directions, layer.batch), layer.hidden) as (d, row),
        b.loop(layer.hidden, "vector") as unit,
    ):
        value: Expr = const(0, layer.dtype)
        if given:
            at = (row, d, unit) if layer.batch_first else (d, row, unit)
            value = layer.site.operand(index, at)
        b.store(state, layer.state_at(d, row, unit), value)


def _finish(layer: Layer, output: int, state: str, offset: Size) -> None:
    """The states after the last step."""
    b = layer.b
    if output >= len(layer.site.outputs):
        return
    with (
        b.parallel((layer.directions, layer.batch), layer.hidden) as (d, row),
        b.loop(layer.hidden, "vector") as unit,
    ):
        value = b.load(state, offset + layer.state_at(d, row, unit))
        at = (row, d, unit) if layer.batch_first else (d, row, unit)
        layer.site.store(at, value, output)


def _recurrent(
    site: Site, gates: int, default: Sequence[str], make: Callable[[Layer], Step]
) -> Layer:
    layer = Layer(site, gates)
    layer.check_lengths()
    _multiply_input(layer)
    _start(layer, layer.h, INITIAL_H)
    _walk(layer, default, make(layer))
    _finish(layer, 1, layer.h, (layer.steps % 2) * layer.state_size())
    return layer


def _state(layer: Layer, step: Size) -> Source:
    """h, as it enters a step."""
    return lambda d, row, k: layer.b.load(layer.h, layer.h_at(step, d, row, k))


# Cells


def _rnn(site: Site) -> None:
    def advance(layer: Layer, group: Group, step: Size) -> None:
        (f,) = group.activations
        _each_unit(
            layer,
            group,
            step,
            (0,),
            _state(layer, step),
            lambda u: u.put(f(u.given(0) + u.recurrent(0, 0))),
        )

    _recurrent(site, 1, ("Tanh",), lambda layer: advance)


def _lstm(site: Site) -> None:
    """Gates i, o, f, c."""
    coupled = bool(site.call.int_attr("input_forget"))

    def make(layer: Layer) -> Step:
        c = site.scratch(layer.dtype, layer.state_size())
        _start(layer, c, INITIAL_C)

        def cell(unit: Unit, f: Activation, g: Activation, h: Activation) -> None:
            b, old = layer.b, layer.b.let(layer.b.load(c, unit.place()))
            i, o, forget, candidate = (
                b.let(unit.given(n) + unit.recurrent(n, n)) for n in range(4)
            )

            def peep(number: int, state: Expr) -> Expr:
                at = (unit.d, number * layer.hidden + unit.unit)
                return site.operand(PEEPHOLES, at) * state

            looks = site.call.has(PEEPHOLES)
            i = f(i + peep(0, old) if looks else i)
            kept = 1.0 - i if coupled else f(forget + peep(2, old) if looks else forget)
            new = b.let(kept * old + i * g(candidate))
            out = f(o + peep(1, new) if looks else o)
            unit.put(out * h(new))
            b.store(c, unit.place(), unit.kept(new, old))

        def advance(layer: Layer, group: Group, step: Size) -> None:
            source = _state(layer, step)
            _each_unit(layer, group, step, range(4), source, lambda u: cell(u, *group.activations))

        states.append(c)
        return advance

    states: list[str] = []
    layer = _recurrent(site, 4, ("Sigmoid", "Tanh", "Tanh"), make)
    _finish(layer, 2, states[0], 0)


def _gru(site: Site) -> None:
    """Gates z, r, h."""
    linear = bool(site.call.int_attr("linear_before_reset"))
    make = _gru_of_one_pass if linear else _gru_of_two_passes
    _recurrent(site, 3, ("Sigmoid", "Tanh"), make)


def _mixed(unit: Unit, update: Expr, candidate: Expr) -> Expr:
    return (1.0 - update) * candidate + update * unit.h()


def _gru_of_one_pass(layer: Layer) -> Step:
    """The reset gate scales what the weights made of the state."""

    def cell(unit: Unit, f: Activation, g: Activation) -> None:
        update, reset = (f(unit.given(n) + unit.recurrent(n, n)) for n in range(2))
        unit.put(_mixed(unit, update, g(unit.given(2) + reset * unit.recurrent(2, 2))))

    def advance(layer: Layer, group: Group, step: Size) -> None:
        source = _state(layer, step)
        _each_unit(layer, group, step, range(3), source, lambda u: cell(u, *group.activations))

    return advance


def _gru_of_two_passes(layer: Layer) -> Step:
    """The reset gate scales the state itself, all of it before its weights are applied."""
    b, site = layer.b, layer.site
    updates, scaled = (site.scratch(layer.dtype, layer.state_size()) for _ in range(2))

    def gates(unit: Unit, f: Activation) -> None:
        update, reset = (f(unit.given(n) + unit.recurrent(n, n)) for n in range(2))
        b.store(updates, unit.place(), update)
        b.store(scaled, unit.place(), reset * unit.h())

    def output(unit: Unit, g: Activation) -> None:
        candidate = g(unit.given(2) + unit.recurrent(0, 2))
        unit.put(_mixed(unit, b.load(updates, unit.place()), candidate))

    def advance(layer: Layer, group: Group, step: Size) -> None:
        f, g = group.activations
        _each_unit(layer, group, step, (0, 1), _state(layer, step), lambda u: gates(u, f))

        def source(d: Size, row: Size, k: Size) -> Expr:
            return b.load(scaled, layer.state_at(d, row, k))

        _each_unit(layer, group, step, (2,), source, lambda u: output(u, g))

    return advance


RNN = Nest(_rnn)
GRU = Nest(_gru)
LSTM = Nest(_lstm)
