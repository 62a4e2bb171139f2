"""What each operation and each conversion means, on single values.

    type            its value here      arithmetic
    bool            bool                exact
    i8 … u64        int                 exact, then wrapped to the type's width
    f32, f64        numpy's scalar      + - * / of the type itself; the rest in float64, rounded once
    f16, bf16       numpy's scalar      none: they are converted
    f8e5m2 … u2     numpy's scalar      none: they are converted, from f32 and to it

Compiled code may differ from the functions that are rounded once by the few units in the last place
that docs/numerics.md grants, and in nothing else.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from sardonyx.loops.narrow import narrowing, round_to_odd, same_bits
from sardonyx.loops.nodes import Dtype
from sardonyx.loops.numpy_types import NAMES, numpy_type
from sardonyx.loops.operations import FLOATS, INTEGERS, NARROW, SIGNED, SMALL_FLOATS

__all__ = ["NUMPY_TYPES", "Function", "constant", "conversion", "function"]

Function: TypeAlias = Callable[..., Any]

NUMPY_TYPES: dict[Dtype, np.dtype[Any]] = {name: numpy_type(name) for name in NAMES}


def constant(value: float, dtype: Dtype) -> Any:
    """A number of the source text as a value of the type."""
    if dtype == "bool":
        return bool(value)
    return int(value) if dtype in INTEGERS else NUMPY_TYPES[dtype].type(value)


def function(op: str, dtype: Dtype) -> Function:
    """The operation on operands of this type."""
    if op in COMPARISONS:
        return COMPARISONS[op]
    if dtype == "bool":
        return LOGIC[op]
    if dtype in INTEGERS:
        return _integer_function(op, dtype)
    if op in NATIVE_FLOAT:
        return NATIVE_FLOAT[op]
    exact = FLOAT_FUNCTIONS[op]
    if dtype == "f64":
        return exact
    single, double = np.float32, np.float64
    if op in BINARY_FLOAT:
        return lambda a, b: single(exact(double(a), double(b)))
    return lambda x: single(exact(double(x)))


COMPARISONS: dict[str, Function] = {
    "eq": lambda a, b: bool(a == b),
    "ne": lambda a, b: bool(a != b),
    "lt": lambda a, b: bool(a < b),
    "le": lambda a, b: bool(a <= b),
    "gt": lambda a, b: bool(a > b),
    "ge": lambda a, b: bool(a >= b),
}
LOGIC: dict[str, Function] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.not_,
}

# Floats


def _maximum(a: Any, b: Any) -> Any:
    """NaN if either is; +0 is above -0, which numpy leaves to the order of its operands."""
    return a + b if a == b == 0 else np.maximum(a, b)


def _minimum(a: Any, b: Any) -> Any:
    return -(-a - b) if a == b == 0 else np.minimum(a, b)


def _sigmoid(x: Any) -> Any:
    # The exponential of a number that is not positive never overflows.
    small = np.exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)


def _float_power(x: Any, n: Any) -> Any:
    """C's pow; numpy takes a square root for scalars where n is 0.5, and answers NaN for -inf."""
    return np.power(x.reshape(1), n.reshape(1))[0]


NATIVE_FLOAT: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "over": operator.truediv,
    "neg": operator.neg,
    "abs": operator.abs,
    "max": _maximum,
    "min": _minimum,
    "sign": np.sign,  # NaN for NaN, +0 for -0
    "isnan": lambda x: bool(x != x),
    "isinf": lambda x: bool(abs(x) == np.inf),
}


def _gelu(x: float) -> float:
    if x == -math.inf:
        return 0.0  # what it tends to
    return 0.5 * x * math.erfc(-x / math.sqrt(2.0))


def _gelu_tanh(x: float) -> float:
    if x == -math.inf:
        return 0.0
    return float(x * _sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x * x * x)))


BINARY_FLOAT = frozenset({"pow", "fmod", "mod"})
FLOAT_FUNCTIONS: dict[str, Function] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": lambda x: np.float64(math.erf(x)),
    "exp": np.exp,
    "exp_weight": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "fmod": np.fmod,  # the sign of the dividend
    "gelu": _gelu,
    "gelu_coarse": _gelu,
    "gelu_tanh": _gelu_tanh,
    "gelu_tanh_coarse": _gelu_tanh,
    "log": np.log,
    "log1p": np.log1p,
    "mod": np.remainder,  # the sign of the divisor, also of a zero
    "pow": _float_power,
    "round": np.rint,  # half to even
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": _sigmoid,
    "sin": np.sin,
    "sinh": np.sinh,
    "softplus": lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-abs(x))),
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}

# Integers


def _bits(dtype: Dtype) -> int:
    return 8 * NUMPY_TYPES[dtype].itemsize


