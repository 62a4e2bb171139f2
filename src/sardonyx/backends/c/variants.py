"""The names of contraction kernels, and what each of them is cut into.

    gemm        the usual tile          gemv            for few rows: wider panels
    gemm 6x12   a tile of choice        gemm by 384     K in blocks of 384 values
    gemv bf16   weights rounded to bfloat16, half as much to read; gemm bf16 likewise
    direct      a convolution that reads the image, in place or copied by rule; `direct wide` reads it in
                place, `direct narrow` copies it; `direct 6x12`, `direct by 384` as for a product
    gemm f16    in float16 arithmetic, long sums in float32; direct f16, winograd f16 likewise
    gemm split  of bytes whose sums might saturate, the larger ones in turns; direct split likewise
    digits 8    weights of 8 bits as they are stored; digits 4 of 4 bits
    depthwise   every channel by itself; `depthwise dot` of bytes, by dot products; `depthwise f16` in float16 arithmetic
    grouped     of groups of a few channels, many groups in a vector
    winograd    a convolution of fewer multiplications
    gemm amx    of bytes, through AMX tiles; direct amx likewise
    amx6        float32 as sums of bfloat16, through AMX tiles; amx3 and amx1 with fewer products
    amx10       float32 as digits of eight bits, through AMX tiles

Every one of them but these last three sums an element over k in the same order, so that the others give the same bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sardonyx.backends.c.kernels.byte_tiles import STRIP
from sardonyx.backends.c.kernels.gemv import gemv_tile
from sardonyx.backends.c.kernels.isa import Isa, Tile, tile_of
from sardonyx.backends.c.kernels.nest import DEPTH
from sardonyx.backends.c.kernels.windows import NARROW
from sardonyx.loops.nodes import Dtype
from sardonyx.ops.lowering import USUAL_SUMS
from sardonyx.plan.amx import BYTE_TILES
from sardonyx.plan.target import Alternative, Target

__all__ = ["Cut", "cut_of", "target_of"]

_Costs = tuple[tuple[str, float], ...]
_NAME = re.compile(r"(?P<kernel>[a-z]+)(?: (?P<rows>\d+)x(?P<columns>\d+)| by (?P<depth>\d+)| (?P<way>wide|narrow)| bf16| split| amx)?")  # fmt: skip

# Tiles beside the usual one, as rows × vectors: sums, vectors of B and what A takes fit the registers. With what a column
# costs, as measured on Neoverse N1 and Cascade Lake for sums of the types below. On AVX-512 tiles of fewer rows take fewer instructions for as many
# products, which counts most where another thread shares the core; a Winograd task has little more than a tile of rows.
_EMPTIER = (("gemm", 1.1), ("direct", 1.1), ("winograd", 1.1))
_TILES: dict[str, tuple[tuple[int, int, _Costs], ...]] = {
    "neon": ((8, 2, _EMPTIER), (6, 3, ())),
    "avx2": ((3, 3, ()),),
    "avx512": (
        (8, 3, (("gemm", 0.94), ("direct", 0.96), ("winograd", 1.04))),
        (6, 4, (("gemm", 0.95), ("direct", 0.95))),
        (12, 1, (("gemm", 1.5), ("direct", 1.5), ("winograd", 1.4), ("gemv", 2.5))),
        (14, 2, (("gemv", 1.5),)),
    ),
    "portable": ((3, 3, ()),),
}
# Channels of a group for which shuffles are faster than tiles: measured on Cascade Lake.
_GROUPED = {"avx2": (2, 4, 8), "avx512": (2, 4, 8), "portable": (2, 4)}
# Of bytes, on AVX-512 with VNNI, no tile was faster by more than chance.
_MEASURED: dict[str, tuple[Dtype, ...]] = {"neon": ("f32", "i32"), "avx512": ("f32",)}
_DEPTHS = ((DEPTH // 2, DEPTH // 2), (2 * DEPTH, DEPTH))  # of a block, for K of more than so many
_TYPES: tuple[Dtype, ...] = ("f32", "f64", "i32")


@dataclass(frozen=True)
class Cut:
    """What a variant's name says: the tile, the values of K in a block, and whether images are copied."""

    tile: Tile
    depth: int = DEPTH
    copies: bool | None = None


def cut_of(variant: str, isa: Isa, dtype: str) -> Cut:
    """How the kernel of this name is cut for sums of type `dtype`."""
    found = _NAME.fullmatch(variant)
    assert found is not None, f"no kernel is called {variant!r}"
    usual = gemv_tile(isa, dtype) if found["kernel"] == "gemv" else tile_of(isa, dtype)
    if variant in BYTE_TILES:
        return Cut(Tile(STRIP, usual.columns))
    if found["rows"] is not None:
        return Cut(Tile(int(found["rows"]), int(found["columns"])))
    copies = None if found["way"] is None else found["way"] == "narrow"
    return Cut(usual, int(found["depth"] or DEPTH), copies)


def target_of(isa: Isa) -> Target:
    """What planning may count on."""
    usual = tile_of(isa)
    return Target(
        isa.name,
        tuple((dtype, tile_of(isa, dtype).columns) for dtype in _TYPES),
        tuple((dtype, gemv_tile(isa, dtype).columns) for dtype in _TYPES),
        min(gemv_tile(isa, dtype).rows for dtype in _TYPES),
        isa.lanes,
        NARROW,
        tuple((dtype, _alternatives(isa, dtype)) for dtype in _TYPES),
        unsigned_bytes=isa.unsigned_bytes,
        splits_bytes=isa.byte_pairs,
        column_dots=isa.by_lane,
        widens_halves=isa.by_lane,
        half_arithmetic=isa.half_arithmetic,
        grouped=_GROUPED.get(isa.name, ()),
        sums=max(USUAL_SUMS, usual.rows * usual.columns),
    )


def _alternatives(isa: Isa, dtype: Dtype) -> tuple[Alternative, ...]:
    found = []
    for rows, vectors, costs in _TILES[isa.name]:
        columns = vectors * isa.lanes_of(dtype)
        known = costs if dtype in _MEASURED.get(isa.name, ()) else ()
        found.append(Alternative(f"{rows}x{columns}", columns, costs=known))
    return (*found, *(Alternative(f"by {depth}", None, deeper) for depth, deeper in _DEPTHS))
