"""What follows a sum, where it is no more than a factor and an offset of each filter, and two limits.

    BatchNormalization ─ Clip(0, 6):     clip(sum · factor[c] + offset[c], 0, 6)

Kernels in float16 arithmetic finish such sums themselves, while they are in registers: converting each to float32
and back took longer than a window of nine products. Factors are taken into the filters, where they cost no rounding of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sardonyx.loops.nodes import Apply, Cast, Const, Expr, For, Index, Kernel, Let, Load, Store, Var
from sardonyx.plan.halves import BOUND, LEAST_BOUND, holds_filters
from sardonyx.plan.kernels import COLUMN, SUMS
from sardonyx.sizes import symbol

__all__ = ["Finish", "find_finish", "scaled"]

Array = npt.NDArray[Any]

_OFFSETS = 4  # times the bound: what is lost of a larger one would show in the result


@dataclass(frozen=True)
class Finish:
    """`factor` · sum + `offset`, one of each a filter, no less than `low` and no more than `high`."""

    factor: Array
    offset: Array
    low: float = -math.inf
    high: float = math.inf

    def is_held(self, weights: Array) -> bool:
        """Whether float16 holds it, and filters with its factors."""
        bound = max(abs(self.low), abs(self.high))
        # A limit that were rounded would let results past it.
        known = LEAST_BOUND <= bound <= BOUND and _is_half(self.low) and _is_half(self.high)
        small = np.abs(self.offset) <= _OFFSETS * bound  # which no NaN is
        if not (known and small.all() and np.isfinite(self.factor).all()):
            return False
        return holds_filters(scaled(weights, self.factor), BOUND)


def scaled(weights: Array, factor: Array) -> Array:
    """Filters, each with its factor."""
    by_filter = factor.reshape(-1, *[1] * (weights.ndim - 1))
    with np.errstate(over="ignore", invalid="ignore"):
        product: Array = (weights.astype(np.float64) * by_filter).astype(weights.dtype)
    return product


def _is_half(limit: float) -> bool:
    with np.errstate(over="ignore"):
        return float(np.float16(limit)) == limit


class _Else(Exception):  # noqa: N818  it is an answer, not a fault
    """The kernel does something else besides."""


def find_finish(epilogue: Kernel, constants: Mapping[str, Array]) -> Finish | None:
    """What an epilogue does to its sums; None where it is more than that.

    Args:
        constants: of its buffers those with numbers that are known, by name.
    """
    (loop, *more) = epilogue.body
    if more or not isinstance(loop, For):
        return None
    reader = _Reader(loop.var, constants)
    found: list[Finish | Array] = []
    try:
        for statement in loop.body:
            if isinstance(statement, Let):
                reader.name(statement)
            elif isinstance(statement, Store):
                found.append(reader.read(statement.value))
            else:
                return None
    except _Else:
        return None
    return found[0] if len(found) == 1 and isinstance(found[0], Finish) else None


class _Reader:
    def __init__(self, lane: str, constants: Mapping[str, Array]) -> None:
        self._column = symbol(COLUMN) + symbol(lane)
        self._columns = {self._column}
        self._constants = constants
        self._names: dict[str, Finish | Array] = {}

    def name(self, let: Let) -> None:
        if not isinstance(let.value, Index):
            self._names[let.name] = self.read(let.value)
        elif let.value.size == self._column:
            self._columns.add(symbol(let.name))

    def read(self, value: Expr) -> Finish | Array:
        match value:
            case Var(name) if name in self._names:
                return self._names[name]
            case Const(number):
                return np.asarray(number, np.float64)
            case Cast(inner, "f16" | "f32" as dtype):
                return _cast(self.read(inner), dtype)
            case Load(buffer, _) if buffer == SUMS:
                return Finish(np.ones(1), np.zeros(1))
            case Load(buffer, offset) if buffer in self._constants and offset in self._columns:
                return self._constants[buffer].astype(np.float64)
            case Apply("add" | "mul" | "min" | "max", (a, b)):
                return _applied(value.op, self.read(a), self.read(b))
        raise _Else


def _cast(value: Finish | Array, dtype: str) -> Finish | Array:
    """What float16 rounds is rounded in the end in any case; but numbers without limits might become infinite."""
    bounded = isinstance(value, Finish) and max(abs(value.low), abs(value.high)) <= BOUND
    if dtype == "f16" and not bounded:
        raise _Else
    return value


def _applied(op: str, a: Finish | Array, b: Finish | Array) -> Finish:
    done, number = (a, b) if isinstance(a, Finish) else (b, a)
    if not isinstance(done, Finish) or isinstance(number, Finish):
        raise _Else
    if op in ("add", "mul"):
        if (done.low, done.high) != (-math.inf, math.inf):
            raise _Else
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not held
            if op == "add":
                return replace(done, offset=done.offset + number)
            return replace(done, factor=done.factor * number, offset=done.offset * number)
    if number.size != 1 or np.isnan(number).any():
        raise _Else
    limit = float(number.reshape(()))
    pick = min if op == "min" else max
    return replace(done, low=pick(done.low, limit), high=pick(done.high, limit))
