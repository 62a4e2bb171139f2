"""Operators that make tensors from attributes, shapes or chance."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, bytes_of
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape, Values, facts_of_tensor, objects
from sardonyx.ops.lowerings.generating import CONSTANT_OF_SHAPE, EYE_LIKE, RANGE
from sardonyx.ops.plain import free
from sardonyx.ops.values import as_ratio
from sardonyx.ops.views import concrete_shape
from sardonyx.sizes import Ratio, Size, max_of

__all__ = ["OPERATORS"]

FLOAT, INT64, STRING = ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.STRING


def constant(call: Call) -> list[Facts]:
    """Whichever attribute holds the value."""
    tensor = call.attr("value")
    if tensor is not None:
        return [facts_of_tensor(tensor)]
    sparse = call.attr("sparse_value")
    if sparse is not None:
        return [Facts("tensor", sparse.values.dtype, tuple(sparse.dims))]
    for name, dtype, scalar in (
        ("value_int", INT64, True),
        ("value_ints", INT64, False),
        ("value_float", FLOAT, True),
        ("value_floats", FLOAT, False),
        ("value_string", STRING, True),
        ("value_strings", STRING, False),
    ):
        found = call.attr(name)
        if found is None:
            continue
        elements = [found] if scalar else list(found)
        shape: Shape = () if scalar else (len(elements),)
        facts = Facts("tensor", dtype, shape)
        if dtype == STRING or len(elements) > 1024:
            return [facts]
        return [facts.with_value(objects(elements, () if scalar else None))]
    raise call.error("it has no value attribute")


def constant_of_shape(call: Call) -> list[Facts]:
    fill = call.attr("value")
    dtype = FLOAT if fill is None else fill.dtype
    call.input(0)
    target = call.vector(0)
    if target is None:
        listed = call.shape(0)
        rank = listed[0] if listed is not None and len(listed) == 1 else None
        return [call.out(call.fresh_shape(rank) if isinstance(rank, int) else None, dtype=dtype)]
    for size in target:
        if isinstance(size, int) and size < 0:
            call.fail(f"the shape has the entry {size}; sizes are not negative")
    return [call.out(target, dtype=dtype)]


def constant_of_shape_values(call: Call, output: Facts) -> Values | None:
    fill, shape = call.attr("value"), concrete_shape(output)
    if shape is None:
        return None
    element = 0.0 if fill is None else fill.numpy().reshape(-1)[0].item()
    return np.full(shape, element, dtype=object)


# Range


def range_(call: Call) -> list[Facts]:
    start, limit, delta = (call.scalar(index) for index in range(3))
    for index in range(3):
        call.input(index)
    if start is None or limit is None or delta is None:
        return [call.out((call.fresh(0),))]
    if isinstance(delta, (int, float)) and (delta == 0 or delta != delta):
        call.fail(f"delta is {delta}; it must be a number other than 0")
    length = range_length(start, limit, delta)
    if length is None:
        if all(isinstance(element, (int, float)) for element in (start, limit, delta)):
            call.fail(f"from {start} to {limit} by {delta} is not a finite range")
        return [call.out((call.fresh(0),))]
    return [call.out((length,))]


def range_length(start: Any, limit: Any, delta: Any) -> Size | None:
    """max(ceil((limit - start) / delta), 0), exactly where symbols take part."""
    if all(isinstance(element, (int, float)) for element in (start, limit, delta)):
        if all(isinstance(element, int) for element in (start, limit, delta)):
            return max(-int((start - limit) // delta), 0)
        steps = (limit - start) / delta
        return max(ceil(steps), 0) if isfinite(steps) else None
    a, b, step = as_ratio(start), as_ratio(limit), as_ratio(delta)
    if a is None or b is None or step is None or not isinstance(step.numerator, int):
        return None
    if step.numerator == 0:
        return None
    return max_of(((b - a) * Ratio(step.denominator)).divided_by(step.numerator).ceil(), 0)


def range_values(call: Call, output: Facts) -> Values | None:
    """start, start + delta, …: of a number of elements that is known."""
    start, delta, shape = call.scalar(0), call.scalar(2), concrete_shape(output)
    if shape is None or isinstance(start, (float, Ratio)) or isinstance(delta, (float, Ratio)):
        return None
    if start is None or delta is None:
        return None
    return objects(start + index * delta for index in range(shape[0]))


def eye_like(call: Call) -> list[Facts]:
    call.need_rank(0, 2)
    dtype = call.dtype_attr("dtype") or call.input(0).dtype
    return [call.out(call.input(0).shape, dtype=dtype)]


# Chance


def random_shape(call: Call) -> list[Facts]:
    shape = call.ints_attr("shape")
    if shape is None:
        call.fail("attribute shape is missing")
    if min(shape, default=0) < 0:
        call.fail(f"shape {list(shape)} has a negative size")
    return [call.out(shape, dtype=call.dtype_attr("dtype") or FLOAT)]


def random_like(call: Call) -> list[Facts]:
    dtype = call.dtype_attr("dtype") or call.input(0).dtype
    return [call.out(call.input(0).shape, dtype=dtype)]


def multinomial(call: Call) -> list[Facts]:
    shape = call.need_rank(0, 2)
    batch = call.fresh(0) if shape is None else shape[0]
    dtype = call.dtype_attr("dtype") or ir.DataType.INT32
    return [call.out((batch, call.int_attr("sample_size", 1)), dtype=dtype)]


def writing(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Nothing to read, everything to write."""
    return Cost(0, 0, 0, bytes_of(outputs[0]))


def drawing(call: Call, outputs: Sequence[Facts]) -> Cost:
    return Cost(0, outputs[0].elements, 0, bytes_of(outputs[0]))


OPERATORS = (
    Operator("Constant", "opaque", constant, cost=free),
    Operator(
        "ConstantOfShape",
        "opaque",
        constant_of_shape,
        constant_of_shape_values,
        writing,
        CONSTANT_OF_SHAPE,
    ),
    Operator("Range", "opaque", range_, range_values, drawing, RANGE),
    Operator("EyeLike", "opaque", eye_like, None, writing, EYE_LIKE),
    Operator("RandomNormal", "opaque", random_shape, cost=drawing),
    Operator("RandomUniform", "opaque", random_shape, cost=drawing),
    Operator("RandomNormalLike", "opaque", random_like, cost=drawing),
    Operator("RandomUniformLike", "opaque", random_like, cost=drawing),
    Operator("Bernoulli", "opaque", random_like, cost=drawing),
    Operator("Multinomial", "opaque", multinomial, cost=drawing),
)
