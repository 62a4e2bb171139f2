"""Operators that work element by element: one line each.

pointwise("Relu", lambda v: maximum(v, 0))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from sardonyx.loops.build import cast, maximum, minimum, where
from sardonyx.loops.nodes import Const, Expr, apply
from sardonyx.loops.operations import FLOAT8, FLOATS, INTEGERS, cast_modes
from sardonyx.ops.lowering import Element, Position, Site
from sardonyx.sizes import product

__all__ = [
    "BINARY",
    "BINARY_BEFORE_7",
    "BIT_CAST",
    "CAST",
    "CLIP",
    "PRELU",
    "PRELU_BEFORE_7",
    "SWIGLU",
    "UNARY",
    "VARIADIC",
    "WHERE",
    "broadcasting",
    "mapped",
]

SQRT_HALF = math.sqrt(0.5)


def mapped(function: Callable[[Site, Expr], Expr], weight: int = 1) -> Element:
    """An operator of one input."""

    def value(site: Site, position: Position) -> Expr:
        return function(site, site.operand(0, position))

    return Element(value, weight, pointwise=True)


def broadcasting(function: Callable[..., Expr], weight: int = 1) -> Element:
    """An operator of any number of inputs that broadcast together; the types of operands agree."""

    def value(site: Site, position: Position) -> Expr:
        operands = [
            site.broadcast(index, position)
            for index, facts in enumerate(site.call.inputs)
            if facts is not None
        ]
        return function(site, *operands)

    return Element(value, weight, pointwise=True)


def _fitted(function: Callable[[Site, Expr, Expr], Expr], weight: int) -> Element:
    """An operator whose second operand stretches along the first's other dimensions."""

    def value(site: Site, position: Position) -> Expr:
        shape, other, call = site.shape(0), site.shape(1), site.call
        start = call.int_attr("axis", len(shape) - len(other)) if call.int_attr("broadcast") else 0
        start += len(shape) if start < 0 else 0
        if product(other) == 1:
            return function(site, site.operand(0, position), site.operand(1, (0,) * len(other)))
        part = slice(start, start + len(other))
        at = site.spread(other, position[part], shape[part])
        return function(site, site.operand(0, position), site.operand(1, at))

    return Element(value, weight, pointwise=True)


def _bit_cast(site: Site, v: Expr) -> Expr:
    """Integers of one width are each other's bits; a bool is a byte of 0 or 1."""
    dtype = site.out_dtype()
    if v.dtype == dtype or (v.dtype == "bool" and dtype in INTEGERS):
        return cast(v, dtype)
    if "bits" not in cast_modes(v.dtype, dtype):
        site.refuse(f"the bits of {v.dtype} as {dtype} have no native code")
    return cast(v, dtype, "bits")


def _named(op: str) -> Callable[[Site, Expr], Expr]:
    return lambda site, v: apply(op, v)


def _float_attr(site: Site, name: str, default: float) -> float:
    return float(site.call.attr(name, default))


def _elu(site: Site, v: Expr) -> Expr:
    return where(v < 0, _float_attr(site, "alpha", 1.0) * apply("expm1", v), v)


def _celu(site: Site, v: Expr) -> Expr:
    alpha = _float_attr(site, "alpha", 1.0)
    return maximum(v, 0) + minimum(alpha * apply("expm1", v / alpha), 0)


def _selu(site: Site, v: Expr) -> Expr:
    alpha = _float_attr(site, "alpha", 1.67326319217681884765625)
    gamma = _float_attr(site, "gamma", 1.05070102214813232421875)
    return gamma * where(v <= 0, alpha * apply("expm1", v), v)


def _leaky_relu(site: Site, v: Expr) -> Expr:
    return where(v < 0, v * _float_attr(site, "alpha", 0.01), v)


def _thresholded_relu(site: Site, v: Expr) -> Expr:
    return where(v > _float_attr(site, "alpha", 1.0), v, 0)


def _hard_sigmoid(site: Site, v: Expr) -> Expr:
    alpha, beta = _float_attr(site, "alpha", 0.2), _float_attr(site, "beta", 0.5)
    return maximum(minimum(v * alpha + beta, 1), 0)


def _hard_swish(site: Site, v: Expr) -> Expr:
    return v * maximum(minimum(v * (1 / 6) + 0.5, 1), 0)


def _gelu(site: Site, v: Expr) -> Expr:
    if site.call.str_attr("approximate", "none") == "tanh":
        if v.dtype == "f32":
            return apply("gelu_tanh", v)
        inner = math.sqrt(2 / math.pi) * (v + 0.044715 * (v * v * v))
        return 0.5 * v * (1.0 + apply("tanh", inner))
    if v.dtype == "f32":
        return apply("gelu", v)
    return 0.5 * v * (1.0 + apply("erf", v * SQRT_HALF))


