"""RNN, GRU and LSTM: every direction, layout, activation, clip, peephole and sequence length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator
from sardonyx.backends.reference.corrections.activations import Activation, make_activations
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_REASON = "honours sequence_lens, activations with alpha and beta, clip, reverse and layout"


@dataclass(frozen=True)
class Layer:
    """One direction of a recurrent node.

    Attributes:
        x: what the input adds to each gate, [T, B, gates × H]; the biases of W are within.
        r: recurrent weights, [gates × H, H].
        rb: recurrent biases, [gates × H].
    """

    x: Array
    r: Array
    rb: Array
    activations: Sequence[Activation]
    hidden: int

    def split(self, gates: Array) -> list[Array]:
        return np.split(gates, gates.shape[-1] // self.hidden, axis=-1)


# Takes the layer, the inputs of one step and the states; gives the new states, the output first.
Cell = Callable[[Layer, Array, list[Array]], list[Array]]


@corrects("RNN", reason=_REASON)
def rnn(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    initial_h: Array | None = None,
) -> tuple[Array, ...]:
    def cell(layer: Layer, step: Array, states: list[Array]) -> list[Array]:
        (h,) = states
        return [layer.activations[0](step + h @ layer.r.T + layer.rb)]

    return _run(call, lambda _: cell, 1, ("Tanh",), x, w, r, b, lengths, [initial_h])


@corrects("GRU", reason=_REASON)
def gru(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    initial_h: Array | None = None,
) -> tuple[Array, ...]:
    linear = bool(call.attr("linear_before_reset", 0))

    def cell(layer: Layer, step: Array, states: list[Array]) -> list[Array]:
        (h,) = states
        f, g = layer.activations
        xz, xr, xh = layer.split(step)
        two = 2 * layer.hidden
        hz, hr = layer.split(h @ layer.r[:two].T + layer.rb[:two])
        update, reset = f(xz + hz), f(xr + hr)
        rh, rbh = layer.r[two:], layer.rb[two:]
        inner = reset * (h @ rh.T + rbh) if linear else (reset * h) @ rh.T + rbh
        return [(1 - update) * g(xh + inner) + update * h]

    return _run(call, lambda _: cell, 3, ("Sigmoid", "Tanh"), x, w, r, b, lengths, [initial_h])


@corrects("LSTM", reason=_REASON + "; peepholes and input_forget")
def lstm(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    p: Array | None = None,
) -> tuple[Array, ...]:
    coupled = bool(call.attr("input_forget", 0))
    hidden = r.shape[-1]
    directions = w.shape[0]
    peepholes = np.zeros((directions, 3 * hidden), x.dtype) if p is None else p

    def cell_of(direction: int) -> Cell:
        pi, po, pf = np.split(accumulator(peepholes[direction]), 3)

        def cell(layer: Layer, step: Array, states: list[Array]) -> list[Array]:
            h, c = states
            f, g, activate = layer.activations
            gi, go, gf, gc = layer.split(step + h @ layer.r.T + layer.rb)
            i = f(gi + pi * c)
            forget = 1 - i if coupled else f(gf + pf * c)
            new_c = forget * c + i * g(gc)
            return [f(go + po * new_c) * activate(new_c), new_c]

        return cell

    names = ("Sigmoid", "Tanh", "Tanh")
    return _run(call, cell_of, 4, names, x, w, r, b, lengths, [initial_h, initial_c])


def _run(
    call: Call,
    cell_of: Callable[[int], Cell],
    gates: int,
    default_activations: tuple[str, ...],
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    lengths: Array | None,
    initial: Sequence[Array | None],
) -> tuple[Array, ...]:
    batch_first = bool(call.attr("layout", 0))
    hidden = r.shape[-1]
    source = accumulator(x.swapaxes(0, 1) if batch_first else x)
    steps, batch = source.shape[:2]
    directions = _directions(call, w, r, gates)
    sizes = _lengths(lengths, steps, batch)
    activations = make_activations(call, default_activations, len(directions))
    biases = np.zeros((len(directions), 2 * gates * hidden), source.dtype) if b is None else b
    call.claim(steps * batch * len(directions) * (gates + 2) * hidden * source.dtype.itemsize)
    outputs, finals = [], []
    for index, backward in enumerate(directions):
        wb, rb = np.split(accumulator(biases[index]), 2)
        layer = Layer(
            x=source @ accumulator(w[index]).T + wb,
            r=accumulator(r[index]),
            rb=rb,
            activations=activations[index],
            hidden=hidden,
        )
        states = [_initial(state, index, batch, hidden, source, batch_first) for state in initial]
        output, final = _scan(call, cell_of(index), layer, states, sizes, backward)
        outputs.append(output)
        finals.append(final)
    y = np.stack(outputs, axis=1)  # [T, D, B, H]
    last = [np.stack(column) for column in zip(*finals, strict=True)]  # [D, B, H] each
    if batch_first:
        y = y.transpose(2, 0, 1, 3)
        last = [state.swapaxes(0, 1) for state in last]
    return tuple(value.astype(x.dtype, copy=False) for value in (y, *last))


def _scan(
    call: Call, cell: Cell, layer: Layer, states: list[Array], sizes: Array, backward: bool
) -> tuple[Array, list[Array]]:
    """Walk one direction. A sequence that has ended keeps its state and puts out zeros.

    Backward, each sequence starts at its own last step.
    """
    steps, batch = layer.x.shape[:2]
    output = np.zeros((steps, batch, layer.hidden), dtype=layer.x.dtype)
    rows = np.arange(batch)
    for step in range(steps):
        call.check()
        live = step < sizes
        at = np.where(live, sizes - 1 - step if backward else step, 0)
        fresh = cell(layer, layer.x[at, rows], states)
        states = [np.where(live[:, None], new, old) for new, old in zip(fresh, states, strict=True)]
        output[at[live], rows[live]] = fresh[0][live]
    return output, states


def _directions(call: Call, w: Array, r: Array, gates: int) -> list[bool]:
    direction = call.attr("direction", "forward")
    table = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    if direction == "foward":  # so the schemas of GRU 1 and 3 spell their default
        direction = "forward"
    if direction not in table:
        raise RunError(f"direction {direction!r} is unknown", value=direction, limit=list(table))
    if w.shape[0] != len(table[direction]) or r.shape[0] != w.shape[0]:
        raise RunError(
            f"direction {direction!r} with weights for {w.shape[0]}",
            value=w.shape[0],
            limit=len(table[direction]),
        )
    hidden = r.shape[-1]
    if w.shape[1] != gates * hidden or r.shape[1] != gates * hidden:
        raise RunError(
            f"weights {list(w.shape)} and {list(r.shape)} do not have {gates} gates of {hidden}",
            value=list(w.shape),
            limit=gates * hidden,
        )
    return table[direction]


def _lengths(lengths: Array | None, steps: int, batch: int) -> Array:
    if lengths is None:
        return np.full(batch, steps, dtype=np.int64)
    if lengths.shape != (batch,):
        raise RunError(
            f"sequence_lens has shape {list(lengths.shape)} for a batch of {batch}",
            value=lengths.shape,
            limit=batch,
        )
    outside = (lengths < 0) | (lengths > steps)
    if outside.any():
        first = int(lengths[outside][0])
        raise RunError(f"sequence_lens has {first}, outside 0..{steps}", value=first, limit=steps)
    return lengths.astype(np.int64)


def _initial(
    state: Array | None, index: int, batch: int, hidden: int, like: Array, batch_first: bool
) -> Array:
    if state is None:
        return np.zeros((batch, hidden), dtype=like.dtype)
    chosen = state[:, index] if batch_first else state[index]
    if chosen.shape != (batch, hidden):
        raise RunError(
            f"an initial state of shape {list(chosen.shape)}, where {[batch, hidden]} is needed",
            value=chosen.shape,
            limit=(batch, hidden),
        )
    return accumulator(chosen)
