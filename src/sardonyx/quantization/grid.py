"""The numbers that a quantized type can stand for: (step - zero) * scale.

grid = grid_of_range(-1.0, 3.0, ir.DataType.UINT8)      # one for a whole tensor
grid = grid_of_weights(w, ir.DataType.INT8, axis=0)     # one a channel
grid = grid_of_blocks(w, ir.DataType.INT4, axis=0, block=32)
grid.dequantize(grid.quantize(w))                       # what QuantizeLinear and DequantizeLinear give
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

__all__ = [
    "STEPS",
    "Array",
    "Grid",
    "grid_of_blocks",
    "grid_of_range",
    "grid_of_weights",
    "split_blocks",
    "symmetric_limit",
]

Array = npt.NDArray[Any]
_D = ir.DataType

# The lowest and the highest step of each type.
STEPS: dict[ir.DataType, tuple[float, float]] = {
    _D.INT8: (-128, 127),
    _D.UINT8: (0, 255),
    _D.INT16: (-32768, 32767),
    _D.UINT16: (0, 65535),
    _D.INT4: (-8, 7),
    _D.UINT4: (0, 15),
    _D.INT32: (-(2**31), 2**31 - 1),
    _D.FLOAT8E4M3FN: (-448, 448),
}
_CLIPPED = (0.95, 0.9, 0.85, 0.8, 0.75)  # shares of a range that are tried
_SMALLEST = float(np.finfo(np.float32).tiny)  # a scale below it would be flushed to zero


@dataclass(frozen=True)
class Grid:
    """Scale and zero of a tensor, of each of its channels, or of each block along an axis.

    Attributes:
        scale: float32; a scalar, one number a channel of `axis`, or the tensor's shape with blocks for elements.
        zero: steps that stand for zero; as `scale`.
        axis: along which the scales differ; None for one scale.
        block: how many elements along `axis` share a scale; 0 for one scale a channel.
    """

    scale: Array
    zero: Array
    dtype: ir.DataType
    axis: int | None = None
    block: int = 0

    @property
    def is_symmetric(self) -> bool:
        """Whether zero is at step 0, so that it need not be written."""
        return not self.zero.any()

    @property
    def storage(self) -> np.dtype[Any]:
        return np.dtype(self.dtype.numpy())

    def quantize(self, array: Array) -> Array:
        """The steps nearest to the numbers; ties go to the even step, and what is out of range to the last one."""
        scale, zero = self._spread(array.shape)
        low, high = STEPS[self.dtype]
        ratio = array.astype(np.float32) / scale
        if self.dtype == _D.FLOAT8E4M3FN:
            close: Array = np.clip(ratio, low, high)
            return close.astype(self.storage)
        # A whole float32 that large is exact; 64 bits hold the sum with zero for the types of 32.
        steps = np.rint(ratio.astype(np.float64)) + zero
        clipped: Array = np.clip(steps, low, high)
        return clipped.astype(np.int64).astype(self.storage)

    def dequantize(self, steps: Array) -> Array:
        scale, zero = self._spread(steps.shape)
        numbers: Array = (steps.astype(np.float64) - zero).astype(np.float32) * scale
        return numbers

    def round(self, array: Array) -> Array:
        """The numbers of the grid that are nearest to the given ones."""
        return self.dequantize(self.quantize(array))

    def _spread(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Scale and zero as they broadcast against a tensor of that shape."""
        scale, zero = self.scale, self.zero.astype(np.float64)
        if self.axis is None:
            return scale, zero
        if self.block:
            count = shape[self.axis]
            return (
                np.repeat(scale, self.block, self.axis).take(range(count), self.axis),
                np.repeat(zero, self.block, self.axis).take(range(count), self.axis),
            )
        wide = [1] * len(shape)
        wide[self.axis] = -1
        return scale.reshape(wide), zero.reshape(wide)


def symmetric_limit(dtype: ir.DataType) -> float:
    """How many steps a symmetric grid has on each side of zero."""
    low, high = STEPS[dtype]
    return high if low < 0 else high // 2


