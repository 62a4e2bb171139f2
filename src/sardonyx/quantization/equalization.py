"""Evening out the channels between two layers: what one makes smaller, the next makes larger (cross-layer equalisation).

    Conv(x, W) ─ Relu ─ Conv(·, V)    →    Conv(x, W / s) ─ Relu ─ Conv(·, s * V)        s = sqrt(max|W| / max|V|)

Then one scale for all channels of W, or of the value between, wastes nothing on the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from sardonyx.quantization.grid import Array
from sardonyx.quantization.qdq import Writer
from sardonyx.quantization.targets import Target, constant_of, number_of

__all__ = ["equalize"]

# Operators that give s * y for s * x, channel by channel, where s is positive.
_HOMOGENEOUS = frozenset({"Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool"})
_ROUNDS = 8  # a layer between two others is in two pairs
_MOST_STEPS = 4
_SMALLEST = 1e-8


@dataclass(frozen=True)
class _Pair:
    first: ir.Node
    second: ir.Node


def equalize(model: ir.Model, targets: Sequence[Target]) -> ir.Model:
    """The model with the channels between consecutive convolutions evened out; the same function."""
    known = {target.node for target in targets if target.node.op_type == "Conv"}
    pairs = [pair for node in known if (pair := _pair(node, known)) is not None]
    pairs.sort(key=lambda pair: list(model.graph).index(pair.first))
    weights = {node: _constant(node, 1) for pair in pairs for node in (pair.first, pair.second)}
    biases = {
        pair.first: _constant(pair.first, 2)
        for pair in pairs
        if len(pair.first.inputs) > 2 and pair.first.inputs[2] is not None
    }
    for _ in range(_ROUNDS):
        for pair in pairs:
            _even_out(pair, weights, biases)
    writer = Writer(model)
    for number, arrays in ((1, weights), (2, biases)):
        for node, array in arrays.items():
            value = node.inputs[number]
            name = "" if value is None else value.name
            even = writer.initializer(f"{name}.equalized", array.astype(np.float32))
            writer.node(node).replace_input_with(number, even)
    writer.drop_unread()
    return writer.model


def _even_out(pair: _Pair, weights: dict[ir.Node, Array], biases: dict[ir.Node, Array]) -> None:
    first, second = weights[pair.first], weights[pair.second]
    by_input = number_of(pair.second, "group", 1) == 1  # else every channel has its own filter
    out = np.abs(first).reshape(len(first), -1).max(axis=1)
    axes = tuple(axis for axis in range(second.ndim) if axis != int(by_input))
    into = np.abs(second).max(axis=axes)
    usual = (out > _SMALLEST) & (into > _SMALLEST)
    by = np.where(usual, np.sqrt(out / np.where(usual, into, 1.0)), 1.0)
    by = np.where(by > 0, by, 1.0)
    weights[pair.first] = first / by.reshape(-1, *(1,) * (first.ndim - 1))
    if pair.first in biases:
        biases[pair.first] = biases[pair.first] / by
    shape = [1] * second.ndim
    shape[int(by_input)] = -1
    weights[pair.second] = second * by.reshape(shape)


def _pair(node: ir.Node, known: set[ir.Node]) -> _Pair | None:
    """The convolution before this one, where nothing but homogeneous operators is between."""
    weights = constant_of(node.inputs[1])
    group = number_of(node, "group", 1)
    if weights is None or (group != 1 and (weights.shape[1] != 1 or len(weights) != group)):
        return None
    value = node.inputs[0]
    for _ in range(_MOST_STEPS):
        maker = None if value is None else value.producer()
        if value is None or maker is None or len(value.uses()) != 1 or value.is_graph_output():
            return None
        if maker in known:
            bias = maker.inputs[2] if len(maker.inputs) > 2 else None
            fixed = bias is None or constant_of(bias) is not None
            return _Pair(maker, node) if fixed and maker is not node else None
        if maker.op_type not in _HOMOGENEOUS or len(maker.outputs) > 1:
            return None
        value = maker.inputs[0]
    return None


def _constant(node: ir.Node, number: int) -> Array:
    found = constant_of(node.inputs[number])
    assert found is not None
    return found.astype(np.float64)
