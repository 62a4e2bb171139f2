"""Elements by their places."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.layers.table import TABLE
from sardonyx.conversion.stored.layer import Layer

__all__ = ["places"]

_MODES = ("none", "add", "", "mul", "", "max", "min")  # ScatterMode


def places(layer: Layer, index: int) -> ir.Value:
    return layer.graph.cast(layer.input(index), np.int64)


@TABLE.layer("gather")
def gather(layer: Layer) -> ir.Value:
    axis = layer.graph.axis(layer.input(0), layer.integer("axis", 0))
    return layer.op("Gather", layer.input(0), places(layer, 1), axis=axis)


@TABLE.layer("gatherAlongAxis")
def gather_along(layer: Layer) -> ir.Value:
    axis = layer.graph.axis(layer.input(0), layer.integer("axis", 0))
    return layer.op("GatherElements", layer.input(0), places(layer, 1), axis=axis)


@TABLE.layer("gatherND")
def gather_nd(layer: Layer) -> ir.Value:
    return layer.op("GatherND", layer.input(0), places(layer, 1))


def _mode(layer: Layer) -> str:
    found = _MODES[layer.integer("mode", 0)]
    if not found:
        raise layer.refuse("it subtracts or divides what it scatters.")
    return found


@TABLE.layer("scatterAlongAxis")
def scatter_along(layer: Layer) -> ir.Value:
    axis, mode = layer.graph.axis(layer.input(0), layer.integer("axis", 0)), _mode(layer)
    container, updates = layer.input(0), layer.input(2)
    return layer.op(
        "ScatterElements", container, places(layer, 1), updates, axis=axis, reduction=mode
    )


@TABLE.layer("scatterND")
def scatter_nd(layer: Layer) -> ir.Value:
    mode = _mode(layer)
    return layer.op("ScatterND", layer.input(0), places(layer, 1), layer.input(2), reduction=mode)


@TABLE.layer("oneHot")
def one_hot(layer: Layer) -> ir.Value:
    """Places outside, also below 0, are nowhere."""
    graph, size = layer.graph, layer.integer("oneHotVectorSize")
    values = graph.constant([layer.number("offValue", 0.0), layer.number("onValue", 0.0)])
    x = layer.input(0)
    below = layer.op("Less", x, layer.scalar(0.0))
    kept = graph.cast(layer.op("Where", below, layer.scalar(size), x), np.int64)
    depth = graph.constant(size, np.int64)
    return layer.op("OneHot", kept, depth, values, axis=layer.integer("axis", 0))
