"""Functions for custom operators: on arrays they compute, in a kernel they are written as code.

    @sx.operator("com.acme::SoftStep")
    def soft_step(v, *, sharpness=1.0):
        return expressions.sigmoid(v * sharpness)

The same function gives the operator its meaning (numpy arrays go in) and its native code (elements of
the kernel language go in).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.loops import build
from sardonyx.loops.nodes import Operand, apply

__all__ = [
    "absolute",
    "ceil",
    "cos",
    "erf",
    "exp",
    "floor",
    "isnan",
    "log",
    "maximum",
    "minimum",
    "power",
    "sigmoid",
    "sin",
    "softplus",
    "sqrt",
    "tanh",
    "where",
]


def _either(op: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    def function(*operands: Any) -> Any:
        if any(isinstance(one, Operand) for one in operands):
            return apply(op, *operands)
        return compute(*operands)

    function.__name__ = op
    function.__doc__ = f"{op} of an array, or of an element in a kernel."
    return function


def _sigmoid(v: Any) -> Any:
    small = np.exp(-np.abs(v))
    return np.where(np.asarray(v) >= 0, 1 / (1 + small), small / (1 + small)).astype(
        np.asarray(v).dtype
    )


_erf = np.vectorize(math.erf)

absolute = _either("abs", np.abs)
ceil = _either("ceil", np.ceil)
cos = _either("cos", np.cos)
erf = _either("erf", lambda v: _erf(v).astype(np.asarray(v).dtype))
exp = _either("exp", np.exp)
floor = _either("floor", np.floor)
isnan = _either("isnan", np.isnan)
log = _either("log", np.log)
maximum = _either("max", np.maximum)
minimum = _either("min", np.minimum)
power = _either("pow", np.power)
sigmoid = _either("sigmoid", _sigmoid)
sin = _either("sin", np.sin)
softplus = _either("softplus", lambda v: np.logaddexp(np.asarray(0, np.asarray(v).dtype), v))
sqrt = _either("sqrt", np.sqrt)
tanh = _either("tanh", np.tanh)


def where(condition: Any, then: Any, other: Any) -> Any:
    """`then` where the condition holds, else `other`."""
    if isinstance(condition, Operand):
        return build.where(condition, then, other)  # type: ignore[arg-type]
    return np.where(condition, then, other)
