"""Pointwise operators that crawl, round too early or break on broadcasting elsewhere."""

from __future__ import annotations

import math
from functools import cache, reduce

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_TERMS = 8
_STEPS = 64  # table entries a unit; the distance to the nearest is at most 1 / 128
_REACH = 6.0  # erf is 1 to the last bit of a double beyond it


@cache
def _erf_table() -> Array:
    """Taylor coefficients of erf around k / 64, lowest first: [term, k].

    The n-th derivative of erf at x is 2/√π · (-1)^(n-1) · H_(n-1)(x) · exp(-x²).
    """
    places = np.arange(int(_REACH * _STEPS) + 2) / _STEPS
    table = np.zeros((_TERMS + 1, len(places)))
    table[0] = [math.erf(place) for place in places]
    slope = 2 / math.sqrt(math.pi) * np.exp(-(places**2))
    previous, hermite = np.zeros_like(places), np.ones_like(places)
    for order in range(1, _TERMS + 1):
        table[order] = slope * hermite * (-1) ** (order - 1) / math.factorial(order)
        previous, hermite = hermite, 2 * places * hermite - 2 * (order - 1) * previous
    return table


def erf(x: Array) -> Array:
    """erf in float64: math.erf at the nearest 1/64, and the series from there.

    Within 2e-16 for float64; narrower types need fewer terms to be exact.
    """
    table = _erf_table()
    terms = _TERMS if x.dtype.itemsize > 4 else _TERMS // 2
    size = np.minimum(np.abs(x.astype(np.float64)), _REACH)
    nearest = np.rint(np.nan_to_num(size) * _STEPS).astype(np.int64)
    distance = size - nearest / _STEPS
    total = np.take(table[terms], nearest)
    for order in range(terms - 1, -1, -1):
        total *= distance
        total += np.take(table[order], nearest)
    return np.copysign(total, x)


@corrects("Erf", reason="vectorised, for every type")
def erf_node(call: Call, x: Array) -> Array:
    return erf(x).astype(x.dtype)


@corrects("Softsign", reason="a scalar has an answer too")
def softsign(call: Call, x: Array) -> Array:
    return np.asarray(x / (1 + np.abs(x)), dtype=x.dtype)


@corrects("Gelu", reason="one step instead of a function of eight nodes, without early rounding")
def gelu(call: Call, x: Array) -> Array:
    wide = x.astype(np.float64)
    if call.attr("approximate", "none") == "tanh":
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        return (0.5 * wide * (1 + np.tanh(inner))).astype(x.dtype)
    inner = x * x.dtype.type(math.sqrt(0.5)) if x.dtype == np.float32 else wide * math.sqrt(0.5)
    return (0.5 * wide * (1 + erf(inner))).astype(x.dtype)


def larger(a: Array, b: Array) -> Array:
    """The larger of two, elementwise; +0 is above -0, whatever the CPU says of a tie."""
    found = np.maximum(a, b)
    if found.dtype.kind in "iub":
        return np.asarray(found)
    return np.where((a == 0) & (b == 0), a + b, found)  # -0 only where both are


def smaller(a: Array, b: Array) -> Array:
    """The smaller of two, elementwise; -0 is below +0."""
    found = np.minimum(a, b)
    if found.dtype.kind in "iub":
        return np.asarray(found)
    return np.where((a == 0) & (b == 0), -((-a) + (-b)), found)


@corrects("Clip", since=11, reason="+0 is above -0: a zero leaves with the sign of its limit")
def clip(call: Call, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    found = x if low is None else larger(x, low)
    return (found if high is None else smaller(found, high)).astype(x.dtype, copy=False)


@corrects(
    "Sum", "Mean", "Max", "Min", reason="any number of inputs, each broadcasting with the rest"
)
def variadic(call: Call, *inputs: Array) -> Array:
    dtypes = {value.dtype for value in inputs}
    if len(dtypes) != 1:
        raise RunError(f"the inputs have different types: {sorted(map(str, dtypes))}")
    name, dtype = call.operator.name, inputs[0].dtype
    if name in ("Max", "Min"):
        return reduce(larger if name == "Max" else smaller, inputs)
    total = reduce(np.add, [accumulator(value) for value in inputs])
    return (total if name == "Sum" else total / len(inputs)).astype(dtype)


@corrects("MatMul", reason="small floats are summed in float32; integers are exact")
def matmul(call: Call, a: Array, b: Array) -> Array:
    if a.dtype != b.dtype:
        raise RunError(f"A is {a.dtype} and B is {b.dtype}")
    small = a.dtype.kind not in "iu"
    left, right = (accumulator(a), accumulator(b)) if small else (a, b)
    return np.asarray(np.matmul(left, right)).astype(a.dtype, copy=False)


@corrects("Einsum", reason="no intermediate is larger than the inputs and the output")
def einsum(call: Call, *inputs: Array) -> Array:
    equation = call.attr("equation").replace(" ", "")
    small = inputs[0].dtype.kind not in "iu"
    operands = [accumulator(value) for value in inputs] if small else list(inputs)
    most = max((value.size for value in inputs), default=1)
    result = np.einsum(equation, *operands, optimize=("greedy", max(most, 1)))
    return np.asarray(result).astype(inputs[0].dtype, copy=False)


@corrects("Det", reason="the answer has the input's type, also for no matrices at all")
def det(call: Call, x: Array) -> Array:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise RunError(f"shape {list(x.shape)} has no square matrices", value=x.shape)
    return np.asarray(np.linalg.det(accumulator(x))).astype(x.dtype)
