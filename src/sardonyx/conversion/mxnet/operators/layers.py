"""Layers with weights, and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.mxnet.operators.table import TABLE, bias_of, same_axes
from sardonyx.conversion.stored.layer import Layer
from sardonyx.sizes import Expr

_CHANNELS_FIRST = {1: ("NCW",), 2: ("NCHW",), 3: ("NCDHW",)}


def _check_layout(layer: Layer, axes: int) -> None:
    layout = layer.get("layout")
    if layout is not None and layout not in _CHANNELS_FIRST.get(axes, ()):
        raise layer.refuse(f"its layout is {layout!r:.20}, and channels must be the second axis.")


@TABLE.layer("Convolution", "Convolution_v1")
def convolution(layer: Layer) -> ir.Value:
    kernel = layer.integers("kernel")
    _check_layout(layer, len(kernel))
    layer.ignore("num_filter")  # the weight has it
    pad = same_axes(layer, "pad", len(kernel), 0)
    return layer.op(
        "Conv",
        layer.input(0),
        layer.input(1),
        layer.input(2) if bias_of(layer) else None,
        kernel_shape=kernel,
        strides=same_axes(layer, "stride", len(kernel), 1),
        dilations=same_axes(layer, "dilate", len(kernel), 1),
        pads=[*pad, *pad],
        group=layer.integer("num_group", 1),
    )


@TABLE.layer("Deconvolution")
def deconvolution(layer: Layer) -> ir.Value:
    kernel = layer.integers("kernel")
    _check_layout(layer, len(kernel))
    layer.ignore("num_filter")
    if any(layer.integers("target_shape", ())):
        raise layer.refuse("its target_shape decides the padding.", "Give pad and adj instead.")
    pad = same_axes(layer, "pad", len(kernel), 0)
    return layer.op(
        "ConvTranspose",
        layer.input(0),
        layer.input(1),
        layer.input(2) if bias_of(layer, True) else None,
        kernel_shape=kernel,
        strides=same_axes(layer, "stride", len(kernel), 1),
        dilations=same_axes(layer, "dilate", len(kernel), 1),
        pads=[*pad, *pad],
        output_padding=same_axes(layer, "adj", len(kernel), 0),
        group=layer.integer("num_group", 1),
    )


@TABLE.layer("FullyConnected")
def fully_connected(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    layer.ignore("num_hidden")
    bias = layer.input(2) if bias_of(layer) else None
    if layer.flag("flatten", True):
        return layer.op("Gemm", graph.flat(x), layer.input(1), bias, transB=1)
    product = layer.op("MatMul", x, graph.transpose(layer.input(1), (1, 0)))
    return product if bias is None else layer.op("Add", product, bias)


@TABLE.layer("Pooling", "Pooling_v1")
def pooling(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    axes = graph.rank(x) - 2
    _check_layout(layer, axes)
    kind = layer.choice("pool_type", "max", ("max", "avg", "sum", "lp"))
    if layer.flag("global_pool"):
        layer.ignore("kernel", "stride", "pad", "pooling_convention", "count_include_pad")
        return _global(layer, x, kind, axes)
    kernel = layer.integers("kernel")
    stride, pad = same_axes(layer, "stride", axes, 1), same_axes(layer, "pad", axes, 0)
    convention = layer.choice("pooling_convention", "valid", ("valid", "full"))
    counted = layer.flag("count_include_pad", True)
    shared: dict[str, Any] = {"kernel_shape": kernel, "strides": stride, "pads": [*pad, *pad]}
    if convention == "full":
        shared["ceil_mode"] = 1
        _check_windows(layer, x, kernel, stride, pad)
        if kind in ("sum", "lp"):
            raise layer.refuse(f"{kind} pooling by the full convention cannot be written.")
    if kind == "max":
        return layer.op("MaxPool", x, **shared)
    if kind == "lp":
        return layer.op("LpPool", x, p=layer.integer("p_value"), **shared)
    mean = layer.op("AveragePool", x, count_include_pad=int(counted or kind == "sum"), **shared)
    return mean if kind == "avg" else layer.op("Mul", mean, layer.scalar(float(np.prod(kernel))))


def _global(layer: Layer, x: ir.Value, kind: str, axes: int) -> ir.Value:
    if kind == "sum":
        space = layer.graph.integers(range(2, 2 + axes))
        return layer.op("ReduceSum", x, space, keepdims=1)
    if kind == "lp":
        return layer.op("GlobalLpPool", x, p=layer.integer("p_value"))
    return layer.op("GlobalMaxPool" if kind == "max" else "GlobalAveragePool", x)


def _check_windows(
    layer: Layer, x: ir.Value, kernel: list[int], stride: list[int], pad: list[int]
) -> None:
    """MXNet keeps a last window that lies in the padding alone; ONNX drops it."""
    for size, k, s, p in zip(layer.graph.shape(x)[2:], kernel, stride, pad, strict=True):
        if isinstance(size, Expr):
            if p:
                raise layer.refuse("padding by the full convention needs sizes that are known.")
            continue
        if -((size + 2 * p - k) // -s) * s >= size + p:
            raise layer.refuse("its last window lies in the padding alone.")


@TABLE.layer("_contrib_AdaptiveAvgPooling2D")
def adaptive_average(layer: Layer) -> ir.Value:
    wanted = layer.integers("output_size", (1,)) or [1]
    if set(wanted) != {1}:
        raise layer.refuse(f"output_size is {wanted}; what can be written is 1.")
    return layer.op("GlobalAveragePool", layer.input(0))


@TABLE.layer("UpSampling")
def up_sampling(layer: Layer) -> ir.Value:
    layer.choice("sample_type", None, ("nearest",))
    layer.ignore("multi_input_mode", "num_filter")
    if len(layer.inputs) != 1:
        raise layer.refuse("it has several operands.")
    scale = float(layer.integer("scale"))
    return layer.graph.enlarge(layer.input(0), [1.0, 1.0, scale, scale])


@TABLE.layer("_contrib_BilinearResize2D")
def bilinear_resize(layer: Layer) -> ir.Value:
    layer.choice("mode", "size", ("size",))
    ends = layer.flag("align_corners", True)
    x = layer.input(0)
    target = [layer.integer("height"), layer.integer("width")]
    return layer.op(
        "Resize",
        x,
        None,
        None,
        layer.graph.integers(target),
        axes=[2, 3],
        mode="linear",
        coordinate_transformation_mode="align_corners" if ends else "half_pixel",
    )


@TABLE.layer("Dropout", "identity", "_copy", "BlockGrad", "stop_gradient", "MakeLoss", "make_loss")
def identity(layer: Layer) -> ir.Value:
    """What does nothing when a network is used."""
    layer.ignore("p", "axes", "grad_scale", "normalization", "valid_thresh")
    if layer.text("mode", "training") != "training":
        raise layer.refuse("it drops in inference too, at random.")
    return layer.input(0)
