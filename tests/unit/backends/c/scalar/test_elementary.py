"""Elementary functions keep the errors that docs/numerics.md states."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.unit.backends.c.scalar.harness import Library
from tests.unit.backends.c.scalar.ulps import EXACT, SPECIAL, samples, ulp_errors

ROUNDED_ONCE = 0.501
SMALLEST_NORMAL = 2.0**-126
LIMITS = {
    **dict.fromkeys(EXACT, ROUNDED_ONCE),
    "erf": 1.3,
    "exp": 0.9,
    "expm1": 1.6,
    "log": 0.9,
    "log1p": 1.5,
    "rsqrt": 1.5,
    "sigmoid": 2.6,
    "softplus": 1.8,
    "tanh": 2.0,
}


@functools.cache
def numbers() -> Any:
    return samples(1 << 20)


@functools.cache
def exact(name: str) -> Any:
    return EXACT[name](numbers().astype(np.float64))


@pytest.mark.parametrize("name", EXACT)
def test_error_of_float32_function(library: Library, name: str) -> None:
    got, want = library(f"{name}_f32", numbers()), exact(name)
    if name == "sigmoid":
        assert (got[want < SMALLEST_NORMAL] <= SMALLEST_NORMAL).all()
        want = np.where(want < SMALLEST_NORMAL, got, want)
    errors = ulp_errors(got, want)
    assert errors.max() <= LIMITS[name]
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


@pytest.mark.parametrize("name", EXACT)
def test_special_values_are_those_of_ieee(library: Library, name: str) -> None:
    """Zeros with their signs, infinities and NaN, exactly; overflow at the same number."""
    want = EXACT[name](SPECIAL.astype(np.float64)).astype(np.float32)
    got = library(f"{name}_f32", SPECIAL)
    fixed = ~np.isfinite(want) | (want == 0) | np.isin(want, [1.0, -1.0])
    np.testing.assert_array_equal(got[fixed], want[fixed])
    np.testing.assert_array_equal(
        np.signbit(got[fixed & ~np.isnan(want)]), np.signbit(want[fixed & ~np.isnan(want)])
    )
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def share_by_erf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def share_by_tanh(x: float) -> float:
    return 1 / (1 + math.exp(-math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    ("suffix", "flat", "of_x"), [("", 0.0, 2.0**-22), ("_coarse", 2.0**-16.7, 0.0)]
)
@pytest.mark.parametrize(("kind", "share"), [("gelu", share_by_erf), ("gelu_tanh", share_by_tanh)])
def test_error_of_gelu(
    library: Library,
    kind: str,
    share: Callable[[float], float],
    suffix: str,
    flat: float,
    of_x: float,
) -> None:
    """Beside that of one rounding; the coarse one is for what is rounded to bytes."""
    x = np.concatenate([np.linspace(-12, 12, 1 << 18), [-1e30, 1e30, -0.0, 5.0, -5.0, 6.0, -6.0]])
    x = np.concatenate([x, np.geomspace(1e-38, 1, 1 << 12)]).astype(np.float32)
    name = kind + suffix
    cut = np.clip(x.astype(np.float64), -15, 15)
    want = np.array([v * share(v) for v in cut])
    want = np.where(x > 12, x, want)
    error = np.abs(library(f"{name}_f32", x) - want)
    assert np.all(error <= flat + np.minimum(np.abs(x), 6) * of_x + np.abs(want) * 2.0**-24)
    ends = library(f"{name}_f32", np.array([np.inf, -np.inf, np.nan], np.float32))
    assert ends[0] == np.inf
    assert abs(ends[1]) <= max(flat, 1e-30)
    assert np.isnan(ends[2])


def test_error_of_a_softmaxs_weights(library: Library) -> None:
    x = -np.concatenate([np.linspace(0, 110, 1 << 18), [1e30, np.inf]]).astype(np.float32)
    want = np.exp(x.astype(np.float64))
    got = library("exp_weight_f32", x)
    ordinary = want >= SMALLEST_NORMAL
    assert ulp_errors(got[ordinary], want[ordinary]).max() <= 1.6
    assert (got[~ordinary] <= SMALLEST_NORMAL).all()
    assert (got[x < -88] == 0).all()
    assert np.isnan(library("exp_weight_f32", np.array([np.nan], np.float32))).all()


def test_error_of_tanh_of_float64(library: Library) -> None:
    random = np.random.default_rng(5)
    parts = [np.exp(random.uniform(-40, 4, 1 << 17)), random.uniform(0, 2, 1 << 17)]
    x = np.concatenate([*parts, [0.0, 5e-324, 1e-310, 19.0, 1e300, np.inf]])
    x = np.concatenate([x, -x])
    got, want = library("tanh_f64", x), np.tanh(x.astype(np.longdouble))
    assert (np.abs(got - want) <= 2 * np.spacing(np.abs(want.astype(np.float64)))).all()
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    assert (got[np.isinf(x)] == np.sign(x[np.isinf(x)])).all()
    assert np.isnan(library("tanh_f64", np.array([np.nan]))).all()


def powers() -> tuple[Any, Any]:
    random = np.random.default_rng(7)
    bases = np.concatenate([samples(1 << 17), random.uniform(0, 4, 1 << 18).astype(np.float32)])
    exponents = random.permutation(bases)
    exponents[::3] = random.uniform(-10, 10, exponents[::3].size)
    exponents[1::5] = np.rint(random.uniform(-30, 30, exponents[1::5].size))
    bases[::2] = np.abs(bases[::2])
    base, exponent = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    return np.concatenate([bases, base]), np.concatenate([exponents, exponent])


def test_powers(library: Library) -> None:
    x, y = powers()
    want = np.power(x.astype(np.float64), y.astype(np.float64))
    got = library("pow_f32", x, y)
    assert ulp_errors(got, want).max() <= ROUNDED_ONCE
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


def test_whole_powers_are_exact(library: Library) -> None:
    x = np.arange(-200, 201, dtype=np.float32)
    for power in (0, 1, 2, 3):
        np.testing.assert_array_equal(library("pow_f32", x, np.float32(power)), x**power)


@pytest.mark.parametrize("name", EXACT)
def test_float64_functions_are_the_librarys(library: Library, name: str) -> None:
    """numpy's own float64 functions may be off by 4 units in the last place."""
    x = np.concatenate([np.random.default_rng(1).normal(0, 3, 4096), SPECIAL.astype(np.float64)])
    want = EXACT[name](x)
    np.testing.assert_allclose(library(f"{name}_f64", x), want, rtol=1e-15, atol=0)


def test_float64_powers(library: Library) -> None:
    x, y = (array.astype(np.float64)[:: 1 << 4] for array in powers())
    want = np.power(x, y)
    np.testing.assert_allclose(library("pow_f64", x, y), want, rtol=1e-15, atol=0)
