"""Integers that stand for reals: into reals, back again, and reals that a kernel rounds on its way."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.graph import Graph
from sardonyx.conversion.tflite.schema import Quantization, Tensor

__all__ = ["dequantize", "is_quantized", "quantize", "round_rows"]


def is_quantized(tensor: Tensor) -> bool:
    """Whether its integers stand for reals."""
    return tensor.quantization is not None and tensor.dtype.kind not in "fb"


def dequantize(graph: Graph, value: ir.Value, tensor: Tensor) -> ir.Value:
    """The reals that a quantized tensor stands for."""
    assert tensor.quantization is not None
    found = tensor.quantization
    scale, axis = _scale(graph, found)
    if tensor.dtype == np.int64:  # a bias of 64 bits, which DequantizeLinear does not take
        return graph.op("Mul", graph.cast(value, np.float32), scale)
    zero = None if tensor.dtype == np.int32 else _zero(graph, found, tensor)
    made = graph.op("DequantizeLinear", value, scale, zero, **axis)
    made.type = ir.TensorType(ir.DataType.FLOAT)
    return made


def quantize(graph: Graph, value: ir.Value, tensor: Tensor) -> ir.Value:
    """Reals on the grid of a tensor."""
    assert tensor.quantization is not None
    scale, axis = _scale(graph, tensor.quantization)
    zero = _zero(graph, tensor.quantization, tensor)
    return graph.op("QuantizeLinear", value, scale, zero, **axis)


def _scale(graph: Graph, found: Quantization) -> tuple[ir.Value, dict[str, int]]:
    if found.scale.size == 1:
        return graph.constant(found.scale.reshape(()), np.float32), {}
    return graph.constant(found.scale, np.float32), {"axis": found.axis}


def _zero(graph: Graph, found: Quantization, tensor: Tensor) -> ir.Value:
    zeros = found.zero.reshape(()) if found.scale.size == 1 else found.zero
    return graph.constant(zeros.astype(tensor.dtype))


def round_rows(graph: Graph, x: ir.Value, axes: tuple[int, ...], asymmetric: bool) -> ir.Value:
    """Reals as kernels with 8-bit weights round them: to 255 steps over the range of each row.

    The arithmetic is that of TensorFlow Lite, operation by operation, so that the same numbers fall on the same steps.
    """
    over = graph.constant(list(axes), np.int64)
    low, high = (graph.op(kind, x, over, keepdims=1) for kind in ("ReduceMin", "ReduceMax"))
    nothing = graph.constant(0.0)
    if not asymmetric:
        largest = graph.op("Max", graph.op("Abs", low), graph.op("Abs", high))
        step = graph.op("Div", largest, graph.constant(127.0))
        some = graph.op("Greater", largest, nothing)
        safe = graph.op("Where", some, largest, graph.constant(1.0))
        factor = graph.op("Div", graph.constant(127.0), safe)
        steps = _round_away(graph, graph.op("Mul", x, factor))
        bounds = graph.constant(-127.0), graph.constant(127.0)
        return graph.op("Mul", graph.op("Clip", steps, *bounds), step)
    low, high = graph.op("Min", low, nothing), graph.op("Max", high, nothing)
    spread = graph.op("Sub", high, low)
    some = graph.op("Greater", spread, nothing)
    step = graph.op("Div", spread, graph.constant(255.0))
    safe = graph.op("Where", some, step, graph.constant(1.0))
    zero = _zero_place(graph, low, high, safe)
    factor = graph.op("Div", graph.constant(1.0), safe)
    steps = _round_away(graph, graph.op("Add", zero, graph.op("Mul", x, factor)))
    bounds = graph.constant(-128.0), graph.constant(127.0)
    return graph.op("Mul", graph.op("Sub", graph.op("Clip", steps, *bounds), zero), step)


def _zero_place(graph: Graph, low: ir.Value, high: ir.Value, step: ir.Value) -> ir.Value:
    """The step that is 0: from whichever end of the range is nearer to it."""
    ends = graph.constant(-128.0), graph.constant(127.0)
    at_low, at_high = graph.op("Div", low, step), graph.op("Div", high, step)
    from_low, from_high = graph.op("Sub", ends[0], at_low), graph.op("Sub", ends[1], at_high)
    error_low = graph.op("Add", graph.constant(128.0), graph.op("Abs", at_low))
    error_high = graph.op("Add", graph.constant(127.0), graph.op("Abs", at_high))
    nearer = graph.op("Less", error_low, error_high)
    place = graph.op("Where", nearer, from_low, from_high)
    return graph.op("Clip", _round_away(graph, place), *ends)


def _round_away(graph: Graph, x: ir.Value) -> ir.Value:
    """To the nearest integer; halves away from zero, as C rounds."""
    whole = graph.op("Floor", graph.op("Add", graph.op("Abs", x), graph.constant(0.5)))
    return graph.op("Mul", graph.op("Sign", x), whole)
