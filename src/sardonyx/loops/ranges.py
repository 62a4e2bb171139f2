"""The same kernel without what the ranges of its numbers make superfluous.

    t0: i32 = sums[i]                                    t0: i32 = sums[i]            at most 2^22
    t1: f32 = f32(t0) * 0.01               ->            t1: f32 = f32 small(t0) * 0.01
    t2: f32 = isnan(t1) ? 0 : t1
    t3: f32 = min(max(min(max(t2, 0), 6), 0), 5)         t3: f32 = min(max(t1, 0), 5)
    t4: u8 = u8(near(min(max(t3, 0), 255)))              t4: u8 = saturate(near(t3))      by 16 bits

What a quantized model writes between two products does so much twice: it rounds to a byte to read it again, and clips what
was clipped. Ranges are of finite numbers, with rounding as it happens: what is rounded keeps its order. So results stay
as they are, bit by bit; where a NaN or an infinity may come up, there is no range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sardonyx.loops.dead import without_dead
from sardonyx.loops.nodes import (
    Apply,
    Cast,
    Const,
    Dtype,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Select,
    Set,
    Statement,
    Store,
    Var,
    While,
)
from sardonyx.loops.operations import GELUS
from sardonyx.loops.scalars import NUMPY_TYPES

__all__ = ["SMALL", "Range", "apply_ranges", "range_of"]

SMALL = 1 << 22  # integers that a cast of mode "small" knows
_SHORT = 32000  # numbers that are rounded to integers of 16 bits
_BYTES: tuple[Dtype, ...] = ("i8", "u8")
_WHOLE: tuple[Dtype, ...] = ("i8", "u8", "i16", "u16", "i32")


@dataclass(frozen=True)
class Range:
    """Finite numbers from `low` to `high`. Of zeros, -0 is below +0."""

    low: float
    high: float

    def within(self, other: Range) -> bool:
        return _below(other.low, self.low) and _below(self.high, other.high)


def range_of(array: np.ndarray[Any, np.dtype[Any]]) -> Range | None:
    """Of the numbers in an array; None where it has none, or some that are not finite."""
    if not array.size or not np.isfinite(array).all():
        return None
    low, high = float(array.min()), float(array.max())
    return Range(low or -0.0, high or 0.0)


def apply_ranges(kernel: Kernel, known: Mapping[str, Range]) -> Kernel:
    """An equivalent kernel, where the elements of some buffers are known to be within these ranges."""
    body = without_dead(_Walk(known).block(kernel.body), set())
    # Bytes that were read again are gone now; the others are made by clipping them.
    body = _Walk(known, saturates=True).block(body)
    return replace(kernel, body=without_dead(body, set()))


_Found = tuple[Expr, Range | None]  # an expression, and where its numbers are


class _Walk:
    """One walk, first things first; names are unique, so what is known of one stays known."""

    def __init__(self, buffers: Mapping[str, Range], *, saturates: bool = False) -> None:
        self.buffers = buffers
        self.saturates = saturates
        self.ranges: dict[str, Range | None] = {}
        self.values: dict[str, Expr] = {}  # of Lets

    def block(self, body: Iterable[Statement]) -> tuple[Statement, ...]:
        return tuple(self.statement(one) for one in body)

    def statement(self, one: Statement) -> Statement:
        if isinstance(one, (For, While)):
            return replace(one, body=self.block(one.body))
        if isinstance(one, If):
            return replace(one, then=self.block(one.then), other=self.block(one.other))
        if isinstance(one, Let):
            value, self.ranges[one.name] = self.find(one.value)
            self.values[one.name] = value
            return Let(one.name, value)
        if isinstance(one, (Local, Set, Store)):
            return replace(one, value=self.find(one.value)[0])
        return one

    def find(self, value: Expr) -> _Found:
        """The expression with less in it, and its range."""
        if isinstance(value, Const):
            number = float(value.value)
            return value, Range(number, number) if math.isfinite(number) else None
        if isinstance(value, Load):
            return value, self.buffers.get(value.buffer, _range_of_type(value.dtype))
        if isinstance(value, Var):
            return value, self.ranges.get(value.name, _range_of_type(value.dtype))
        if isinstance(value, Cast):
            return self.cast(value)
        if isinstance(value, Select):
            return self.select(value)
        if isinstance(value, Apply):
            return self.application(value)
        return value, None

    def known(self, value: Expr) -> Expr:
        """What a name stands for."""
        while isinstance(value, Var) and value.name in self.values:
            value = self.values[value.name]
        return value

    def cast(self, value: Cast) -> _Found:
        inner, found = self.find(value.value)
        source, target = inner.dtype, value.dtype
        whole = source in _WHOLE and target in _WHOLE
        if whole and found is not None:
            # There and back again, through bits enough for the number.
            before = self.known(inner)
            if isinstance(before, Cast) and before.value.dtype == target and not before.mode:
                original, wide = self.find(before.value)
                if wide is not None and wide.within(_limits(source)):
                    return original, wide
            kept = found if found.within(_limits(target)) else _range_of_type(target)
            if isinstance(inner, Const) and found.within(_limits(target)):
                return Const(int(inner.value), target), found
            if self.saturates and target in _BYTES and found.within(_limits(target)):
                return self.saturated(inner, target) or Cast(inner, target, value.mode), kept
            return Cast(inner, target, value.mode), kept
        made = Cast(inner, target, value.mode)
        if found is None:
            return made, _range_of_type(target)
        if source in _WHOLE and target == "f32":
            if source == "i32" and max(abs(found.low), abs(found.high)) <= SMALL:
                made = Cast(inner, target, "small")
            return made, _rounded(found.low, found.high)
        if source == "f32" and value.mode == "near" and found.within(Range(-SMALL, SMALL)):
            # Integers have one zero.
            return made, Range(float(np.rint(found.low)) + 0.0, float(np.rint(found.high)) + 0.0)
        return made, _range_of_type(target)

    def saturated(self, value: Expr, target: Dtype) -> Expr | None:
        """A number that was clipped and rounded, as a byte: clipped by making it one, where that is possible."""
        zero, rounded = 0, self.known(value)
        if (
            isinstance(rounded, Apply)
            and rounded.op == "add"
            and isinstance(rounded.args[1], Const)
        ):
            zero, rounded = int(rounded.args[1].value), self.known(rounded.args[0])
        if not isinstance(rounded, Cast) or rounded.mode != "near":
            return None
        limits, clips, number = _limits(target), list[Apply](), rounded.value
        ends = {"max": limits.low - zero, "min": limits.high - zero}
        before = self.known(number)
        while isinstance(before, Apply) and before.op in ends and isinstance(before.args[1], Const):
            clips.append(before)
            number, before = before.args[0], self.known(before.args[0])
        # Clips at integers may as well come after rounding; rounding keeps order, so may the others.
        needed = [one for one in clips if _number(one.args[1]) != ends[one.op]]
        if len(needed) == len(clips):
            return None
        for clip in reversed(needed):
            number = Apply(clip.op, (number, clip.args[1]), "f32")
        number, found = self.find(number)
        if found is None or not found.within(Range(-_SHORT, _SHORT)):
            return None
        short: Expr = Cast(number, "i16", "near")
        if zero:
            short = Apply("add", (short, Const(zero, "i16")), "i16")
        return Cast(short, target, "saturate")

    def select(self, value: Select) -> _Found:
        condition = value.condition
        (then, first), (other, second) = self.find(value.then), self.find(value.other)
        if isinstance(condition, Apply) and condition.op == "isnan":
            tested, found = self.find(condition.args[0])
            if found is not None and tested == other:
                return other, found
        if isinstance(condition, Apply) and condition.op == "gt" and first is not None:
            compared = tuple(self.find(one)[0] for one in condition.args)
            if compared == (then, other) and isinstance(other, Const):
                return self.application(Apply("max", (then, other), then.dtype))
        made = Select(self.find(condition)[0], then, other)
        if first is None or second is None:
            return made, None
        return made, Range(min(first.low, second.low), max(first.high, second.high))

    def application(self, value: Apply) -> _Found:
        pairs = [self.find(one) for one in value.args]
        args, ranges = tuple(one for one, _ in pairs), [found for _, found in pairs]
        made = Apply(value.op, args, value.dtype)
        if value.op in _BOUNDED and value.dtype == "f32" and ranges[0] is not None:
            return made, _BOUNDED[value.op]
        if value.op in (*GELUS, *GELUS.values()) and ranges[0] is not None:
            return made, Range(-0.25, max(ranges[0].high, 0.0) + 0.25)
        if len(args) != 2 or None in ranges or value.dtype not in ("f32", "i32"):
            return made, _range_of_type(value.dtype)
        a, b = (one for one in ranges if one is not None)
        if value.op in ("max", "min"):
            return self.clip(made, a, b)
        if value.dtype == "i32" and value.op in ("add", "sub") and isinstance(args[1], Const):
            undone = self.undone(value.op, args[0], args[1])
            if undone is not None:
                return self.find(undone)
        compute = _ARITHMETIC.get(value.op)
        if compute is None:
            return made, _range_of_type(value.dtype)
        ends = [compute(x, y) for x, y in _corners(value.op, a, b)]
        if value.dtype == "i32":
            found = Range(min(ends), max(ends))
            return made, found if found.within(_limits("i32")) else _limits("i32")
        return made, _wider(min(ends), max(ends))

    def undone(self, op: str, value: Expr, by: Const) -> Expr | None:
        """What an addition of a number is of, where this takes it off again; or what 0 is added to."""
        if by.value == 0:
            return value
        before = self.known(value)
        if isinstance(before, Apply) and before.op in ("add", "sub") and before.args[1] == by:
            return before.args[0] if before.op != op else None
        return None

    def clip(self, value: Apply, a: Range, b: Range) -> _Found:
        """A maximum or a minimum, with a number for its second operand if it has one."""
        first, second = value.args
        larger = value.op == "max"
        for kept, mine, other in ((first, a, b), (second, b, a)):
            if _below(other.high, mine.low) if larger else _below(mine.high, other.low):
                return kept, mine
        ends = max if larger else min
        found = Range(ends((a.low, b.low), key=_order), ends((a.high, b.high), key=_order))
        return self.without_milder(value), found

    def without_milder(self, value: Apply) -> Apply:
        """A maximum or minimum with a number, of what was one before with a number that this one makes useless."""
        first, second = value.args
        before = self.known(first)
        if not isinstance(before, Apply) or before.op != value.op or not isinstance(second, Const):
            return value
        kept, earlier = before.args
        if not isinstance(earlier, Const):
            return value
        milder, number = float(earlier.value), float(second.value)
        if _below(milder, number) if value.op == "max" else _below(number, milder):
            return Apply(value.op, (kept, second), value.dtype)
        return value


def _number(value: Expr) -> float | None:
    return float(value.value) if isinstance(value, Const) else None


def _order(number: float) -> tuple[float, float]:
    return number, math.copysign(1.0, number)


def _below(a: float, b: float) -> bool:
    """a <= b, -0 being below +0."""
    return _order(a) <= _order(b)


def _range_of_type(dtype: Dtype) -> Range | None:
    return _limits(dtype) if dtype in _WHOLE else None


def _limits(dtype: Dtype) -> Range:
    ends = np.iinfo(NUMPY_TYPES[dtype])
    return Range(float(ends.min), float(ends.max))


def _rounded(low: float, high: float) -> Range | None:
    """As float32 has these two; None where it does not."""
    with np.errstate(over="ignore"):
        ends = [float(np.float32(end)) for end in (low, high)]
    return Range(*ends) if all(map(math.isfinite, ends)) else None


def _wider(low: float, high: float) -> Range | None:
    """A step more than float32 has between these two: float64 may have rounded before, and compilers fuse operations."""
    with np.errstate(over="ignore"):
        ends = (
            np.nextafter(np.float32(low), np.float32(-np.inf)),
            np.nextafter(np.float32(high), np.float32(np.inf)),
        )
    return Range(float(ends[0]), float(ends[1])) if np.isfinite(ends).all() else None


_BOUNDED = {op: Range(-1.0, 1.0) for op in ("erf", "tanh", "sigmoid")}  # of finite numbers
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "over": lambda x, y: x / y if y else math.inf,
}


def _corners(op: str, a: Range, b: Range) -> list[tuple[float, float]]:
    if op == "over" and b.low != b.high:
        return [(math.inf, 1.0)]
    return [(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
