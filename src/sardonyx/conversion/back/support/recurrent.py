"""LSTM, GRU and RNN in ONNX's order of gates, every direction by itself."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import flip, places, scan, sigmoid, xp

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn", "run_direction"]


def run_direction(turn: Any, states: Any, gates: Any, lengths: Any, back: bool) -> Any:
    """The last states and all outputs; a sequence that has ended keeps its state, and gives zeros."""
    sequence = flip(gates, 0) if back else gates
    if lengths is None:
        last, out = scan(turn, states, sequence)
        return last, flip(out, 0) if back else out
    live = (places(gates.shape[0], gates)[:, None] < lengths)[..., None]

    def turn_if_live(old: Any, part: Any) -> Any:
        one, on = part
        new, out = turn(old, one)
        if isinstance(old, tuple):
            kept: Any = tuple(xp.where(on, a, b) for a, b in zip(new, old, strict=True))
        else:
            kept = xp.where(on, new, old)
        return kept, xp.where(on, out, xp.zeros_like(out))

    last, out = scan(turn_if_live, states, (sequence, flip(live, 0) if back else live))
    return last, flip(out, 0) if back else out


def lstm_cell(state: Any, gates: Any, r: Any, p: Any) -> Any:
    """One turn of an LSTM; `gates` is what the input gives to them."""
    h, c = state
    n = h.shape[-1]
    total = gates + xp.matmul(h, r)
    i, o, f, g = (total[:, k * n : (k + 1) * n] for k in range(4))
    pi, po, pf = (0, 0, 0) if p is None else (p[k * n : (k + 1) * n] for k in range(3))
    new = sigmoid(f + pf * c) * c + sigmoid(i + pi * c) * xp.tanh(g)
    out = sigmoid(o + po * new) * xp.tanh(new)
    return (out, new), out


def lstm(
    x: Any, w: Any, r: Any, b: Any, h: Any, c: Any, p: Any, lengths: Any, backward: Any
) -> Any:
    """All outputs [time, direction, batch, hidden], and the last states."""
    outputs, hs, cs = [], [], []
    half = b.shape[-1] // 2
    for d, back in enumerate(backward):
        gates = xp.matmul(x, xp.swapaxes(w[d], 0, 1)) + b[d, :half] + b[d, half:]
        across = xp.swapaxes(r[d], 0, 1)
        peep = None if p is None else p[d]

        def turn(state: Any, one: Any, across: Any = across, peep: Any = peep) -> Any:
            return lstm_cell(state, one, across, peep)

        (last_h, last_c), out = run_direction(turn, (h[d], c[d]), gates, lengths, back)
        outputs.append(out)
        hs.append(last_h)
        cs.append(last_c)
    return xp.stack(outputs, 1), xp.stack(hs, 0), xp.stack(cs, 0)


def gru_cell(h: Any, gates: Any, r: Any, b: Any, after: bool) -> Any:
    """One turn of a GRU; `after` resets behind the product."""
    n = h.shape[-1]
    pushed = xp.matmul(h, r[:, : 2 * n]) + b[: 2 * n] + gates[:, : 2 * n]
    update, reset = sigmoid(pushed[:, :n]), sigmoid(pushed[:, n:])
    across = r[:, 2 * n :]
    if after:
        inner = reset * (xp.matmul(h, across) + b[2 * n :])
    else:
        inner = xp.matmul(reset * h, across) + b[2 * n :]
    return (1 - update) * xp.tanh(gates[:, 2 * n :] + inner) + update * h


def gru(x: Any, w: Any, r: Any, b: Any, h: Any, lengths: Any, after: bool, backward: Any) -> Any:
    """All outputs [time, direction, batch, hidden], and the last state."""
    outputs, hs = [], []
    half = b.shape[-1] // 2
    for d, back in enumerate(backward):
        gates = xp.matmul(x, xp.swapaxes(w[d], 0, 1)) + b[d, :half]
        across, bias = xp.swapaxes(r[d], 0, 1), b[d, half:]

        def turn(state: Any, one: Any, across: Any = across, bias: Any = bias) -> Any:
            new = gru_cell(state, one, across, bias, after)
            return new, new

        last, out = run_direction(turn, h[d], gates, lengths, back)
        outputs.append(out)
        hs.append(last)
    return xp.stack(outputs, 1), xp.stack(hs, 0)


def rnn(x: Any, w: Any, r: Any, b: Any, h: Any, lengths: Any, relu: bool, backward: Any) -> Any:
    """All outputs [time, direction, batch, hidden], and the last state."""
    outputs, hs = [], []
    half = b.shape[-1] // 2
    for d, back in enumerate(backward):
        gates = xp.matmul(x, xp.swapaxes(w[d], 0, 1)) + b[d, :half] + b[d, half:]
        across = xp.swapaxes(r[d], 0, 1)

        def turn(state: Any, one: Any, across: Any = across) -> Any:
            new = one + xp.matmul(state, across)
            new = new * (new > 0) if relu else xp.tanh(new)
            return new, new

        last, out = run_direction(turn, h[d], gates, lengths, back)
        outputs.append(out)
        hs.append(last)
    return xp.stack(outputs, 1), xp.stack(hs, 0)
