"""Weights in float16, scaled so that nothing of them is lost: every column by a power of two.

    W[k, n]  ->  packed[n / 16][ 16 scales of float32 | k ][n % 16]       the last panel is filled up with zeros

A column's largest weight is in [0.5, 1) of its scale, or in [1/32, 1) where the scale is 1 and need not be taken off: so
float16 has eleven bits of what matters wherever the column lies between 1e-38 and 1e38, and what is less is off by 2^-20 of
the largest at most.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.cells import WIDE
from sardonyx.backends.c.kernels.isa import Tile
from sardonyx.backends.c.kernels.packing import filter_matrices, pack_b
from sardonyx.backends.c.kernels.points import channel_blocks, winograd_points

__all__ = [
    "COLUMNS",
    "HEAD",
    "half_channel_blocks",
    "pack_half_filters",
    "pack_half_points",
    "pack_halves",
]

COLUMNS = 16  # of a panel: two vectors
HEAD = 2 * COLUMNS  # what the scales of a panel take, in float16
_LOWEST, _HIGHEST = -126, 127  # exponents of scales: normal floats, which no thread flushes
_NEAR = -4  # exponents of what is not scaled: 2^-5 and more; products of less would be lost to float16's denormal numbers
_CHANNELS = 256  # of a block of Winograd's algorithm, and up to 63 more in the last: they are added up in float16
_AT_ONCE = 64  # panels: more would take as much memory again as the weights


def pack_halves(
    matrix: NDArray[np.generic], shared: NDArray[np.int32] | None = None
) -> NDArray[np.float16]:
    """W[..., K, N] of any strides as panels, each in one line: [..., panels, HEAD + K · COLUMNS].

    Args:
        shared: exponents of scales, one a column; None for each to have its own.
    """
    *batch, depth, width = matrix.shape
    panels = -(-width // COLUMNS)
    packed = np.empty((*batch, panels, HEAD + depth * COLUMNS), np.float16)
    for first in range(0, panels, _AT_ONCE):
        last = min(panels, first + _AT_ONCE)
        columns = matrix[..., first * COLUMNS : last * COLUMNS].astype(np.float32)
        exponents = _exponents(columns)
        if shared is not None:
            exponents = np.broadcast_to(shared[first * COLUMNS : last * COLUMNS], exponents.shape)
        with np.errstate(invalid="ignore"):  # 0 · ∞ is none of them: scales are neither
            columns *= np.ldexp(np.float32(1), -exponents)[..., None, :]
        scales = np.ones((*batch, (last - first) * COLUMNS), np.float32)
        scales[..., : columns.shape[-1]] = np.ldexp(np.float32(1), exponents)
        some = packed[..., first:last, :]
        some[..., :HEAD] = scales.view(np.float16).reshape(*batch, last - first, HEAD)
        values = pack_b(columns.astype(np.float16), Tile(1, COLUMNS))
        some[..., HEAD:] = values.reshape(*batch, last - first, -1)
    return packed


def _exponents(columns: NDArray[np.generic]) -> NDArray[np.int32]:
    """Of each column: 2 to it is above all of its finite weights."""
    sizes = np.abs(columns.astype(np.float32, copy=False))
    with np.errstate(invalid="ignore"):
        largest = np.max(sizes, axis=-2, initial=0)
    spoilt = ~np.isfinite(largest)
    if spoilt.any():
        largest = np.max(np.where(np.isfinite(sizes), sizes, np.float32(0)), axis=-2, initial=0)
    found = np.clip(np.frexp(largest)[1], _LOWEST, _HIGHEST)
    # A scale of 1 says that all is well: it stands for sizes near 1 as well, and for no column with an infinity.
    near = (found >= _NEAR) & (found <= 0)
    exponents: NDArray[np.int32] = np.where(near, 0, found) + (spoilt & near)
    return exponents


def pack_half_filters(weights: NDArray[np.generic], groups: int) -> NDArray[np.float16]:
    """W[OC, IC/groups, kernel...] as panels of [groups, taps · IC/groups, OC/groups]."""
    return pack_halves(filter_matrices(weights, groups))


def half_channel_blocks(channels: int) -> tuple[int, ...]:
    """As `points.channel_blocks`, in fewer blocks."""
    return channel_blocks(channels, _CHANNELS)


def pack_half_points(weights: NDArray[np.generic]) -> NDArray[np.float16]:
    """W[OC, IC, 3, 3] for Winograd's algorithm: the points of each block of channels, then the weights themselves."""
    points, plain = winograd_points(weights, WIDE), filter_matrices(weights, 1)
    shared = np.maximum(_exponents(points).max(axis=0), _exponents(plain[0]))
    borders = np.cumsum([0, *half_channel_blocks(weights.shape[1])])
    parts = [pack_halves(points[:, a:b], shared).reshape(-1) for a, b in pairwise(borders)]
    return np.concatenate([*parts, pack_halves(plain, shared).reshape(-1)])
