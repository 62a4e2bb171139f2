"""Weights for Winograd's algorithm: U = G g Gᵀ, the points of a cell for every channel and filter.

    [block of channels][point][OC / NR][channel][NR]        U, and behind it
    [OC / NR][tap · IC + channel][NR]                       the weights themselves, as `packing.pack_conv` has them

A kernel goes through a block of channels, point by point: it reads U in one stream. Of bytes, 4 U is a matrix of integers of
16 bits, and two channels are side by side; nothing lies behind it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.cells import SQUARE, Cell
from sardonyx.backends.c.kernels.isa import Tile
from sardonyx.backends.c.kernels.packing import pack_b, pack_conv

SEGMENT = 64  # channels summed at a time: the error of longer sums would be above that of engines that block
_CHANNELS = 128  # of a block of float32, at most
_BYTES = 256  # the same of bytes
_RUN = 32  # channels of bytes in the widest vector of 16 bits
_FILTERS = 64  # transformed at a time: all of them in float64 might take more memory than the model


def channel_blocks(channels: int, most: int = _CHANNELS) -> tuple[int, ...]:
    """The channels in blocks of whole segments; the rest is in the last, so that none is shorter than a vector."""
    segments, parts = channels // SEGMENT, max(1, -(-channels // most))
    borders = [i * segments // parts * SEGMENT for i in range(parts)]
    return tuple(end - begin for begin, end in pairwise([*borders, channels]))


def winograd_points(weights: NDArray[np.generic], cell: Cell) -> NDArray[np.generic]:
    """U of W[OC, IC, 3, 3] as [point, IC, OC], computed in float64 and rounded once."""
    outer, inner = weights.shape[:2]
    down, across = np.array(cell.down.weights), np.array(cell.across.weights)
    points = np.empty((cell.points, inner, outer), weights.dtype)
    # Weights that are not finite, or too large, spoil their points; the kernel takes the weights themselves then.
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, outer, _FILTERS):
            some = weights[first : first + _FILTERS].astype(np.float64)
            u = (down @ some @ across.T).reshape(-1, inner, cell.points).transpose(2, 1, 0)
            points[..., first : first + _FILTERS] = u
    return points


def integer_blocks(channels: int) -> tuple[int, ...]:
    """The same for bytes: an even number of channels, and none of the blocks shorter than the widest vector."""
    parts = max(1, -(-channels // _BYTES))
    borders = [i * channels // parts // _RUN * _RUN for i in range(parts)]
    return tuple(end - begin for begin, end in pairwise([*borders, channels]))


def pack_integer_winograd(weights: NDArray[np.int8], tile: Tile) -> NDArray[np.generic]:
    """W[OC, IC, 3, 3] of bytes as above, in one line."""
    outer, inner = weights.shape[:2]
    doubled = (2 * np.array(SQUARE.down.weights)).astype(np.int32)
    u = (doubled @ weights.astype(np.int32) @ doubled.T).astype("<i2")
    points = u.reshape(outer, inner // 2, 2, SQUARE.points).transpose(3, 1, 0, 2)
    pairs = np.ascontiguousarray(points)
    words = pairs.view("<i4")[..., 0]
    borders = np.cumsum([0, *integer_blocks(inner)]) // 2
    parts = [pack_b(words[:, a:b], tile).reshape(-1) for a, b in pairwise(borders)]
    return np.concatenate(parts)


def pack_winograd(weights: NDArray[np.generic], tile: Tile) -> NDArray[np.generic]:
    """W[OC, IC, 3, 3] as above, in one line."""
    points = winograd_points(weights, SQUARE)
    borders = np.cumsum([0, *channel_blocks(weights.shape[1])])
    parts = [pack_b(points[:, a:b], tile).reshape(-1) for a, b in pairwise(borders)]
    return np.concatenate([*parts, pack_conv(weights, 1, tile).reshape(-1)])
