"""Arithmetic on known elements: numpy when all are numbers, expressions when some are symbols."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.facts import DISCRETE, Facts, Values, as_array, is_concrete, objects
from sardonyx.sizes import Expr, Ratio, Size, at_least, max_of, min_of

__all__ = ["Numeric", "Symbolic", "as_ratio", "cast_value", "known_order", "pointwise_value"]

Numeric = Callable[..., npt.NDArray[Any]]
Symbolic = Callable[..., Any]  # elements to element; None: not known

# A float that passes through shape arithmetic is exact when it is a fraction as simple as this.
MAX_DENOMINATOR = 1024
MAX_OPERANDS = 32  # numpy broadcasts no more at once


def pointwise_value(
    call: Call, output: Facts, numeric: Numeric, symbolic: Symbolic
) -> Values | None:
    """The elements of a pointwise node's output, or None when an input's are not known."""
    values = [call.value(index) for index in range(len(call.inputs))]
    if any(value is None for value in values) or output.dtype is None:
        return None
    known = [value for value in values if value is not None]
    if all(is_concrete(value) for value in known):
        arrays = [as_array(facts) for facts in call.inputs if facts is not None]
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(numeric(*arrays)).astype(output.dtype.numpy())
        except ArithmeticError:
            return None
        return result.astype(object) if result.shape == output.shape else None
    if len(known) > MAX_OPERANDS:
        return None
    elements = []
    for operands in np.broadcast(*known):
        element = symbolic(*operands)
        if element is None:
            return None
        elements.append(element)
    if output.shape is None or not all(isinstance(dim, int) for dim in output.shape):
        return None
    shape = tuple(dim for dim in output.shape if isinstance(dim, int))
    return objects(elements, shape) if np.prod(shape) == len(elements) else None


def as_ratio(element: Any) -> Ratio | None:
    """A float's element as an exact fraction, when it is a simple one."""
    if isinstance(element, Ratio):
        return element
    if isinstance(element, (int, Expr)):
        return Ratio(element)
    if not np.isfinite(element):
        return None
    # 0.7 in single precision is meant as 7/10, and products with it round to what that gives.
    simple = Fraction(element).limit_denominator(MAX_DENOMINATOR)
    nearest = float(simple)
    if nearest != element and float(np.float32(nearest)) != element:
        return None
    return Ratio(simple.numerator, simple.denominator)


def known_order(a: Any, b: Any) -> int | None:
    """-1, 0 or 1 as a is below, equal to or above b in every case; None when that varies."""
    if isinstance(a, (Ratio, float)) or isinstance(b, (Ratio, float)):
        left, right = as_ratio(a), as_ratio(b)
        if left is None or right is None:
            return None
        a, b = left.numerator * right.denominator, right.numerator * left.denominator
    if a == b:
        return 0
    if at_least(a, b + 1):
        return 1
    if at_least(b, a + 1):
        return -1
    return None


def cast_value(value: Values, source: ir.DataType, target: ir.DataType) -> Values | None:
    """The elements after Cast, or None when a symbol's fate is not certain."""
    if is_concrete(value):
        with np.errstate(all="ignore"):
            return value.astype(source.numpy()).astype(target.numpy()).astype(object)
    elements = []
    for element in value.flat:
        cast = _cast_element(element, target)
        if cast is None:
            return None
        elements.append(cast)
    return objects(elements, value.shape)


def _cast_element(element: Any, target: ir.DataType) -> Any:
    if target == ir.DataType.BOOL:
        order = known_order(element, 0)
        return None if order is None else order != 0
    if target in DISCRETE:
        if isinstance(element, Ratio):
            # Casts cut towards zero, which is the floor only where nothing is negative.
            return element.floor() if at_least(element.numerator, 0) else None
        return int(element) if isinstance(element, (bool, float)) else element
    if target in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return as_ratio(element)
    return None  # half precision does not hold every size


def symbolic_extreme(pick: str, *elements: Any) -> Any:
    """max or min over integers, or over fractions of one denominator."""
    if any(isinstance(element, (Ratio, float)) for element in elements):
        ratios = [as_ratio(element) for element in elements]
        if any(ratio is None for ratio in ratios):
            return None
        known = [ratio for ratio in ratios if ratio is not None]
        scale = max(ratio.denominator for ratio in known)
        if any(scale % ratio.denominator for ratio in known):
            return None
        tops = [ratio.numerator * (scale // ratio.denominator) for ratio in known]
        return Ratio(max_of(*tops) if pick == "max" else min_of(*tops), scale)
    sizes: list[Size] = list(elements)
    return max_of(*sizes) if pick == "max" else min_of(*sizes)
