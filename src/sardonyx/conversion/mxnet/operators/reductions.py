"""Sums and their like over axes, and products of matrices."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.mxnet.operators.table import TABLE
from sardonyx.conversion.stored.layer import Layer

_REDUCTIONS = {
    "sum": "ReduceSum",
    "sum_axis": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "max_axis": "ReduceMax",
    "min": "ReduceMin",
    "min_axis": "ReduceMin",
    "prod": "ReduceProd",
}


@TABLE.layer(*_REDUCTIONS)
def reduction(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    rank = graph.rank(x)
    named = [graph.axis(x, axis) for axis in layer.integers("axis", ())]
    if layer.flag("exclude"):
        named = [axis for axis in range(rank) if axis not in named]
    keep = int(layer.flag("keepdims"))
    made = layer.op(_REDUCTIONS[layer.kind], x, graph.integers(named or range(rank)), keepdims=keep)
    # A sum of everything has one axis of one element: MXNet's arrays have at least one.
    return graph.reshape(made, (1,)) if graph.rank(made) == 0 else made


@TABLE.layer("norm")
def norm(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    order = layer.integer("ord", 2)
    if order not in (1, 2) or layer.get("out_dtype") is not None:
        raise layer.refuse(f"a norm of order {order} cannot be written.")
    axes = [graph.axis(x, axis) for axis in layer.integers("axis", ())] or range(graph.rank(x))
    keep = int(layer.flag("keepdims"))
    made = layer.op(f"ReduceL{order}", x, graph.integers(axes), keepdims=keep)
    return graph.reshape(made, (1,)) if graph.rank(made) == 0 else made


@TABLE.layer("argmax", "argmin")
def arg_extreme(layer: Layer) -> ir.Value:
    """Indices are numbers of float32."""
    graph, x = layer.graph, layer.input(0)
    axis = graph.axis(x, layer.integer("axis"))
    operator = "ArgMax" if layer.kind == "argmax" else "ArgMin"
    found = layer.op(operator, x, axis=axis, keepdims=int(layer.flag("keepdims")))
    return graph.cast(found, np.float32)


@TABLE.layer("dot")
def dot(layer: Layer) -> ir.Value:
    graph = layer.graph
    a, b = layer.input(0), layer.input(1)
    flipped_a, flipped_b = layer.flag("transpose_a"), layer.flag("transpose_b")
    layer.ignore("forward_stype")
    if graph.rank(b) != 2 or (flipped_a and graph.rank(a) != 2):
        raise layer.refuse("dot of more than two axes cannot be written.", "Use batch_dot.")
    a = graph.transpose(a, (1, 0)) if flipped_a else a
    return layer.op("MatMul", a, graph.transpose(b, (1, 0)) if flipped_b else b)


@TABLE.layer("batch_dot", "_linalg_gemm2", "linalg_gemm2")
def batch_dot(layer: Layer) -> ir.Value:
    a = _flipped(layer, layer.input(0), layer.flag("transpose_a"))
    b = _flipped(layer, layer.input(1), layer.flag("transpose_b"))
    layer.ignore("forward_stype")
    if layer.integer("axis", -2) != -2:
        raise layer.refuse("its matrices do not lie on the last two axes.")
    factor = layer.number("alpha", 1.0)
    made = layer.op("MatMul", a, b)
    return made if factor == 1 else layer.op("Mul", made, layer.scalar(factor))


def _flipped(layer: Layer, value: ir.Value, flip: bool) -> ir.Value:
    rank = layer.graph.rank(value)
    order = [*range(rank - 2), rank - 1, rank - 2]
    return layer.graph.transpose(value, order) if flip else value
