"""Element by element: activations, arithmetic with arrays and with numbers, comparisons."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.mxnet.operators.table import TABLE
from sardonyx.conversion.stored.layer import Layer

TABLE.unary(
    {
        "abs": "Abs",
        "add_n": "Sum",
        "arccos": "Acos",
        "arccosh": "Acosh",
        "arcsin": "Asin",
        "arcsinh": "Asinh",
        "arctan": "Atan",
        "arctanh": "Atanh",
        "ceil": "Ceil",
        "cos": "Cos",
        "cosh": "Cosh",
        "ElementWiseSum": "Sum",
        "erf": "Erf",
        "exp": "Exp",
        "floor": "Floor",
        "log": "Log",
        "negative": "Neg",
        "reciprocal": "Reciprocal",
        "relu": "Relu",
        "sigmoid": "Sigmoid",
        "sign": "Sign",
        "sin": "Sin",
        "sinh": "Sinh",
        "softsign": "Softsign",
        "sqrt": "Sqrt",
        "tan": "Tan",
        "tanh": "Tanh",
    }
)

_ACTIVATIONS = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softrelu": "Softplus",
    "softsign": "Softsign",
    "mish": "Mish",
}
_BINARY = {
    "Add": (
        "elemwise_add",
        "broadcast_add",
        "broadcast_plus",
        "_plus",
        "_Plus",
        "_add",
        "_grad_add",
    ),
    "Sub": ("elemwise_sub", "broadcast_sub", "broadcast_minus", "_minus", "_Minus", "_sub"),
    "Mul": ("elemwise_mul", "broadcast_mul", "_mul", "_Mul"),
    "Div": ("elemwise_div", "broadcast_div", "_div", "_Div"),
    "Pow": ("broadcast_power", "_power", "_Power"),
    "Max": ("broadcast_maximum", "_maximum", "_Maximum"),
    "Min": ("broadcast_minimum", "_minimum", "_Minimum"),
}
_SCALAR = {
    "Add": ("_plus_scalar", "_PlusScalar"),
    "Sub": ("_minus_scalar", "_MinusScalar"),
    "Mul": ("_mul_scalar", "_MulScalar"),
    "Div": ("_div_scalar", "_DivScalar"),
    "Pow": ("_power_scalar", "_PowerScalar"),
    "Max": ("_maximum_scalar", "_MaximumScalar"),
    "Min": ("_minimum_scalar", "_MinimumScalar"),
}
_REVERSED = {
    "Sub": ("_rminus_scalar", "_RMinusScalar"),
    "Div": ("_rdiv_scalar", "_RDivScalar"),
    "Pow": ("_rpower_scalar", "_RPowerScalar"),
}
_COMPARISONS = {
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "lesser",
    "LessOrEqual": "lesser_equal",
}


def _binary(operator: str) -> Callable[[Layer], ir.Value]:
    return lambda layer: layer.op(operator, layer.input(0), layer.input(1))


def _with_scalar(operator: str, *, first: bool = False) -> Callable[[Layer], ir.Value]:
    def rule(layer: Layer) -> ir.Value:
        layer.flag("is_int", True)  # whether the number was written as one
        x, number = layer.input(0), layer.scalar(layer.number("scalar"))
        return layer.op(operator, number, x) if first else layer.op(operator, x, number)

    return rule


def _comparison(operator: str, *, scalar: bool) -> Callable[[Layer], ir.Value]:
    """Truths are 0 and 1 of the operands' type."""

    def rule(layer: Layer) -> ir.Value:
        layer.flag("is_int", True)
        x = layer.input(0)
        other = layer.scalar(layer.number("scalar")) if scalar else layer.input(1)
        return layer.graph.cast(layer.op(operator, x, other), layer.graph.dtype(x))

    return rule


for _operator, _kinds in _BINARY.items():
    TABLE.layer(*_kinds)(_binary(_operator))
for _operator, _kinds in _SCALAR.items():
    TABLE.layer(*_kinds)(_with_scalar(_operator))
for _operator, _kinds in _REVERSED.items():
    TABLE.layer(*_kinds)(_with_scalar(_operator, first=True))
