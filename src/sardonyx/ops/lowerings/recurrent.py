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
from typing import TypeAlias

from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Nest, Site
from sardonyx.ops.lowerings.activations import Activation, read_activations
from sardonyx.ops.lowerings.recurrent_layer import (
    INITIAL_C,
    INITIAL_H,
    PEEPHOLES,
    Group,
    Layer,
    Unit,
)
from sardonyx.ops.lowerings.recurrent_products import Source, each_unit, multiply_input, shared_rows
from sardonyx.sizes import Size

__all__ = ["GRU", "LSTM", "RNN"]


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

    most = shared_rows(layer)
    if isinstance(layer.batch, int):
        tiles = max(1, -(-layer.batch // most))
        walk(max(1, -(-layer.batch // tiles)))
        return
    _walk_any(layer, (1, 2, 4, most) if most > 4 else (1, 2, most), walk)


def _walk_any(layer: Layer, tiles: Sequence[int], walk: Callable[[int], None]) -> None:
    """By tiles of as few rows as a batch has that only a run knows; the last ones take any number of rows."""
    first, *others = tiles
    if not others:
        walk(first)
        return
    b = layer.b
    with b.when(apply("le", b.size(layer.batch), first)):
        walk(first)
    with b.otherwise():
        _walk_any(layer, others, walk)


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
    site: Site, passes: Sequence[int], default: Sequence[str], make: Callable[[Layer], Step]
) -> Layer:
    layer = Layer(site, passes)
    layer.check_lengths()
    multiply_input(layer)
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
        each_unit(
            layer,
            group,
            step,
            (0,),
            _state(layer, step),
            lambda u: u.put(f(u.given(0) + u.recurrent(0, 0))),
        )

    _recurrent(site, (1,), ("Tanh",), lambda layer: advance)


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
            each_unit(layer, group, step, range(4), source, lambda u: cell(u, *group.activations))

        states.append(c)
        return advance

    states: list[str] = []
    layer = _recurrent(site, (4,), ("Sigmoid", "Tanh", "Tanh"), make)
    _finish(layer, 2, states[0], 0)


def _gru(site: Site) -> None:
    """Gates z, r, h."""
    linear = bool(site.call.int_attr("linear_before_reset"))
    default = ("Sigmoid", "Tanh")
    if linear:
        _recurrent(site, (3,), default, _gru_of_one_pass)
    else:
        _recurrent(site, (2, 1), default, _gru_of_two_passes)


def _mixed(unit: Unit, update: Expr, candidate: Expr) -> Expr:
    return (1.0 - update) * candidate + update * unit.h()


def _gru_of_one_pass(layer: Layer) -> Step:
    """The reset gate scales what the weights made of the state."""

    def cell(unit: Unit, f: Activation, g: Activation) -> None:
        update, reset = (f(unit.given(n) + unit.recurrent(n, n)) for n in range(2))
        unit.put(_mixed(unit, update, g(unit.given(2) + reset * unit.recurrent(2, 2))))

    def advance(layer: Layer, group: Group, step: Size) -> None:
        source = _state(layer, step)
        each_unit(layer, group, step, range(3), source, lambda u: cell(u, *group.activations))

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
        each_unit(layer, group, step, (0, 1), _state(layer, step), lambda u: gates(u, f))

        def source(d: Size, row: Size, k: Size) -> Expr:
            return b.load(scaled, layer.state_at(d, row, k))

        each_unit(layer, group, step, (2,), source, lambda u: output(u, g))

    return advance


RNN = Nest(_rnn)
GRU = Nest(_gru)
LSTM = Nest(_lstm)