def _mish(site: Site, v: Expr) -> Expr:
    return v * apply("tanh", apply("softplus", v))


def _swish(site: Site, v: Expr) -> Expr:
    alpha = _float_attr(site, "alpha", 1.0)
    return v * apply("sigmoid", v if alpha == 1.0 else v * alpha)


def _softsign(site: Site, v: Expr) -> Expr:
    return v / (1.0 + apply("abs", v))


def _shrink(site: Site, v: Expr) -> Expr:
    bias, lambd = _float_attr(site, "bias", 0.0), _float_attr(site, "lambd", 0.5)
    if v.dtype in INTEGERS:  # the bounds are floating-point numbers: so is the arithmetic
        return cast(_shrunk(cast(v, "f64"), bias, lambd), v.dtype)
    return _shrunk(v, bias, lambd)


def _shrunk(v: Expr, bias: float, lambd: float) -> Expr:
    return where(v < -lambd, v + bias, where(v > lambd, v - bias, 0))


def _is_infinite(site: Site, v: Expr) -> Expr:
    positive = bool(site.call.int_attr("detect_positive", 1))
    negative = bool(site.call.int_attr("detect_negative", 1))
    if positive and negative:
        return apply("isinf", v)
    if not positive and not negative:
        return Const(False, "bool")
    return apply("eq", v, math.inf if positive else -math.inf)


def _identity_on_integers(op: str) -> Callable[[Site, Expr], Expr]:
    """Ceil, Floor and Round leave integers alone."""
    return lambda site, v: v if v.dtype in INTEGERS else apply(op, v)


UNARY: dict[str, Element] = {
    **{
        name: mapped(_named(name.lower()), weight=8)
        for name in [
            "Acos",
            "Acosh",
            "Asin",
            "Asinh",
            "Atan",
            "Atanh",
            "Cos",
            "Cosh",
            "Erf",
            "Exp",
            "Log",
            "Sigmoid",
            "Sin",
            "Sinh",
            "Softplus",
            "Tan",
            "Tanh",
        ]
    },
    **{name: mapped(_named(name.lower())) for name in ("Abs", "Neg", "Sign", "Sqrt")},
    **{name: mapped(_identity_on_integers(name.lower())) for name in ("Ceil", "Floor", "Round")},
    "BitwiseNot": mapped(_named("not")),
    "Not": mapped(_named("not")),
    "IsNaN": mapped(_named("isnan")),
    "IsInf": mapped(_is_infinite),
    "Reciprocal": mapped(lambda site, v: 1.0 / v),
    "Relu": mapped(lambda site, v: maximum(v, 0)),
    "LeakyRelu": mapped(_leaky_relu),
    "ThresholdedRelu": mapped(_thresholded_relu),
    "HardSigmoid": mapped(_hard_sigmoid),
    "HardSwish": mapped(_hard_swish),
    "Elu": mapped(_elu, weight=8),
    "Celu": mapped(_celu, weight=8),
    "Selu": mapped(_selu, weight=8),
    "Gelu": mapped(_gelu, weight=8),
    "Mish": mapped(_mish, weight=16),
    "Swish": mapped(_swish, weight=8),
    "Softsign": mapped(_softsign),
    "Shrink": mapped(_shrink),
}


def _operation(op: str) -> Callable[[Site, Expr, Expr], Expr]:
    return lambda site, a, b: apply(op, a, b)


def _checked_division(op: str) -> Callable[[Site, Expr, Expr], Expr]:
    """Integers divided by zero have no answer: the run stops."""

    def divide(site: Site, a: Expr, b: Expr) -> Expr:
        if b.dtype in INTEGERS:
            b = site.b.let(b)
            site.b.fail_if(apply("eq", b, 0), "an integer is divided by zero", cast(a, "i64"))
        return apply(op, a, b)

    return divide


def _mod(site: Site, a: Expr, b: Expr) -> Expr:
    return _checked_division("fmod" if site.call.int_attr("fmod") else "mod")(site, a, b)


def _pow(site: Site, a: Expr, b: Expr) -> Expr:
    """The result has the base's type; an exponent of another type is computed with in the wider one."""
    if a.dtype == b.dtype and a.dtype in FLOATS:
        exponent = float(b.value) if isinstance(b, Const) else None
        if exponent in (1.0, 2.0, 3.0):
            return reduce(lambda x, y: x * y, [a] * int(exponent))
        return apply("pow", a, b)
    if a.dtype in INTEGERS and b.dtype in INTEGERS:
        b = cast(b, a.dtype) if a.dtype == "i64" or b.dtype == a.dtype else b
        if b.dtype != a.dtype:
            return cast(_pow(site, cast(a, "i64"), cast(b, "i64")), a.dtype)
        a, b = site.b.let(a), site.b.let(b)
        fault = apply("eq", a, 0) & (b < 0)
        site.b.fail_if(fault, "0 is raised to the negative power {value}", cast(b, "i64"))
        return apply("pow", a, b)
    return cast(apply("pow", cast(a, "f64"), cast(b, "f64")), a.dtype)


