"""What opsets before 7 did otherwise: broadcasting one-sided, asked for by attribute and axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator
from sardonyx.backends.reference.corrections.arithmetic import divide, raise_to
from sardonyx.backends.reference.corrections.pointwise import larger, smaller
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_REASON = "before opset 7 the second input broadcasts by the attributes `broadcast` and `axis`"

_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": divide,
    "Pow": raise_to,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "Less": np.less,
}


@corrects(*_OPERATIONS, until=6, reason=_REASON)
def binary(call: Call, a: Array, b: Array) -> Array:
    return _OPERATIONS[call.operator.name](a, aligned(call, a, b))


def aligned(call: Call, a: Array, b: Array) -> Array:
    """The second input with dimensions of 1, so that numpy's rule gives the old one."""
    if not call.attr("broadcast", 0):
        if a.shape != b.shape:
            raise RunError(
                f"shapes {list(a.shape)} and {list(b.shape)} differ and broadcast is not set",
                value=b.shape,
                limit=a.shape,
                hint="Set broadcast = 1, or convert the model to opset 7 or later.",
            )
        return b
    if b.size == 1:
        return b.reshape((1,) * a.ndim)
    axis = int(call.attr("axis", a.ndim - b.ndim))
    axis = axis + a.ndim if axis < 0 else axis
    part = a.shape[axis : axis + b.ndim] if axis >= 0 else ()
    # A dimension of 1 stretches here too: torch 0.3 exported it so, and the official suite has it.
    if len(part) != b.ndim or any(n not in (1, m) for n, m in zip(b.shape, part, strict=True)):
        raise RunError(
            f"shape {list(b.shape)} is no part of {list(a.shape)} from axis {axis}",
            value=b.shape,
            limit=a.shape,
        )
    return b.reshape((*b.shape, *[1] * (a.ndim - axis - b.ndim)))


@corrects("Clip", until=6, reason="bounds are attributes, and opset 1 has no default for them")
def clip(call: Call, x: Array) -> Array:
    low, high = call.attr("min"), call.attr("max")
    found = x if low is None else larger(x, np.asarray(low, x.dtype))
    return found if high is None else smaller(found, np.asarray(high, x.dtype))


@corrects("PRelu", reason="slope broadcasts one way; before opset 7 it runs over channels")
def prelu(call: Call, x: Array, slope: Array) -> Array:
    if call.since < 7 and slope.size > 1 and slope.ndim == 1:
        slope = slope.reshape((-1, *[1] * (x.ndim - 2)))
    if np.broadcast_shapes(x.shape, slope.shape) != x.shape:
        raise RunError(
            f"slope {list(slope.shape)} does not broadcast to {list(x.shape)}",
            value=slope.shape,
            limit=x.shape,
        )
    return np.where(x < 0, x * slope, x)


@corrects("Gemm", reason="C broadcasts one way; before opset 7 only if asked; alpha keeps the type")
def gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    small = a.dtype.kind not in "iu"
    wide_a, wide_b = (accumulator(a), accumulator(b)) if small else (a, b)
    left = wide_a.T if call.attr("transA", 0) else wide_a
    right = wide_b.T if call.attr("transB", 0) else wide_b
    product = left @ right
    alpha, beta = call.attr("alpha", 1.0), call.attr("beta", 1.0)
    if alpha != 1.0:
        product = _scaled(product, alpha)
    if c is None or beta == 0.0:
        return product.astype(a.dtype, copy=False)
    if call.since < 7 and not call.attr("broadcast", 0) and c.shape != product.shape:
        raise RunError(
            f"C has shape {list(c.shape)}, the product {list(product.shape)}; broadcast is not set",
            value=c.shape,
            limit=product.shape,
        )
    if np.broadcast_shapes(c.shape, product.shape) != product.shape:
        raise RunError(
            f"C {list(c.shape)} does not broadcast to {list(product.shape)}",
            value=c.shape,
            limit=product.shape,
        )
    addend = c.astype(product.dtype, copy=False)
    total = product + (addend if beta == 1.0 else _scaled(addend, beta))
    return total.astype(a.dtype, copy=False)


def _scaled(array: Array, factor: float) -> Array:
    if array.dtype.kind in "iu":
        return np.trunc(array * factor).astype(array.dtype)
    return array * np.asarray(factor, dtype=array.dtype)
