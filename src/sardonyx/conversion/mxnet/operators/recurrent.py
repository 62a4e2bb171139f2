"""The fused RNN: all layers and directions in one operator, and all weights in one vector.

The vector has first the weights of every layer and direction, of the input and of the state, and then the biases in
the same order. Gates stand as cuDNN has them: input, forget, cell, output for LSTM; reset, update, new for GRU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.mxnet.operators.table import TABLE
from sardonyx.conversion.stored.graph import Array
from sardonyx.conversion.stored.layer import Layer

# mode: (ONNX operator, order of its gates in MXNet's, activations of one direction)
_MODES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "lstm": ("LSTM", (0, 3, 1, 2), ""),
    "gru": ("GRU", (1, 0, 2), ""),
    "rnn_relu": ("RNN", (0,), "Relu"),
    "rnn_tanh": ("RNN", (0,), "Tanh"),
}


@dataclass(frozen=True)
class _Cell:
    """One layer's weights, with a first axis of directions, in ONNX's order of gates."""

    of_input: Array
    of_state: Array
    biases: Array


@TABLE.layer("RNN")
def rnn(layer: Layer) -> Sequence[ir.Value]:
    graph, x = layer.graph, layer.input(0)
    mode = layer.choice("mode", None, _MODES)
    operator, gates, activation = _MODES[mode]
    hidden, depth = layer.integer("state_size"), layer.integer("num_layers")
    directions = 2 if layer.flag("bidirectional") else 1
    layer.ignore("p", "pkeep_", "lstm_q_")
    for name in ("projection_size", "lstm_state_clip_min", "lstm_state_clip_max"):
        if layer.get(name) is not None:
            raise layer.refuse(f"its {name} cannot be written.")
    if layer.flag("use_sequence_length"):
        raise layer.refuse("it has lengths of its own for every row.")
    keeps_state = layer.flag("state_outputs")
    vector = layer.weight(1, "vector of parameters").reshape(-1)
    cells = _unpack(layer, vector, graph.size(x, 2), hidden, depth, directions, gates)
    states = [layer.optional(index) for index in range(2, 4 if mode == "lstm" else 3)]
    last: list[list[ir.Value]] = [[] for _ in states]
    attributes: dict[str, Any] = {
        "hidden_size": hidden,
        "direction": "bidirectional" if directions == 2 else "forward",
        **({"linear_before_reset": 1} if mode == "gru" else {}),
        **({"activations": [activation] * directions} if activation else {}),
    }
    for index, cell in enumerate(cells):
        begin = [_part(layer, state, index, directions) for state in states]
        weights = [
            graph.parameter(f"{layer.name}_{index}_{name}", array)
            for name, array in (("W", cell.of_input), ("R", cell.of_state), ("B", cell.biases))
        ]
        outputs = graph.node(operator, [x, *weights, None, *begin], 1 + len(states), **attributes)
        for kept, state in zip(last, outputs[1:], strict=True):
            kept.append(state)
        moved = graph.transpose(outputs[0], (0, 2, 1, 3))
        x = graph.reshape(moved, (*graph.shape(moved)[:2], directions * hidden))
    if not keeps_state:
        return [x]
    ends = [kept[0] if len(kept) == 1 else layer.op("Concat", *kept, axis=0) for kept in last]
    return [x, *ends]


def _unpack(
    layer: Layer,
    vector: Array,
    width: int,
    hidden: int,
    depth: int,
    directions: int,
    gates: tuple[int, ...],
) -> list[_Cell]:
    rows = len(gates) * hidden
    widths = [width, *[directions * hidden] * (depth - 1)]
    needed = directions * rows * (sum(widths) + depth * (hidden + 2))
    if min(hidden, depth) < 1 or needed != vector.size:
        raise layer.refuse(f"it has {vector.size} parameters, and needs {needed}.")
    order = np.concatenate([np.arange(gate * hidden, (gate + 1) * hidden) for gate in gates])
    at = 0

    def take(*shape: int) -> Array:
        nonlocal at
        at += int(np.prod(shape))
        found: Array = vector[at - int(np.prod(shape)) : at].reshape(shape)[order]
        return found

    weights = [
        [(take(rows, size), take(rows, hidden)) for _ in range(directions)] for size in widths
    ]
    biases = [[np.concatenate([take(rows), take(rows)]) for _ in range(directions)] for _ in widths]
    return [
        _Cell(
            np.stack([pair[0] for pair in pairs]),
            np.stack([pair[1] for pair in pairs]),
            np.stack(both),
        )
        for pairs, both in zip(weights, biases, strict=True)
    ]


def _part(layer: Layer, state: ir.Value | None, index: int, directions: int) -> ir.Value | None:
    """The rows of the stacked states that a layer begins with; nothing where they are zeros of no batch."""
    if state is None:
        return None
    numbers = layer.graph.known(state)
    if numbers is not None and not numbers.any():
        return None
    ends = [layer.graph.integers([n]) for n in (index * directions, (index + 1) * directions, 0)]
    return layer.op("Slice", state, *ends)
