"""Axes, parts and joins of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.layers.table import CHANNELS, TABLE
from sardonyx.conversion.coreml.weights import parameter
from sardonyx.conversion.stored.layer import Layer

__all__: list[str] = []

_TO_THE_END, _TO_THE_BEGINNING = (1 << 63) - 1, -(1 << 63)


@TABLE.layer("concat", "concatND")
def concat(layer: Layer) -> ir.Value:
    parts = [layer.input(index) for index in range(len(layer.inputs))]
    if layer.flag("sequenceConcat") or layer.flag("interleave"):
        raise layer.refuse("it joins sequences, or in turns.")
    axis = layer.integer("axis", 0) if layer.kind == "concatND" else CHANNELS
    return layer.op("Concat", *parts, axis=layer.graph.axis(parts[0], axis))


@TABLE.layer("stack")
def stack(layer: Layer) -> ir.Value:
    axis = layer.graph.integers([layer.integer("axis", 0)])
    parts = [layer.op("Unsqueeze", layer.input(i), axis) for i in range(len(layer.inputs))]
    return layer.op("Concat", *parts, axis=layer.integer("axis", 0))


@TABLE.layer("reshapeStatic", "rankPreservingReshape")
def reshape(layer: Layer) -> ir.Value:
    """A 0 keeps a size, where the rank stays."""
    if layer.kind == "reshapeStatic" and 0 in layer.integers("targetShape"):
        raise layer.refuse("it reshapes to a size of 0.")
    wanted = layer.graph.integers(layer.integers("targetShape"))
    return layer.op("Reshape", layer.input(0), wanted)


@TABLE.layer("transpose")
def transpose(layer: Layer) -> ir.Value:
    return layer.graph.transpose(layer.input(0), layer.integers("axes"))


@TABLE.layer("flattenTo2D")
def flatten_to_2d(layer: Layer) -> ir.Value:
    return layer.op("Flatten", layer.input(0), axis=layer.integer("axis", 0))


@TABLE.layer("expandDims")
def expand_dims(layer: Layer) -> ir.Value:
    return layer.op("Unsqueeze", layer.input(0), layer.graph.integers(layer.integers("axes")))


@TABLE.layer("squeeze")
def squeeze(layer: Layer) -> ir.Value:
    """One axis always stays."""
    graph, x = layer.graph, layer.input(0)
    axes = [graph.axis(x, axis) for axis in layer.integers("axes", ())]
    if layer.flag("squeezeAll"):
        axes = [axis for axis, size in enumerate(graph.shape(x)) if size == 1]
    return _squeezed(layer, x, axes)


def _squeezed(layer: Layer, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    kept = axes if len(axes) < layer.graph.rank(x) else axes[1:]
    return layer.op("Squeeze", x, layer.graph.integers(kept)) if kept else x


@TABLE.layer("tile")
def tile(layer: Layer) -> ir.Value:
    repeats = layer.integers("reps")
    lead = [1] * (layer.graph.rank(layer.input(0)) - len(repeats))
    return layer.op("Tile", layer.input(0), layer.graph.integers([*lead, *repeats]))


@TABLE.layer("broadcastToStatic")
def broadcast_to(layer: Layer) -> ir.Value:
    return layer.op("Expand", layer.input(0), layer.graph.integers(layer.integers("targetShape")))


@TABLE.layer("broadcastToLike")
def broadcast_like(layer: Layer) -> ir.Value:
    return layer.op("Expand", layer.input(0), layer.op("Shape", layer.input(1)))


@TABLE.layer("loadConstantND")
def constant(layer: Layer) -> ir.Value:
    return parameter(layer, "data", layer.integers("shape"))


@TABLE.layer("fillLike")
def fill_like(layer: Layer) -> ir.Value:
    value = layer.graph.constant(layer.number("value", 0.0))
    return layer.op("Expand", value, layer.op("Shape", layer.input(0)))


@TABLE.layer("reverse")
def reverse(layer: Layer) -> ir.Value:
    axes = [axis for axis, turned in enumerate(layer.integers("reverseDim")) if turned]
    count = len(axes)
    graph = layer.graph
    return layer.op(
        "Slice",
        layer.input(0),
        graph.integers([-1] * count),
        graph.integers([_TO_THE_BEGINNING] * count),
        graph.integers(axes),
        graph.integers([-1] * count),
    )


@TABLE.layer("sliceStatic")
def slice_static(layer: Layer) -> ir.Value:
    """`x[begin:end:stride, …]`; a masked bound is the border of the array."""
    graph, rank = layer.graph, layer.graph.rank(layer.input(0))
    if any(layer.integers("squeezeMasks", ())):
        raise layer.refuse("it squeezes what it slices.")
    names = ("beginIds", "beginMasks", "endIds", "endMasks", "strides")
    rows = list(zip(*(layer.integers(name) for name in names), strict=True))
    if len(rows) != rank:
        raise layer.refuse(f"it has bounds of {len(rows)} axes, and its operand has {rank}.")
    begins, ends = [], []
    for begin, begin_masked, end, end_masked, stride in rows:
        if begin_masked and stride < 0:
            raise layer.refuse("where it begins to go backward is not said.")
        begins.append(0 if begin_masked else begin)
        border = _TO_THE_END if stride > 0 else _TO_THE_BEGINNING
        ends.append(border if end_masked else end)
    strides = graph.integers([row[4] for row in rows])
    return layer.op(
        "Slice",
        layer.input(0),
        graph.integers(begins),
        graph.integers(ends),
        graph.integers(range(rank)),
        strides,
    )


@TABLE.layer("splitND")
def split(layer: Layer) -> Sequence[ir.Value]:
    x, axis = layer.input(0), layer.graph.axis(layer.input(0), layer.integer("axis", 0))
    sizes = layer.integers("splitSizes", ())
    if sizes:
        layer.ignore("numSplits")
        return layer.graph.node("Split", [x, layer.graph.integers(sizes)], layer.outputs, axis=axis)
    count = layer.integer("numSplits")
    return layer.graph.node("Split", [x], count, axis=axis, num_outputs=count)


@TABLE.layer("constantPad")
def constant_pad(layer: Layer) -> ir.Value:
    """Amounts are before and after, axis after axis."""
    if layer.flag("padToGivenOutputSizeMode"):
        raise layer.refuse("it pads to a size.")
    amounts = layer.integers("padAmounts")
    pads = layer.graph.integers([*amounts[::2], *amounts[1::2]])
    return layer.op("Pad", layer.input(0), pads, layer.scalar(layer.number("value", 0.0)))


@TABLE.layer("upperTriangular", "lowerTriangular")
def triangle(layer: Layer) -> ir.Value:
    diagonal = layer.graph.constant(layer.integer("k", 0), np.int64)
    return layer.op("Trilu", layer.input(0), diagonal, upper=int(layer.kind == "upperTriangular"))


@TABLE.layer("fillStatic")
def fill_static(layer: Layer) -> ir.Value:
    value = layer.graph.constant(layer.number("value", 0.0))
    return layer.op("Expand", value, layer.graph.integers(layer.integers("targetShape")))
