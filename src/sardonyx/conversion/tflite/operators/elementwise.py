"""Operators on single elements: arithmetic, functions, comparisons, choices, conversions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.operators.spectra import part
from sardonyx.conversion.tflite.table import Site, operator

__all__: list[str] = []

_UNARY = {
    "ABS": "Abs",
    "CEIL": "Ceil",
    "COS": "Cos",
    "ELU": "Elu",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "LOG": "Log",
    "LOGICAL_NOT": "Not",
    "LOGISTIC": "Sigmoid",
    "NEG": "Neg",
    "RELU": "Relu",
    "ROUND": "Round",
    "SIGN": "Sign",
    "SIN": "Sin",
    "SQRT": "Sqrt",
    "TANH": "Tanh",
}
_BINARY = {
    "ADD": "Add",
    "SUB": "Sub",
    "MUL": "Mul",
    "DIV": "Div",
    "MAXIMUM": "Max",
    "MINIMUM": "Min",
    "POW": "Pow",
    "EQUAL": "Equal",
    "LOGICAL_AND": "And",
    "LOGICAL_OR": "Or",
    "BITWISE_XOR": "BitwiseXor",
}


_COMPARED = {
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
}


def _unary(kind: str) -> Callable[[Site], ir.Value]:
    return lambda site: site.graph.op(kind, site.real(0))


def _binary(kind: str) -> Callable[[Site], ir.Value]:
    return lambda site: site.activated(site.graph.op(kind, site.real(0), site.real(1)))


def _compared(kind: str) -> Callable[[Site], ir.Value]:
    """Bytes are compared by what they stand for, integers of 16 bits as they are stored."""

    def rule(site: Site) -> ir.Value:
        side = site.raw if site.tensor(0).dtype == np.int16 else site.real
        return site.graph.op(kind, side(0), side(1))

    return rule


for _name, _kind in _COMPARED.items():
    operator(_name)(_compared(_kind))
for _name, _kind in _UNARY.items():
    operator(_name)(_unary(_kind))
for _name, _kind in _BINARY.items():
    operator(_name)(_binary(_kind))


@operator("NOT_EQUAL")
def not_equal(site: Site) -> ir.Value:
    return site.graph.op("Not", site.graph.op("Equal", site.real(0), site.real(1)))


@operator("ADD_N")
def add_all(site: Site) -> ir.Value:
    total = site.real(0)
    for index in range(1, site.count):
        total = site.graph.op("Add", total, site.real(index))
    return total


@operator("RSQRT")
def inverse_root(site: Site) -> ir.Value:
    return site.graph.op("Reciprocal", site.graph.op("Sqrt", site.real(0)))


@operator("SQUARE")
def square(site: Site) -> ir.Value:
    return site.graph.op("Mul", site.real(0), site.real(0))


@operator("SQUARED_DIFFERENCE")
def squared_difference(site: Site) -> ir.Value:
    apart = site.graph.op("Sub", site.real(0), site.real(1))
    return site.graph.op("Mul", apart, apart)


@operator("FLOOR_DIV", moving=True)
def floor_div(site: Site) -> ir.Value:
    """Of integers as they are stored, whatever they stand for."""
    graph, x, y = site.graph, site.raw(0), site.raw(1)
    if site.tensor(0).dtype.kind == "f":
        return graph.op("Floor", graph.op("Div", x, y))
    rest = graph.op("Mod", x, y)  # of the divisor's sign
    return graph.op("Div", graph.op("Sub", x, rest), y)


@operator("FLOOR_MOD", moving=True)
def floor_mod(site: Site) -> ir.Value:
    """Of integers as they are stored, whatever they stand for."""
    graph, x, y = site.graph, site.raw(0), site.raw(1)
    if site.tensor(0).dtype.kind != "f":
        return graph.op("Mod", x, y)
    rest = graph.op("Mod", x, y, fmod=1)  # of the dividend's sign
    nothing = graph.constant(0.0)
    other = graph.op("Xor", graph.op("Less", rest, nothing), graph.op("Less", y, nothing))
    some = graph.op("Not", graph.op("Equal", rest, nothing))
    return graph.op("Where", graph.op("And", other, some), graph.op("Add", rest, y), rest)


@operator("RELU6")
def relu6(site: Site) -> ir.Value:
    return site.clipped(site.real(0), 0.0, 6.0)


@operator("RELU_N1_TO_1")
def relu_between_ones(site: Site) -> ir.Value:
    return site.clipped(site.real(0), -1.0, 1.0)


@operator("RELU_0_TO_1")
def relu_to_one(site: Site) -> ir.Value:
    return site.clipped(site.real(0), 0.0, 1.0)


@operator("LEAKY_RELU")
def leaky_relu(site: Site) -> ir.Value:
    return site.graph.op("LeakyRelu", site.real(0), alpha=float(site.option("alpha")))


@operator("PRELU")
def prelu(site: Site) -> ir.Value:
    return site.graph.op("PRelu", site.real(0), site.real(1))


@operator("HARD_SWISH")
def hard_swish(site: Site) -> ir.Value:
    return site.graph.op("HardSwish", site.real(0))


@operator("GELU")
def gelu(site: Site) -> ir.Value:
    kind = "tanh" if site.option("approximate") else "none"
    return site.graph.op("Gelu", site.real(0), approximate=kind)


@operator("ATAN2")
def angle(site: Site) -> ir.Value:
    """From arctangents of the quotient, by quadrant."""
    graph, y, x = site.graph, site.real(0), site.real(1)
    nothing, half = graph.constant(0.0), graph.constant(float(np.pi / 2))
    straight = graph.op("Equal", x, nothing)
    safe = graph.op("Where", straight, graph.constant(1.0), x)
    plain = graph.op("Atan", graph.op("Div", y, safe))
    below = graph.op("Less", y, nothing)
    turn = graph.op("Where", below, graph.constant(float(-np.pi)), graph.constant(float(np.pi)))
    turned = graph.op("Where", graph.op("Less", x, nothing), graph.op("Add", plain, turn), plain)
    upright = graph.op("Mul", graph.op("Sign", y), half)
    return graph.op("Where", straight, upright, turned)


@operator("SELECT", "SELECT_V2")
def select(site: Site) -> ir.Value:
    graph, chosen = site.graph, site.raw(0)
    if site.operator.kind == "SELECT" and site.rank(0) == 1 and site.rank(1) > 1:
        # The old form chooses whole rows.
        axes = graph.constant(list(range(1, site.rank(1))), np.int64)
        chosen = graph.op("Unsqueeze", chosen, axes)
    return graph.op("Where", chosen, site.real(1), site.real(2))


@operator("CAST", moving=True, takes_pairs=True)
def cast(site: Site) -> ir.Value:
    """Complex numbers lose their imaginary parts."""
    if site.outputs[0].dtype.kind == "c":
        raise site.refuse("it makes complex numbers.")
    if site.is_complex:
        return site.graph.cast(part(site, 0), site.outputs[0].dtype)
    return site.graph.op("Cast", site.raw(0), to=int(ir.DataType.from_numpy(site.outputs[0].dtype)))


@operator("DEQUANTIZE")
def dequantize(site: Site) -> ir.Value:
    """Of integers, or of float16 weights."""
    return site.graph.cast(site.real(0), np.float32)


@operator("QUANTIZE")
def quantize(site: Site) -> ir.Value:
    """The walk puts every result on its grid."""
    return site.real(0)


@operator("FAKE_QUANT")
def fake_quant(site: Site) -> ir.Value:
    """The range is moved so that 0 is a step of it, as TensorFlow does."""
    graph, bits = site.graph, int(site.option("num_bits"))
    if not 2 <= bits <= 16:
        raise site.refuse(f"it has {bits} bits.")
    low, high = float(site.option("min")), float(site.option("max"))
    first, last = float(bool(site.option("narrow_range"))), float(2**bits - 1)
    if not low < high:
        raise site.refuse(f"its range is {low:g} to {high:g}.")
    step = (high - low) / (last - first)
    zero = min(max(first - low / step, first), last)
    begin = (first - np.floor(zero + 0.5)) * step
    kept = site.clipped(site.real(0), begin, begin + (last - first) * step)
    steps = graph.op("Div", graph.op("Sub", kept, graph.constant(begin)), graph.constant(step))
    whole = graph.op("Floor", graph.op("Add", steps, graph.constant(0.5)))
    return graph.op("Add", graph.op("Mul", whole, graph.constant(step)), graph.constant(begin))
