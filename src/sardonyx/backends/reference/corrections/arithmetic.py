"""Integer arithmetic where C is undefined and numpy or engines differ; see docs/numerics.md."""

from __future__ import annotations

import numpy as np

from sardonyx.backends.reference.corrections.casting import cast_array
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError


def is_integer(array: Array) -> bool:
    """Whether an array holds integers of any width, signed or not."""
    return array.dtype.kind in "iu" or array.dtype.name.removeprefix("u") in ("int2", "int4")


@corrects("Div", since=7, reason="integer quotients truncate toward zero, and x / 0 is an error")
def div(call: Call, a: Array, b: Array) -> Array:
    return divide(a, b)


def divide(a: Array, b: Array) -> Array:
    if not is_integer(a):
        return np.divide(a, b)
    _refuse_zero(a, b, "/")
    floor = np.floor_divide(a, b)  # INT_MIN / -1 wraps to INT_MIN
    if a.dtype.kind == "u":
        return floor
    inexact = np.not_equal(np.multiply(floor, b), a)
    return floor + (inexact & ((a < 0) != (b < 0))).astype(a.dtype)


@corrects(
    "Mod", reason="integer x % 0 is an error; fmod = 0 follows the divisor's sign, also for floats"
)
def mod(call: Call, a: Array, b: Array) -> Array:
    if is_integer(a):
        _refuse_zero(a, b, "%")
    remainder = np.fmod if call.attr("fmod", 0) else np.remainder
    return remainder(a, b).astype(a.dtype, copy=False)


def _refuse_zero(a: Array, b: Array, sign: str) -> None:
    # A divisor of 0 that broadcasts against nothing divides nothing.
    if 0 not in np.broadcast_shapes(a.shape, b.shape) and (b == 0).any():
        raise RunError(f"integer x {sign} 0", value=0, hint="Check the divisor in the model.")


@corrects("Pow", since=7, reason="the base decides the type; negative integer powers truncate")
def power(call: Call, base: Array, exponent: Array) -> Array:
    return raise_to(base, exponent)


def raise_to(base: Array, exponent: Array) -> Array:
    if not is_integer(base):
        wide = np.float64 if is_integer(exponent) else np.result_type(base.dtype, exponent.dtype)
        return np.power(base.astype(wide), exponent.astype(wide)).astype(base.dtype)
    if not is_integer(exponent):
        real = np.power(base.astype(np.float64), exponent.astype(np.float64))
        return cast_array(real, base.dtype)
    if exponent.dtype.kind == "i" and (exponent < 0).any():
        base, exponent = np.broadcast_arrays(base, exponent)
        if ((base == 0) & (exponent < 0)).any():
            raise RunError("0 to a negative integer power", value=0)
        # The magnitude of x ** -n is below 1 unless x is 1 or -1.
        unit = np.where(base == -1, np.where(exponent % 2 == 0, 1, -1), base == 1)
        positive = np.power(base, np.where(exponent < 0, 0, exponent).astype(base.dtype))
        return np.where(exponent < 0, unit.astype(base.dtype), positive)
    return np.power(base, exponent.astype(base.dtype))


@corrects(
    "BitShift", reason="a shift past the width leaves the sign alone: 0, or -1 for a right shift"
)
def bit_shift(call: Call, x: Array, y: Array) -> Array:
    width = x.dtype.itemsize * 8
    outside = (y < 0) | (y >= width)
    shift = np.where(outside, 0, y).astype(x.dtype)
    if call.attr("direction") == "LEFT":
        return np.where(outside, 0, np.left_shift(x, shift)).astype(x.dtype)
    sign = np.where(x < 0, -1, 0).astype(x.dtype) if x.dtype.kind == "i" else np.zeros_like(x)
    return np.where(outside, sign, np.right_shift(x, shift)).astype(x.dtype)
