"""Products of a few rows (M = 1 when a model decodes), bound by memory: each weight is read once.

The kernel is that of `gemm` with wider panels: enough sums in a single row to keep the multipliers
busy, so that a task reads its weights as one stream, which memory likes best (measured on Neoverse N1:
19 GB/s a core in one stream, 15 to 16 in two or four).
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.elements import sum_type
from sardonyx.backends.c.kernels.gemm import GemmSpec, product
from sardonyx.backends.c.kernels.isa import Isa, Tile

_VECTORS = 4
_ROWS = 4


def gemv_tile(isa: Isa, dtype: str = "f32") -> Tile:
    """The tile for few rows: pack B in panels of its columns. It has as many rows as registers allow."""
    # Beside the sums: the vectors of B, and one for A.
    rows = min(_ROWS, (isa.registers - _VECTORS - 1) // _VECTORS)
    return Tile(rows, _VECTORS * isa.lanes_of(dtype))


def suits_gemv(spec: GemmSpec, isa: Isa) -> bool:
    """Whether a product has so few rows, known beforehand, that this kernel is the better one."""
    rows = gemv_tile(isa, sum_type(spec.b.dtype)).rows
    return isinstance(spec.m, int) and spec.m <= rows


def gemv(name: str, spec: GemmSpec, epilogue: str, isa: Isa) -> str:
    """C text of the product as a static function; see `gemm.gemm`. Any M is right; few rows are fast."""
    return product(name, spec, epilogue, isa, gemv_tile(isa, sum_type(spec.b.dtype)))
