"""All cases by family, and those of them that the interpreter's own kernels do not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.conversions.tflite_operators.cases import Case
from benchmarks.conversions.tflite_operators.elementwise import activated, binary, compared, unary
from benchmarks.conversions.tflite_operators.file import build
from benchmarks.conversions.tflite_operators.layers import layers
from benchmarks.conversions.tflite_operators.moving import moved
from benchmarks.conversions.tflite_operators.reducing import reduced

__all__ = ["FAMILIES", "INEXACT", "is_inexact", "taken"]

# In this order: they draw from one stream of random numbers.
FAMILIES: Mapping[str, Sequence[Case]] = {
    "unary": list(unary()),
    "binary": list(binary()),
    "activated": list(activated()),
    "compared": list(compared()),
    "reduced": list(reduced()),
    "moved": list(moved()),
    "layers": list(layers()),
}

# Kernels that answer with less than their type could hold, or by other numbers than their grids say; the proof refuses them.
INEXACT = {
    "LOG i2": "a table of 513 numbers",
    "SOFTMAX i2": "a table of 513 numbers",
    "NEG i1": "stored numbers are negated, with a zero point that is not 0",
    "PRELU i2": "factors of 16 bits are read as bytes",
    "REDUCE_PROD i1": "every product on its way is rounded",
    "REDUCE_PROD i2": "every product on its way is rounded",
    "RESIZE_BILINEAR i2": "weights of 10 bits",
}
# What these are given here, they do not take.
_UNFIT = ("SQRT i2", "RSQRT i2", "DIV i4 activation", "CAST f4 u1", "CONCATENATION i2 two grids")


def is_inexact(case: Case) -> bool:
    return case.name.strip().startswith(tuple(INEXACT))


def taken(cases: Sequence[Case]) -> list[Case]:
    """Those that the interpreter itself takes."""
    found = []
    for case in cases:
        try:
            build([case])
        except (RuntimeError, ValueError):
            continue
        if not case.name.startswith(_UNFIT):
            found.append(case)
    return found
