"""Functions of elements, and of several that are broadcast."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.layers.table import TABLE
from sardonyx.conversion.coreml.weights import count_of, parameter
from sardonyx.conversion.stored.layer import Layer

__all__ = ["as_float", "as_truth"]

_SUMS = {"add": "Add", "multiply": "Mul"}
_PLAIN = {"max": "Max", "min": "Min", "average": "Mean"}
_BROADCAST = {
    "addBroadcastable": "Add",
    "subtractBroadcastable": "Sub",
    "multiplyBroadcastable": "Mul",
    "divideBroadcastable": "Div",
    "maxBroadcastable": "Max",
    "minBroadcastable": "Min",
    "powBroadcastable": "Pow",
}
_COMPARISONS = {
    "equal": "Equal",
    "notEqual": "Equal",
    "lessThan": "Less",
    "lessEqual": "LessOrEqual",
    "greaterThan": "Greater",
    "greaterEqual": "GreaterOrEqual",
}
_LOGIC = {"logicalAnd": "And", "logicalOr": "Or", "logicalXor": "Xor"}
_ACTIVATIONS = {
    "ReLU": "Relu",
    "sigmoid": "Sigmoid",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
}
_UNARY = ("Sqrt", "", "Reciprocal", "", "Exp", "Log", "Abs")
_GELU = ("none", "tanh")

TABLE.unary(
    {
        "acos": "Acos",
        "acosh": "Acosh",
        "asin": "Asin",
        "asinh": "Asinh",
        "atan": "Atan",
        "atanh": "Atanh",
        "ceil": "Ceil",
        "copy": "Identity",
        "cos": "Cos",
        "cosh": "Cosh",
        "erf": "Erf",
        "floor": "Floor",
        "round": "Round",
        "sign": "Sign",
        "sin": "Sin",
        "sinh": "Sinh",
        "tan": "Tan",
        "tanh": "Tanh",
    }
)


def as_float(layer: Layer, value: ir.Value) -> ir.Value:
    """Truths and places as CoreML has them."""
    return layer.graph.cast(value, np.float32)


def as_truth(layer: Layer, value: ir.Value) -> ir.Value:
    """What is not 0."""
    return layer.graph.cast(value, np.bool_)


@TABLE.layer("activation")
def activation(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    kind = layer.choice(
        "kind", None, (*_ACTIVATIONS, "linear", "leakyReLU", "PReLU", "ELU", "sigmoidHard")
    )
    if kind in _ACTIVATIONS:
        return layer.op(_ACTIVATIONS[kind], x)
    if kind == "PReLU":
        count = count_of(layer, "alpha")
        slope = parameter(layer, "alpha", [count])
        return layer.op("PRelu", x, graph.reshape(slope, (count, 1, 1)))
    slope_, shift = layer.number("alpha", 0.0), layer.number("beta", 0.0)
    if kind == "leakyReLU":
        return layer.op("LeakyRelu", x, alpha=slope_)
    if kind == "ELU":
        return layer.op("Elu", x, alpha=slope_)
    if kind == "sigmoidHard":
        return layer.op("HardSigmoid", x, alpha=slope_, beta=shift)
    scaled = layer.op("Mul", x, layer.scalar(slope_))
    return layer.op("Add", scaled, layer.scalar(shift))


@TABLE.layer("gelu")
def gelu(layer: Layer) -> ir.Value:
    """By erf, by tanh, or x·sigmoid(1.702·x)."""
    x, mode = layer.input(0), layer.integer("mode", 0)
    if mode < len(_GELU):
        return layer.op("Gelu", x, approximate=_GELU[mode])
    gate = layer.op("Sigmoid", layer.op("Mul", x, layer.scalar(1.702)))
    return layer.op("Mul", x, gate)


@TABLE.layer("clip")
def clip(layer: Layer) -> ir.Value:
    low, high = layer.number("minVal", 0.0), layer.number("maxVal", 0.0)
    return layer.op("Min", layer.op("Max", layer.input(0), layer.scalar(low)), layer.scalar(high))


@TABLE.layer(*_SUMS)
def sum_or_product(layer: Layer) -> ir.Value:
    """Of several operands, or of one and a number."""
    operator, number = _SUMS[layer.kind], layer.number("alpha", 0.0)
    made = layer.input(0)
    for index in range(1, len(layer.inputs)):
        made = layer.op(operator, made, layer.input(index))
    if len(layer.inputs) > 1:
        if number:
            raise layer.refuse("it has several operands and a number.")
        return made
    return layer.op(operator, made, layer.scalar(number))


@TABLE.layer(*_PLAIN)
def of_all(layer: Layer) -> ir.Value:
    operands = [layer.input(index) for index in range(len(layer.inputs))]
    return layer.op(_PLAIN[layer.kind], *operands)


@TABLE.layer(*_BROADCAST)
def broadcast(layer: Layer) -> ir.Value:
    return layer.op(_BROADCAST[layer.kind], layer.input(0), layer.input(1))


@TABLE.layer("floorDivBroadcastable")
def floor_division(layer: Layer) -> ir.Value:
    return layer.op("Floor", layer.op("Div", layer.input(0), layer.input(1)))


@TABLE.layer(*_COMPARISONS)
def compare(layer: Layer) -> ir.Value:
    """Of two operands, or of one and a number."""
    number = layer.number("alpha", 0.0)
    other = layer.input(1) if len(layer.inputs) > 1 else layer.scalar(number)
    made = layer.op(_COMPARISONS[layer.kind], layer.input(0), other)
    return as_float(layer, layer.op("Not", made) if layer.kind == "notEqual" else made)


@TABLE.layer(*_LOGIC)
def logic(layer: Layer) -> ir.Value:
    one, other = (as_truth(layer, layer.input(index)) for index in (0, 1))
    return as_float(layer, layer.op(_LOGIC[layer.kind], one, other))


@TABLE.layer("logicalNot")
def logical_not(layer: Layer) -> ir.Value:
    return as_float(layer, layer.op("Not", as_truth(layer, layer.input(0))))


@TABLE.layer("whereBroadcastable")
def where(layer: Layer) -> ir.Value:
    return layer.op("Where", as_truth(layer, layer.input(0)), layer.input(1), layer.input(2))


@TABLE.layer("scale", "bias")
def scale(layer: Layer) -> ir.Value:
    """Numbers for every channel, or for every element."""
    x, factor = layer.input(0), layer.kind == "scale"
    made = layer.op("Mul" if factor else "Add", x, _of_channels(layer, layer.kind, factor))
    if factor and layer.flag("hasBias"):
        made = layer.op("Add", made, _of_channels(layer, "bias", factor))
    return made


def _of_channels(layer: Layer, name: str, factor: bool) -> ir.Value:
    shape = layer.integers(f"shape{name.title()}" if factor else "shape", (1,))
    made = parameter(layer, name, shape)
    return layer.graph.reshape(made, (*shape, 1, 1)) if len(shape) == 1 else made


@TABLE.layer("unary")
def unary(layer: Layer) -> ir.Value:
    kind, epsilon = layer.integer("type", 0), layer.number("epsilon", 0.0)
    factor, shift = layer.number("scale", 0.0) or 1.0, layer.number("shift", 0.0)
    power = layer.number("alpha", 0.0)
    x = layer.input(0)
    if factor != 1:
        x = layer.op("Mul", x, layer.scalar(factor))
    if shift:
        x = layer.op("Add", x, layer.scalar(shift))
    if kind == 3:
        return layer.op("Pow", x, layer.scalar(power))
    if kind == 7:
        return layer.op("Max", x, layer.scalar(power))
    if kind == 1:
        x = layer.op("Add", x, layer.scalar(epsilon or 1e-6))
        return layer.op("Reciprocal", layer.op("Sqrt", x))
    if kind == 2:
        x = layer.op("Add", x, layer.scalar(epsilon or 1e-6))
    return layer.op(_UNARY[kind], x)
