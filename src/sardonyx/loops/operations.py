"""What `Apply` may say: the operations of the language, with their types.

A comparison and a test answer "bool"; every other operation answers the type of its operands. "over" is a division of
a finite number by one that is known and ordinary: neither its reciprocal nor that of its reciprocal nor the quotient is
infinite, and none but the quotient is subnormal. "gelu" is that of a finite number to within 2^-21, beside one rounding,
and "gelu_tanh" its approximation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sardonyx.loops.nodes import Dtype

__all__ = [
    "FLOAT8",
    "FLOATS",
    "GELUS",
    "INTEGERS",
    "NARROW",
    "NARROW_INTEGERS",
    "OPERATIONS",
    "SIGNED",
    "SMALL_FLOATS",
    "UNSIGNED",
    "Operation",
    "cast_modes",
]

FLOATS: frozenset[Dtype] = frozenset({"f32", "f64"})
SMALL_FLOATS: frozenset[Dtype] = frozenset({"f16", "bf16"})  # stored, never computed with
SIGNED: frozenset[Dtype] = frozenset({"i8", "i16", "i32", "i64"})
UNSIGNED: frozenset[Dtype] = frozenset({"u8", "u16", "u32", "u64"})
INTEGERS: frozenset[Dtype] = SIGNED | UNSIGNED

# One element a byte: stored, and converted from f32 and to it; integers also by their low bits.
FLOAT8: frozenset[Dtype] = frozenset({"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"})
NARROW_INTEGERS: frozenset[Dtype] = frozenset({"i4", "u4", "i2", "u2"})
NARROW: frozenset[Dtype] = FLOAT8 | NARROW_INTEGERS | {"f8e8m0", "f4e2m1"}

Result: TypeAlias = Literal["same", "bool"]


@dataclass(frozen=True)
class Operation:
    """Its arity, the types it takes, and whether it answers a bool."""

    arity: int
    takes: frozenset[Dtype]
    result: Result = "same"


_NUMBERS = FLOATS | INTEGERS
_BOOLS: frozenset[Dtype] = frozenset({"bool"})
_ALL = _NUMBERS | _BOOLS
_BITS = INTEGERS | _BOOLS

_UNARY_FLOAT = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]

GELUS = {"gelu": "gelu_coarse", "gelu_tanh": "gelu_tanh_coarse"}  # the latter where bytes follow

OPERATIONS: dict[str, Operation] = {
    **{name: Operation(1, FLOATS) for name in _UNARY_FLOAT},
    **{name: Operation(1, _NUMBERS) for name in ("neg", "abs", "sign")},
    **{name: Operation(1, FLOATS, "bool") for name in ("isnan", "isinf")},
    **{name: Operation(2, _NUMBERS) for name in ("add", "sub", "mul", "div", "pow", "fmod", "mod")},
    **{name: Operation(2, _NUMBERS) for name in ("max", "min")},
    "over": Operation(2, FLOATS),
    **{name: Operation(1, frozenset({"f32"})) for name in GELUS},
    **{name: Operation(1, frozenset({"f32"})) for name in GELUS.values()},
    "exp_weight": Operation(1, frozenset({"f32"})),  # of a softmax: its argument is at most 0
    **{name: Operation(2, _ALL, "bool") for name in ("eq", "ne")},
    **{name: Operation(2, _NUMBERS, "bool") for name in ("lt", "le", "gt", "ge")},
    **{name: Operation(2, _BITS) for name in ("and", "or", "xor")},
    "not": Operation(1, _BITS),
    "shl": Operation(2, INTEGERS),
    "shr": Operation(2, INTEGERS),
}


_EXPONENT_MODES = frozenset(
    way + end for way in ("up", "down", "nearest") for end in ("", "_nosat")
)
_EXTRA_MODES: dict[tuple[Dtype, Dtype], tuple[str, ...]] = {
    ("f64", "f32"): ("odd",),
    ("f32", "i32"): ("near",),
    ("f32", "i16"): ("near",),
    ("i16", "i8"): ("saturate",),
    ("i16", "u8"): ("saturate",),
    ("i32", "f32"): ("small",),
}
_SAME_BITS: tuple[frozenset[Dtype], ...] = (
    frozenset({"f32", "i32", "u32"}),
    frozenset({"f64", "i64", "u64"}),
    frozenset({"f16", "bf16", "i16", "u16"}),
    frozenset({"i8", "u8", *FLOAT8, "f8e8m0"}),
)


def cast_modes(source: Dtype, target: Dtype) -> frozenset[str]:
    """The meanings that a conversion between two types may have; "" is the plain one.

    bits: the same bits, read as the other type
    odd: what is inexact ends in an odd bit, so that the next rounding is as if it were the only one
    nosat: what is too large becomes infinite or NaN, not the largest number
    up, down, nearest: how float8e8m0 rounds; it has no plain meaning
    near: to the nearest integer, half to even, of a number of at most 2^22, or 32000 for 16 bits; of others, what the
        bits of its sum with 1.5 * 2^23 give
    saturate: what is too large for a byte becomes its largest or smallest number
    small: an integer of at most 2^22; of others, what the same bits give
    """
    if any({source, target} <= alike for alike in _SAME_BITS) and source != target:
        return _plain_modes(source, target) | {"bits"}
    return _plain_modes(source, target)


def _plain_modes(source: Dtype, target: Dtype) -> frozenset[str]:
    if source in NARROW:
        return frozenset({""} if target == "f32" else ())
    if target == "f8e8m0":
        return _EXPONENT_MODES if source == "f32" else frozenset()
    if target in FLOAT8:
        return frozenset({"", "nosat"} if source == "f32" else ())
    if target in NARROW:
        fits = source == "f32" or (source == "u32" and target in NARROW_INTEGERS)
        return frozenset({""} if fits else ())
    return frozenset({"", *_EXTRA_MODES.get((source, target), ())})
