"""Along axes: reductions, sums, the largest, normalizations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.layers.elements import as_float
from sardonyx.conversion.coreml.layers.table import TABLE
from sardonyx.conversion.coreml.weights import parameter
from sardonyx.conversion.stored.layer import Layer

__all__: list[str] = []

_REDUCTIONS = {
    "reduceL1": "ReduceL1",
    "reduceL2": "ReduceL2",
    "reduceLogSumExp": "ReduceLogSumExp",
    "reduceMax": "ReduceMax",
    "reduceMean": "ReduceMean",
    "reduceMin": "ReduceMin",
    "reduceProd": "ReduceProd",
    "reduceSum": "ReduceSum",
    "reduceSumSquare": "ReduceSumSquare",
}
_LARGEST = {"argMax": "ArgMax", "argMin": "ArgMin"}


@TABLE.layer("softmaxND")
def softmax_along(layer: Layer) -> ir.Value:
    axis = layer.graph.axis(layer.input(0), layer.integer("axis", 0))
    return layer.op("Softmax", layer.input(0), axis=axis)


@TABLE.layer(*_REDUCTIONS)
def reduction(layer: Layer) -> ir.Value:
    """What is left of all axes is an array of one element."""
    graph, x = layer.graph, layer.input(0)
    axes = [graph.axis(x, axis) for axis in layer.integers("axes", ())]
    if layer.flag("reduceAll"):
        axes = list(range(graph.rank(x)))
    if not axes:
        raise layer.refuse("it names no axis.")
    kept = layer.flag("keepDims")
    made = layer.op(_REDUCTIONS[layer.kind], x, graph.integers(axes), keepdims=int(kept))
    return made if kept or len(axes) < graph.rank(x) else graph.reshape(made, (1,))


@TABLE.layer(*_LARGEST)
def place_of_largest(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    axis = graph.axis(x, layer.integer("axis", 0))
    kept = not layer.flag("removeDim") or graph.rank(x) == 1
    return as_float(layer, layer.op(_LARGEST[layer.kind], x, axis=axis, keepdims=int(kept)))


@TABLE.layer("topK")
def top_k(layer: Layer) -> Sequence[ir.Value]:
    if len(layer.inputs) > 1:
        raise layer.refuse("how many it takes is computed.")
    x, count = layer.input(0), layer.graph.integers([layer.integer("K")])
    axis = layer.graph.axis(x, layer.integer("axis", 0))
    largest = int(not layer.flag("useBottomK"))
    values, found = layer.graph.node("TopK", [x, count], 2, axis=axis, largest=largest)
    return [values, as_float(layer, found)]


@TABLE.layer("cumSum")
def cumulated(layer: Layer) -> ir.Value:
    if len(layer.inputs) > 1:
        raise layer.refuse("its axis is computed.")
    axis = layer.graph.constant(layer.integer("axis", 0), np.int64)
    exclusive, reverse = layer.flag("excludeFinalSum"), layer.flag("reverse")
    return layer.op("CumSum", layer.input(0), axis, exclusive=int(exclusive), reverse=int(reverse))


@TABLE.layer("layerNormalization")
def layer_norm(layer: Layer) -> ir.Value:
    """Over the last axes."""
    shape = layer.integers("normalizedShape")
    scale, shift = parameter(layer, "gamma", shape), parameter(layer, "beta", shape)
    epsilon = layer.number("eps", 0.0)
    return layer.op(
        "LayerNormalization", layer.input(0), scale, shift, axis=-len(shape), epsilon=epsilon
    )
