"""reduce_window: MaxPool and AveragePool over the axes that the window slides along, else slices combined."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from sardonyx.conversion.jax.graph import Dim, dtype_of, is_known
from sardonyx.conversion.jax.primitives.cumulative import elementwise_of
from sardonyx.conversion.jax.primitives.views import move_axes, reshape_to
from sardonyx.conversion.jax.table import Site, jaxpr_of, lowered, primitive, refused

__all__: list[str] = []

_MOST_PLACES = 512  # in a window that is written out
_MOST_SLIDING = 3  # axes that engines pool over


@primitive("reduce_window_max", "reduce_window_min", "reduce_window_sum")
def reduce_window(site: Site, x: ir.Value) -> ir.Value | list[ir.Value]:
    axes = _sliding(site)
    if not axes:
        return x
    spread = any(step != 1 for step in site.params["base_dilation"])
    floats = dtype_of(x).kind == "f" or dtype_of(x).name == "bfloat16"
    if spread or not floats or len(axes) > _MOST_SLIDING:
        return _written_out(site, x)
    return _pooled(site, x, axes)


def _sliding(site: Site) -> list[int]:
    params = site.params
    return [
        axis
        for axis in range(len(site.ins[0].shape))
        if (
            params["window_dimensions"][axis],
            params["window_strides"][axis],
            *params["padding"][axis],
            params["base_dilation"][axis],
        )
        != (1, 1, 0, 0, 1)
    ]


def _pooled(site: Site, x: ir.Value, axes: list[int]) -> ir.Value:
    """[the rest…, the axes of the window], the rest as the two axes that a pool has before it."""
    graph, params, shape = site.graph, site.params, site.ins[0].shape
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    order = (*rest, *axes)
    x = move_axes(graph, x, order)
    lead: tuple[Dim, ...] = tuple(shape[axis] for axis in rest)
    if len(rest) != 2:
        joined = (1, math.prod(lead)) if is_known(lead) else (1, _product(lead))
        x = reshape_to(graph, x, (*joined, *(shape[axis] for axis in axes)))
    kernel = [int(params["window_dimensions"][axis]) for axis in axes]
    steps = [int(params["window_strides"][axis]) for axis in axes]
    gaps = [int(params["window_dilation"][axis]) for axis in axes]
    lows = [params["padding"][axis][0] for axis in axes]
    highs = [params["padding"][axis][1] for axis in axes]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": steps, "dilations": gaps}
    total = site.name == "reduce_window_sum"
    if site.name == "reduce_window_min":
        x = graph.op("Neg", x)
    if _within_kernel(lows, highs, kernel):
        attributes["pads"] = [int(width) for width in (*lows, *highs)]
    else:
        filler = graph.constant(0 if total else -np.inf, like=x)
        x = graph.op("Pad", x, graph.sizes((0, 0, *lows, 0, 0, *highs)), filler)
    if total:
        mean = graph.op("AveragePool", x, count_include_pad=1, **attributes)
        made = graph.op("Mul", mean, graph.constant(math.prod(kernel), like=mean))
    else:
        made = graph.op("MaxPool", x, **attributes)
    if site.name == "reduce_window_min":
        made = graph.op("Neg", made)
    if len(rest) != 2:
        made = reshape_to(graph, made, tuple(site.outs[0].shape[axis] for axis in order))
    return move_axes(graph, made, np.argsort(order).tolist())


def _product(dims: tuple[Dim, ...]) -> Dim:
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


def _within_kernel(lows: list[Dim], highs: list[Dim], kernel: list[int]) -> bool:
    """Whether engines take the widths as they are: numbers, none below 0, and no window of padding alone."""
    if not is_known((*lows, *highs)):
        return False
    return all(0 <= w < k for widths in (lows, highs) for w, k in zip(widths, kernel, strict=True))


def _written_out(site: Site, x: ir.Value) -> list[ir.Value]:
    kinds: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
        "reduce_window_max": (lax.max, lambda d: -jnp.inf if d.kind == "f" else np.iinfo(d).min),
        "reduce_window_min": (lax.min, lambda d: jnp.inf if d.kind == "f" else np.iinfo(d).max),
        "reduce_window_sum": (lax.add, lambda d: 0),
    }
    combine, neutral = kinds[site.name]
    dtype = np.dtype(site.ins[0].dtype)
    if dtype == np.bool_:
        raise site.refuse("windows over truths are not written.", "Convert to int32 first.")
    if math.prod(site.params["window_dimensions"]) > _MOST_PLACES:
        raise site.refuse(f"a window of {dtype} has more than {_MOST_PLACES} places.")

    def compute(array: Any) -> Any:
        begin = jnp.asarray(neutral(dtype), dtype)
        return _slide((array,), (begin,), lambda a, b: (combine(a, b),), site.params)[0]

    return site.inline(jaxpr_of(compute, site.ins[0]), [x])


def _slide(arrays: Any, starts: Any, combine: Callable[..., Any], params: Any) -> Any:
    """Every place of the window in turn, as a strided part of the padded array."""
    widths = [
        (low, high, step - 1)
        for (low, high), step in zip(params["padding"], params["base_dilation"], strict=True)
    ]
    padded = [lax.pad(a, s, widths) for a, s in zip(arrays, starts, strict=True)]
    window, steps = params["window_dimensions"], params["window_strides"]
    gaps = params["window_dilation"]
    shape = padded[0].shape
    counts = [
        (size - ((w - 1) * gap + 1)) // step + 1
        for size, w, gap, step in zip(shape, window, gaps, steps, strict=True)
    ]
    found: Any = None
    for place in itertools.product(*(range(w) for w in window)):
        first = [p * gap for p, gap in zip(place, gaps, strict=True)]
        ends = [
            f + (count - 1) * step + 1 for f, count, step in zip(first, counts, steps, strict=True)
        ]
        parts = [lax.slice(a, first, ends, steps) for a in padded]
        begin = [jnp.broadcast_to(s, parts[0].shape) for s in starts]
        found = combine(*(found or begin), *parts)
    return found


@lowered("reduce_window")
def reduce_window_by(*operands: Any, jaxpr: Any, consts: Any, **params: Any) -> Any:
    """By a function of the user's own."""
    count = len(operands) // 2
    arrays, starts = operands[:count], operands[count:]
    return list(_slide(arrays, starts, elementwise_of(jaxpr), params))


refused(
    "it is a part of a gradient, which ONNX has no operator for.",
    "Convert the model's forward function.",
    "select_and_gather_add",
    "select_and_scatter",
    "select_and_scatter_add",
)
