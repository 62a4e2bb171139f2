"""Float32 numbers as sums of bfloat16 numbers, and weights as the tiles that such sums are multiplied by.

    x = b0 + b1 + b2      b0 is x rounded to bfloat16, b1 what is left of it, b2 what is left of that: nothing is lost

What would round to infinity is cut off instead. A number whose parts fall below the smallest normal float loses them.
An infinity or NaN is its own first part; the others are 0 here, in the weights, so that their sum is the number again.

    W[k, n]  ->  packed[n / 32][k / 32][plane][n / 16 % 2][k / 2 % 16][n % 16][k % 2]     filled up with zeros
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["COLUMNS", "DEPTH", "pack_tiles", "split_planes"]

COLUMNS = 32  # of a panel: two tiles side by side
DEPTH = 32  # values of K in a tile
_SIDE = 16
_SMALLEST_NORMAL = np.float32(2.0**-126)
_ROUNDS_TO_INFINITY = 0x7F7F8000


def split_planes(values: NDArray[np.float32], planes: int) -> NDArray[np.uint16]:
    """The bits of the parts of every number, as [planes, ...]."""
    rest = np.array(values, np.float32)
    special = ~np.isfinite(rest)
    parts = np.empty((planes, *rest.shape), np.uint16)
    for plane in range(planes):
        bits = rest.view(np.uint32)
        half = np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))  # to nearest, ties to even
        half[(bits & np.uint32(0x7FFFFFFF)) >= _ROUNDS_TO_INFINITY] = 0
        part = ((bits + half) & np.uint32(0xFFFF0000)).view(np.float32)
        part[np.abs(part) < _SMALLEST_NORMAL] = 0
        part[np.isnan(rest)] = np.nan  # what was cut off may have been all that made it one
        parts[plane] = part.view(np.uint32) >> 16
        part[special] = rest[special] = 0
        rest -= part
    return parts


def pack_tiles(matrix: NDArray[np.float32], planes: int) -> NDArray[np.uint16]:
    """W[K, N] of any strides as tiles."""
    depth, width = matrix.shape
    steps, panels = -(-depth // DEPTH), -(-width // COLUMNS)
    packed = np.empty((panels, steps, planes, 2, _SIDE, _SIDE, 2), np.uint16)
    for panel in range(
        panels
    ):  # one at a time: the parts of all would take more memory than the weights
        columns = matrix[:, panel * COLUMNS : (panel + 1) * COLUMNS]
        filled = np.zeros((steps * DEPTH, COLUMNS), np.float32)
        filled[:depth, : columns.shape[1]] = columns
        parts = split_planes(filled, planes).reshape(planes, steps, _SIDE, 2, 2, _SIDE)
        packed[panel] = parts.transpose(1, 0, 4, 2, 5, 3)
    return packed
