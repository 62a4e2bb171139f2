"""LSTM, GRU and RNN: every direction is a layer of its own, over sequences that are turned around where it runs backward.

CoreML's sequences are [time, batch, size, 1, 1], and its gates begin with the input's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.conversion.back.coreml.network import Array
from sardonyx.conversion.back.coreml.operators.parts import sliced
from sardonyx.conversion.back.coreml.operators.products import inner
from sardonyx.conversion.back.coreml.step import Entry, Step

__all__ = ["ENTRIES"]

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_ACTIVATIONS = {"Sigmoid": "sigmoid", "Tanh": "tanh"}
_NOWHERE = 1e30  # CoreML keeps cells within 50 unless it is told otherwise
_MOST_STEPS = 512  # of sequences that are written step by step


@dataclass(frozen=True)
class Direction:
    """One direction of a recurrent node.

    Attributes:
        weight, recursion: by gates, [gates, hidden, inputs] and [gates, hidden, hidden].
        bias, inner_bias: of the inputs and of the state, [gates, hidden].
        peepholes: [3, hidden], or None.
        activations: of this direction.
        states: what it begins with, as blobs [1, batch, hidden].
        backward: whether it begins at the end.
    """

    weight: Array
    recursion: Array
    bias: Array
    inner_bias: Array
    peepholes: Array | None
    activations: tuple[str, ...]
    states: tuple[str, ...]
    backward: bool


def _directions(step: Step, gates: int, states: int, default: Sequence[str]) -> list[Direction]:
    if step.has(4):
        lengths = step.numbers(4)
        time = step.shape(0)[1 if step.flag("layout") else 0]
        if lengths is None or any(int(one) != time for one in lengths):
            step.refuse("its sequences have lengths of their own (sequence_lens)")
    if step.call.attr("clip"):
        step.refuse("what enters its activations is clipped")
    ways = _DIRECTIONS[step.word("direction", *_DIRECTIONS)]
    names = [str(one) for one in step.call.attr("activations") or [*default] * len(ways)]
    if not set(names) <= _ACTIVATIONS.keys():
        step.refuse(f"its activations are {', '.join(names)[:120]}; CoreML's are Sigmoid and Tanh")
    weight, recursion = step.weight(1, "weights"), step.weight(2, "recursion weights")
    hidden = recursion.shape[-1]
    bias = step.weight(3, "bias") if step.has(3) else np.zeros((len(ways), 2 * gates * hidden))
    peepholes = step.weight(7, "peepholes") if step.count > 7 and step.has(7) else None
    found = []
    for way, backward in enumerate(ways):
        of_way = names[way * len(default) : (way + 1) * len(default)]
        biases = bias[way].reshape(2, gates, hidden).astype(np.float32)
        found.append(
            Direction(
                weight[way].reshape(gates, hidden, -1),
                recursion[way].reshape(gates, hidden, hidden),
                biases[0],
                biases[1],
                None if peepholes is None else peepholes[way].reshape(3, hidden),
                tuple(of_way),
                tuple(_state(step, index, way, len(ways)) for index in range(5, 5 + states)),
                backward,
            )
        )
    return found


def _state(step: Step, index: int, way: int, ways: int) -> str:
    """What a direction begins with, as [1, batch, hidden]; "" for zeros."""
    if index >= step.count or not step.has(index):
        return ""
    blob = step.transpose(step[index], (1, 0, 2)) if step.flag("layout") else step[index]
    if ways == 1:
        return blob
    return sliced(step, blob, [(way, way + 1, 1), (None, None, 1), (None, None, 1)])


def _sequence(step: Step) -> str:
    """[time, batch, inputs]."""
    return step.transpose(step[0], (1, 0, 2)) if step.flag("layout") else step[0]


def _turned(step: Step, blob: str, rank: int) -> str:
    return step.layer("reverse", blob, reverseDim=[True, *[False] * (rank - 1)])


def _joined(step: Step, sequences: Sequence[str], states: Sequence[Sequence[str]]) -> list[str]:
    """[time, batch, hidden] and [1, batch, hidden] of every direction, as the node has its outputs."""
    steps = [step.expand_dims(one, [1]) for one in sequences]
    made = [_concat(step, steps, 1)]
    made += [_concat(step, of_way, 0) for of_way in zip(*states, strict=True)]
    if not step.flag("layout"):
        return made
    return [
        step.transpose(made[0], (2, 0, 1, 3)),
        *(step.transpose(m, (1, 0, 2)) for m in made[1:]),
    ]


def _concat(step: Step, blobs: Sequence[str], axis: int) -> str:
    return blobs[0] if len(blobs) == 1 else step.layer("concatND", *blobs, axis=axis)


def _as_layer(
    step: Step, kind: str, way: Direction, outputs: int, fields: Mapping[str, Any]
) -> tuple[str, list[str]]:
    """A recurrent layer of CoreML: its sequence and its last states."""
    x = _sequence(step)
    x = _turned(step, x, 3) if way.backward else x
    operands = [step.expand_dims(x, [3, 4])]
    if any(way.states):
        if not all(way.states):
            step.refuse("only one of its states is given")
        operands += [step.expand_dims(state, [3, 4]) for state in way.states]
    sizes = {"inputVectorSize": way.weight.shape[-1], "outputVectorSize": way.weight.shape[1]}
    last = any(step.wants(output) for output in range(1, outputs))
    made = step.layers(kind, operands, outputs if last else 1, **sizes, **fields)
    plain = [step.squeeze(one, [3, 4]) for one in made]
    sequence = _turned(step, plain[0], 3) if way.backward else plain[0]
    return sequence, plain[1:]


def lstm(step: Step) -> list[str]:
    if step.flag("input_forget"):
        step.refuse("its gates of input and forgetting are coupled")
    ways = _directions(step, 4, 2, ("Sigmoid", "Tanh", "Tanh"))
    sequences, states = [], []
    for way in ways:
        gates = {"inputGate": 0, "outputGate": 1, "forgetGate": 2, "blockInput": 3}
        weights: dict[str, Any] = {}
        for name, place in gates.items():
            weights[f"{name}WeightMatrix"] = way.weight[place]
            weights[f"{name}RecursionMatrix"] = way.recursion[place]
            weights[f"{name}BiasVector"] = way.bias[place] + way.inner_bias[place]
        if way.peepholes is not None:
            for place, name in enumerate(("inputGate", "outputGate", "forgetGate")):
                weights[f"{name}PeepholeVector"] = way.peepholes[place]
        fields = {
            "activations": [{_ACTIVATIONS[name]: {}} for name in way.activations],
            "params": {
                "sequenceOutput": True,
                "hasBiasVectors": True,
                "hasPeepholeVectors": way.peepholes is not None,
                "cellClipThreshold": _NOWHERE,
            },
            "weightParams": weights,
        }
        sequence, last = _as_layer(step, "uniDirectionalLSTM", way, 3, fields)
        sequences.append(sequence)
        states.append(last)
    return _joined(step, sequences, states)


def rnn(step: Step) -> list[str]:
    ways = _directions(step, 1, 1, ("Tanh",))
    sequences, states = [], []
    for way in ways:
        fields = {
            "activation": {_ACTIVATIONS[way.activations[0]]: {}},
            "sequenceOutput": True,
            "hasBiasVector": True,
            "weightMatrix": way.weight[0],
            "recursionMatrix": way.recursion[0],
            "biasVector": way.bias[0] + way.inner_bias[0],
        }
        sequence, last = _as_layer(step, "simpleRecurrent", way, 2, fields)
        sequences.append(sequence)
        states.append(last)
    return _joined(step, sequences, states)


def gru(step: Step) -> list[str]:
    """CoreML's own resets the state before its product; torch's resets it behind, and is written step by step."""
    ways = _directions(step, 3, 1, ("Sigmoid", "Tanh"))
    sequences, states = [], []
    for way in ways:
        if step.flag("linear_before_reset"):
            sequence, last = _gru_steps(step, way)
        else:
            fields: dict[str, Any] = {
                "activations": [{_ACTIVATIONS[name]: {}} for name in way.activations],
                "sequenceOutput": True,
                "hasBiasVectors": True,
            }
            for place, name in enumerate(("updateGate", "resetGate", "outputGate")):
                fields[f"{name}WeightMatrix"] = way.weight[place]
                fields[f"{name}RecursionMatrix"] = way.recursion[place]
                fields[f"{name}BiasVector"] = way.bias[place] + way.inner_bias[place]
            sequence, last = _as_layer(step, "gru", way, 2, fields)
        sequences.append(sequence)
        states.append(last)
    return _joined(step, sequences, states)


def _gru_steps(step: Step, way: Direction) -> tuple[str, list[str]]:
    """z = f(…), r = f(…), o = g(Wx + b + r·(Ry + c)), y = (1 - z)·o + z·y, time after time."""
    time = step.fixed(step.shape(0)[1 if step.flag("layout") else 0 :][:1], "its number of steps")[
        0
    ]
    if time > _MOST_STEPS:
        step.refuse(f"it is written step by step, and has {time} steps; the limit is {_MOST_STEPS}")
    gates, hidden, inputs = way.weight.shape
    bias = way.bias.copy()
    bias[:2] += way.inner_bias[:2]
    flat = way.weight.reshape(gates * hidden, inputs).T
    whole = inner(step, _sequence(step), 3, flat, bias.reshape(-1))
    recursion = way.recursion.reshape(gates * hidden, hidden).T
    inside = np.concatenate([np.zeros(2 * hidden, np.float32), way.inner_bias[2]])
    parts = step.layers("splitND", [whole], 3, axis=2, splitSizes=[hidden] * 3)
    state = way.states[0] or _zeros(step, parts[0])
    places = reversed(range(time)) if way.backward else range(time)
    found: dict[int, str] = {}
    f, g = (_activation(name) for name in way.activations)
    for place in places:
        x = [sliced(step, p, [(place, place + 1, 1), *[(None, None, 1)] * 2]) for p in parts]
        ry = inner(step, state, 3, recursion, inside)
        y = step.layers("splitND", [ry], 3, axis=2, splitSizes=[hidden] * 3)
        z, r = (
            step.layer("activation", step.layer("addBroadcastable", a, b), **f)
            for a, b in zip(x[:2], y[:2], strict=True)
        )
        kept = step.layer("multiplyBroadcastable", r, y[2])
        o = step.layer("activation", step.layer("addBroadcastable", x[2], kept), **g)
        change = step.layer("subtractBroadcastable", state, o)
        state = step.layer("addBroadcastable", o, step.layer("multiplyBroadcastable", z, change))
        found[place] = state
    return _concat(step, [found[place] for place in range(time)], 0), [state]


def _activation(name: str) -> dict[str, Any]:
    return {_ACTIVATIONS[name]: {}}


def _zeros(step: Step, like: str) -> str:
    """[1, batch, hidden], from the first step of what is there."""
    first = sliced(step, like, [(0, 1, 1), *[(None, None, 1)] * 2])
    return step.layer("fillLike", first, value=0.0)


ENTRIES: Mapping[str, Entry] = {"GRU": gru, "LSTM": lstm, "RNN": rnn}
