"""Functions that ONNX has no operator for, by those that it has."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from sardonyx.conversion.jax.table import Site, jaxpr_of, lowered, primitive, refused

__all__: list[str] = []


@lowered("log1p")
def log1p(x: Any, **_: Any) -> Any:
    """log(u) * x / (u - 1) with u = 1 + x as rounded: what rounding took away is put back."""
    u = 1 + x
    gap = u - 1
    inside = (gap != 0) & jnp.isfinite(u)
    return jnp.where(
        inside, jnp.log(u) * (x / jnp.where(inside, gap, 1)), jnp.where(gap == 0, x, jnp.log(u))
    )


@lowered("expm1")
def expm1(x: Any, **_: Any) -> Any:
    """(u - 1) * x / log(u) with u = exp(x) as rounded."""
    u = jnp.exp(x)
    inside = (u != 1) & (u != 0) & jnp.isfinite(u)
    safe = jnp.where(inside, u, 2)
    return jnp.where(inside, (safe - 1) * (x / jnp.log(safe)), jnp.where(u == 1, x, u - 1))


@primitive("erfc")
def erfc(site: Site, x: ir.Value) -> ir.Value | list[ir.Value]:
    """1 - erf(x) where it is part of a GELU, which has no use for the digits of its tail; else with all of them."""
    graph = site.graph
    inner = _negated(x)
    if inner is not None:
        root, factor = inner
        turned = graph.op("Erf", graph.op("Mul", root, factor))
        return graph.op("Add", turned, graph.constant(1, like=x))
    return site.inline(jaxpr_of(_erfc, site.ins[0]), [x])


def _negated(x: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """y and 1 / sqrt(2) where x is their product negated, as jax.nn.gelu writes it."""
    product = x.producer()
    if product is None or product.op_type != "Mul":
        return None
    left, right = product.inputs
    negation = None if left is None else left.producer()
    if negation is None or negation.op_type != "Neg" or right is None or right.const_value is None:
        return None
    factor = right.const_value.numpy()
    inner = negation.inputs[0]
    if inner is None or factor.size != 1 or abs(float(factor) - math.sqrt(0.5)) > 4e-3:
        return None
    return inner, right


# Chebyshev coefficients of log(erfc(z)) + z², over t = 2 / (2 + z).
_ERFC = (
    -1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3,
    -9.46595344482036e-4, 3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5,
    -1.624290004647e-6, 1.303655835580e-6, 1.5626441722e-8, -8.5238095915e-8,
    6.529054439e-9, 5.059343495e-9, -9.91364156e-10, -2.27365122e-10,
    9.6467911e-11, 2.394038e-12, -6.886027e-12, 8.94487e-13,
    3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15,
)  # fmt: skip


def _erfc(x: Any) -> Any:
    z = jnp.abs(x)
    t = 2 / (2 + z)
    ty = 4 * t - 2
    d = dd = jnp.zeros_like(x)
    for coefficient in _ERFC[:0:-1]:
        d, dd = ty * d - dd + jnp.asarray(coefficient, x.dtype), d
    tail = t * jnp.exp(-z * z + 0.5 * (_ERFC[0] + ty * d) - dd)
    return jnp.where(z < 0.5, 1 - lax.erf(x), jnp.where(x > 0, tail, 2 - tail))


@lowered("erf_inv")
def erf_inv(y: Any) -> Any:
    """Giles' polynomials, and two steps of Newton where more digits are held."""
    w = -jnp.log((1 - y) * (1 + y))
    near, far = w - 2.5, jnp.sqrt(jnp.maximum(w, 5)) - 3
    p = q = jnp.zeros_like(y)
    for a, b in zip(_NEAR, _FAR, strict=True):
        p, q = p * near + jnp.asarray(a, y.dtype), q * far + jnp.asarray(b, y.dtype)
    x = jnp.where(w < 5, p, q) * y
    if y.dtype == jnp.float64:
        for _ in range(2):
            x = x - (lax.erf(x) - y) * (math.sqrt(math.pi) / 2) * jnp.exp(x * x)
    edge = jnp.abs(y) == 1
    return jnp.where(edge, y * jnp.asarray(jnp.inf, y.dtype), x)


_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip

_LANCZOS = (
    676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894, -176.61502916214059906584551354,
    12.507343278686904814458936853, -0.13857109526572011689554707,
    9.984369578019570859563e-6, 1.50563273514931155834e-7,
)  # fmt: skip


@lowered("lgamma")
def log_gamma(x: Any) -> Any:
    """Lanczos' sum, reflected below 1/2."""
    low = x < 0.5
    z = jnp.where(low, -x, x - 1)
    total = jnp.full_like(z, 0.99999999999980993227684700473478)
    for index, coefficient in enumerate(_LANCZOS):
        total = total + jnp.asarray(coefficient, x.dtype) / (z + (index + 1))
    t = z + 7.5
    log_t = math.log(7.5) + jnp.log1p(z / 7.5)
    upper = 0.5 * math.log(2 * math.pi) + (z + 0.5 - t / log_t) * log_t + jnp.log(total)
    part = jnp.abs(x) - jnp.floor(jnp.abs(x))
    part = jnp.minimum(part, 1 - part)
    sine = jnp.log(jnp.sin(math.pi * part))
    lower = jnp.where(jnp.isfinite(sine), math.log(math.pi) - sine - upper, -sine)
    found = jnp.where(low, lower, upper)
    return jnp.where(jnp.isinf(x), jnp.asarray(jnp.inf, x.dtype), found)


@lowered("digamma")
def digamma(x: Any) -> Any:
    """Raised to 8 and above by its recurrence, then the asymptotic series; reflected below 1/2."""
    low = x < 0.5
    z = jnp.where(low, 1 - x, x)
    shift = jnp.zeros_like(z)
    for _ in range(8):
        small = z < 8
        shift = shift + jnp.where(small, 1 / z, 0)
        z = jnp.where(small, z + 1, z)
    w = 1 / (z * z)
    series = jnp.zeros_like(z)
    for term in (1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = (series + term) * w
    value = jnp.log(z) - 0.5 / z - series - shift
    turned = value - math.pi / jnp.tan(math.pi * (x - jnp.floor(x)))
    pole = low & (x == jnp.floor(x))
    return jnp.where(pole, jnp.asarray(jnp.nan, x.dtype), jnp.where(low, turned, value))


@lowered("atan2")
def atan2(y: Any, x: Any) -> Any:
    """The quadrants of atan, with C's answers for zeros of either sign and infinities."""
    down = (y < 0) | ((y == 0) & (1 / y < 0))
    left = (x < 0) | ((x == 0) & (1 / x < 0))
    both = jnp.isinf(x) & jnp.isinf(y)
    ratio = jnp.where(both, 1, jnp.abs(y) / jnp.abs(x))
    angle = jnp.where((x == 0) & (y == 0), 0, jnp.arctan(ratio))
    angle = jnp.where(left, np.pi - angle, angle)
    return jnp.where(down, -angle, angle)


refused(
    "ONNX has no such function, and no short sum of others gives it.",
    "Compute it outside of the model, or write an approximation of your own with jax.numpy.",
    "bessel_i0e",
    "bessel_i1e",
    "igamma",
    "igammac",
    "igamma_grad_a",
    "polygamma",
    "random_gamma_grad",
    "regularized_incomplete_beta",
    "zeta",
)
