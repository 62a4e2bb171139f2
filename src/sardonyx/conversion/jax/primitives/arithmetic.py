"""Division, remainders, powers, shifts and rounding, with JAX's own answers at their edges."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from sardonyx.conversion.jax.graph import dtype_of, is_known
from sardonyx.conversion.jax.table import Site, lowered, primitive

__all__: list[str] = []


def _without_zeros(site: Site, y: ir.Value) -> tuple[ir.Value, ir.Value | None]:
    """A divisor that is nowhere 0, and where it was; ONNX leaves integer division by 0 open."""
    graph = site.graph
    known = graph.known(y)
    if known is not None and known.all():
        return y, None
    zero = graph.op("Equal", y, graph.constant(0, like=y))
    return graph.op("Where", zero, graph.constant(1, like=y), y), zero


@primitive("div")
def divide(site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    """Integers truncate; by 0 they give -1 (all bits set)."""
    graph = site.graph
    if dtype_of(x).kind not in "iu":
        return _mean(site, x, y) or graph.op("Div", x, y)
    divisor, zero = _without_zeros(site, y)
    quotient = graph.op("Div", x, divisor)
    if zero is None:
        return quotient
    ones = graph.constant(np.iinfo(dtype_of(x)).max if dtype_of(x).kind == "u" else -1, like=x)
    return graph.op("Where", zero, ones, quotient)


def _mean(site: Site, x: ir.Value, y: ir.Value) -> ir.Value | None:
    """A sum divided by how many it is of."""
    graph, node, count = site.graph, x.producer(), site.graph.known(y)
    if node is None or node.op_type != "ReduceSum" or count is None or count.size != 1:
        return None
    summed, axes = node.inputs
    shape = None if summed is None else summed.shape
    reduced = None if axes is None else graph.known(axes)
    if shape is None or reduced is None:
        return None
    sizes: list[Any] = [shape[int(axis)] for axis in reduced]
    if not is_known(sizes) or math.prod(sizes) != float(count.reshape(())):
        return None
    return graph.op("ReduceMean", summed, axes, keepdims=node.attributes["keepdims"].as_int())


@primitive("rem")
def remainder(site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    """Of the dividend's sign; an integer by 0 is left as it is."""
    graph = site.graph
    if dtype_of(x).kind not in "iu":
        return graph.op("Mod", x, y, fmod=1)
    divisor, zero = _without_zeros(site, y)
    rest = graph.op("Mod", x, divisor, fmod=1)
    return rest if zero is None else graph.op("Where", zero, x, rest)


@primitive("integer_pow")
def integer_power(site: Site, x: ir.Value) -> ir.Value:
    """By squaring, as JAX does it."""
    graph, power = site.graph, abs(site.params["y"])
    made: ir.Value | None = None
    square = x
    while power:
        if power & 1:
            made = square if made is None else graph.op("Mul", made, square)
        power >>= 1
        if power:
            square = graph.op("Mul", square, square)
    one = graph.constant(1, like=x)
    if made is None:
        return graph.op("Expand", one, graph.sizes(site.outs[0].shape))
    return made if site.params["y"] > 0 else graph.op("Div", one, made)


@primitive("pow")
def power(site: Site, x: ir.Value, y: ir.Value) -> ir.Value:
    if dtype_of(x).kind in "iu" and dtype_of(x).itemsize < 4:
        raise site.refuse(f"ONNX has no powers of {dtype_of(x)}.", "Convert to int32 first.")
    return site.graph.op("Pow", x, site.graph.cast(y, dtype_of(x)))


@primitive("square")
def square(site: Site, x: ir.Value) -> ir.Value:
    return site.graph.op("Mul", x, x)


@primitive("rsqrt")
def inverse_root(site: Site, x: ir.Value) -> ir.Value:
    return site.graph.op("Reciprocal", site.graph.op("Sqrt", x))


@primitive("exp2")
def power_of_two(site: Site, x: ir.Value) -> ir.Value:
    return site.graph.op("Pow", site.graph.constant(2, like=x), x)


