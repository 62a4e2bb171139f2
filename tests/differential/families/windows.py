"""Operators that slide a window: convolutions and pools, in floats and in quantised integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.differential.graphs import Builder, family


def window(
    b: Builder, rank: int, dilate: bool = True, most_pad: int = 2
) -> tuple[list[int], dict[str, Any]]:
    """A kernel's shape, and attributes that fit it."""
    kernel = b.integers(rank, 1, 3)
    attributes = b.some(strides=b.integers(rank, 1, 3))
    auto = b.pick([None, None, None, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
    if auto:
        attributes["auto_pad"] = auto
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        # onnxruntime refuses dilations here, and a stride past the kernel needs negative pads.
        if "strides" in attributes:
            pairs = zip(attributes["strides"], kernel, strict=True)
            attributes["strides"] = [min(pair) for pair in pairs]
        return kernel, attributes
    if dilate:
        attributes |= b.some(dilations=b.integers(rank, 1, 2))
    if auto != "VALID":
        attributes |= b.some(0.7, pads=[b.integer(0, min(k - 1, most_pad)) for k in kernel * 2])
    return kernel, attributes


@family
def conv(b: Builder) -> None:
    rank = b.integer(1, 3)
    dtype = b.dtype("Conv", ["float32"])  # float16 in groups is wrong in onnxruntime 1.31
    group = b.pick([1, 1, 2, 3])
    channels, filters = group * b.integer(1, 2), group * b.integer(1, 2)
    kernel, attributes = window(b, rank)
    x = b.put(b.array(dtype, [b.integer(1, 2), channels, *b.integers(rank, 5, 7)]), False)
    inputs = [x, b.new(dtype, [filters, channels // group, *kernel])]
    if b.chance():
        inputs.append(b.new(dtype, [filters]))
    b.node("Conv", inputs, group=group, **attributes, **b.some(kernel_shape=kernel))


@family
def conv_transpose(b: Builder) -> None:
    rank = b.integer(1, 3)
    dtype = b.dtype("ConvTranspose", ["float32"])
    group = b.pick([1, 1, 2])
    channels, filters = group * b.integer(1, 2), b.integer(1, 2)
    kernel, attributes = window(b, rank)
    strides = attributes.get("strides", [1] * rank)
    if b.chance(0.4):
        attributes["output_padding"] = [b.integer(0, stride - 1) for stride in strides]
    x = b.put(b.array(dtype, [b.integer(1, 2), channels, *b.integers(rank, 3, 5)]), False)
    inputs = [x, b.new(dtype, [channels, filters, *kernel])]
    if b.chance():
        inputs.append(b.new(dtype, [filters * group]))
    b.node("ConvTranspose", inputs, group=group, **attributes, **b.some(kernel_shape=kernel))


@family
def pool(b: Builder) -> None:
    op = b.pick(["MaxPool", "AveragePool", "LpPool"])
    rank = b.integer(1, 3)
    among = ["float32", "int8", "uint8"] if op == "MaxPool" else ["float32"]
    x = b.put(b.array(b.dtype(op, among), [b.integer(1, 2), 2, *b.integers(rank, 5, 8)]), False)
    version = b.version(op)
    dilate = version >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    kernel, attributes = window(b, rank, dilate)
    # With VALID, onnxruntime rounds up otherwise than the standard's formula.
    if version >= (18 if op == "LpPool" else 10) and attributes.get("auto_pad") != "VALID":
        attributes |= b.some(ceil_mode=b.integer(0, 1))
    if op == "AveragePool":
        attributes |= b.some(count_include_pad=b.integer(0, 1))
    if op == "LpPool":
        attributes |= b.some(p=b.integer(1, 3))
    outputs = 1
    if op == "MaxPool" and version >= 8 and b.chance():
        outputs = 2
        attributes |= b.some(storage_order=b.integer(0, 1))
    b.node(op, [x], outputs, kernel_shape=kernel, **attributes)


@family
def pool_all(b: Builder) -> None:
    op = b.pick(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    x = b.new(b.dtype(op, ["float32"]), [b.integer(1, 2), 2, *b.integers(b.integer(1, 3), 1, 5)])
    b.node(op, [x], **(b.some(p=b.integer(1, 3)) if op == "GlobalLpPool" else {}))


@family
def quantize(b: Builder) -> None:
    op = b.pick(["QuantizeLinear", "DequantizeLinear"])
    version = b.version(op)
    dtype = b.pick(["uint8", "int8", *(["int16", "uint16"] if version >= 21 else [])])
    shape = b.shape(2, 4, empty=0)
    how = b.pick(
        ["whole", *(["axis"] if version >= 13 else []), *(["block"] if version >= 21 else [])]
    )
    attributes, few = {}, []
    if how != "whole":
        axis = b.axis(len(shape))
        attributes["axis"] = axis
        few = [shape[axis]]
    if how == "block":
        attributes["block_size"] = b.integer(1, 3)
        few = list(shape)
        shape[axis] *= attributes["block_size"]
    inputs = [b.put(np.maximum(b.array("float32", few, 0.05, 0.5), np.float32(0.05)))]
    if b.chance(0.7) or dtype != "uint8":
        inputs.append(b.new(dtype, few, -5, 5))
    x = b.array("float32" if op[0] == "Q" else dtype, shape, -20, 20)
    b.node(op, [b.put(x, False), *inputs], **attributes)


@family
def quantized_products(b: Builder) -> None:
    op = b.pick(["MatMulInteger", "QLinearMatMul", "DynamicQuantizeLinear"])
    b.version(op)
    if op == "DynamicQuantizeLinear":
        x, _ = b.tensor("float32", 0, 3)
        b.node(op, [x], 3)
        return
    rows, inner, columns = b.integers(3, 1, 4)
    left, right = b.pick(["uint8", "int8"]), b.pick(["uint8", "int8"])
    a, c = b.new(left, [rows, inner], -128, 255), b.new(right, [inner, columns], -128, 255)
    each = b.pick([[], [columns]])
    zeros = [b.new(left, [], -9, 9), b.new(right, each, -9, 9)]
    if op == "MatMulInteger":
        b.node(op, [a, c, *zeros[: b.integer(0, 2)]])
        return
    scale = b.put(np.maximum(b.array("float32", each, 0.05, 0.5), np.float32(0.05)))
    result = [b.put(np.float32(b.rng.uniform(1, 9))), b.new(left, [], -9, 9)]
    b.node(op, [a, b.put(np.float32(0.3)), zeros[0], c, scale, zeros[1], *result])


@family
def quantized_conv(b: Builder) -> None:
    op = b.pick(["ConvInteger", "QLinearConv"])
    b.version(op)
    rank, group = b.integer(1, 2), b.pick([1, 1, 2])
    channels, filters = group * 2, group * b.integer(1, 2)
    kernel, attributes = window(b, rank)
    left, right = b.pick(["uint8", "int8"]), b.pick(["uint8", "int8"])
    x = b.put(b.array(left, [1, channels, *b.integers(rank, 5, 6)], -128, 255), False)
    w = b.new(right, [filters, channels // group, *kernel], -128, 255)
    zeros = [b.new(left, [], -9, 9), b.put(np.array(b.integer(0, 5), right))]
    if op == "ConvInteger":
        b.node(op, [x, w, *zeros[: b.integer(0, 2)]], group=group, **attributes)
        return
    result = [b.put(np.float32(b.rng.uniform(5, 30))), b.new(left, [], -9, 9)]
    bias = [b.new("int32", [filters], -200, 200)] if b.chance() else []
    scales = [b.put(np.float32(0.2)), b.put(np.float32(0.3))]
    inputs = [x, scales[0], zeros[0], w, scales[1], zeros[1], *result, *bias]
    b.node(op, inputs, group=group, **attributes)
