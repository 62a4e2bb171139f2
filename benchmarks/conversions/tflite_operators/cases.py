"""A case: one operator with its inputs, and short words for the tensors around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "ALL",
    "BYTES",
    "RNG",
    "STEPS",
    "WHOLE",
    "Case",
    "Value",
    "const",
    "fed",
    "ints",
    "name_of",
    "out",
]

BYTES = ("i1", "u1", "i2")
ALL = ("f4", *BYTES)
WHOLE = ("i4", "i8")
STEPS = {"i1": (0.05, 3), "u1": (0.05, 120), "i2": (0.0003, 0)}  # scale and zero of their grids
RNG = np.random.default_rng(5)


@dataclass(frozen=True)
class Value:
    """A tensor: a constant, or what is fed or computed.

    Attributes:
        shape: None for what an operator computes.
        scale, zero: where its integers stand for reals; one, or one for every place along `axis`.
    """

    dtype: Any
    shape: tuple[int, ...] | None = None
    data: Any = None
    scale: Any = None
    zero: Any = 0
    axis: int = 0


@dataclass(frozen=True)
class Case:
    """One operator.

    Attributes:
        kind: as the schema of TensorFlow Lite calls it.
        options, fields: the table of its options, and what is in it.
    """

    name: str
    kind: str
    inputs: Sequence[Value | None]
    outputs: Sequence[Value]
    options: Any = None
    fields: Mapping[str, Any] = field(default_factory=dict)


def name_of(kind: str, *parts: Any) -> str:
    return " ".join([kind, *map(str, parts)])


def fed(dtype: str, *shape: int, scale: Any = None, zero: Any = None) -> Value:
    """An input; bytes have their grid, or the one given."""
    if dtype in STEPS:
        found = STEPS[dtype]
        return Value(dtype, shape, None, scale or found[0], found[1] if zero is None else zero)
    return Value(dtype, shape)


def const(data: Any, dtype: Any = None, scale: Any = None, zero: Any = 0, axis: int = 0) -> Value:
    """Numbers in the file; without a type, in the 32-bit one of their kind."""
    array = np.asarray(data, dtype)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.dtype == np.int64 and dtype is None:
        array = array.astype(np.int32)
    return Value(array.dtype, array.shape, array, scale, zero, axis)


def out(dtype: str, scale: Any = None, zero: Any = None) -> Value:
    """A result; a scale of 0 is none."""
    if dtype in STEPS and scale != 0:
        found = STEPS[dtype]
        return Value(dtype, None, None, scale or found[0], found[1] if zero is None else zero)
    return Value(dtype)


def ints(dtype: str, *shape: int) -> Any:
    """Random numbers."""
    limits = np.iinfo(dtype)
    low, high = max(limits.min + 1, -1000), min(limits.max, 1000)
    return RNG.integers(low, high, shape, np.dtype(dtype).type)
