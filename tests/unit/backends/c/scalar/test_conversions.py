"""Every conversion answers as Cast does on the reference backend, at every boundary."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.unit.backends.c.scalar.harness import (
    FLOAT8,
    LOOPS,
    ROUNDINGS,
    TYPES,
    Library,
    corners,
)
from tests.unit.backends.c.scalar.ulps import samples

from sardonyx.backends.reference.corrections.casting import cast_array
from sardonyx.loops.nodes import Dtype
from sardonyx.loops.operations import INTEGERS, NARROW, cast_modes
from sardonyx.loops.scalars import NUMPY_TYPES, conversion

WIDE = [dtype for dtype in NUMPY_TYPES if dtype not in NARROW]


@functools.cache
def values_of(dtype: str) -> Any:
    """Corners, with the ends of the integers and what lies between them and the next float."""
    if dtype not in ("f32", "f64"):
        return corners(dtype)
    kind = TYPES[dtype]
    borders = [
        float(end) for t in INTEGERS for end in (np.iinfo(TYPES[t]).min, np.iinfo(TYPES[t]).max)
    ]
    near = np.array(borders, kind)
    steps = [near, np.nextafter(near, kind.type(-np.inf)), np.nextafter(near, kind.type(np.inf))]
    halves = np.arange(-600, 600) / 4
    return np.concatenate(
        [corners(dtype), *steps, near - 1, near + 1, near / 2, halves, samples(1 << 14)]
    ).astype(kind)


def same(got: Any, want: Any) -> None:
    """Equal, NaN for NaN, and zeros of the same sign."""
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want)
    number = want == want
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


@pytest.mark.parametrize("target", WIDE)
@pytest.mark.parametrize("source", WIDE)
def test_cast(library: Library, source: str, target: str) -> None:
    same(library(f"cast_{source}_{target}", values_of(source)), cast(source, target))


@functools.cache
def cast(source: str, target: str) -> Any:
    x = values_of(source)
    if target == "bf16" and (source in INTEGERS or source == "f64"):
        return np.array([nearest_bfloat16(value) for value in x.tolist()], ml_dtypes.bfloat16)
    return cast_array(x, TYPES[target])


def nearest_bfloat16(value: float) -> float:
    """Rounded once, half to even, by exact arithmetic; ml_dtypes goes through float32."""
    if value == 0 or not abs(value) < np.inf:
        return value
    exact = abs(Fraction(value))
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent -= exact < Fraction(2) ** exponent  # floor of its logarithm
    last_place = Fraction(2) ** max(exponent - 7, -133)
    rounded = round(exact / last_place) * last_place
    return np.copysign(np.inf if rounded >= 2**128 else float(rounded), value)


def test_doubles_are_rounded_to_halves_once(library: Library) -> None:
    """Just above the middle of two halves, where a float32 would be the middle itself."""
    halves = np.arange(0x0400, 0x7BFF, dtype=np.uint16).view(np.float16).astype(np.float64)
    middle = (halves[:-1] + halves[1:]) / 2
    x = np.concatenate([middle * (1 + 2.0**-40), middle * (1 - 2.0**-40), middle])
    np.testing.assert_array_equal(library("cast_f64_f16", x), x.astype(np.float16))
    x32 = x.astype(np.float32)
    np.testing.assert_array_equal(library("cast_f32_f16", x32), x32.astype(np.float16))


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("name", FLOAT8)
def test_to_float8(library: Library, name: str, saturate: bool) -> None:
    x = np.concatenate([values_of("f32"), between(name), -between(name)])
    want = cast_array(x, TYPES[name], saturate=saturate)
    got = library(f"cast_f32_{name}" + ("" if saturate else "_nosat"), x)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def between(name: str) -> Any:
    """The middles of neighbours, where rounding is decided, and the floats beside them."""
    codes = np.arange(256, dtype=np.uint8).view(TYPES[name]).astype(np.float32)
    numbers = np.unique(codes[np.isfinite(codes) & (codes >= 0)])
    middles = (numbers[:-1] + numbers[1:]) / 2
    top = numbers[-1] * np.float32(1.5)
    ends = np.linspace(numbers[-1], top, 65, dtype=np.float32)
    plus, minus = np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(0))
    return np.concatenate([middles, plus, minus, numbers, ends])


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_to_exponents(library: Library, rounding: str, saturate: bool) -> None:
    bits = np.arange(0, 0x7F900000, 0x1FFF8F, dtype=np.uint32)
    near = np.arange(0x3FFFF0, 0x400010, dtype=np.uint32)
    x = np.concatenate([np.abs(values_of("f32")), bits.view(np.float32), near.view(np.float32)])
    want = cast_array(x, TYPES["f8e8m0"], saturate=saturate, round_mode=rounding)
    got = library(f"cast_f32_f8e8m0_{rounding}" + ("" if saturate else "_nosat"), x)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


@pytest.mark.parametrize("name", [*FLOAT8, "f8e8m0"])
def test_from_float8(library: Library, name: str) -> None:
    codes = np.arange(256, dtype=np.uint8).view(TYPES[name])
    same(library(f"cast_{name}_f32", codes), codes.astype(np.float32))


def test_float4(library: Library) -> None:
    codes = np.arange(16, dtype=np.uint8).view(TYPES["f4e2m1"])
    same(library("cast_f4e2m1_f32", codes), codes.astype(np.float32))
    x = np.concatenate([values_of("f32"), np.linspace(-8, 8, 4097, dtype=np.float32)])
    got = library("cast_f32_f4e2m1", x).astype(np.float32)
    number = x == x
    same(got[number], x[number].astype(TYPES["f4e2m1"]).astype(np.float32))
    np.testing.assert_array_equal(got[~number], 0)


@pytest.mark.parametrize("name", ["i4", "u4", "i2", "u2"])
def test_packed_integers(library: Library, name: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, name.replace("i", "int").replace("u", "uint")))
    x = values_of("f32")
    want = cast_array(x, kind).astype(np.int8)
    np.testing.assert_array_equal(library(f"cast_f32_{name}", x).view(np.int8), want)
    held = np.unique(want)
    np.testing.assert_array_equal(library(f"cast_{name}_f32", held.view(TYPES[name])), held)


def test_every_pair_has_a_conversion() -> None:
    assert all(f"cast_{a}_{b}" in LOOPS for a in WIDE for b in WIDE)


CODES = {"f4e2m1": 16, "i4": 16, "u4": 16, "i2": 4, "u2": 4}
SPECIAL = sorted(
    (source, target, mode)
    for source in NUMPY_TYPES
    for target in NUMPY_TYPES
    for mode in cast_modes(source, target)
    if mode or source in NARROW or target in NARROW
)


@pytest.mark.parametrize(("source", "target", "mode"), SPECIAL)
def test_the_interpreter_agrees(library: Library, source: Dtype, target: Dtype, mode: str) -> None:
    """Narrow types, and conversions that mean something else than Cast."""
    codes = np.unique(values_of(source).view(f"u{TYPES[source].itemsize}"))
    codes = codes[: CODES.get(source, len(codes))]
    few = codes[:: max(1, len(codes) // 2000)].view(NUMPY_TYPES[source])
    convert = conversion(source, target, mode)
    with np.errstate(all="ignore"):
        want = np.array([convert(one) for one in few], NUMPY_TYPES[target])
    given = few.view(TYPES[source])
    got = library(f"cast_{source}_{target}" + (f"_{mode}" if mode else ""), given)
    same_bits = got.view(NUMPY_TYPES[target]).astype(want.dtype)
    np.testing.assert_array_equal(same_bits.astype(np.float64), want.astype(np.float64))
