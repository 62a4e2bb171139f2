"""Recurrent layers over [time, batch, size, 1, 1].

CoreML keeps what enters an activation within 50: a sigmoid and a tanh of float32 are the same far before. It keeps cells
within a bound too, which ONNX cannot: no cell comes further in one step than 1, so that the bound must be the number of
steps at least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.layers.table import TABLE
from sardonyx.conversion.coreml.weights import floats
from sardonyx.conversion.stored.graph import Array
from sardonyx.conversion.stored.layer import Layer

__all__: list[str] = []

_SEQUENCE = 5  # axes
_CELLS = 50.0  # the default bound
_LSTM = ("inputGate", "outputGate", "forgetGate", "blockInput")  # in ONNX's order
_GRU = ("updateGate", "resetGate", "outputGate")


@TABLE.layer("uniDirectionalLSTM")
def lstm(layer: Layer) -> Sequence[ir.Value]:
    params, stored = layer.get("params"), layer.get("weightParams")
    if params is None or stored is None:
        raise layer.refuse("it has no parameters.")
    if params.coupledInputAndForgetGate:
        raise layer.refuse("its gates of input and forgetting are coupled.")
    _need_activations(layer, layer.get("activations"), ("sigmoid", "tanh", "tanh"))
    time = layer.graph.shape(layer.input(0))[0]
    bound = params.cellClipThreshold or _CELLS
    begins_elsewhere = len(layer.inputs) > 1
    if not (isinstance(time, int) and time <= bound and not begins_elsewhere) and bound < 1e9:
        raise layer.refuse(f"its cells are kept within {bound:g}.")
    inputs, hidden = layer.integer("inputVectorSize"), layer.integer("outputVectorSize")
    weights, recursion, bias = _gates(
        layer, vars_of(stored), _LSTM, inputs, hidden, params.hasBiasVectors
    )
    if params.forgetBias:
        bias[2] += 1
    peepholes = None
    if params.hasPeepholeVectors:
        rows = [
            floats(layer, getattr(stored, f"{name}PeepholeVector"), name, [hidden])
            for name in _LSTM[:3]
        ]
        peepholes = _parameter(layer, "peepholes", np.stack(rows).reshape(1, -1))
    operands = _operands(layer, weights, recursion, bias, 2)
    made = layer.graph.node("LSTM", [*operands, peepholes], 3, hidden_size=hidden)
    return _results(layer, made, params.sequenceOutput)


@TABLE.layer("gru")
def gru(layer: Layer) -> Sequence[ir.Value]:
    _need_activations(layer, layer.get("activations"), ("sigmoid", "tanh"))
    inputs, hidden = layer.integer("inputVectorSize"), layer.integer("outputVectorSize")
    names = [f"{gate}{part}" for gate in _GRU for part in _PARTS]
    stored = {name: layer.get(name) for name in names}
    gates = _gates(layer, stored, _GRU, inputs, hidden, layer.flag("hasBiasVectors"))
    made = layer.graph.node("GRU", _operands(layer, *gates, 1), 2, hidden_size=hidden)
    return _results(layer, made, layer.flag("sequenceOutput"))


@TABLE.layer("simpleRecurrent")
def simple(layer: Layer) -> Sequence[ir.Value]:
    _need_activations(layer, [layer.get("activation")], ("tanh",))
    inputs, hidden = layer.integer("inputVectorSize"), layer.integer("outputVectorSize")
    stored = {
        "WeightMatrix": layer.get("weightMatrix"),
        "RecursionMatrix": layer.get("recursionMatrix"),
        "BiasVector": layer.get("biasVector"),
    }
    gates = _gates(layer, stored, ("",), inputs, hidden, layer.flag("hasBiasVector"))
    made = layer.graph.node("RNN", _operands(layer, *gates, 1), 2, hidden_size=hidden)
    return _results(layer, made, layer.flag("sequenceOutput"))


_PARTS = ("WeightMatrix", "RecursionMatrix", "BiasVector")


def vars_of(message: Any) -> Mapping[str, Any]:
    return {field.name: value for field, value in message.ListFields()}


def _need_activations(layer: Layer, given: Any, wanted: Sequence[str]) -> None:
    found = tuple(one.WhichOneof("NonlinearityType") for one in given or () if one is not None)
    if found != tuple(wanted):
        raise layer.refuse(f"its activations are {found}, and not {tuple(wanted)}.")


def _gates(
    layer: Layer,
    stored: Mapping[str, Any],
    names: Sequence[str],
    inputs: int,
    hidden: int,
    has_bias: bool,
) -> tuple[Array, Array, Array]:
    """Weights, recursion weights and biases, gate after gate."""
    shapes = ([hidden, inputs], [hidden, hidden], [hidden])
    found = []
    for part, shape in zip(_PARTS, shapes, strict=True):
        if part == "BiasVector" and not has_bias:
            found.append(np.zeros((len(names), hidden), np.float32))
            continue
        rows = [floats(layer, stored.get(f"{n}{part}"), f"{n}{part}", shape) for n in names]
        found.append(np.stack(rows))
    return found[0], found[1], found[2]


def _parameter(layer: Layer, name: str, array: Array) -> ir.Value:
    return layer.graph.parameter(f"{layer.name}.{name}", array.astype(np.float32))


def _operands(
    layer: Layer, weights: Array, recursion: Array, bias: Array, states: int
) -> list[ir.Value | None]:
    """As ONNX has them: [time, batch, inputs], of one direction."""
    if layer.flag("reverseInput"):
        raise layer.refuse(
            "it goes backward, and in which order it gives its sequence is not said."
        )
    gates, hidden = bias.shape
    joined = np.concatenate([bias.reshape(-1), np.zeros(gates * hidden, np.float32)])
    given = [
        _plain(layer, layer.input(1 + index)) for index in range(min(len(layer.inputs) - 1, states))
    ]
    return [
        _plain(layer, layer.input(0)),
        _parameter(layer, "weights", weights.reshape(1, gates * hidden, -1)),
        _parameter(layer, "recursion", recursion.reshape(1, gates * hidden, hidden)),
        _parameter(layer, "bias", joined[None]),
        None,
        *given,
        *[None] * (states - len(given)),
    ]


def _plain(layer: Layer, value: ir.Value) -> ir.Value:
    graph = layer.graph
    if graph.rank(value) != _SEQUENCE or graph.shape(value)[3:] != (1, 1):
        raise layer.refuse("its operand is no sequence of vectors.")
    return layer.op("Squeeze", value, graph.integers([3, 4]))


def _results(layer: Layer, made: Sequence[ir.Value], whole: bool) -> list[ir.Value]:
    """The sequence or its last vectors, and the states."""
    graph = layer.graph
    sequence = layer.op("Squeeze", made[0], graph.integers([1])) if whole else made[1]
    return [layer.op("Unsqueeze", one, graph.integers([3, 4])) for one in (sequence, *made[1:])]
