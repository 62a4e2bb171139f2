"""Float32 numbers as sums of bfloat16 numbers, and weights as the tiles that such sums are multiplied by.

    x = b0 + b1 + b2      b0 is x rounded to bfloat16, b1 what is left of it, b2 what is left of that: nothing is lost

What would round to infinity is cut off instead. Parts below the smallest normal float count as 0 in a tile.
An infinity or NaN is its own first part; the others are 0 here, in the weights, so that their sum is the number again.

    W[k, n]  ->  packed[n / 32][k / 32][plane][n / 16 % 2][k / 2 % 16][n % 16][k % 2]     filled up with zeros
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

__all__ = ["COLUMNS", "DEPTH", "pack_tiles", "split_planes"]

COLUMNS = 32  # of a panel: two tiles side by side
DEPTH = 32  # values of K in a tile
_SIDE = 16
_ROUNDS_TO_INFINITY = np.array(0x7F7F8000, np.uint32).view(np.float32)  # as what is larger does


def split_planes(values: NDArray[np.float32], planes: int) -> NDArray[np.uint16]:
    """The bits of the parts of every number, as [planes, ...]."""
    rest = np.array(values, np.float32, order="C")
    special = np.flatnonzero(~(np.abs(rest) < _ROUNDS_TO_INFINITY))
    parts = np.empty((planes, *rest.shape), np.uint16)
    with np.errstate(invalid="ignore"):
        for plane in range(planes):
            part = rest.astype(bfloat16)
            if special.size:
                part.reshape(-1)[special] = _cut_off(rest.reshape(-1)[special])
            parts[plane] = part.view(np.uint16)
            rest -= part.astype(np.float32)
            rest[np.isnan(rest)] = 0  # ∞ and NaN have no other parts
    return parts


def _cut_off(values: NDArray[np.float32]) -> NDArray[Any]:
    """Toward zero; a NaN stays one."""
    cut = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(values), values, cut).astype(bfloat16)


def pack_tiles(matrix: NDArray[np.float32], planes: int) -> NDArray[np.uint16]:
    """W[K, N] of any strides as tiles."""
    depth, width = matrix.shape
    steps, panels = -(-depth // DEPTH), -(-width // COLUMNS)
    packed = np.empty((panels, steps, planes, 2, _SIDE, _SIDE), "<u4")  # of pairs (k, k + 1)
    # One panel at a time: the parts of all would take more memory than the weights.
    for panel in range(panels):
        columns = matrix[:, panel * COLUMNS : (panel + 1) * COLUMNS]
        filled = np.zeros((steps * DEPTH, COLUMNS), np.float32)
        filled[:depth, : columns.shape[1]] = columns
        parts = split_planes(filled, planes).astype(np.uint32)
        pairs = parts[:, ::2] | (parts[:, 1::2] << np.uint32(16))
        split = pairs.reshape(planes, steps, _SIDE, 2, _SIDE)
        packed[panel] = split.transpose(1, 0, 3, 2, 4)
    return packed.view(np.uint16).reshape(*packed.shape, 2)
