"""sort and top_k by TopK: equal elements keep their order, and a NaN is the largest of all."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import Graph, dtype_of
from sardonyx.conversion.jax.table import Site, primitive

__all__: list[str] = []


def _ordered(
    graph: Graph, key: ir.Value, count: ir.Value, axis: int, largest: bool
) -> tuple[ir.Value, ir.Value]:
    """The elements in order, and where they stood."""
    own = dtype_of(key)
    if own == np.bool_:
        key = graph.cast(key, np.int32)
    elif own.name == "bfloat16":
        key = graph.cast(key, np.float32)
    dtypes = (dtype_of(key), np.int64)
    values, places = graph.node(
        "TopK", [key, count], dtypes, axis=axis, largest=int(largest), sorted=1
    )
    return graph.cast(values, own), places


@primitive("sort")
def sort(site: Site, *operands: ir.Value) -> list[ir.Value]:
    """By the last key first; every key before it keeps the order of those behind."""
    graph, axis = site.graph, int(site.params["dimension"])
    count = graph.size(site.ins[0].shape[axis])
    keys = operands[: site.params["num_keys"]]
    if len(operands) == 1:
        return [_ordered(graph, operands[0], count, axis, False)[0]]
    _, places = _ordered(graph, keys[-1], count, axis, False)
    for key in keys[-2::-1]:
        _, order = _ordered(graph, _taken(graph, key, places, axis), count, axis, False)
        places = _taken(graph, places, order, axis)
    return [_taken(graph, operand, places, axis) for operand in operands]


def _taken(graph: Graph, x: ir.Value, places: ir.Value, axis: int) -> ir.Value:
    return graph.op("GatherElements", x, places, axis=axis)


@primitive("top_k")
def top_k(site: Site, x: ir.Value) -> list[ir.Value]:
    graph = site.graph
    axis = int(site.params.get("axis", len(site.ins[0].shape) - 1))
    values, places = _ordered(graph, x, graph.size(site.params["k"]), axis, True)
    return [values, graph.cast(places, site.outs[1].dtype)]


@primitive("approx_top_k")
def approximate_top_k(site: Site, x: ir.Value) -> list[ir.Value]:
    """All of them are found, as JAX does on CPUs."""
    graph, axis = site.graph, int(site.params["reduction_dimension"])
    count = graph.size(site.params["k"])
    values, places = _ordered(graph, x, count, axis, bool(site.params["is_max_k"]))
    return [values, graph.cast(places, site.outs[1].dtype)]
