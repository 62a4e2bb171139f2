"""Which kernels in float16 arithmetic may compute a contraction of float32, and whether a rule expects that to pay.

They are for precision "bfloat16", whose numbers have eight bits where these have eleven. Weights are packed beforehand,
rows as they are read: that costs about as much as some columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.plan.target import Target
from sardonyx.sizes import Size, ceil_div

__all__ = [
    "HALF_ARITHMETIC",
    "HALF_PANEL",
    "half_attention_elements",
    "half_bytes",
    "halves_attention",
    "with_halves",
]

HALF_ARITHMETIC = ("gemm f16", "direct f16", "winograd f16")
HALF_PANEL, HALF_HEAD = 16, 32  # columns of a panel, and what its scales take: elements of float16
# With fewer columns, packing rows takes as long as is gained (measured on Neoverse N1: 0.84 of float32's rate with 16, as
# much with 24, 1.4 times with 144).
_LEAST_ROWS, _LEAST_DEPTH, _LEAST_COLUMNS = 4, 16, 32


def half_bytes(columns: Size, inner: Size) -> Size:
    """Bytes of packed weights, their scales included."""
    return ceil_div(columns, HALF_PANEL) * (HALF_PANEL * inner + HALF_HEAD) * 2


def with_halves(
    target: Target, plain: Sequence[str], name: str, rows: Size, inner: Size, columns: Size
) -> tuple[str, ...]:
    """Other kernels, and the one of this name: in front where a rule expects that it pays.

    For operands of float32 alone, one of them packed beforehand.
    """
    if target.precision != "bfloat16" or not target.half_arithmetic:
        return tuple(plain)
    many = rows >= _LEAST_ROWS if isinstance(rows, int) else True
    deep = isinstance(inner, int) and inner >= _LEAST_DEPTH
    wide = isinstance(columns, int) and columns >= _LEAST_COLUMNS
    return (name, *plain) if many and deep and wide else (*plain, name)


def halves_attention(target: Target, rows: Size, keys: Size, size: int, width: int) -> bool:
    """Whether an attention's two products are multiplied in float16: where they may be, and packing pays."""
    if target.precision != "bfloat16" or not target.half_arithmetic:
        return False
    many = all(not isinstance(n, int) or n >= _LEAST_DEPTH for n in (rows, keys))
    return many and min(size, width) >= _LEAST_DEPTH


def half_attention_elements(keys: Size, size: int, width: int) -> tuple[Size, Size]:
    """Elements of float16 that the packed keys and values of a batch take, scales included: one of float32 a value."""
    panels = ceil_div(width, HALF_PANEL)
    of_keys = ceil_div(keys, HALF_PANEL) * (HALF_PANEL * size + HALF_HEAD)
    return of_keys, panels * (keys * HALF_PANEL + HALF_HEAD) + 2 * keys
