"""Pointwise operators, integer arithmetic and casts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tests.differential.cases.case import EDGE, Case, f, floats, i, ints, pos, words


def pointwise() -> Iterator[Case]:
    unary = {
        7: "Acos Asin Atan Cos Sin Tan",
        9: "Acosh Asinh Atanh Cosh Sinh",
        13: "Abs Ceil Erf Exp Floor Log Neg Reciprocal Sigmoid Sign Sqrt Tanh IsNaN",
        20: "Relu Selu Elu Softplus Softsign HardSigmoid HardSwish Mish LeakyRelu ThresholdedRelu "
        "Celu Gelu Shrink IsInf Identity Round",
    }
    for version, names in unary.items():
        for op in names.split():
            yield Case(op, version, [EDGE])
            yield Case(op, version, [np.zeros((0, 3), np.float32)])
    for op, attributes in (
        ("Elu", {"alpha": 0.3}),
        ("Selu", {"alpha": 0.3, "gamma": 2.0}),
        ("LeakyRelu", {"alpha": -0.3}),
        ("HardSigmoid", {"alpha": 0.1, "beta": 0.3}),
        ("Celu", {"alpha": 0.5}),
        ("ThresholdedRelu", {"alpha": 0.7}),
        ("Shrink", {"lambd": 0.4, "bias": 0.1}),
        ("Gelu", {"approximate": "tanh"}),
        ("IsInf", {"detect_negative": 0}),
        ("IsInf", {"detect_positive": 0}),
    ):
        yield Case(op, 20, [EDGE], attributes)
    yield Case("Round", 11, [floats(0.5, 1.5, 2.5, -0.5, -1.5, -2.5)])
    yield Case("Clip", 13, [EDGE, np.float32(-1), np.float32(1)])
    yield Case("Clip", 13, [EDGE, np.float32(2), np.float32(1)])
    yield Case("Clip", 6, [EDGE], {"min": -1.0, "max": 2.0})
    yield Case("Clip", 6, [EDGE])
    yield Case("Clip", 13, [i(-5, 5, 9, dtype=np.int32), np.int32(-2), np.int32(2)])
    yield Case("PRelu", 9, [f(2, 3, 4), f(3, 1)])
    yield Case("PRelu", 7, [f(2, 3, 4), f(4)])
    yield Case("Where", 16, [np.array([True, False]), f(2), f(3, 2)])
    yield Case("Not", 1, [np.array([True, False])])
    for op in ("And", "Or", "Xor"):
        yield Case(op, 7, [i(0, 2, 3, 4, dtype=bool), i(0, 2, 4, dtype=bool)])
    for op in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        yield Case(op, 16, [EDGE, EDGE[::-1].copy()])
        yield Case(op, 16, [i(0, 3, 4, dtype=np.int32), i(0, 3, 4, dtype=np.int32)])
    yield Case("Equal", 19, [words("a", "b"), words("a")])
    for op in ("Sum", "Mean", "Max", "Min"):
        yield Case(op, 13, [f(4), f(3, 4), f(1, 4)])


def arithmetic() -> Iterator[Case]:
    kinds = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
    for kind in kinds:
        signed = np.dtype(kind).kind == "i"
        a = i(-9 if signed else 0, 10, 4, 5, dtype=kind)
        sign = np.where(i(0, 2, 4, 5) > 0, 1, -1) if signed else 1
        b = (i(1, 5, 4, 5) * sign).astype(kind)
        for op in ("Add", "Sub", "Mul", "Div"):
            yield Case(op, 14, [a, b])
        yield Case("Mod", 13, [a, b])
        yield Case("Mod", 13, [a, b], {"fmod": 1})
        yield Case("Abs", 13, [a])
        yield Case("BitwiseXor", 18, [a, b])
        yield Case("BitwiseNot", 18, [a])
        if kind in (np.int32, np.int64):
            yield Case("Pow", 15, [a, np.abs(b)])
        if kind in (np.uint8, np.uint32, np.uint64):
            yield Case("BitShift", 11, [a, b], {"direction": "LEFT"})
            yield Case("BitShift", 11, [a, b], {"direction": "RIGHT"})
    for op in ("Add", "Mul", "Div"):
        yield Case(op, 14, [f(0, 3), f(1, 3)])
        yield Case(op, 7, [f(2, 3), f(3)])
    yield Case("Mod", 13, [f(3, 4), f(3, 4)], {"fmod": 1})
    yield Case("Pow", 15, [f(3, 4), ints(2)])
    yield Case("Pow", 15, [pos(3, 4), f(4)])
    yield Case("Pow", 15, [i(-3, 4, 3, 4, dtype=np.int32), floats(2)])
    yield Case("Pow", 15, [ints(2, 3, 1, -1), ints(-1, -2, -3, -3)])
    for op in ("Max", "Min"):
        yield Case(op, 13, [floats(1, np.nan, 3), floats(np.nan, 2, 4)])


def casts() -> Iterator[Case]:
    inside = floats(0, 1.5, 2.5, 100, -0.5)
    wild = floats(1e10, -1e10, 3e38, np.nan, np.inf, -np.inf)
    for to in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13):
        yield Case("Cast", 13, [inside], {"to": to})
        yield Case("Cast", 13, [ints(200, -56, 70000, -1, 2**40, 0)], {"to": to})
    for to in (6, 7, 9, 12, 13):
        yield Case("Cast", 13, [wild], {"to": to})
    yield Case("Cast", 13, [words("1.5", "-2", "inf", "NaN", "1e3", "+INF")], {"to": 1})
    yield Case("Cast", 13, [words("1", "-2", "9007199254740993")], {"to": 7})
    yield Case("Cast", 13, [ints(5, -3)], {"to": 8})


FAMILIES = (
    pointwise,
    arithmetic,
    casts,
)
