"""The table that the families fill, and the order of axes, which Caffe2 tells by operator."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from sardonyx.conversion.stored.layer import Layer, Table

__all__ = ["FILLS", "TABLE", "channel_axis", "channels_first", "is_last"]

# How an operator is to be run, not what it computes.
_HARMLESS = {
    "convolution_transform_strategy",
    "cudnn_exhaustive_search",
    "deterministic",
    "enable_tensor_core",
    "exhaustive_search",
    "float16_compute",
    "init_params",
    "shared_buffer",
    "use_cudnn",
    "ws_nbytes_limit",
}

TABLE = Table("Caffe2", _HARMLESS)
FILLS = frozenset(
    {
        "ConstantFill",
        "GivenTensorBoolFill",
        "GivenTensorByteStringToUInt8Fill",
        "GivenTensorDoubleFill",
        "GivenTensorFill",
        "GivenTensorInt64Fill",
        "GivenTensorIntFill",
    }
)


def is_last(layer: Layer) -> bool:
    """Whether channels are the last axis."""
    return layer.choice("order", "NCHW", ("NCHW", "NHWC")) == "NHWC"


def channel_axis(layer: Layer) -> int:
    return layer.graph.rank(layer.input(0)) - 1 if is_last(layer) else 1


def channels_first(layer: Layer, run: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """Run with the channels as the second axis, and put them back."""
    graph, x = layer.graph, layer.input(0)
    if not is_last(layer):
        return run(x)
    rank = graph.rank(x)
    made = run(graph.transpose(x, [0, rank - 1, *range(1, rank - 1)]))
    return graph.transpose(made, [0, *range(2, rank), 1])
