"""Matrix products."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.conversion.coreml.layers.table import TABLE
from sardonyx.conversion.coreml.weights import numbers
from sardonyx.conversion.stored.layer import Layer

__all__: list[str] = []


@TABLE.layer("innerProduct")
def inner_product(layer: Layer) -> ir.Value:
    """Along the channels of images, or the last axis of all else."""
    graph, x = layer.graph, layer.input(0)
    inputs, outputs = layer.integer("inputChannels"), layer.integer("outputChannels")
    if layer.flag("int8DynamicQuantize"):
        raise layer.refuse("it rounds its operand to 8 bits.")
    weight = numbers(layer, "weights", [outputs, inputs])
    bias = numbers(layer, "bias", [outputs]) if layer.flag("hasBias") else None
    image = graph.rank(x) == 4
    if image and graph.shape(x)[2:] != (1, 1):
        raise layer.refuse("its operand has a height and a width.")
    flat = graph.flat(x) if image else x
    made = layer.op("MatMul", flat, graph.parameter(f"{layer.name}.weights", weight.T))
    if bias is not None:
        made = layer.op("Add", made, graph.parameter(f"{layer.name}.bias", bias))
    return graph.reshape(made, (graph.shape(x)[0], outputs, 1, 1)) if image else made


@TABLE.layer("batchedMatmul")
def batched_matmul(layer: Layer) -> ir.Value:
    """Of two operands, or of one and a matrix, which is stored column after column."""
    graph, a = layer.graph, layer.input(0)
    if layer.flag("int8DynamicQuantize"):
        raise layer.refuse("it rounds its operand to 8 bits.")
    left, right = layer.flag("transposeA"), layer.flag("transposeB")
    names = ("weightMatrixFirstDimension", "weightMatrixSecondDimension")
    if len(layer.inputs) > 1:
        layer.ignore(*names, "hasBias", "weights", "bias")
        b = layer.input(1)
        if graph.rank(a) < 2 or graph.rank(b) < 2:
            raise layer.refuse("an operand of one axis.")
        return layer.op(
            "MatMul", _turned(layer, a) if left else a, _turned(layer, b) if right else b
        )
    rows, columns = (layer.integer(name) for name in names)
    weight = numbers(layer, "weights", [columns, rows]).T
    made = layer.op("MatMul", a, graph.parameter(f"{layer.name}.weights", weight))
    if not layer.flag("hasBias"):
        return made
    bias = numbers(layer, "bias", [columns])
    return layer.op("Add", made, graph.parameter(f"{layer.name}.bias", bias))


def _turned(layer: Layer, value: ir.Value) -> ir.Value:
    """The last two axes exchanged."""
    rank = layer.graph.rank(value)
    return layer.graph.transpose(value, [*range(rank - 2), rank - 1, rank - 2])
