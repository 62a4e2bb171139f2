"""What `Apply` may say: the operations of the language, with their types.

A comparison and a test answer "bool"; every other operation answers the type of its operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sardonyx.loops.nodes import Dtype

__all__ = ["FLOATS", "INTEGERS", "OPERATIONS", "SIGNED", "SMALL_FLOATS", "UNSIGNED", "Operation"]

FLOATS: frozenset[Dtype] = frozenset({"f32", "f64"})
SMALL_FLOATS: frozenset[Dtype] = frozenset({"f16", "bf16"})  # stored, never computed with
SIGNED: frozenset[Dtype] = frozenset({"i8", "i16", "i32", "i64"})
UNSIGNED: frozenset[Dtype] = frozenset({"u8", "u16", "u32", "u64"})
INTEGERS: frozenset[Dtype] = SIGNED | UNSIGNED

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

OPERATIONS: dict[str, Operation] = {
    **{name: Operation(1, FLOATS) for name in _UNARY_FLOAT},
    **{name: Operation(1, _NUMBERS) for name in ("neg", "abs", "sign")},
    **{name: Operation(1, FLOATS, "bool") for name in ("isnan", "isinf")},
    **{name: Operation(2, _NUMBERS) for name in ("add", "sub", "mul", "div", "pow", "fmod", "mod")},
    **{name: Operation(2, _NUMBERS) for name in ("max", "min")},
    **{name: Operation(2, _ALL, "bool") for name in ("eq", "ne")},
    **{name: Operation(2, _NUMBERS, "bool") for name in ("lt", "le", "gt", "ge")},
    **{name: Operation(2, _BITS) for name in ("and", "or", "xor")},
    "not": Operation(1, _BITS),
    "shl": Operation(2, INTEGERS),
    "shr": Operation(2, INTEGERS),
}
