"""Between real numbers and the integers that stand for them."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowerings import quantized
from sardonyx.ops.plain import flops_per_input
from sardonyx.sizes import Expr, ceil_div

__all__ = ["OPERATORS"]


def quantize(call: Call) -> list[Facts]:
    """The zero point or `output_dtype` says which integers; uint8 when neither does."""
    _check_scale(call)
    dtype = call.dtype_attr("output_dtype") or call.dtype(2) or ir.DataType.UINT8
    return [call.out(call.input(0).shape, dtype=dtype)]


def dequantize(call: Call) -> list[Facts]:
    _check_scale(call)
    dtype = call.dtype_attr("output_dtype") or (call.input(1).dtype if call.version >= 19 else None)
    return [call.out(call.input(0).shape, dtype=dtype or ir.DataType.FLOAT)]


def _check_scale(call: Call) -> None:
    """A scalar; one number for each slice along an axis; or one for each block along it."""
    shape, scale = call.input(0).shape, call.input(1).shape
    zero = call.shape(2)
    if scale is not None and zero is not None and not _single(scale, zero):
        if len(scale) != len(zero):
            call.fail(f"scale and zero point have ranks {len(scale)} and {len(zero)}")
        for axis, (a, b) in enumerate(zip(scale, zero, strict=True)):
            call.agree(a, b, f"dimension {axis} of scale and zero point")
    if shape is None or scale is None or not scale or scale == (1,):
        return
    block = call.int_attr("block_size")
    if block:
        _check_blocks(call, shape, scale, block)
    elif len(scale) != 1:
        call.fail(f"scale of rank {len(scale)} needs a block_size; per-axis scales have rank 1")
    elif len(shape) > 0:
        axis = call.axis(call.int_attr("axis", 1), max(len(shape), 2)) if len(shape) > 1 else 0
        call.agree(shape[axis], scale[0], f"scales and dimension {axis} of the input")


def _single(scale: Shape, zero: Shape) -> bool:
    """One number each, written as a scalar or as a vector of one."""
    return len(scale) + len(zero) == 1 and all(
        dim == 1 or isinstance(dim, Expr) for dim in (*scale, *zero)
    )


def _check_blocks(call: Call, shape: Shape, scale: Shape, block: int) -> None:
    if block < 0:
        call.fail(f"block_size is {block}; it cannot be negative")
    if len(shape) != len(scale):
        call.fail(f"blocked scales have rank {len(scale)}, but the input has rank {len(shape)}")
    at = call.axis(call.int_attr("axis", 1), len(shape))
    for axis, (size, count) in enumerate(zip(shape, scale, strict=True)):
        expected = ceil_div(size, block) if axis == at else size
        call.agree(expected, count, f"scales and blocks along dimension {axis}")


def dynamic_quantize(call: Call) -> list[Facts]:
    return [call.same(), call.out((), 1), call.out((), 2)]


# Scale, shift, round and clip; the way back is shift and scale.
OPERATORS = (
    Operator("QuantizeLinear", "pointwise", quantize, None, flops_per_input(4), quantized.QUANTIZE),
    Operator(
        "DequantizeLinear", "pointwise", dequantize, None, flops_per_input(2), quantized.DEQUANTIZE
    ),
    Operator(
        "DynamicQuantizeLinear",
        "reduction",
        dynamic_quantize,
        None,
        flops_per_input(6),
        quantized.DYNAMIC_QUANTIZE,
    ),
)