for _operator, _name in _COMPARISONS.items():
    TABLE.layer(f"broadcast_{_name}", f"_{_name}")(_comparison(_operator, scalar=False))
    TABLE.layer(f"_{_name}_scalar")(_comparison(_operator, scalar=True))


@TABLE.layer("Activation")
def activation(layer: Layer) -> ir.Value:
    return layer.op(_ACTIVATIONS[layer.choice("act_type", None, _ACTIVATIONS)], layer.input(0))


@TABLE.layer("LeakyReLU")
def leaky_relu(layer: Layer) -> ir.Value:
    x = layer.input(0)
    kinds = ("leaky", "prelu", "elu", "selu", "gelu", "rrelu")
    kind = layer.choice("act_type", "leaky", kinds)
    slope = layer.number("slope", 0.25)
    low, high = layer.number("lower_bound", 0.125), layer.number("upper_bound", 0.334)
    if kind == "prelu":
        return layer.op("PRelu", x, _along_channels(layer, x, layer.input(1)))
    if kind == "selu":
        return layer.op("Selu", x)
    if kind == "gelu":
        return layer.op("Gelu", x)
    if kind == "elu":
        return layer.op("Elu", x, alpha=slope)
    return layer.op("LeakyRelu", x, alpha=slope if kind == "leaky" else (low + high) / 2)


def _along_channels(layer: Layer, x: ir.Value, slope: ir.Value) -> ir.Value:
    graph = layer.graph
    if graph.rank(slope) == 1 and graph.rank(x) > 2:
        return graph.reshape(slope, (graph.size(slope, 0), *(1,) * (graph.rank(x) - 2)))
    return slope


@TABLE.layer("hard_sigmoid")
def hard_sigmoid(layer: Layer) -> ir.Value:
    slope, shift = layer.number("alpha", 0.2), layer.number("beta", 0.5)
    return layer.op("HardSigmoid", layer.input(0), alpha=slope, beta=shift)


@TABLE.layer("clip")
def clip(layer: Layer) -> ir.Value:
    low, high = layer.number("a_min"), layer.number("a_max")
    return layer.op("Clip", layer.input(0), layer.scalar(low), layer.scalar(high))


@TABLE.layer("square")
def square(layer: Layer) -> ir.Value:
    return layer.op("Mul", layer.input(0), layer.input(0))


@TABLE.layer("rsqrt")
def reciprocal_root(layer: Layer) -> ir.Value:
    return layer.op("Reciprocal", layer.op("Sqrt", layer.input(0)))


@TABLE.layer("log1p", "expm1")
def beside_one(layer: Layer) -> ir.Value:
    one = layer.scalar(1.0)
    if layer.kind == "log1p":
        return layer.op("Log", layer.op("Add", layer.input(0), one))
    return layer.op("Sub", layer.op("Exp", layer.input(0)), one)


@TABLE.layer("log2", "log10")
def other_logarithm(layer: Layer) -> ir.Value:
    base = 2 if layer.kind == "log2" else 10
    return layer.op("Mul", layer.op("Log", layer.input(0)), layer.scalar(1 / float(np.log(base))))


@TABLE.layer("round")
def round_away(layer: Layer) -> ir.Value:
    """Halves go away from zero."""
    x = layer.input(0)
    up = layer.op("Floor", layer.op("Add", layer.op("Abs", x), layer.scalar(0.5)))
    return layer.op("Mul", layer.op("Sign", x), up)


@TABLE.layer("trunc", "fix")
def truncate(layer: Layer) -> ir.Value:
    x = layer.input(0)
    return layer.op("Mul", layer.op("Sign", x), layer.op("Floor", layer.op("Abs", x)))


@TABLE.layer("where")
def where(layer: Layer) -> ir.Value:
    condition = layer.graph.cast(layer.input(0), np.bool_)
    return layer.op("Where", condition, layer.input(1), layer.input(2))


@TABLE.layer("_contrib_div_sqrt_dim")
def by_root_of_width(layer: Layer) -> ir.Value:
    width = layer.graph.size(layer.input(0), -1)
    return layer.op("Div", layer.input(0), layer.scalar(float(np.sqrt(width))))
