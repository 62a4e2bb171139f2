"""Products, convolutions, pools and resizes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.conversions.tflite_operators.cases import (
    ALL,
    RNG,
    Case,
    Value,
    const,
    fed,
    ints,
    name_of,
    out,
)

__all__ = ["layers"]


def _weights(dtype: str, shape: tuple[int, ...], axis: int | None) -> Value:
    if dtype == "f4":
        return const(RNG.normal(size=shape), np.float32)
    data = ints("u1" if dtype == "u1" else "i1", *shape)
    if dtype == "u1":
        return const(data, np.uint8, 0.02, 127)
    scale = 0.02 if axis is None else RNG.uniform(0.01, 0.03, shape[axis])
    return const(data, np.int8, scale, 0, axis or 0)


def _bias(dtype: str, count: int, x: Value, w: Value) -> Value:
    if dtype == "f4":
        return const(RNG.normal(size=count), np.float32)
    kind = np.int64 if dtype == "i2" else np.int32
    data = RNG.integers(-300, 300, count)
    return const(data, kind, np.asarray(x.scale) * np.asarray(w.scale), 0)


def layers() -> Iterator[Case]:
    for dtype in ALL:
        yield from _convolved(dtype)
        yield from _products(dtype)
        yield from _windows(dtype)
    for radius in (1, 3):
        fields = {"radius": radius, "bias": 1.0, "alpha": 0.3, "beta": 0.7}
        yield Case(name_of("LOCAL_RESPONSE_NORMALIZATION", radius), "LOCAL_RESPONSE_NORMALIZATION",
                   [fed("f4", 1, 3, 3, 6)], [out("f4")], "LocalResponseNormalizationOptions", fields)  # fmt: skip
    deep = fed("f4", 1, 5, 6, 7, 2)
    for padding, stride in ((0, 1), (1, 2), (0, 2)):
        fields = {"padding": padding, "strideD": stride, "strideW": stride, "strideH": stride}
        w = _weights("f4", (3, 3, 3, 2, 4), None)
        gaps = {"dilationDFactor": 1, "dilationWFactor": 1, "dilationHFactor": 1}
        yield Case(name_of("CONV_3D", padding, stride), "CONV_3D", [deep, w, _bias("f4", 4, deep, w)],
                   [out("f4")], "Conv3DOptions", fields | gaps)  # fmt: skip
    for asymmetric in (False, True):
        rows, w = fed("f4", 3, 8), _weights("i1", (5, 8), None)
        yield Case(name_of("FULLY_CONNECTED hybrid", asymmetric), "FULLY_CONNECTED",
                   [rows, w, const(RNG.normal(size=5), np.float32)], [out("f4")], "FullyConnectedOptions",
                   {"asymmetricQuantizeInputs": asymmetric})  # fmt: skip


def _result(dtype: str) -> Value:
    """Of sums of products: on a wide grid."""
    return out(dtype, None if dtype == "f4" else {"i2": 0.0012}.get(dtype, 0.35))


def _convolved(dtype: str) -> Iterator[Case]:
    axis = 0 if dtype != "u1" else None
    x = fed(dtype, 1, 7, 8, 4)
    y = _result(dtype)
    for padding, stride, gap in ((0, 1, 1), (1, 2, 1), (0, 2, 1), (1, 1, 2)):
        fields = {"padding": padding, "strideW": stride, "strideH": stride}
        gaps = {"dilationWFactor": gap, "dilationHFactor": gap}
        w = _weights(dtype, (6, 3, 3, 4), axis)
        inputs = [x, w, _bias(dtype, 6, x, w)]
        said = (dtype, ("SAME", "VALID")[padding], stride, gap)
        yield Case(
            name_of("CONV_2D", *said), "CONV_2D", inputs, [y], "Conv2DOptions", fields | gaps
        )
        w = _weights(dtype, (1, 3, 3, 8), 3 if dtype != "u1" else None)
        inputs = [x, w, _bias(dtype, 8, x, w)]
        more = fields | gaps | {"depthMultiplier": 2}
        z = out(dtype, y.scale)
        yield Case(name_of("DEPTHWISE_CONV_2D", *said), "DEPTHWISE_CONV_2D", inputs, [z],
                   "DepthwiseConv2DOptions", more)  # fmt: skip
        y = out(dtype, y.scale)
        if gap > 1:
            continue
        w = _weights(dtype, (5, 3, 3, 4), axis)
        size = (
            [1, 7 * stride, 8 * stride, 5]
            if not padding
            else [1, 6 * stride + 3, 7 * stride + 3, 5]
        )
        inputs = [const(size, np.int32), w, x, _bias(dtype, 5, x, w)]
        yield Case(name_of("TRANSPOSE_CONV", *said), "TRANSPOSE_CONV", inputs, [out(dtype, y.scale)],
                   "TransposeConvOptions", fields)  # fmt: skip


def _products(dtype: str) -> Iterator[Case]:
    y = _result(dtype)
    rows = fed(dtype, 3, 8)
    w = _weights(dtype, (5, 8), None)
    for code in (0, 1, 3):
        yield Case(name_of("FULLY_CONNECTED", dtype, code), "FULLY_CONNECTED",
                   [rows, w, _bias(dtype, 5, rows, w)], [out(dtype, y.scale)], "FullyConnectedOptions",
                   {"fusedActivationFunction": code})  # fmt: skip
    for kept in (False, True):
        deep = fed(dtype, 2, 3, 8)
        yield Case(name_of("FULLY_CONNECTED deep", dtype, kept), "FULLY_CONNECTED", [deep, w, None],
                   [out(dtype, y.scale)], "FullyConnectedOptions", {"keepNumDims": kept})  # fmt: skip
    for adj_x, adj_y in ((False, False), (True, False), (False, True)):
        a = fed(dtype, 2, 3, 4) if not adj_x else fed(dtype, 2, 4, 3)
        b = fed(dtype, 1, 4, 5) if not adj_y else fed(dtype, 1, 5, 4)
        yield Case(name_of("BATCH_MATMUL", dtype, adj_x, adj_y), "BATCH_MATMUL", [a, b],
                   [out(dtype, y.scale)], "BatchMatMulOptions", {"adjX": adj_x, "adjY": adj_y})  # fmt: skip


def _windows(dtype: str) -> Iterator[Case]:
    x = fed(dtype, 1, 7, 8, 4)
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for padding, code in ((0, 0), (1, 1), (0, 3)):
            fields = {
                "padding": padding,
                "strideW": 2,
                "strideH": 2,
                "filterWidth": 3,
                "filterHeight": 3,
            }
            yield Case(name_of(kind, dtype, padding, code), kind, [x], [out(dtype)], "Pool2DOptions",
                       fields | {"fusedActivationFunction": code})  # fmt: skip
    image = fed(dtype, 1, 5, 6, 3)
    for kind, options in (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    ):
        for corners, centers in ((False, False), (True, False), (False, True)):
            for size in ([10, 12], [3, 4], [7, 13]):
                fields = {"alignCorners": corners, "halfPixelCenters": centers}
                yield Case(name_of(kind, dtype, corners, centers, size), kind,
                           [image, const(size, np.int32)], [out(dtype)], options, fields)  # fmt: skip
    ids = const([2, 0, 3], np.int32)
    rows = _weights(dtype, (4, 6), 0 if dtype == "i1" else None)
    ends = (
        out("f4") if dtype in ("f4", "i1") else Value(rows.dtype, None, None, rows.scale, rows.zero)
    )
    yield Case(name_of("EMBEDDING_LOOKUP", dtype), "EMBEDDING_LOOKUP", [ids, rows], [ends])
