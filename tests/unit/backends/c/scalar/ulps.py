"""How far float results are from the exact ones, in units in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

SMALLEST = 2.0**-149


def _python(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: np.array([function(value) for value in x.tolist()])


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


# In float64, whose own errors are below 1e-8 of a float32's last place.
EXACT: dict[str, Callable[[Any], Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": _python(math.erf),
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": _sigmoid,
    "sin": np.sin,
    "sinh": np.sinh,
    "softplus": lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


def samples(count: int, seed: int = 3) -> Any:
    """Bit patterns of all kinds, numbers of everyday size, neighbours of 0 and 1, and special values."""
    random = np.random.default_rng(seed)
    patterns = random.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    parts = [patterns]
    for low, high in ((-110, 110), (-10, 10), (-1, 1), (0.5, 1.5), (-1.01, -0.99), (-1e5, 1e5)):
        parts.append(random.uniform(low, high, count // 16).astype(np.float32))
    near_one = (np.float32(1).view(np.uint32) + np.arange(-2000, 2000)).astype(np.uint32)
    parts += [near_one.view(np.float32), SPECIAL]
    # Multiples of pi / 2, where sines and cosines are small.
    parts += [(np.arange(1, 50000) * (np.pi / 2)).astype(np.float32), NEAR_QUARTER_TURNS]
    return np.concatenate(parts)


# The floats nearest to a multiple of pi / 2, of all sizes and of the largest, by exhaustive search.
NEAR_QUARTER_TURNS = np.array(
    [
        *(0x1F37C8A * 2.0**71, 0x147D0FE * 2.0**10, 0x132EDE2 * 2.0**61, 0x1628D4C * 2.0**16),
        *(0x17B9B40 * 2.0**102, 0x17B9B40 * 2.0**103, 0x12CEB80 * 2.0**95, 0x1F99756 * 2.0**94),
    ],
    np.float32,
)
_PLAIN = (
    0.0,
    0.5,
    0.625,
    0.92,
    1.0,
    2.0,
    3.95,
    np.inf,
    np.nan,
    1.1754942e-38,
    1.1754944e-38,
    1e-45,
)
_LARGE = (
    16.635532,
    87.33655,
    88.72283,
    88.72284,
    89.41599,
    89.416,
    103.97,
    103.98,
    5.9e18,
    3.4028235e38,
)
SPECIAL = np.array([sign * value for value in _PLAIN + _LARGE for sign in (1, -1)], np.float32)


def ulp_errors(got: Any, exact: Any) -> Any:
    """|got - exact| in the last place of the float32 nearest to `exact`.

    Infinity counts as 2^128, the float that would come next. NaN must meet NaN.
    """
    assert got.dtype == np.float32
    assert exact.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    number = ~np.isnan(exact)
    top = 2.0**128
    wide = np.clip(exact[number], -top, top)
    mine = np.clip(got[number].astype(np.float64), -top, top)
    exponent = np.floor(np.log2(np.maximum(np.abs(wide), SMALLEST)))
    last_place = np.maximum(2.0 ** (np.minimum(exponent, 127.0) - 23.0), SMALLEST)
    return np.abs(mine - wide) / last_place
