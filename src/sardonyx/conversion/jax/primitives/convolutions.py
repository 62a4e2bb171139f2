"""conv_general_dilated: Conv, and ConvTranspose where the input is spread out."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import Dim, Graph, dtype_of, is_known
from sardonyx.conversion.jax.primitives.views import move_axes, reshape_to, slice_axes
from sardonyx.conversion.jax.table import Site, primitive

__all__: list[str] = []


@primitive("conv_general_dilated")
def convolve(site: Site, x: ir.Value, weights: ir.Value) -> ir.Value:
    """In ONNX's order of axes [batch, channels, …], whichever the user has; a Transpose that undoes it is cleaned away."""
    graph, params = site.graph, site.params
    numbers = params["dimension_numbers"]
    if params["batch_group_count"] != 1:
        raise site.refuse(
            "convolutions of batch groups (gradients of weights) have no operator in ONNX."
        )
    out = np.dtype(site.outs[0].dtype)
    kind = out if out.kind == "f" or out.name == "bfloat16" else np.dtype(np.float64)
    if out.kind in "iu" and out.itemsize > 4:
        raise site.refuse(f"ONNX has no convolutions of {out}.", "Convert to float64 first.")
    x = move_axes(graph, graph.cast(x, kind), numbers.lhs_spec)
    weights = move_axes(graph, graph.cast(weights, kind), numbers.rhs_spec)
    sizes = [int(site.ins[1].shape[axis]) for axis in numbers.rhs_spec]
    if any(step != 1 for step in params["lhs_dilation"]):
        made = _transposed(site, x, weights, sizes)
    else:
        made = _plain(site, x, weights, sizes)
    back = np.argsort(numbers.out_spec).tolist()
    return graph.cast(move_axes(graph, made, back), out)


def _plain(site: Site, x: ir.Value, weights: ir.Value, sizes: list[int]) -> ir.Value:
    graph, params = site.graph, site.params
    lows, highs = [p[0] for p in params["padding"]], [p[1] for p in params["padding"]]
    attributes: dict[str, Any] = {}
    if not is_known((*lows, *highs)) or min(*lows, *highs, 0) < 0:
        x = graph.op("Pad", x, graph.sizes((0, 0, *lows, 0, 0, *highs)), graph.constant(0, like=x))
    elif lows:
        attributes["pads"] = [int(width) for width in (*lows, *highs)]
    if lows:
        attributes["strides"] = [int(step) for step in params["window_strides"]]
        attributes["dilations"] = [int(step) for step in params["rhs_dilation"]]
        attributes["kernel_shape"] = sizes[2:]
        return graph.op("Conv", x, weights, group=int(params["feature_group_count"]), **attributes)
    # Without any axis to slide along it is a product: an axis of one element is lent.
    x, weights = (graph.op("Unsqueeze", v, graph.constant([2], np.int64)) for v in (x, weights))
    made = graph.op("Conv", x, weights, group=int(params["feature_group_count"]))
    return graph.op("Squeeze", made, graph.constant([2], np.int64))


def _transposed(site: Site, x: ir.Value, weights: ir.Value, sizes: list[int]) -> ir.Value:
    """Weights turned round, and inputs and outputs of each group exchanged: [out, in / groups, …] → [in, out / groups, …]."""
    graph, params = site.graph, site.params
    groups = int(params["feature_group_count"])
    spans = [d * (k - 1) for d, k in zip(params["rhs_dilation"], sizes[2:], strict=True)]
    axes = list(range(2, len(sizes)))
    count, lowest = len(axes), int(np.iinfo(np.int64).min)
    turned = slice_axes(graph, weights, axes, [-1] * count, [lowest] * count, [-1] * count)
    out, inside = sizes[0], sizes[1]
    if groups > 1:
        turned = reshape_to(graph, turned, (groups, out // groups, inside, *sizes[2:]))
        turned = move_axes(graph, turned, (0, 2, 1, *(axis + 1 for axis in axes)))
        turned = reshape_to(graph, turned, (groups * inside, out // groups, *sizes[2:]))
    else:
        turned = move_axes(graph, turned, (1, 0, *axes))
    made = graph.op(
        "ConvTranspose",
        x,
        turned,
        group=groups,
        strides=[int(step) for step in params["lhs_dilation"]],
        dilations=[int(step) for step in params["rhs_dilation"]],
        kernel_shape=sizes[2:],
    )
    # That is the whole spread; JAX's padding says how much of it stays, zeros included beyond it.
    lows = [p[0] - span for p, span in zip(params["padding"], spans, strict=True)]
    highs = [p[1] - span for p, span in zip(params["padding"], spans, strict=True)]
    made = _cut(graph, made, lows, highs)
    steps = [int(step) for step in params["window_strides"]]
    if set(steps) == {1}:
        return made
    ends = [int(np.iinfo(np.int64).max)] * count
    return slice_axes(graph, made, axes, [0] * count, ends, steps)


def _cut(graph: Graph, x: ir.Value, lows: list[Dim], highs: list[Dim]) -> ir.Value:
    producer = x.producer()
    if is_known((*lows, *highs)) and max(*lows, *highs) <= 0 and producer is not None:
        pads = [-int(width) for width in (*lows, *highs)]
        producer.attributes["pads"] = ir.AttrInt64s("pads", pads)
        return x
    zero = graph.constant(0, dtype_of(x))
    return graph.op("Pad", x, graph.sizes((0, 0, *lows, 0, 0, *highs)), zero)
