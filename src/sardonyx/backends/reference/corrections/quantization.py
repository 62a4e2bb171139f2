"""Quantization: the formulas of the standard, every input with a defined answer."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.backends.reference.corrections.axes import normalize_axis
from sardonyx.backends.reference.corrections.casting import cast_array, numpy_dtype
from sardonyx.backends.reference.corrections.conv import convolve
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_RANGES = {
    "int2": (-2, 1),
    "uint2": (0, 3),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
}


@corrects("QuantizeLinear", reason="a scale of 0, infinities and NaN have a defined answer")
def quantize_linear(call: Call, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    given = call.attr("output_dtype", 0)
    if zero_point is not None:
        dtype = zero_point.dtype
        if given and numpy_dtype(given) != dtype:
            raise RunError(f"output_dtype {numpy_dtype(given)} is not the zero point's {dtype}")
    else:
        dtype = numpy_dtype(given) if given else np.dtype(np.uint8)
    precision = call.attr("precision", 0)
    kind = numpy_dtype(precision) if precision else _division_type(x.dtype, scale.dtype)
    spread = spread_scale(call, scale, x.shape).astype(kind)
    quotient = np.divide(x.astype(kind), spread)
    zero = None if zero_point is None else spread_scale(call, zero_point, x.shape)
    if dtype.name in _RANGES:
        return saturated(quotient, zero, dtype)
    wide = quotient.astype(np.float32)
    if zero is not None:
        wide = wide + zero.astype(np.float32)
    return cast_array(wide, dtype, saturate=bool(call.attr("saturate", 1)))


def _division_type(x: np.dtype[Any], scale: np.dtype[Any]) -> np.dtype[Any]:
    """The scale decides; an integer or exponent-only scale divides in float32."""
    if scale.kind in "iu" or scale == ml_dtypes.float8_e8m0fnu:
        return np.dtype(np.float32)
    return scale


def saturated(quotient: Array, zero: Array | None, dtype: np.dtype[Any]) -> Array:
    """Round half to even, move by the zero point, clip; NaN lands on the zero point."""
    low, high = _RANGES[dtype.name]
    rounded = np.rint(quotient.astype(np.float64))
    moved = np.where(np.isnan(rounded), 0.0, rounded)
    if zero is not None:
        moved = moved + zero.astype(np.float64)
    return np.clip(moved, low, high).astype(np.int32).astype(dtype)


def spread_scale(call: Call, scale: Array, shape: tuple[int, ...]) -> Array:
    """A scale or zero point, broadcast over the elements it governs.

    One number serves the tensor, a vector the axis, and a tensor of the same rank serves blocks
    of `block_size` along the axis.
    """
    if scale.size == 1 and scale.ndim <= 1:
        return scale.reshape(())
    axis = normalize_axis(call.attr("axis", 1), len(shape))
    block = int(call.attr("block_size", 0))
    if scale.ndim == 1 and not block:
        if scale.size != shape[axis]:
            raise RunError(
                f"{scale.size} scales for an axis of {shape[axis]}",
                value=scale.size,
                limit=shape[axis],
            )
        return scale.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    _check_blocks(scale, shape, axis, block)
    spread = np.repeat(scale, block, axis)
    return np.take(spread, range(shape[axis]), axis)


def _check_blocks(scale: Array, shape: tuple[int, ...], axis: int, block: int) -> None:
    if block <= 0:
        raise RunError(
            f"block_size is {block} with scales of shape {list(scale.shape)}", value=block, limit=1
        )
    expected = tuple(-(-size // block) if i == axis else size for i, size in enumerate(shape))
    if scale.shape != expected:
        raise RunError(
            f"scales of shape {list(scale.shape)}, where blocks of {block} need {list(expected)}",
            value=scale.shape,
            limit=expected,
        )


@corrects("DequantizeLinear", reason="the output's type decides the precision; blocks are checked")
def dequantize_linear(call: Call, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    given = call.attr("output_dtype", 0)
    dtype = numpy_dtype(given) if given else scale.dtype
    centred = x.astype(np.float32)
    if x.dtype.itemsize >= 4:
        centred = x.astype(np.float64)
    if zero_point is not None:
        centred = centred - spread_scale(call, zero_point, x.shape).astype(centred.dtype)
    spread = spread_scale(call, scale, x.shape)
    wide = np.float32 if dtype.itemsize < 4 else dtype
    return (centred.astype(wide) * spread.astype(wide)).astype(dtype)


@corrects("DynamicQuantizeLinear", reason="an empty or constant tensor has a scale")
def dynamic_quantize_linear(call: Call, x: Array) -> tuple[Array, Array, Array]:
    top = np.float32(max(0.0, x.max(initial=0.0)))
    bottom = np.float32(min(0.0, x.min(initial=0.0)))
    scale = np.float32(1.0) if top == bottom else np.float32((top - bottom) / np.float32(255))
    zero = np.rint(np.clip(np.float32(0) - bottom / scale, 0, 255)).astype(np.uint8)
    quantized = saturated(x / scale, zero, np.dtype(np.uint8))
    return quantized, np.array(scale, dtype=np.float32), np.array(zero, dtype=np.uint8)


@corrects("MatMulInteger", reason="zero points may stand for each row of A and column of B")
def matmul_integer(
    call: Call, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None
) -> Array:
    return _integer_product(a, b, a_zero, b_zero).astype(np.int32)


@corrects(
    "QLinearMatMul", reason="scales and zero points may stand for each row of A and column of B"
)
def qlinear_matmul(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    y_scale: Array,
    y_zero: Array,
) -> Array:
    if all(value.dtype.kind in "iu" for value in (a, b)):
        product = _integer_product(a, b, a_zero, b_zero).astype(np.float32)
    else:
        left = a.astype(np.float32) - _rows(a_zero, a).astype(np.float32)
        product = left @ (b.astype(np.float32) - _columns(b_zero, b).astype(np.float32))
    scale = _rows(a_scale, a).astype(np.float32) * _columns(b_scale, b).astype(np.float32)
    return requantized(product, scale, _rows(y_scale, a), _rows(y_zero, a))


def _integer_product(a: Array, b: Array, a_zero: Array | None, b_zero: Array | None) -> Array:
    """Exact: products of 8-bit integers, summed in int64."""
    left, right = a.astype(np.int64), b.astype(np.int64)
    if a_zero is not None:
        left = left - _rows(a_zero, a).astype(np.int64)
    if b_zero is not None:
        right = right - _columns(b_zero, b).astype(np.int64)
    return _exact_matmul(left, right)


def _exact_matmul(left: Array, right: Array) -> Array:
    # float64 holds every sum of up to 2^36 products of 9-bit integers, and BLAS is fast.
    return np.rint(left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)


def _rows(parameter: Array, a: Array) -> Array:
    if parameter.ndim == 1 and parameter.size > 1 and a.ndim > 1:
        return parameter[:, None]
    return parameter.reshape(()) if parameter.size == 1 else parameter


def _columns(parameter: Array, b: Array) -> Array:
    return parameter.reshape(()) if parameter.size == 1 else parameter


def requantized(accumulator: Array, scale: Array, y_scale: Array, y_zero: Array) -> Array:
    """Accumulated integers to the output's scale and zero point, in float32."""
    ratio = (scale / y_scale.astype(np.float32)).astype(np.float32)
    if y_zero.dtype.name not in _RANGES:
        return cast_array(accumulator * ratio + y_zero.astype(np.float32), y_zero.dtype)
    return saturated(accumulator * ratio, y_zero, y_zero.dtype)


