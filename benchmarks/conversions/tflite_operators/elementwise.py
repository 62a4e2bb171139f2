"""Operators on one element, or on a pair of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.conversions.tflite_operators.cases import (
    ALL,
    BYTES,
    RNG,
    STEPS,
    WHOLE,
    Case,
    Value,
    const,
    fed,
    ints,
    name_of,
    out,
)

__all__ = ["activated", "binary", "compared", "unary"]


def unary() -> Iterator[Case]:
    kinds = "ABS CEIL COS ELU EXP FLOOR LOG LOGISTIC NEG RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 ROUND SIGN SIN"
    kinds += " SQRT RSQRT SQUARE TANH HARD_SWISH GELU LEAKY_RELU SOFTMAX LOG_SOFTMAX L2_NORMALIZATION ZEROS_LIKE"
    options = {
        "GELU": ("GeluOptions", {"approximate": False}),
        "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.3}),
        "SOFTMAX": ("SoftmaxOptions", {"beta": 1.0}),
        "L2_NORMALIZATION": ("L2NormOptions", {}),
    }
    # Grids that a kernel insists on.
    grids = {
        "SOFTMAX": {"i1": (1 / 256, -128), "u1": (1 / 256, 0), "i2": (1 / 32768, 0)},
        "LOGISTIC": {"i1": (1 / 256, -128), "u1": (1 / 256, 0), "i2": (1 / 32768, 0)},
        "LOG_SOFTMAX": {"i1": (16 / 256, 127), "u1": (16 / 256, 255)},
        "TANH": {"i1": (1 / 128, 0), "u1": (1 / 128, 128), "i2": (1 / 32768, 0)},
        "L2_NORMALIZATION": {"i1": (1 / 128, 0), "u1": (1 / 128, 128)},
    }
    for kind in kinds.split():
        for dtype in (*ALL, *WHOLE):
            positive = kind in ("LOG", "SQRT", "RSQRT")
            x = fed(dtype, 2, 5)
            if dtype in BYTES and positive:  # from 0 on
                x = fed(dtype, 2, 5, zero={"i1": -128, "u1": 0, "i2": 0}[dtype])
            if dtype == "f4" and positive:
                x = const(RNG.uniform(0.1, 4, (2, 5)), np.float32)
            grid = grids.get(kind, {}).get(dtype)
            if kind in ("ABS", "RSQRT") and dtype in BYTES:
                grid = (0.06, 1 if dtype != "i2" else 0)
            y = out(dtype, *grid) if grid else out(dtype)
            name, fields = options.get(kind, (None, {}))
            yield Case(name_of(kind, dtype), kind, [x], [y], name, fields)
    yield Case(
        "GELU tanh f4", "GELU", [fed("f4", 9)], [out("f4")], "GeluOptions", {"approximate": True}
    )
    yield Case(
        "SOFTMAX beta f4",
        "SOFTMAX",
        [fed("f4", 2, 5)],
        [out("f4")],
        "SoftmaxOptions",
        {"beta": 0.5},
    )
    yield Case("LOGICAL_NOT", "LOGICAL_NOT", [fed("?", 2, 5)], [out("?")])


_ARITHMETIC = {
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "DIV": "DivOptions",
    "POW": "PowOptions",
    "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
}


def _divisor(kind: str, dtype: str, y: Value) -> Value:
    """Another right side, where not every number will do."""
    data: Any = None
    if kind in ("DIV", "FLOOR_DIV", "FLOOR_MOD", "POW") and dtype != "f4":
        data = [[1, 2, 3, 5, 7]] if kind == "POW" else [[3, -2, 7, 5, -4]]
        data = [[3, 200, 7, 5, 250]] if dtype == "u1" else data
    if kind == "PRELU" and dtype in ALL:
        data = RNG.normal(size=5) if dtype == "f4" else ints(dtype, 5)
    return y if data is None else const(data, dtype, y.scale, y.zero)


def binary() -> Iterator[Case]:
    for kind in [
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "MAXIMUM",
        "MINIMUM",
        "POW",
        "SQUARED_DIFFERENCE",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "ATAN2",
        "PRELU",
    ]:
        for dtype in (*ALL, *WHOLE):
            x, y = fed(dtype, 3, 5), fed(dtype, 3 if kind == "ATAN2" else 1, 5)
            if dtype in BYTES and kind not in ("MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD"):
                found = STEPS[dtype]
                y = fed(dtype, 1, 5, scale=found[0] * 0.7, zero=found[1] and found[1] - 9)
            y = _divisor(kind, dtype, y)
            if kind == "POW" and dtype == "f4":
                x = const(RNG.uniform(0.2, 3, (3, 5)), np.float32)
            plain = kind in ("FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM") and dtype in BYTES
            if plain:  # integers that stand for themselves, too
                a, b = Value(dtype, (3, 5)), Value(dtype, (1, 5), y.data)
                yield Case(
                    name_of(kind, dtype, "plain"),
                    kind,
                    [a, b],
                    [Value(dtype)],
                    _ARITHMETIC.get(kind),
                )
            scale = {"MUL": 0.12, "SQUARED_DIFFERENCE": 0.4}.get(kind)
            z = out(dtype, scale if dtype != "i2" and dtype in BYTES else None)
            yield Case(name_of(kind, dtype), kind, [x, y], [z], _ARITHMETIC.get(kind))


def activated() -> Iterator[Case]:
    for kind in ("ADD", "SUB", "MUL", "DIV"):
        for code, dtype in (
            (1, "f4"),
            (2, "f4"),
            (3, "f4"),
            (1, "i1"),
            (3, "i1"),
            (2, "u1"),
            (1, "i4"),
            (3, "i4"),
        ):
            x, y = fed(dtype, 3, 5), fed(dtype, 3, 5)
            yield Case(
                name_of(kind, dtype, "activation", code),
                kind,
                [x, y],
                [out(dtype)],
                _ARITHMETIC[kind],
                {"fusedActivationFunction": code},
            )


def compared() -> Iterator[Case]:
    for kind in ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"]:
        for dtype in (*ALL, *WHOLE, "?"):
            x = fed(dtype, 3, 5)
            y = fed(dtype, 1, 5)
            if dtype in BYTES:  # another grid
                y = fed(dtype, 1, 5, scale=STEPS[dtype][0] * 0.7)
            yield Case(name_of(kind, dtype), kind, [x, y], [out("?")])
    for kind in ("LOGICAL_AND", "LOGICAL_OR"):
        yield Case(kind, kind, [fed("?", 3, 5), fed("?", 1, 5)], [out("?")])
    for dtype in ("i1", "u1", "i2", "i4", "u4"):
        x, y = Value(dtype, (3, 5)), Value(dtype, (3, 5))
        yield Case(name_of("BITWISE_XOR", dtype), "BITWISE_XOR", [x, y], [Value(dtype)])
    for dtype in ("f4", "i4"):
        yield Case(
            name_of("ADD_N", dtype), "ADD_N", [fed(dtype, 3, 5) for _ in range(3)], [out(dtype)]
        )
    for dtype in (*ALL, *WHOLE):
        x, y = fed(dtype, 3, 5), fed(dtype, 3, 5)
        yield Case(name_of("SELECT_V2", dtype), "SELECT_V2", [fed("?", 3, 1), x, y], [out(dtype)])
        yield Case(name_of("SELECT", dtype), "SELECT", [fed("?", 3), x, y], [out(dtype)])
