"""Primitives that are one ONNX operator, element by element; and comparisons, choices and types."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import BITS_OPSET, dtype_of
from sardonyx.conversion.jax.table import Site, lowered, primitive

__all__: list[str] = []

_UNARY = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "logistic": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}
_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "add_any": "Add"}
_BITS = {"and": "And", "or": "Or", "xor": "Xor"}
_COMPARISONS = {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}


def _unary(kind: str, site: Site, x: ir.Value) -> ir.Value:
    return site.graph.op(kind, x)


def _binary(kind: str, site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    return site.graph.op(kind, x, y)


def _bits(kind: str, site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    return site.graph.op(kind if dtype_of(x) == np.bool_ else f"Bitwise{kind}", x, y)


def _compare(kind: str, site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    if dtype_of(x) == np.bool_:  # ordered as numbers
        x, y = site.graph.cast(x, np.int32), site.graph.cast(y, np.int32)
    return site.graph.op(kind, x, y)


for _name, _kind in _UNARY.items():
    primitive(_name)(functools.partial(_unary, _kind))
for _name, _kind in _BINARY.items():
    primitive(_name)(functools.partial(_binary, _kind))
for _name, _kind in _BITS.items():
    primitive(_name)(functools.partial(_bits, _kind))
for _name, _kind in _COMPARISONS.items():
    primitive(_name)(functools.partial(_compare, _kind))


@primitive("eq")
def equal(site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    return site.graph.op("Equal", x, y)


@primitive("ne")
def unequal(site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    return site.graph.op("Not", site.graph.op("Equal", x, y))


def _before(x: Any, y: Any) -> Any:
    """The order of all floats: -0 before +0, and a NaN behind the rest."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x < y
    zeros = (x == 0) & (y == 0) & (1 / x < 0) & (1 / y > 0)
    return (x < y) | (jnp.isnan(y) & ~jnp.isnan(x)) | zeros


@lowered("lt_to")
def before(x: Any, y: Any) -> Any:
    return _before(x, y)


@lowered("le_to")
def before_or_same(x: Any, y: Any) -> Any:
    return ~_before(y, x)


@lowered("eq_to")
def same_place(x: Any, y: Any) -> Any:
    return ~(_before(x, y) | _before(y, x))


@primitive("not")
def invert(site: Site, x: ir.Value) -> ir.Value:
    return site.graph.op("Not" if dtype_of(x) == np.bool_ else "BitwiseNot", x)


@primitive("neg")
def negate(site: Site, x: ir.Value) -> ir.Value:
    if dtype_of(x).kind == "u":
        return site.graph.op("Sub", site.graph.constant(0, like=x), x)
    return site.graph.op("Neg", x)


@primitive("max", "min")
def extreme(site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    if dtype_of(x) == np.bool_:
        return site.graph.op("Or" if site.name == "max" else "And", x, y)
    neutral = -np.inf if site.name == "max" else np.inf
    for bound, other in ((x, y), (y, x)):  # as jax.nn.softmax has it, for rows of nothing
        known = site.graph.known(bound)
        if known is not None and known.ndim == 0 and known == neutral:
            return other
    return site.graph.op(site.name.capitalize(), x, y)


@primitive("clamp")
def clamp(site: Site, low: ir.Value, x: ir.Value, high: ir.Value) -> ir.Value:
    return site.graph.op("Min", site.graph.op("Max", x, low), high)


@primitive("is_finite")
def is_finite(site: Site, x: ir.Value) -> ir.Value:
    graph = site.graph
    if dtype_of(x) != np.float64:  # IsInf has few types, and all fit into float32
        x = graph.cast(x, np.float32)
    infinite = graph.op("IsInf", x)
    return graph.op("Not", graph.op("Or", infinite, graph.op("IsNaN", x)))


@primitive("select_n")
def select(site: Site, which: ir.Value, *cases: ir.Value) -> ir.Value:
    """cases[which]; a scalar chooses a whole one."""
    graph = site.graph
    if dtype_of(which) == np.bool_:
        return cases[0] if len(cases) == 1 else graph.op("Where", which, cases[1], cases[0])
    chosen = cases[-1]
    for number in range(len(cases) - 2, -1, -1):
        here = graph.op("LessOrEqual", which, graph.constant(number, like=which))
        chosen = graph.op("Where", here, cases[number], chosen)
    return chosen


@primitive("convert_element_type")
def convert(site: Site, x: ir.Value) -> ir.Value:
    return site.graph.cast(x, site.params["new_dtype"])


@primitive("reduce_precision")
def reduce_precision(site: Site, x: ir.Value) -> ir.Value:
    """Rounded to another float's bits, in the type that it has."""
    bits = (site.params["exponent_bits"], site.params["mantissa_bits"])
    types: dict[tuple[int, int], Any] = {
        (8, 7): ml_dtypes.bfloat16,
        (5, 10): np.float16,
        (8, 23): np.float32,
        (11, 52): np.float64,
    }
    if bits not in types:
        raise site.refuse(
            f"no type of ONNX has {bits[0]} bits of exponent and {bits[1]} of mantissa."
        )
    return site.graph.cast(site.graph.cast(x, types[bits]), site.outs[0].dtype)


@primitive("bitcast_convert_type")
def bitcast(site: Site, x: ir.Value) -> ir.Value:
    graph, wanted = site.graph, np.dtype(site.params["new_dtype"])
    if wanted.itemsize != dtype_of(x).itemsize:
        raise site.refuse(f"bits of {dtype_of(x)} as {wanted} change the number of elements.")
    graph.require(BITS_OPSET)
    return graph.op("BitCast", x, dtype=wanted, to=int(ir.DataType.from_numpy(wanted)))


@primitive(
    "copy",
    "copy_p",
    "device_put",
    "name",
    "optimization_barrier",
    "pvary",
    "reshard",
    "sharding_constraint",
    "stop_gradient",
)
def same(site: Site, *operands: ir.Value) -> list[ir.Value]:
    return list(operands)
