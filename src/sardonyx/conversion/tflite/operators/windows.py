"""Pools, other sizes of images, and normalisations."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.operators.layers import channels_first, channels_last, same_pads
from sardonyx.conversion.tflite.table import Site, operator

__all__: list[str] = []


@operator("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pool(site: Site) -> ir.Value:
    graph, squared = site.graph, site.operator.kind == "L2_POOL_2D"
    kernel = [int(site.option("filter_h")), int(site.option("filter_w"))]
    strides = [int(site.option("stride_h")), int(site.option("stride_w"))]
    if min(*kernel, *strides) < 1:
        raise site.refuse(f"its window is {kernel}, its strides are {strides}.")
    x = channels_first(site, site.real(0))
    made = graph.op(
        "MaxPool" if site.operator.kind == "MAX_POOL_2D" else "AveragePool",
        graph.op("Mul", x, x) if squared else x,
        kernel_shape=kernel,
        strides=strides,
        **same_pads(site, kernel, strides, [1, 1]),
    )
    if squared:
        made = graph.op("Sqrt", made)
    return site.activated(channels_last(site, made))


@operator("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(site: Site) -> ir.Value:
    graph, linear = site.graph, site.operator.kind == "RESIZE_BILINEAR"
    places, nearest = "asymmetric", "floor"
    if site.option("align_corners"):
        places, nearest = "align_corners", "round_prefer_ceil"
    elif site.option("half_pixel_centers"):
        places, nearest = "half_pixel", "round_prefer_ceil"
    how = {"mode": "linear"} if linear else {"mode": "nearest", "nearest_mode": nearest}
    x = channels_first(site, site.real(0))
    # All four sizes: onnxruntime loses a quantized Resize of some axes alone.
    sizes = graph.op("Concat", graph.op("Shape", x, end=2), graph.numbers(site.raw(1)), axis=0)
    made = graph.op("Resize", x, None, None, sizes, coordinate_transformation_mode=places, **how)
    return channels_last(site, made)


@operator("SOFTMAX")
def softmax(site: Site) -> ir.Value:
    x, beta = site.real(0), float(site.option("beta"))
    if beta != 1.0:
        x = site.graph.op("Mul", x, site.graph.constant(beta))
    return site.graph.op("Softmax", x, axis=-1)


@operator("LOG_SOFTMAX")
def log_softmax(site: Site) -> ir.Value:
    return site.graph.op("LogSoftmax", site.real(0), axis=-1)


@operator("L2_NORMALIZATION")
def normalize(site: Site) -> ir.Value:
    graph, x = site.graph, site.real(0)
    total = graph.op("ReduceSumSquare", x, graph.constant([-1], np.int64), keepdims=1)
    length = graph.op("Max", graph.op("Sqrt", total), graph.constant(1e-6))
    return site.activated(graph.op("Div", x, length))


@operator("LOCAL_RESPONSE_NORMALIZATION")
def local_response(site: Site) -> ir.Value:
    width = 2 * int(site.option("radius")) + 1
    if width < 1:
        raise site.refuse(f"its radius is {site.option('radius')}.")
    made = site.graph.op(
        "LRN",
        channels_first(site, site.real(0)),
        size=width,
        alpha=float(site.option("alpha")) * width,  # ONNX divides it by the width
        beta=float(site.option("beta")),
        bias=float(site.option("bias")),
    )
    return channels_last(site, made)
