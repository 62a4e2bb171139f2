"""Operators that work element by element, with or without broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.ops.arithmetic import (
    BINARY,
    UNARY,
    VARIADIC,
    truncated_remainder,
    where_element,
)
from sardonyx.ops.broadcast import broadcast_shapes
from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved
from sardonyx.ops.entry import Operator, ValueRule
from sardonyx.ops.facts import DISCRETE, Facts, Values, objects
from sardonyx.ops.lowerings import pointwise
from sardonyx.ops.lowerings.views import DROPOUT
from sardonyx.ops.plain import flops_per_input, flops_per_output, free, same_shape
from sardonyx.ops.values import cast_value, pointwise_value, symbolic_extreme

__all__ = ["OPERATORS"]


def broadcasting(call: Call) -> list[Facts]:
    call.input(0)
    return [call.out(broadcast_shapes(call, [facts.shape for facts in call.inputs if facts]))]


def first_shape(call: Call) -> list[Facts]:
    """Before opset 7 (8 for variadic ones) the other inputs fit the first, or are refused."""
    first = call.input(0).shape
    for index in range(1, len(call.inputs)):
        other = call.input(index).shape
        if first is None or other is None:
            continue
        start = _aligned_at(call, len(first), len(other), index)
        for axis, dim in enumerate(other):
            if dim != 1 or not call.int_attr("broadcast"):
                call.agree(first[start + axis], dim, f"dimension {start + axis} of the inputs")
    return [call.same()]


def _aligned_at(call: Call, rank: int, other: int, index: int) -> int:
    """Where the dimensions of another input begin among the first input's."""
    if not call.int_attr("broadcast"):
        start, fits = 0, rank == other
    else:
        start = call.int_attr("axis", rank - other)
        start += rank if start < 0 and call.attr("axis") is not None else 0
        fits = 0 <= start <= rank - other
    if not fits:
        call.fail(f"input {index} of rank {other} does not fit into input 0 of rank {rank}")
    return start


def prelu(call: Call) -> list[Facts]:
    """The slope broadcasts to the input, never the other way round."""
    shape, slope = call.input(0).shape, call.input(1).shape
    if call.version >= 7 and shape is not None and slope is not None:
        joined = broadcast_shapes(call, [shape, slope])
        if joined is not None and len(joined) > len(shape):
            call.fail(f"the slope has rank {len(slope)}, more than the {len(shape)} of the input")
    return [call.same()]


def equal_shapes(call: Call) -> list[Facts]:
    a, b = call.input(0).shape, call.input(1).shape
    if a is None or b is None:
        return [call.out(a if b is None else b)]
    if len(a) != len(b):
        call.fail(f"both inputs must have one shape, but their ranks are {len(a)} and {len(b)}")
    return [
        call.out(call.agree(x, y, "both inputs' dimensions") for x, y in zip(a, b, strict=True))
    ]


def cast(call: Call) -> list[Facts]:
    return [call.out(call.input(0).shape, dtype=target_type(call))]


def target_type(call: Call) -> ir.DataType:
    to = call.attr("to")
    if isinstance(to, str) and to in ir.DataType.__members__:
        return ir.DataType[to]  # Cast-1 names it
    found = call.dtype_attr("to")
    if found is None:
        call.fail("attribute 'to' is missing")
    return found


def bit_cast(call: Call) -> list[Facts]:
    source, target = call.dtype(0), target_type(call)
    if source is not None and source.bitwidth != target.bitwidth:
        call.fail(
            f"{source.name.lower()} has {source.bitwidth} bits, but {target.name.lower()} "
            f"has {target.bitwidth}"
        )
    return [call.out(call.input(0).shape, dtype=target)]


def cast_like(call: Call) -> list[Facts]:
    return [call.out(call.input(0).shape, dtype=call.input(1).dtype)]


def cast_values(call: Call, output: Facts) -> Values | None:
    value, source = call.value(0), call.dtype(0)
    if value is None or source is None or output.dtype is None:
        return None
    return cast_value(value, source, output.dtype)


def dropout(call: Call) -> list[Facts]:
    return [call.same(), call.out(call.input(0).shape, 1)]


def dropout_values(call: Call, output: Facts) -> Values | None:
    training = call.scalar(2) if call.version >= 12 and call.has(2) else False
    return call.value(0) if training is False and call.version >= 7 else None


def where(call: Call) -> list[Facts]:
    shapes = [call.input(index).shape for index in range(3)]
    return [call.out(broadcast_shapes(call, shapes))]


def arithmetic_values(call: Call, output: Facts) -> Values | None:
    """The table's numpy function, or its symbolic twin."""
    op = call.node.op_type
    numeric, symbolic = UNARY.get(op) or BINARY.get(op) or VARIADIC[op]
    if op == "Mod" and call.int_attr("fmod"):
        numeric, symbolic = truncated_remainder, unknown_element
    if op in BINARY and call.attr("axis") is not None:
        return None  # before opset 7, `axis` places the second input
    return pointwise_value(call, output, numeric, symbolic)


