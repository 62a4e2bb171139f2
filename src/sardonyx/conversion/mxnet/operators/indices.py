"""Tables that are read by index, and types of elements."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.mxnet.operators.table import TABLE
from sardonyx.conversion.stored.layer import Layer

_DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")


@TABLE.layer("Embedding")
def embedding(layer: Layer) -> ir.Value:
    layer.ignore("input_dim", "output_dim", "sparse_grad")
    layer.choice("dtype", "float32", _DTYPES)
    table = layer.input(1)
    return layer.op("Gather", table, _bounded(layer, layer.input(0), table, 0, "clip"), axis=0)


@TABLE.layer("take")
def take(layer: Layer) -> ir.Value:
    table, mode = layer.input(0), layer.choice("mode", "clip", ("clip", "wrap"))
    axis = layer.graph.axis(table, layer.integer("axis", 0))
    indices = _bounded(layer, layer.input(1), table, axis, mode)
    return layer.op("Gather", table, indices, axis=axis)


def _bounded(layer: Layer, indices: ir.Value, table: ir.Value, axis: int, mode: str) -> ir.Value:
    """Indices beyond the table's end are its last, or begin anew."""
    graph = layer.graph
    size = graph.size(table, axis)
    whole = graph.cast(indices, np.int64)
    if mode == "wrap":
        return layer.op("Mod", whole, graph.constant(size, np.int64))
    return layer.op("Clip", whole, graph.constant(0, np.int64), graph.constant(size - 1, np.int64))


@TABLE.layer("one_hot")
def one_hot(layer: Layer) -> ir.Value:
    graph = layer.graph
    dtype = layer.choice("dtype", "float32", _DTYPES)
    depth = layer.integer("depth")
    off, on = layer.number("off_value", 0.0), layer.number("on_value", 1.0)
    index = layer.op("Unsqueeze", graph.cast(layer.input(0), np.int64), graph.integers([-1]))
    hit = layer.op("Equal", index, graph.constant(np.arange(depth), np.int64))
    return layer.op("Where", hit, graph.constant(on, dtype), graph.constant(off, dtype))


@TABLE.layer("Cast", "cast")
def cast(layer: Layer) -> ir.Value:
    return layer.graph.cast(layer.input(0), layer.choice("dtype", None, _DTYPES))


@TABLE.layer("zeros_like", "ones_like")
def filled_like(layer: Layer) -> ir.Value:
    x = layer.input(0)
    fill = np.full(1, float(layer.kind == "ones_like"), layer.graph.dtype(x))
    return layer.op("ConstantOfShape", layer.op("Shape", x), value=ir.tensor(fill))


@TABLE.layer("_zeros", "_ones")
def filled(layer: Layer) -> ir.Value:
    layer.ignore("ctx")
    dtype = layer.choice("dtype", "float32", _DTYPES)
    shape = layer.integers("shape")
    if np.prod(shape, dtype=object) > 1 << 24:
        raise layer.refuse(f"it fills {shape}, which is too large to be stored.")
    full = np.ones if layer.kind == "_ones" else np.zeros
    return layer.graph.parameter(layer.name, full(shape, dtype))
