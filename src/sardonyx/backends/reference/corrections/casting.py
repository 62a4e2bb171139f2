"""Cast and its kin, with every conversion defined; see docs/numerics.md."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
from onnx.numpy_helper import saturate_cast, to_float8e8m0

from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

__all__ = ["cast_array", "numpy_dtype"]

_INTEGERS = (
    "int2",
    "uint2",
    "int4",
    "uint4",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
)
_INTEGER_TYPES = frozenset((*_INTEGERS, "int64", "uint64"))
_SATURATING = frozenset({"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"})
_SPECIAL = {"inf": np.inf, "+inf": np.inf, "-inf": -np.inf, "nan": np.nan}


def numpy_dtype(data_type: int | str) -> np.dtype[Any]:
    """The numpy type of an element type; opset 1 writes types as strings."""
    if isinstance(data_type, str):
        kind = ir.DataType[data_type.upper()]
    else:
        kind = ir.DataType(data_type)
    return np.dtype(object) if kind == ir.DataType.STRING else np.dtype(kind.numpy())


@corrects("Cast", reason="NaN and values out of range have a defined integer; strings are plain")
def cast(call: Call, x: Array) -> Array:
    return cast_array(
        x,
        numpy_dtype(call.attr("to")),
        saturate=bool(call.attr("saturate", 1)),
        round_mode=call.attr("round_mode", "up"),
    )


@corrects("CastLike", reason="the same conversions as Cast")
def cast_like(call: Call, x: Array, like: Array) -> Array:
    return cast_array(
        x,
        like.dtype,
        saturate=bool(call.attr("saturate", 1)),
        round_mode=call.attr("round_mode", "up"),
    )


def cast_array(
    x: Array, dtype: np.dtype[Any], *, saturate: bool = True, round_mode: str = "up"
) -> Array:
    """Convert elements by the rules of Cast.

    Floats to integers truncate, saturate when out of range, and NaN gives 0. Integers to
    narrower integers drop the high bits.
    """
    if x.dtype == dtype:
        return x
    if dtype.kind == "O":
        return _to_strings(x)
    if x.dtype.kind == "O":
        x = _from_strings(x)
    if x.dtype == ml_dtypes.float8_e8m0fnu:
        x = x.astype(np.float32)  # it has no 0 to compare with
    if dtype == np.bool_:
        return np.not_equal(x, np.zeros((), x.dtype))
    if dtype.name in _INTEGER_TYPES:
        return _to_integers(x, dtype)
    if dtype.name in _SATURATING and saturate:
        return saturate_cast(_float_source(x), dtype)
    if dtype == ml_dtypes.float8_e8m0fnu:
        return _to_exponents(x.astype(np.float32), saturate, round_mode)
    return x.astype(dtype)


def _float_source(x: Array) -> Array:
    """ml_dtypes cannot compare its integers and small floats with a Python float."""
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def _to_integers(x: Array, dtype: np.dtype[Any]) -> Array:
    if x.dtype.kind == "b":
        return x.astype(dtype)
    packed = dtype.kind == "V"  # the 2- and 4-bit types of ml_dtypes
    if x.dtype.name not in _INTEGER_TYPES:
        # Only to 2 and 4 bits does the standard round: to the nearest, ties to even.
        x = (
            _saturated(np.rint(x.astype(np.float64)), np.dtype(np.int64))
            if packed
            else _saturated(x, dtype)
        )
    return _low_bits(x, dtype) if packed else x.astype(dtype)


def _saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    """Floats to integers of 8 bits and more: truncated, clipped to the range, NaN to 0."""
    info = np.iinfo(dtype)
    real = np.trunc(x.astype(np.float64))
    # float(max) of the 64-bit types rounds up to a value that is itself out of range.
    high = real >= float(info.max)
    low = real <= float(info.min)
    whole = np.where(high | low | np.isnan(real), 0, real).astype(dtype)
    return np.where(high, info.max, np.where(low, info.min, whole)).astype(dtype)


def _low_bits(x: Array, dtype: np.dtype[Any]) -> Array:
    """Integers to 2 or 4 bits: the low bits, read as two's complement where signed."""
    bits = _bits(dtype)
    low = x.astype(np.int64) & ((1 << bits) - 1)
    if not dtype.name.startswith("u"):
        low = np.where(low >> (bits - 1), low - (1 << bits), low)
    return low.astype(np.int8).astype(dtype)


def _to_exponents(x: Array, saturate: bool, round_mode: str) -> Array:
    """float8e8m0: a power of two. Negative values are undefined by the standard; ours lose the sign."""
    exponents = np.asarray(to_float8e8m0(x, saturate, round_mode)).astype(ml_dtypes.float8_e8m0fnu)
    bits = exponents.view(np.uint8).copy()
    if saturate:
        bits[np.isinf(x)] = 0xFE
    else:
        bits[np.abs(x) < np.float32(2.0**-127)] = 0xFF
    return bits.view(ml_dtypes.float8_e8m0fnu)


def _to_strings(x: Array) -> Array:
    texts = np.empty(x.shape, dtype=object)
    texts.reshape(-1)[:] = [_text(item) for item in x.reshape(-1)]
    return texts


def _text(item: Any) -> str:
    if isinstance(item, (np.bool_, np.integer)) or np.dtype(type(item)).name in _INTEGER_TYPES:
        return str(int(item))
    if not np.isfinite(item):
        return "NaN" if np.isnan(item) else "INF" if item > 0 else "-INF"
    if not isinstance(item, np.floating):
        item = np.float32(item)  # bfloat16 and float8 are exact in it
    return np.format_float_positional(item, unique=True, trim="0")


def _from_strings(x: Array) -> Array:
    """Integers stay exact, so that "9007199254740993" reaches int64 whole."""
    values = [_number(item) for item in x.reshape(-1)]
    if all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in values):
        return np.array(values, dtype=np.int64).reshape(x.shape)
    if all(isinstance(value, int) and 0 <= value < 2**64 for value in values):
        return np.array(values, dtype=np.uint64).reshape(x.shape)
    return np.array(values, dtype=np.float64).reshape(x.shape)


def _number(text: str) -> int | float:
    bare = text.strip()
    if bare.lower() in _SPECIAL:
        return _SPECIAL[bare.lower()]
    try:
        if bare.lstrip("+-").isascii() and bare.lstrip("+-").isdigit() and len(bare) < 400:
            return int(bare)
        if "_" in bare:
            raise ValueError(bare)
        return float(bare)
    except ValueError as error:
        raise RunError(f"{text[:80]!r} is not a number", value=text[:80]) from error


@corrects("BitCast", reason="widths are compared in bits, so the packed types work")
def bit_cast(call: Call, x: Array) -> Array:
    dtype = numpy_dtype(call.attr("to"))
    if x.dtype.kind == "b" or dtype.kind == "b":
        return x.view(np.uint8).astype(dtype) if dtype.kind == "b" else x.view(dtype)
    if _bits(x.dtype) != _bits(dtype):
        raise RunError(f"{x.dtype} and {dtype} differ in width", value=str(dtype))
    return np.ascontiguousarray(x).view(dtype).reshape(x.shape)


def _bits(dtype: np.dtype[Any]) -> int:
    return int(ir.DataType.from_numpy(dtype).bitwidth)
