"""Which kernels in float16 arithmetic may compute a contraction of float32, and whether a rule expects that to pay.

They are for precision "bfloat16", whose numbers have eight bits where these have eleven. Weights are packed beforehand,
rows as they are read: that costs about as much as some columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sardonyx.plan.target import Target
from sardonyx.sizes import Size, ceil_div

__all__ = [
    "BOUND",
    "HALF_ARITHMETIC",
    "HALF_PANEL",
    "HALF_SUMS",
    "LEAST_BOUND",
    "half_attention_elements",
    "half_bytes",
    "halves_attention",
    "halves_pay",
    "holds_filters",
    "may_halve",
    "with_halves",
]

HALF_ARITHMETIC = ("gemm f16", "direct f16", "winograd f16", "depthwise f16")
# Bounds of a value that float16 holds: rows whose largest number is between are not scaled.
LEAST_BOUND, BOUND = 2.0**-3, 2.0**6
HALF_SUMS = 240  # products of a convolution that are added up in float16 alone, if it has no more
HALF_PANEL, HALF_HEAD = 16, 32  # columns of a panel, and what its scales take: elements of float16
# With fewer columns, packing rows takes as long as is gained (measured on Neoverse N1: 0.84 of float32's rate with 16, as
# much with 24, 1.4 times with 144). Rows that are float16 already are packed sooner: 1.2 and 1.3 times with 16 and 24.
_LEAST_ROWS, _LEAST_DEPTH, _LEAST_COLUMNS, _LEAST_OF_HALVES = 4, 16, 32, 16

_LARGEST = 32768  # sums of a convolution, with all signs alike
_LEAST_WEIGHT = 2.0**-8  # the largest of a filter: a 64th of that has all bits in float16


def half_bytes(columns: Size, inner: Size) -> Size:
    """Bytes of packed weights, their scales included."""
    return ceil_div(columns, HALF_PANEL) * (HALF_PANEL * inner + HALF_HEAD) * 2


def with_halves(target: Target, plain: Sequence[str], name: str, *, pays: bool) -> tuple[str, ...]:
    """Other kernels, and the one of this name: in front where a rule expects that it pays.

    For operands of float32 alone, one of them packed beforehand.
    """
    if not may_halve(target):
        return tuple(plain)
    return (name, *plain) if pays else (*plain, name)


def holds_filters(weights: NDArray[np.float32], bound: float) -> bool:
    """Whether float16 holds filters, and sums of values within the bound that are multiplied by them."""
    sizes = np.abs(weights.reshape(len(weights), -1))
    largest = sizes.max(axis=1, initial=0)
    known = np.isfinite(largest).all() and bound * sizes.sum(axis=1).max(initial=0) <= _LARGEST
    return bool(known and ((largest >= _LEAST_WEIGHT) | (largest == 0)).all())


def may_halve(target: Target) -> bool:
    """Whether products of float32 may be multiplied as float16."""
    return target.precision == "bfloat16" and target.half_arithmetic


def halves_pay(rows: Size, inner: Size, columns: Size, *, narrow: bool = False) -> bool:
    """Whether a product, or a group of a convolution, is expected to be faster so.

    Args:
        narrow: its rows are float16 already (see `narrow`).
    """
    many = rows >= _LEAST_ROWS if isinstance(rows, int) else True
    deep = isinstance(inner, int) and inner >= _LEAST_DEPTH
    least = _LEAST_OF_HALVES if narrow else _LEAST_COLUMNS
    return many and deep and isinstance(columns, int) and columns >= least


def halves_attention(target: Target, rows: Size, keys: Size, size: int, width: int) -> bool:
    """Whether an attention's two products are multiplied in float16: where they may be, and packing pays."""
    many = all(not isinstance(n, int) or n >= _LEAST_DEPTH for n in (rows, keys))
    return may_halve(target) and many and min(size, width) >= _LEAST_DEPTH


def half_attention_elements(keys: Size, size: int, width: int) -> tuple[Size, Size]:
    """Elements of float16 that the packed keys and values of a batch take, scales included: one of float32 a value."""
    panels = ceil_div(width, HALF_PANEL)
    of_keys = ceil_div(keys, HALF_PANEL) * (HALF_PANEL * size + HALF_HEAD)
    return of_keys, panels * (keys * HALF_PANEL + HALF_HEAD) + 2 * keys
