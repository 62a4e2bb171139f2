"""Operations that have one right answer: integers, booleans, and floats that are only rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.backends.c.scalar.harness import LOOPS, TYPES, Library, corners
from tests.unit.backends.c.scalar.ulps import samples

from sardonyx.loops.operations import FLOATS, INTEGERS
from sardonyx.loops.scalars import function

INTEGER_LOOPS = [
    loop
    for loop in LOOPS.values()
    if loop.takes[0] in INTEGERS and not loop.name.startswith("cast")
]


def every_pair(left: Any, right: Any) -> tuple[Any, Any]:
    a, b = np.meshgrid(left, right)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("loop", INTEGER_LOOPS, ids=lambda loop: loop.name)
def test_integers_as_the_kernel_language_defines_them(library: Library, loop: Any) -> None:
    """All pairs of 8 bits; of the wider types, the neighbours of the powers of two."""
    op, dtype = loop.name.split("_")
    values = corners(dtype)
    if len(loop.takes) == 1:
        arrays = [values]
    elif values.itemsize == 1:
        arrays = list(every_pair(values, values))
    else:
        ends = np.iinfo(values.dtype)
        few = [
            0,
            1,
            2,
            3,
            5,
            7,
            8,
            31,
            32,
            63,
            64,
            255,
            ends.min,
            ends.min + 1,
            ends.max,
            ends.max - 1,
        ]
        few += [-1, -2, -3, -7] if ends.min < 0 else []
        arrays = list(every_pair(values, np.array(few, values.dtype)))
    meaning = function(op, dtype)  # type: ignore[arg-type]
    want = [meaning(*items) for items in zip(*(array.tolist() for array in arrays), strict=True)]
    np.testing.assert_array_equal(library(loop.name, *arrays), np.array(want, values.dtype))


@pytest.mark.parametrize("op", ["and", "or", "xor", "eq"])
def test_booleans_of_two(library: Library, op: str) -> None:
    """Any byte but 0 is true."""
    a, b = every_pair(np.array([0, 1, 2, 255], np.uint8), np.array([0, 1, 2, 255], np.uint8))
    want = {
        "and": np.logical_and,
        "or": np.logical_or,
        "xor": np.logical_xor,
        "eq": lambda a, b: (a != 0) == (b != 0),
    }[op](a, b)
    got = library(f"{op}_bool", a.view(np.bool_), b.view(np.bool_))
    np.testing.assert_array_equal(got.view(np.uint8), want.astype(np.uint8))


def test_not_of_a_boolean(library: Library) -> None:
    a = np.array([0, 1, 2, 255], np.uint8)
    np.testing.assert_array_equal(
        library("not_bool", a.view(np.bool_)).view(np.uint8), [1, 0, 0, 0]
    )


UNARY = {
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "neg": np.negative,
    "round": np.rint,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "trunc": np.trunc,
}


def float_values(dtype: str) -> Any:
    halves = np.arange(-20, 21) / 2
    return np.concatenate([halves, samples(1 << 14), corners("f32")]).astype(TYPES[dtype])


def assert_same(got: Any, want: Any) -> None:
    """Equal, NaN for NaN, and zeros of the same sign."""
    np.testing.assert_array_equal(got, want)
    number = want == want
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


@pytest.mark.parametrize("dtype", sorted(FLOATS))
@pytest.mark.parametrize("op", UNARY)
def test_rounded_once(library: Library, op: str, dtype: str) -> None:
    x = float_values(dtype)
    want = UNARY[op](x)
    got = library(f"{op}_{dtype}", x)
    if want.dtype == np.bool_:
        np.testing.assert_array_equal(got, want)
    else:
        assert_same(got, want)


@pytest.mark.parametrize("dtype", sorted(FLOATS))
@pytest.mark.parametrize("op", ["max", "min", "fmod", "mod"])
def test_floats_of_two(library: Library, op: str, dtype: str) -> None:
    few = np.array([0.0, -0.0, 1, -1, 2.5, -2.5, 1e-40, np.inf, -np.inf, np.nan, 3e38])
    a, b = every_pair(float_values(dtype)[:: 1 << 4], few.astype(TYPES[dtype]))
    ends = every_pair(few.astype(TYPES[dtype]), few.astype(TYPES[dtype]))
    a, b = np.concatenate([a, ends[0]]), np.concatenate([b, ends[1]])
    want = {
        # numpy leaves the sign of max(+0, -0) open
        "max": lambda: np.where((a == 0) & (b == 0), a + b, np.maximum(a, b)),
        "min": lambda: np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b)),
        "fmod": lambda: np.fmod(a, b),
        "mod": lambda: np.remainder(a, b),
    }[op]()
    assert_same(library(f"{op}_{dtype}", a, b), want)