@lowered("cbrt")
def cube_root(x: Any, **_: Any) -> Any:
    root = jnp.power(jnp.abs(x), jnp.asarray(1 / 3, x.dtype))
    return jnp.where(x == 0, x, jnp.sign(x) * root)


@primitive("round")
def round_(site: Site, x: ir.Value) -> ir.Value:
    graph = site.graph
    if int(site.params["rounding_method"]) == 1:  # to even
        return graph.op("Round", x)
    size = graph.op("Abs", x)
    whole = graph.op("Floor", size)
    half = graph.constant(0.5, like=x)
    up = graph.op("GreaterOrEqual", graph.op("Sub", size, whole), half)
    rounded = graph.op("Add", whole, graph.cast(up, dtype_of(x)))
    return graph.op("Mul", graph.op("Sign", x), rounded)


@lowered("nextafter")
def next_after(x: Any, y: Any) -> Any:
    """The neighbour of x in the direction of y, by counting in its bits."""
    kind = {2: jnp.int16, 4: jnp.int32, 8: jnp.int64}[x.dtype.itemsize]
    bits = lax.bitcast_convert_type(x, kind)
    lowest = jnp.asarray(np.iinfo(kind).min, kind)
    step = jnp.where((x < y) == (x > 0), 1, -1).astype(kind)
    from_zero = jnp.where(y > 0, jnp.asarray(1, kind), lowest + 1)
    moved = jnp.where(x == 0, from_zero, bits + step)
    moved = lax.bitcast_convert_type(moved, x.dtype)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), x + y, jnp.where(x == y, y, moved))


# ---------------------------------------------------------------- shifts


def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"uint{8 * dtype.itemsize}")


def _logical_shift(site: Site, x: ir.Value, by: ir.Value, direction: str) -> ir.Value:
    """BitShift has unsigned integers alone before opset 28; past the width nothing is left."""
    graph, own = site.graph, dtype_of(x)
    unsigned = _unsigned(own)
    count = graph.cast(by, unsigned)
    width = 8 * own.itemsize
    known = graph.known(count)
    inside = known is not None and bool((known < width).all())
    bits = graph.cast(x, unsigned)
    shifted = graph.op("BitShift", bits, count, direction=direction)
    if not inside:
        short = graph.op("Less", count, graph.constant(width, like=count))
        shifted = graph.op("Where", short, shifted, graph.constant(0, like=bits))
    return graph.cast(shifted, own)


@primitive("shift_left")
def shift_left(site: Site, x: ir.Value, by: ir.Value) -> ir.Value:
    return _logical_shift(site, x, by, "LEFT")


@primitive("shift_right_logical")
def shift_right(site: Site, x: ir.Value, by: ir.Value) -> ir.Value:
    return _logical_shift(site, x, by, "RIGHT")


@primitive("shift_right_arithmetic")
def shift_right_signed(site: Site, x: ir.Value, by: ir.Value) -> ir.Value:
    """x >> n of a negative x is ~(~x >> n)."""
    graph = site.graph
    if dtype_of(x).kind == "u":
        return _logical_shift(site, x, by, "RIGHT")
    negative = graph.op("Less", x, graph.constant(0, like=x))
    upright = graph.op("Where", negative, graph.op("BitwiseNot", x), x)
    shifted = _logical_shift(site, upright, by, "RIGHT")
    return graph.op("Where", negative, graph.op("BitwiseNot", shifted), shifted)


@lowered("population_count")
def population_count(x: Any) -> Any:
    total = jnp.zeros_like(x)
    for bit in range(8 * x.dtype.itemsize):
        total = total + (lax.shift_right_logical(x, jnp.asarray(bit, x.dtype)) & 1)
    return total


@lowered("clz")
def leading_zeros(x: Any) -> Any:
    found = jnp.zeros_like(x)
    still = jnp.ones_like(x)
    for bit in reversed(range(8 * x.dtype.itemsize)):
        still = still & (1 - (lax.shift_right_logical(x, jnp.asarray(bit, x.dtype)) & 1))
        found = found + still
    return found
