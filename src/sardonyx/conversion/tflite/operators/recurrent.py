"""UNIDIRECTIONAL_SEQUENCE_LSTM: ONNX's LSTM where it says the same, else its equations in a Scan.

The converter clips the cell to ±10, which ONNX's LSTM cannot say. A cell grows by less than one a step, so that
up to ten steps nothing is ever clipped. Weights of integers round what they meet, in every step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.graph import Graph
from sardonyx.conversion.tflite.quantized import is_quantized, round_rows
from sardonyx.conversion.tflite.schema import ACTIVATIONS
from sardonyx.conversion.tflite.table import Site, operator

__all__: list[str] = []

# Inputs by number: gates are input, forget, cell, output.
_FROM_X, _FROM_H, _PEEPHOLES, _BIASES = range(1, 5), range(5, 9), range(9, 12), range(12, 16)
_PROJECTION, _STATE, _CELL, _NORMS = range(16, 18), 18, 19, range(20, 24)
_ONNX_ORDER = (0, 3, 1, 2)  # input, output, forget, cell


@operator("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(site: Site) -> ir.Value:
    graph = site.graph
    _check(site)
    x = site.real(0)
    if not site.option("time_major"):
        x = graph.op("Transpose", x, perm=[1, 0, 2])
    clip, steps = float(site.option("cell_clip")), _steps(site)
    rounds = is_quantized(site.tensor(_FROM_X[1]))
    if rounds or (clip > 0 and (steps is None or steps > clip)):
        made = _scanned(site, x, clip, rounds)
    else:
        made = _as_lstm(site, x)
    return made if site.option("time_major") else graph.op("Transpose", made, perm=[1, 0, 2])


def _check(site: Site) -> None:
    missing = [i for i in (*_FROM_X, *_FROM_H, *_BIASES[1:]) if not site.has(i)]
    if missing:
        raise site.refuse("its input gate is coupled to the forget gate.")
    for indices, what in (
        (_PEEPHOLES, "peepholes"),
        (_PROJECTION, "a projection"),
        (_NORMS, "norms"),
    ):
        if any(site.has(index) for index in indices):
            raise site.refuse(
                f"it has {what}.", "Convert the Keras model or the SavedModel instead."
            )
    if is_quantized(site.tensor(0)):
        raise site.refuse(
            "it is computed in integers from end to end.",
            "Quantize the weights alone, or convert the float model and quantize it with sx.quantize.",
        )
    if ACTIVATIONS[int(site.option("activation")) % len(ACTIVATIONS)] != "TANH":
        raise site.refuse("its activation is not tanh.")
    for index in (_STATE, _CELL):
        if site.has(index) and not site.tensor(index).variable:
            raise site.refuse("its state is computed by the model.")


def _steps(site: Site) -> int | None:
    return site.sizes(0)[0 if site.option("time_major") else 1]


def _as_lstm(site: Site, x: ir.Value) -> ir.Value:
    graph = site.graph
    first = graph.constant([0], np.int64)
    stacks = []
    for begin in (_FROM_X[0], _FROM_H[0], _BIASES[0]):
        parts = [site.real(begin + gate) for gate in _ONNX_ORDER]
        stacks.append(graph.op("Concat", *parts, axis=0))
    zeros = graph.op("Mul", stacks[2], graph.constant(0.0))
    biases = graph.op("Concat", stacks[2], zeros, axis=0)
    weights = [graph.op("Unsqueeze", each, first) for each in (stacks[0], stacks[1], biases)]
    y = graph.op("LSTM", x, *weights, hidden_size=_width(site))
    return graph.op("Squeeze", y, graph.constant([1], np.int64))


def _width(site: Site) -> int:
    shape = site.tensor(_FROM_H[1]).shape
    if shape is None or len(shape) != 2 or shape[0] != shape[1]:
        raise site.refuse(f"its weights have the shape {shape}.")
    return shape[1]


def _scanned(site: Site, x: ir.Value, clip: float, rounds: bool) -> ir.Value:
    """h, c = step(h, c, x[t]), and every h is an output."""
    graph, width = site.graph, _width(site)
    turned = {i: site.turned(i, (1, 0)) for i in (*_FROM_X, *_FROM_H)}
    biases = {i: site.real(i) for i in _BIASES}
    batch = graph.op("Shape", x, start=1, end=2)
    shape = graph.op("Concat", batch, graph.constant([width], np.int64), axis=0)
    zeros = graph.op("Expand", graph.constant(0.0), shape)

    def rounded(rows: ir.Value) -> ir.Value:
        return round_rows(graph, rows, (-1,), asymmetric=False) if rounds else rows

    state, cell, row = (graph.value(name, np.float32, None) for name in ("h", "c", "x_t"))
    with graph.block() as nodes:
        of_x, of_h = rounded(row), rounded(state)

        def gate(number: int, squash: str) -> ir.Value:
            total = graph.op("MatMul", of_x, turned[_FROM_X[number]])
            total = graph.op("Add", total, graph.op("MatMul", of_h, turned[_FROM_H[number]]))
            return graph.op(squash, graph.op("Add", total, biases[_BIASES[number]]))

        made = _step(graph, cell, gate, clip)
        outputs = [*made, graph.op("Identity", made[0])]
        body = ir.Graph([state, cell, row], outputs, nodes=nodes, name=graph.reserve("step"))
    return graph.node("Scan", [zeros, zeros, x], 3, body=body, num_scan_inputs=1)[2]


def _step(
    graph: Graph, cell: ir.Value, gate: Callable[[int, str], ir.Value], clip: float
) -> tuple[ir.Value, ir.Value]:
    kept = graph.op("Mul", gate(1, "Sigmoid"), cell)
    fresh = graph.op("Add", kept, graph.op("Mul", gate(0, "Sigmoid"), gate(2, "Tanh")))
    if clip > 0:
        fresh = graph.op("Clip", fresh, graph.constant(-clip), graph.constant(clip))
    return graph.op("Mul", gate(3, "Sigmoid"), graph.op("Tanh", fresh)), fresh