@corrects("ConvInteger", reason="any rank, zero points for each output channel, padding of x_zero")
def conv_integer(
    call: Call, x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None
) -> Array:
    return _integer_conv(call, x, w, x_zero, w_zero).astype(np.int32)


@corrects(
    "QLinearConv", reason="any rank, scales for each output channel, and rounding half to even"
)
def qlinear_conv(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero: Array,
    w: Array,
    w_scale: Array,
    w_zero: Array,
    y_scale: Array,
    y_zero: Array,
    bias: Array | None = None,
) -> Array:
    accumulator = _integer_conv(call, x, w, x_zero, w_zero)
    if bias is not None:
        accumulator = accumulator + _channels(bias, x.ndim)
    scale = x_scale.astype(np.float32) * _channels(w_scale.astype(np.float32), x.ndim)
    return requantized(accumulator.astype(np.float32), scale, y_scale, y_zero)


def _integer_conv(
    call: Call, x: Array, w: Array, x_zero: Array | None, w_zero: Array | None
) -> Array:
    left, right = x.astype(np.float64), w.astype(np.float64)
    if x_zero is not None:
        left = left - x_zero.astype(np.float64)
    if w_zero is not None:
        right = right - w_zero.astype(np.float64).reshape((-1, *[1] * (w.ndim - 1)))
    return np.rint(convolve(call, left, right, None)).astype(np.int64)


def _channels(parameter: Array, rank: int) -> Array:
    if parameter.size == 1:
        return parameter.reshape(())
    return parameter.reshape((-1, *[1] * (rank - 2)))
