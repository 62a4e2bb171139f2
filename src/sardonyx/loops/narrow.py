"""Conversions to types of 8 bits and less, and between types by their bits.

float8      the nearest number; what lies above the largest is that, or with nosat infinite or NaN
f8e8m0      a power of two, 2**(code - 127): the sign is lost; code 255 is NaN
f4e2m1      the nearest number; NaN is 0
i4 … u2     rounded half to even, then the low bits; NaN is 0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["narrowing", "round_to_odd", "same_bits"]

LARGEST = {
    "float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0, "float4_e2m1fn": 6.0,
}  # fmt: skip


def narrowing(to_type: np.dtype[Any], mode: str) -> Callable[[Any], Any]:
    """f32, or an integer's u32, as a narrow type."""
    if to_type == ml_dtypes.float8_e8m0fnu:
        way, _, end = mode.partition("_")
        return lambda x: _exponent(np.float32(x), way, saturate=not end)
    if to_type.name.startswith("float"):
        return lambda x: _nearest(float(x), to_type, saturate=mode != "nosat")
    bits, signed = int(to_type.name[-1]), not to_type.name.startswith("u")
    return lambda x: _low_bits(x, bits, signed, to_type)


def _nearest(x: float, to_type: np.dtype[Any], saturate: bool) -> Any:
    if to_type == ml_dtypes.float4_e2m1fn and math.isnan(x):
        return to_type.type(0.0)
    if saturate and not math.isnan(x):
        most = LARGEST[to_type.name]
        x = min(max(x, -most), most)
    return to_type.type(x)


def _exponent(x: Any, way: str, saturate: bool) -> Any:
    """The exponent of a float: its code is the float's own, rounded by what is added below it."""
    magnitude = int(x.view(np.uint32)) & 0x7FFFFFFF
    # Half way goes up, except between 0 and 2**-126, where 2**-127 has the even code.
    half = 0x400000 if magnitude > 0x00400000 else 0
    code = (magnitude + {"up": 0x7FFFFF, "down": 0, "nearest": half}[way]) >> 23
    if saturate:
        code = min(code, 0xFE)
    elif magnitude < 0x00400000:  # below 2**-127
        code = 0xFF
    return np.uint8(0xFF if x != x else code).view(ml_dtypes.float8_e8m0fnu)


def _low_bits(x: Any, bits: int, signed: bool, to_type: np.dtype[Any]) -> Any:
    wide = float(x)
    whole = 0 if math.isnan(wide) else round(min(max(wide, -(2.0**63)), 2.0**63))
    low = min(whole, 2**63 - 1) & ((1 << bits) - 1)
    if signed and low >> (bits - 1):
        low -= 1 << bits
    return to_type.type(low)


def round_to_odd(x: Any) -> Any:
    """f64 as f32; what is inexact is cut off and ends in an odd bit."""
    near = np.float32(x)
    if not math.isfinite(x) or np.float64(near) == x:
        return near
    below = np.nextafter(near, np.float32(0)) if abs(np.float64(near)) > abs(x) else near
    return np.uint32(int(below.view(np.uint32)) | 1).view(np.float32)


def same_bits(from_type: np.dtype[Any], to_type: np.dtype[Any]) -> Callable[[Any], Any]:
    whole = to_type.kind in "iu"

    def convert(x: Any) -> Any:
        found = np.array([x], from_type).view(to_type)
        return found.item(0) if whole else found[0]

    return convert
