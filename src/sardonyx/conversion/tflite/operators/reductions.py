"""Reductions, orders and sums along an axis."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.table import Site, operator

__all__: list[str] = []

_KINDS = {
    "MEAN": "ReduceMean",
    "SUM": "ReduceSum",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd",
}


@operator(*_KINDS)
def reduce(site: Site) -> ir.Value:
    axes = site.constant(1, "the list of axes").reshape(-1)
    kept = int(bool(site.option("keep_dims")))
    # No axes at all: the input as it is.
    return site.graph.op(
        _KINDS[site.operator.kind],
        site.real(0),
        site.graph.constant(axes, np.int64),
        keepdims=kept,
        noop_with_empty_axes=1,
    )


@operator("REDUCE_ANY", "REDUCE_ALL")
def reduce_truths(site: Site) -> ir.Value:
    graph, axes = site.graph, site.constant(1, "the list of axes").reshape(-1)
    kind = "ReduceMax" if site.operator.kind == "REDUCE_ANY" else "ReduceMin"
    numbers = graph.cast(site.raw(0), np.int32)
    where = graph.constant(axes, np.int64)
    kept = int(bool(site.option("keep_dims")))
    made = graph.op(kind, numbers, where, keepdims=kept, noop_with_empty_axes=1)
    return graph.cast(made, np.bool_)


@operator("ARG_MAX", "ARG_MIN")
def place_of_largest(site: Site) -> ir.Value:
    axis = int(site.constant(1, "the axis").reshape(-1)[0])
    kind = "ArgMax" if site.operator.kind == "ARG_MAX" else "ArgMin"
    x = site.raw(0)
    if site.tensor(0).dtype.kind == "b":
        x = site.graph.cast(x, np.uint8)
    made = site.graph.op(kind, x, axis=axis, keepdims=0)
    return site.graph.cast(made, site.outputs[0].dtype)


@operator("TOPK_V2", moving=True)
def top(site: Site) -> list[ir.Value]:
    graph = site.graph
    count = graph.op("Reshape", graph.numbers(site.raw(1)), graph.constant([1], np.int64))
    values, places = graph.node("TopK", [site.raw(0), count], 2, axis=-1)
    return [values, graph.cast(places, site.outputs[1].dtype)]


@operator("CUMSUM")
def running_sum(site: Site) -> ir.Value:
    axis = site.constant(1, "the axis").reshape(())
    return site.graph.op(
        "CumSum",
        site.real(0),
        site.graph.constant(axis, np.int64),
        exclusive=int(bool(site.option("exclusive"))),
        reverse=int(bool(site.option("reverse"))),
    )
