"""Pointwise arithmetic twice: on numbers with numpy, and on expressions.

    name: (numeric, symbolic)       symbolic answers None where it cannot be sure

Integer division cuts towards zero and the remainder takes the divisor's sign, as the
specification says; on symbols both are only told where nothing can be negative, or it comes out as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from sardonyx.ops.values import Numeric, Symbolic, as_ratio, known_order, symbolic_extreme
from sardonyx.sizes import Ratio, at_least, max_of

__all__ = ["BINARY", "UNARY", "VARIADIC", "truncated_remainder", "where_element"]

MAX_EXPONENT = 8


def _is_fraction(*elements: Any) -> bool:
    return any(isinstance(element, (Ratio, float)) for element in elements)


def _ring(on_sizes: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """+ - *: the same on sizes and on fractions."""
    if not _is_fraction(a, b):
        return on_sizes(a, b)
    left, right = as_ratio(a), as_ratio(b)
    return None if left is None or right is None else on_sizes(left, right)


def _divide(a: Any, b: Any) -> Any:
    if _is_fraction(a, b):
        left, right = as_ratio(a), as_ratio(b)
        if left is None or right is None or not isinstance(right.numerator, int):
            return None
        if right.numerator == 0:
            return None
        return (left * Ratio(right.denominator)).divided_by(right.numerator)
    if at_least(a, 0):
        return a // b if _divisor(b) else None
    # Nothing between -b and 0 has a quotient but 0.
    cut = isinstance(b, int) and b > 0 and at_least(a, 1 - b)
    return max_of(a, 0) // b if cut else None


def _remainder(a: Any, b: Any) -> Any:
    return a % b if not _is_fraction(a, b) and _divisor(b) else None


def _divisor(b: Any) -> bool:
    """Positive wherever the division has an answer at all."""
    return b > 0 if isinstance(b, int) else at_least(b, 0)


def _power(a: Any, b: Any) -> Any:
    if _is_fraction(a, b) or not isinstance(b, int) or not 0 <= b <= MAX_EXPONENT:
        return None
    return reduce(lambda x, y: x * y, [a] * b, 1)


def _reaches(a: Any, b: Any) -> bool | None:
    """Whether a >= b; None when it depends on the symbols."""
    left, right = as_ratio(a), as_ratio(b)
    if left is None or right is None:
        return None
    above, below = left.numerator * right.denominator, right.numerator * left.denominator
    if at_least(above, below):
        return True
    return False if at_least(below, above + 1) else None


def _equals(a: Any, b: Any) -> bool | None:
    order = known_order(a, b)
    return None if order is None else order == 0


def _negated(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _absolute(a: Any) -> Any:
    if _is_fraction(a):
        return a if isinstance(a, Ratio) and at_least(a.numerator, 0) else None
    return symbolic_extreme("max", a, -a)


def _negate(a: Any) -> Any:
    if not _is_fraction(a):
        return -a
    ratio = as_ratio(a)
    return None if ratio is None else ratio * Ratio(-1)


def _floor(a: Any) -> Any:
    ratio = as_ratio(a)
    return None if ratio is None else Ratio(ratio.floor())


def _ceil(a: Any) -> Any:
    ratio = as_ratio(a)
    return None if ratio is None else Ratio(ratio.ceil())


def _round(a: Any) -> Any:
    ratio = as_ratio(a)
    return ratio if ratio is not None and ratio.denominator == 1 else None


def _sign(a: Any) -> Any:
    order = known_order(a, 0)
    return None if order is None else order


def _unknown(*_: Any) -> None:
    return None


def where_element(condition: Any, a: Any, b: Any) -> Any:
    """A boolean element is always known; it was dropped with the whole value otherwise."""
    return a if condition else b


def _truncated_division(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    _refuse_zero(b)
    quotient = np.abs(a) // np.abs(b)
    return np.asarray(np.where((a < 0) != (b < 0), -quotient, quotient)).astype(a.dtype)


def _floored_remainder(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    _refuse_zero(b)
    return np.asarray(np.mod(a, b))


def truncated_remainder(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Mod with fmod=1: the sign of the dividend."""
    _refuse_zero(b)
    return np.asarray(np.fmod(a, b))


def _refuse_zero(b: npt.NDArray[Any]) -> None:
    """Running the node will fail; until then its answer is unknown."""
    if b.dtype.kind in "iu" and not b.all():
        raise ZeroDivisionError("integer division by zero")


def _numeric_power(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if a.dtype.kind in "iu" and (b < 0).any():
        return np.asarray(np.power(a.astype(np.float64), b))
    return np.asarray(np.power(a, b))


def _folded(function: Numeric) -> Numeric:
    return lambda *arrays: reduce(function, arrays)


UNARY: dict[str, tuple[Numeric, Symbolic]] = {
    "Abs": (np.abs, _absolute),
    "Neg": (np.negative, _negate),
    "Relu": (lambda a: np.maximum(a, a.dtype.type(0)), lambda a: symbolic_extreme("max", a, 0)),
    "Floor": (np.floor, _floor),
    "Ceil": (np.ceil, _ceil),
    "Round": (np.round, _round),
    "Sign": (np.sign, _sign),
    "Not": (np.logical_not, lambda a: not a),
    "Sqrt": (np.sqrt, _unknown),
    "Reciprocal": (np.reciprocal, _unknown),
}

BINARY: dict[str, tuple[Numeric, Symbolic]] = {
    "Add": (np.add, partial(_ring, lambda a, b: a + b)),
    "Sub": (np.subtract, partial(_ring, lambda a, b: a - b)),
    "Mul": (np.multiply, partial(_ring, lambda a, b: a * b)),
    "Div": (_truncated_division, _divide),
    "Mod": (_floored_remainder, _remainder),
    "Pow": (_numeric_power, _power),
    "Equal": (np.equal, _equals),
    "Greater": (np.greater, lambda a, b: _negated(_reaches(b, a))),
    "GreaterOrEqual": (np.greater_equal, _reaches),
    "Less": (np.less, lambda a, b: _negated(_reaches(a, b))),
    "LessOrEqual": (np.less_equal, lambda a, b: _reaches(b, a)),
    "And": (np.logical_and, lambda a, b: a and b),
    "Or": (np.logical_or, lambda a, b: a or b),
    "Xor": (np.logical_xor, lambda a, b: a != b),
    "BitwiseAnd": (np.bitwise_and, _unknown),
    "BitwiseOr": (np.bitwise_or, _unknown),
    "BitwiseXor": (np.bitwise_xor, _unknown),
}

VARIADIC: dict[str, tuple[Numeric, Symbolic]] = {
    "Max": (_folded(np.maximum), partial(symbolic_extreme, "max")),
    "Min": (_folded(np.minimum), partial(symbolic_extreme, "min")),
    "Sum": (
        _folded(np.add),
        lambda *elements: reduce(partial(_ring, lambda a, b: a + b), elements),
    ),
}
