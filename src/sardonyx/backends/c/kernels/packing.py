"""The packed operand: panels of NR columns, each with its rows of K in order.

    B[k, n]  ->  packed[n / NR][k][n % NR]      the last panel is filled up with zeros

Constants are packed here, once, when a model is compiled; operands that only a run knows are packed
by the same threads that multiply them, by `pack_function`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.elements import BYTES, C_TYPE
from sardonyx.backends.c.kernels.isa import Tile
from sardonyx.plan.kernels import Begin
from sardonyx.sizes import Size, ceil_div


def packed_elements(k: Size, n: Size, tile: Tile) -> Size:
    """How many elements the packed form of B[k, n] has."""
    return ceil_div(n, tile.columns) * tile.columns * k


def packed_bytes(k: Size, n: Size, tile: Tile, dtype: str = "f32") -> Size:
    """How many bytes the packed form of B[k, n] has."""
    return packed_elements(k, n, tile) * BYTES[dtype]


def pack_b(array: NDArray[np.generic], tile: Tile) -> NDArray[np.generic]:
    """B[..., K, N] of any strides as packed[..., N/NR, K, NR]."""
    *batch, k, n = array.shape
    panels = -(-n // tile.columns)
    whole = n // tile.columns
    packed = np.empty((*batch, panels, k, tile.columns), array.dtype)
    inside, panels_inside = array[..., : whole * tile.columns], packed[..., :whole, :, :]
    if array.strides[-1] == array.itemsize:
        # A row of a panel moves as one item: twice as fast as element by element.
        item = np.dtype((np.void, tile.columns * array.itemsize))
        panels_inside.view(item)[..., 0] = inside.view(item).swapaxes(-1, -2)
    else:
        split = inside.reshape(*batch, k, whole, tile.columns)
        panels_inside[...] = np.moveaxis(split, -3, -2)
    if whole < panels:
        rest = n - whole * tile.columns
        packed[..., whole, :, :rest] = array[..., whole * tile.columns :]
        packed[..., whole, :, rest:] = 0
    return packed


def pack_conv(weights: NDArray[np.generic], groups: int, tile: Tile) -> NDArray[np.generic]:
    """W[OC, IC/groups, kernel...] as packed[groups, OC/groups/NR, taps * IC/groups, NR]."""
    return pack_b(filter_matrices(weights, groups), tile)


def filter_matrices(weights: NDArray[np.generic], groups: int) -> NDArray[np.generic]:
    """W[OC, IC/groups, kernel...] as matrices [groups, taps * IC/groups, OC/groups].

    K runs over the taps first and the channels last, as channels-last activations lie in memory.
    """
    outer, inner = weights.shape[:2]
    columns = weights.reshape(groups, outer // groups, inner, -1)
    return columns.transpose(0, 3, 2, 1).reshape(groups, -1, outer // groups)


def quads(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Bytes B[..., K, N] as [..., K/4, N] of 32 bits; zeros are put behind K to fill up the last four."""
    *batch, k, n = array.shape
    whole = -(-k // 4)
    filled = np.zeros((*batch, whole * 4, n), np.uint8)
    filled[..., :k, :] = array.view(np.uint8)
    turned = np.moveaxis(filled.reshape(*batch, whole, 4, n), -2, -1)
    return np.ascontiguousarray(turned).view("<i4")[..., 0]


def raised_quads(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """As `quads`, of bytes that are 128 too large and have no sign; what is put behind K is 0 all the same."""
    return quads(array.view(np.uint8) ^ np.uint8(0x80))


def signed_bytes(array: NDArray[np.generic], zero: int) -> NDArray[np.int8]:
    """Bytes less their zero point, where that leaves bytes."""
    return (array.astype(np.int16) - zero).astype(np.int8)


def pack_conv_quads(
    weights: NDArray[np.generic], groups: int, tile: Tile, *, raised: bool = False
) -> NDArray[np.generic]:
    """As `pack_conv`, for bytes: four values of K side by side; `raised` as `raised_quads` has them."""
    matrices = filter_matrices(weights, groups)
    return pack_b((raised_quads if raised else quads)(matrices), tile)


def pack_depthwise(weights: NDArray[np.generic]) -> NDArray[np.generic]:
    """W[OC, 1, kernel...] as [taps, OC]."""
    return np.ascontiguousarray(weights.reshape(weights.shape[0], -1).T)


def pack_grouped(weights: NDArray[np.generic]) -> NDArray[np.generic]:
    """W[OC, IC/groups, kernel...] as [taps, IC/groups, OC]."""
    return np.ascontiguousarray(weights.reshape(*weights.shape[:2], -1).T)


def pack_depthwise_quads(weights: NDArray[np.generic]) -> NDArray[np.generic]:
    """W[OC, 1, rows, columns] of bytes, four rows at most, as [columns, OC] of quads of rows."""
    columns = weights[:, 0].transpose(2, 1, 0)
    return quads(columns)[:, 0]


def pack_function(name: str, tile: Tile, dtype: str) -> str:
    """C text of `<name>`: packs `panels` panels, from column `first` on, of an operand in memory.

    by_k and by_n are the strides of B[k, n]; either may be 1.
    """
    element, columns = C_TYPE[dtype], tile.columns
    return f"""\
static void {name}(
    const {element} *b, int64_t by_k, int64_t by_n, int64_t depth, int64_t width,
    int64_t first, int64_t panels, {element} *packed) {{
    for (int64_t panel = first; panel < first + panels; panel++) {{
        const int64_t begin = panel * {columns};
        const int64_t count = width - begin < {columns} ? width - begin : {columns};
        const {element} *from = b + begin * by_n;
        {element} *to = packed + begin * depth;
        if (count < {columns}) {{
            for (int64_t k = 0; k < depth; k++)
                for (int64_t j = 0; j < {columns}; j++)
                    to[k * {columns} + j] = j < count ? from[k * by_k + j * by_n] : 0;
        }} else if (by_n == 1) {{
            for (int64_t k = 0; k < depth; k++)
                __builtin_memcpy(to + k * {columns}, from + k * by_k, {columns} * sizeof *to);
        }} else {{
            for (int64_t k = 0; k < depth; k++)
                for (int64_t j = 0; j < {columns}; j++)
                    to[k * {columns} + j] = from[k * by_k + j * by_n];
        }}
    }}
}}
"""


def pack_quads_function(name: str, tile: Tile, begin: Begin, *, flipped: bool) -> str:
    """C text of `<name>`: packs a panel of an operand of bytes as quads, and finds what its sums begin with.

    by_k and by_n are the strides of B[k, n]; either may be 1.

    Args:
        flipped: as of `gemm.Operand`; what fills up the last quad is 0 all the same.
    """
    columns, turned = tile.columns, "0x80808080u" if flipped else "0u"
    return f"""\
#include "dot.h"
static void {name}(
    const uint8_t *b, int64_t by_k, int64_t by_n, int64_t depth, int64_t width,
    int64_t panel, int32_t *packed, int32_t *starts) {{
    const int64_t begin = panel * {columns}, quads = (depth + 3) / 4;
    const int64_t count = width - begin < {columns} ? width - begin : {columns};
    const uint8_t *from = b + begin * by_n;
    uint32_t *to = (uint32_t *)packed + begin * quads;
    sx_i32x4 sums[{columns // 4}] = {{0}};
    for (int64_t q = 0; q < quads; q++) {{
        const uint8_t *four = from + q * 4 * by_k;
        if (count < {columns} || q * 4 + 4 > depth) {{
            for (int64_t j = 0; j < {columns}; j++) {{
                to[j] = {turned};
                for (int64_t t = 0; t < 4 && j < count && q * 4 + t < depth; t++)
                    to[j] ^= ({turned} >> 24 ^ four[t * by_k + j * by_n]) << 8 * t;
            }}
        }} else if (by_k == 1) {{
            for (int64_t j = 0; j < {columns}; j++)
                __builtin_memcpy(to + j, four + j * by_n, 4);
        }} else {{
            for (int64_t j = 0; j < {columns}; j++) {{
                const uint8_t *one = four + j * by_n;
                to[j] = one[0] | (uint32_t)one[by_k] << 8 | (uint32_t)one[2 * by_k] << 16 | (uint32_t)one[3 * by_k] << 24;
            }}
        }}
        for (int64_t v = 0; v < {columns // 4}; v++) {{
            sx_i32x4 words;
            __builtin_memcpy(&words, to + 4 * v, sizeof words);
            words ^= (int32_t){turned};
            __builtin_memcpy(to + 4 * v, &words, sizeof words);
            sums[v] = sx_dot_4(sums[v], (sx_i32x4){{0}} + 0x01010101, words);
        }}
        to += {columns};
    }}
    for (int64_t j = 0; j < {columns}; j++)
        starts[begin + j] = {begin.factor} * (sums[j / 4][j % 4] - (int32_t)depth * {begin.zero}) + {begin.offset};
}}
"""


def turn_function(name: str) -> str:
    """C text of `<name>_turn`: copies quads of bytes, the highest bit of each turned over."""
    return f"""\
static inline void {name}_turn(int32_t *restrict to, const int32_t *restrict from, int64_t count) {{
    for (int64_t k = 0; k < count; k++)
        to[k] = from[k] ^ (int32_t)0x80808080;
}}
"""