def unknown_element(*_: Any) -> None:
    return None


def clip_values(call: Call, output: Facts) -> Values | None:
    """Bounds of integers, which are inputs; sizes are clamped so."""
    value = call.value(0)
    if value is None or output.dtype not in DISCRETE:
        return None
    elements = list(value.flat)
    for index, pick in ((1, "max"), (2, "min")):
        if call.has(index):
            bound = call.scalar(index)
            if bound is None:
                return None
            elements = [symbolic_extreme(pick, element, bound) for element in elements]
    return objects(elements, value.shape)


def where_values(call: Call, output: Facts) -> Values | None:
    return pointwise_value(call, output, np.where, where_element)


def per_operand(call: Call, outputs: Sequence[Facts]) -> Cost:
    """One operation for each element, for every input past the first."""
    count = outputs[0].elements
    pairs = max(len(call.inputs) - 1, 1)
    return moved(call.inputs, outputs, flops=None if count is None else count * pairs)


def values_of(name: str) -> ValueRule | None:
    return arithmetic_values if name in UNARY or name in BINARY or name in VARIADIC else None


# Elementary operations for each element; a transcendental function counts as one.
SAME_SHAPE = {
    "Abs": 1, "Acos": 1, "Acosh": 1, "Asin": 1, "Asinh": 1, "Atan": 1, "Atanh": 1, "BitwiseNot": 1,
    "Ceil": 1, "Celu": 4, "Cos": 1, "Cosh": 1, "Elu": 3, "Erf": 1, "Exp": 1, "Floor": 1,
    "Gelu": 5, "HardSigmoid": 4, "HardSwish": 5, "IsInf": 1, "IsNaN": 1, "LeakyRelu": 2, "Log": 1,
    "Mish": 4, "Neg": 1, "Not": 1, "Reciprocal": 1, "Relu": 1, "Round": 1, "Selu": 4, "Shrink": 3,
    "Sigmoid": 3, "Sign": 1, "Sin": 1, "Sinh": 1, "Softplus": 3, "Softsign": 3, "Sqrt": 1,
    "Swish": 4, "Tan": 1, "Tanh": 1, "ThresholdedRelu": 1,
}  # fmt: skip

# From this opset on, both inputs broadcast; before it, the second must fit the first.
TWO_INPUTS = {
    "Add": 7, "And": 7, "BitShift": 1, "BitwiseAnd": 1, "BitwiseOr": 1, "BitwiseXor": 1, "Div": 7,
    "Equal": 7, "Greater": 7, "GreaterOrEqual": 1, "Less": 7, "LessOrEqual": 1, "Mod": 1, "Mul": 7,
    "Or": 7, "Pow": 7, "Sub": 7, "Xor": 7,
}  # fmt: skip

MANY_INPUTS = ("Max", "Mean", "Min", "Sum")

OPERATORS = (
    Operator("Clip", "pointwise", same_shape, clip_values, flops_per_output(2), pointwise.CLIP),
    *(
        Operator(
            name,
            "pointwise",
            same_shape,
            values_of(name),
            flops_per_output(flops),
            pointwise.UNARY.get(name),
        )
        for name, flops in SAME_SHAPE.items()
    ),
    *(
        Operator(
            name,
            "pointwise",
            broadcasting,
            values_of(name),
            flops_per_output(1),
            pointwise.BINARY[name],
            since=since,
        )
        for name, since in TWO_INPUTS.items()
    ),
    *(
        Operator(
            name,
            "pointwise",
            first_shape,
            values_of(name),
            flops_per_output(1),
            pointwise.BINARY_BEFORE_7[name],
            until=since - 1,
        )
        for name, since in TWO_INPUTS.items()
        if since > 1
    ),
    *(
        Operator(
            name,
            "pointwise",
            broadcasting,
            values_of(name),
            per_operand,
            pointwise.VARIADIC[name],
            since=8,
        )
        for name in MANY_INPUTS
    ),
    *(
        Operator(
            name, "pointwise", first_shape, None, per_operand, pointwise.VARIADIC[name], until=7
        )
        for name in MANY_INPUTS
    ),
    Operator("PRelu", "pointwise", prelu, None, flops_per_output(2), pointwise.PRELU, since=7),
    Operator(
        "PRelu", "pointwise", prelu, None, flops_per_output(2), pointwise.PRELU_BEFORE_7, until=6
    ),
    Operator("SwiGLU", "pointwise", equal_shapes, None, flops_per_output(5), pointwise.SWIGLU),
    Operator("Cast", "pointwise", cast, cast_values, flops_per_output(1), pointwise.CAST),
    Operator("CastLike", "pointwise", cast_like, cast_values, flops_per_output(1), pointwise.CAST),
    Operator("BitCast", "view", bit_cast, None, free, pointwise.BIT_CAST),
    Operator("Where", "pointwise", where, where_values, flops_per_output(1), pointwise.WHERE),
    Operator("Dropout", "pointwise", dropout, dropout_values, flops_per_input(1), DROPOUT),
)