def _shift(site: Site, a: Expr, b: Expr) -> Expr:
    return apply("shl" if site.call.str_attr("direction") == "LEFT" else "shr", a, b)


def _prelu(site: Site, v: Expr, slope: Expr) -> Expr:
    return where(v < 0, v * slope, v)


def _prelu_before_7(site: Site, position: Position) -> Expr:
    """A slope of rank 1 runs over the channels."""
    shape, slope = site.shape(0), site.shape(1)
    if len(slope) != 1 or product(slope) == 1:
        return _prelu(site, site.broadcast(0, position), site.broadcast(1, position))
    axis = min(1, len(shape) - 1)
    at = site.spread(slope, position[axis : axis + 1], shape[axis : axis + 1])
    return _prelu(site, site.operand(0, position), site.operand(1, at))


_BINARY: dict[str, Callable[[Site, Expr, Expr], Expr]] = {
    "Add": _operation("add"),
    "And": _operation("and"),
    "BitShift": _shift,
    "BitwiseAnd": _operation("and"),
    "BitwiseOr": _operation("or"),
    "BitwiseXor": _operation("xor"),
    "Div": _checked_division("div"),
    "Equal": _operation("eq"),
    "Greater": _operation("gt"),
    "GreaterOrEqual": _operation("ge"),
    "Less": _operation("lt"),
    "LessOrEqual": _operation("le"),
    "Mod": _mod,
    "Mul": _operation("mul"),
    "Or": _operation("or"),
    "Pow": _pow,
    "Sub": _operation("sub"),
    "Xor": _operation("xor"),
}

BINARY: dict[str, Element] = {
    name: broadcasting(rule, weight=8 if name == "Pow" else 1) for name, rule in _BINARY.items()
}
# Before opset 7 the second operand fits into the first, from an axis on.
BINARY_BEFORE_7: dict[str, Element] = {
    name: _fitted(rule, weight=8 if name == "Pow" else 1) for name, rule in _BINARY.items()
}


def _folded(op: str) -> Callable[..., Expr]:
    return lambda site, *operands: reduce(lambda a, b: apply(op, a, b), operands)


def _mean(site: Site, *operands: Expr) -> Expr:
    return _folded("add")(site, *operands) / len(operands)


VARIADIC: dict[str, Element] = {
    "Max": broadcasting(_folded("max")),
    "Mean": broadcasting(_mean),
    "Min": broadcasting(_folded("min")),
    "Sum": broadcasting(_folded("add")),
}


def _cast(site: Site, position: Position) -> Expr:
    dtype, saturate = site.out_dtype(), bool(site.call.int_attr("saturate", 1))
    mode = ""
    if dtype == "f8e8m0":
        mode = site.call.str_attr("round_mode", "up") + ("" if saturate else "_nosat")
    elif dtype in FLOAT8 and not saturate:
        mode = "nosat"
    return cast(site.read(0, position), dtype, mode)


def _where(site: Site, position: Position) -> Expr:
    condition, then, other = (site.broadcast(index, position) for index in range(3))
    return where(condition, then, other)


def _clip(site: Site, position: Position) -> Expr:
    """Bounds are inputs from opset 11 on; min wins nothing over max: the upper bound is applied last."""
    value = site.operand(0, position)
    if site.call.version < 11:
        for name, pick in (("min", maximum), ("max", minimum)):
            bound = site.call.attr(name)
            value = value if bound is None else pick(value, float(bound))
        return value
    for index, pick in ((1, maximum), (2, minimum)):
        if site.call.has(index):
            value = pick(value, site.operand(index, (0,) * len(site.shape(index))))
    return value


def _swiglu(site: Site, a: Expr, b: Expr) -> Expr:
    alpha = _float_attr(site, "alpha", 1.0)
    return a * apply("sigmoid", a if alpha == 1.0 else a * alpha) * b


BIT_CAST = Element(
    lambda site, at: _bit_cast(site, site.read(0, at)), weight=0, pointwise=True, narrow=True
)
CLIP = Element(_clip, pointwise=True)
CAST = Element(_cast, pointwise=True, narrow=True)
WHERE = Element(_where, pointwise=True)
PRELU = broadcasting(_prelu)
PRELU_BEFORE_7 = Element(_prelu_before_7, pointwise=True)
SWIGLU = broadcasting(_swiglu, weight=8)