def grid_of_range(low: float, high: float, dtype: ir.DataType, *, symmetric: bool = False) -> Grid:
    """The grid that covers a range, and zero, exactly: padding and Relu put zeros everywhere."""
    low, high = min(low, 0.0), max(high, 0.0)
    first, last = STEPS[dtype]
    if symmetric or dtype == _D.FLOAT8E4M3FN:
        scale = max(-low, high) / symmetric_limit(dtype)
        zero = 0.0 if first < 0 else (last + 1) / 2
    else:
        scale = (high - low) / (last - first)
        zero = first - low / scale if scale >= _SMALLEST else first
    if scale < _SMALLEST:  # all zeros
        scale = 1.0
    rounded = np.clip(np.rint(zero), first, last)
    return Grid(np.array(scale, np.float32), _steps(np.asarray(rounded), dtype), dtype)


def grid_of_weights(
    weights: Array, dtype: ir.DataType, *, axis: int | None, symmetric: bool = True
) -> Grid:
    """The grid that covers all weights, or those of each channel."""
    others = None if axis is None else tuple(a for a in range(weights.ndim) if a != axis)
    low = np.minimum(weights.min(axis=others, initial=0.0), 0.0).astype(np.float64)
    high = np.maximum(weights.max(axis=others, initial=0.0), 0.0).astype(np.float64)
    scale, zero = _cover(low, high, dtype, symmetric)
    return Grid(scale, zero, dtype, axis)


def grid_of_blocks(
    weights: Array, dtype: ir.DataType, *, axis: int, block: int, symmetric: bool = True
) -> Grid:
    """One scale for every `block` weights along an axis; the last block may be shorter.

    Types of few steps may gain by clipping the largest weights: of some ranges, each block has the one of least error.
    """
    blocks = split_blocks(weights, axis, block)
    low = np.minimum(blocks.min(axis=axis + 1), 0.0).astype(np.float64)
    high = np.maximum(blocks.max(axis=axis + 1), 0.0).astype(np.float64)
    scale, zero = _cover(low, high, dtype, symmetric)
    if dtype.bitwidth < 8:
        least = _errors(blocks, scale, zero, dtype, axis + 1)
        for share in _CLIPPED:
            other, its_zero = _cover(low * share, high * share, dtype, symmetric)
            errors = _errors(blocks, other, its_zero, dtype, axis + 1)
            better = errors < least
            scale, zero = np.where(better, other, scale), np.where(better, its_zero, zero)
            least = np.minimum(errors, least)
    return Grid(scale, zero.astype(dtype.numpy()), dtype, axis, block)


def _errors(blocks: Array, scale: Array, zero: Array, dtype: ir.DataType, axis: int) -> Array:
    """The squared error of each block."""
    wide, moved = np.expand_dims(scale, axis), np.expand_dims(zero.astype(np.float32), axis)
    steps = np.clip(np.rint(blocks / wide) + moved, *STEPS[dtype])
    found: Array = (((steps - moved) * wide - blocks) ** 2).sum(axis=axis)
    return found


def split_blocks(weights: Array, axis: int, block: int) -> Array:
    """The axis as two: blocks, and elements of a block; zeros fill the last one."""
    count = -(-weights.shape[axis] // block)
    missing = [(0, 0)] * weights.ndim
    missing[axis] = (0, count * block - weights.shape[axis])
    shape = weights.shape
    return np.pad(weights, missing).reshape(*shape[:axis], count, block, *shape[axis + 1 :])


def _cover(low: Array, high: Array, dtype: ir.DataType, symmetric: bool) -> tuple[Array, Array]:
    first, last = STEPS[dtype]
    if symmetric or dtype == _D.FLOAT8E4M3FN:
        scale = np.maximum(-low, high) / symmetric_limit(dtype)
        zero = np.full(scale.shape, 0 if first < 0 else (last + 1) / 2)
    else:
        scale = (high - low) / (last - first)
        zero = np.rint(first - low / np.where(scale < _SMALLEST, 1.0, scale))
    scale = np.where(scale < _SMALLEST, 1.0, scale)
    return scale.astype(np.float32), _steps(np.clip(zero, first, last), dtype)


def _steps(numbers: Array, dtype: ir.DataType) -> Array:
    storage = np.dtype(dtype.numpy())
    if storage == np.dtype(ml_dtypes.float8_e4m3fn):
        return numbers.astype(storage)
    return numbers.astype(np.int64).astype(storage)