def _wrap(dtype: Dtype) -> Callable[[int], int]:
    bits = _bits(dtype)
    mask = (1 << bits) - 1
    if dtype not in SIGNED:
        return lambda x: x & mask
    half = 1 << (bits - 1)
    return lambda x: ((x + half) & mask) - half


def _integer_function(op: str, dtype: Dtype) -> Function:
    if op in EXACT_INTEGER:
        return EXACT_INTEGER[op]
    wrap, bits = _wrap(dtype), _bits(dtype)
    if op == "pow":
        return lambda x, n: wrap(_power(x, n, bits))
    if op == "shl":
        return lambda x, by: wrap(x << by) if 0 <= by < bits else 0
    if op == "shr":
        return lambda x, by: x >> (by if 0 <= by < bits else bits)
    exact = WRAPPED_INTEGER[op]
    return lambda *args: wrap(exact(*args))


def _quotient(a: int, b: int) -> int:
    """Truncated. A kernel refuses to divide by zero before it divides; here it gives 0."""
    if b == 0:
        return 0
    return abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))


def _remainder(a: int, b: int) -> int:
    """With the sign of the dividend."""
    return a - b * _quotient(a, b) if b else 0


def _power(x: int, n: int, bits: int) -> int:
    if n >= 0:
        return pow(x, n, 1 << bits)
    if abs(x) != 1:
        return 0  # truncated; a kernel refuses 0 to a negative power before it asks
    return x if n % 2 else 1


EXACT_INTEGER: dict[str, Function] = {
    "max": max,
    "min": min,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "sign": lambda x: (x > 0) - (x < 0),
    "fmod": _remainder,
    "mod": lambda a, b: a % b if b else 0,
}
WRAPPED_INTEGER: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _quotient,
    "neg": operator.neg,
    "abs": abs,
    "not": operator.invert,
}

# Conversions

# From here on, the last bit of a float32 stands for 1: adding it rounds to a whole number, which its bits show.
_WHOLE = np.float32(1.5 * 2**23)
_WHOLE_BITS = int(_WHOLE.view(np.int32))
_WHOLE_256 = _WHOLE + np.float32(256)


def conversion(source: Dtype, target: Dtype, mode: str = "") -> Function:
    """A value of one type as a value of another, by the table of docs/numerics.md and `cast_modes`."""
    if mode == "bits":
        return same_bits(NUMPY_TYPES[source], NUMPY_TYPES[target])
    if mode == "odd":
        return round_to_odd
    if mode == "saturate":
        ends = np.iinfo(NUMPY_TYPES[target])
        return lambda n: min(max(int(n), int(ends.min)), int(ends.max))
    if mode == "near" and target == "i16":
        low = _wrap("i16")  # of 256 more than the number
        return lambda x: max(low(int((x + _WHOLE_256).view(np.int32))) - 256, -(1 << 15))
    if mode == "near":
        nearest = _wrap("i32")
        return lambda x: nearest(int((x + _WHOLE).view(np.int32)) - _WHOLE_BITS)
    if mode == "small":
        wrapped = _wrap("i32")
        return lambda n: np.int32(wrapped(int(n) + _WHOLE_BITS)).view(np.float32) - _WHOLE
    if source in NARROW:
        return lambda x: np.float32(float(x))
    if target in NARROW:
        return narrowing(NUMPY_TYPES[target], mode)
    if target == "bool":
        return lambda x: bool(x != 0)  # NaN is true
    if target in INTEGERS:
        wrap = _wrap(target)
        return _saturating(target) if source in FLOATS | SMALL_FLOATS else lambda x: wrap(int(x))
    if target == "bf16":
        return _to_bfloat16
    to_type = NUMPY_TYPES[target]
    if source in FLOATS | SMALL_FLOATS:
        return to_type.type
    # numpy rounds its own integers once, but brings Python's to float32 by way of float64.
    from_type = NUMPY_TYPES[source].type
    return lambda x: from_type(x).astype(to_type)


def _to_bfloat16(x: Any) -> Any:
    """Rounded once, half to even; ml_dtypes would round to float32 on the way."""
    wide = float(x)
    if wide == 0 or not math.isfinite(wide):
        return ml_dtypes.bfloat16(wide)
    # Eight significant bits, and below the smallest normal number steps of 2**-133.
    step = max(math.frexp(wide)[1] - 8, -133)
    exact = Fraction(x if isinstance(x, int) else wide)
    rounded = math.ldexp(round(exact / Fraction(2) ** step), step)
    return ml_dtypes.bfloat16(math.copysign(rounded, wide))


def _saturating(target: Dtype) -> Function:
    ends = np.iinfo(NUMPY_TYPES[target])
    low, high = int(ends.min), int(ends.max)

    def convert(x: Any) -> int:
        wide = float(x)
        if wide != wide:
            return 0
        if math.isinf(wide):
            return high if wide > 0 else low
        return min(max(int(wide), low), high)

    return convert
