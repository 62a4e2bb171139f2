"""Element by element; the old broadcasting, where the second operand's axes lie along some of the first's."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.conversion.caffe2.operators.table import TABLE, channel_axis
from sardonyx.conversion.stored.layer import Layer

TABLE.unary(
    {
        "Abs": "Abs",
        "Ceil": "Ceil",
        "Cos": "Cos",
        "Exp": "Exp",
        "Floor": "Floor",
        "Log": "Log",
        "Max": "Max",
        "Min": "Min",
        "Negative": "Neg",
        "Not": "Not",
        "Sign": "Sign",
        "Sin": "Sin",
        "Softplus": "Softplus",
        "Softsign": "Softsign",
        "Sqrt": "Sqrt",
        "Sum": "Sum",
        "Where": "Where",
    }
)

_BINARY = {
    "Add": "Add",
    "Sub": "Sub",
    "Mul": "Mul",
    "Div": "Div",
    "And": "And",
    "Or": "Or",
    "EQ": "Equal",
    "GT": "Greater",
    "GE": "GreaterOrEqual",
    "LT": "Less",
    "LE": "LessOrEqual",
}


@TABLE.layer("Relu", "Sigmoid", "Tanh")
def activation(layer: Layer) -> ir.Value:
    layer.ignore("order")
    return layer.op(layer.kind, layer.input(0))


@TABLE.layer(*_BINARY)
def binary(layer: Layer) -> ir.Value:
    return layer.op(_BINARY[layer.kind], layer.input(0), _aligned(layer))


def _aligned(layer: Layer) -> ir.Value:
    """The second operand with axes of one element behind its own, where it begins at an axis of the first."""
    graph, a, b = layer.graph, layer.input(0), layer.input(1)
    old, axis = layer.flag("broadcast"), layer.integer("axis", -1)
    if not old or axis == -1:
        return b
    behind = graph.rank(a) - graph.axis(a, axis) - graph.rank(b)
    if behind < 0:
        raise layer.refuse(f"its second operand has no room from axis {axis} on.")
    return graph.reshape(b, (*graph.shape(b), *(1,) * behind))


@TABLE.layer("Pow")
def power(layer: Layer) -> ir.Value:
    if layer.has("exponent"):
        return layer.op("Pow", layer.input(0), layer.scalar(layer.number("exponent")))
    return layer.op("Pow", layer.input(0), _aligned(layer))


@TABLE.layer("Sqr")
def square(layer: Layer) -> ir.Value:
    return layer.op("Mul", layer.input(0), layer.input(0))


@TABLE.layer("Scale")
def scale(layer: Layer) -> ir.Value:
    return layer.op("Mul", layer.input(0), layer.scalar(layer.number("scale", 1.0)))


@TABLE.layer("Swish")
def swish(layer: Layer) -> ir.Value:
    return layer.op("Mul", layer.input(0), layer.op("Sigmoid", layer.input(0)))


@TABLE.layer("LeakyRelu")
def leaky_relu(layer: Layer) -> ir.Value:
    return layer.op("LeakyRelu", layer.input(0), alpha=layer.number("alpha", 0.01))


@TABLE.layer("Elu")
def elu(layer: Layer) -> ir.Value:
    return layer.op("Elu", layer.input(0), alpha=layer.number("alpha", 1.0))


@TABLE.layer("Selu")
def selu(layer: Layer) -> ir.Value:
    slope = layer.number("alpha", 1.6732632423543772)
    return layer.op(
        "Selu", layer.input(0), alpha=slope, gamma=layer.number("scale", 1.0507009873554805)
    )


@TABLE.layer("PRelu")
def parametric_relu(layer: Layer) -> ir.Value:
    graph, x, slope = layer.graph, layer.input(0), layer.input(1)
    behind = graph.rank(x) - channel_axis(layer) - 1
    if graph.size(slope, 0) > 1:
        slope = graph.reshape(slope, (graph.size(slope, 0), *(1,) * behind))
    return layer.op("PRelu", x, slope)


@TABLE.layer("Clip")
def clip(layer: Layer) -> ir.Value:
    low = layer.scalar(layer.number("min")) if layer.has("min") else None
    high = layer.scalar(layer.number("max")) if layer.has("max") else None
    return layer.op("Clip", layer.input(0), low, high)
