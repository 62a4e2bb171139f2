"""Rounding weights one input at a time, and letting the ones that follow make the error good (GPTQ).

The error that counts is that of the product: (w - q) X'X (w - q)'. Once the weights of one input are rounded, the
others of the same row are moved to where the product is nearest to what it was.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.quantization.grid import STEPS, Array, Grid, grid_of_weights

__all__ = ["round_by_moments"]

_CHUNK = 128  # columns whose corrections are put off, to be done as one product
_DAMPING = 0.01  # of the mean of the diagonal: inputs that never vary have none of their own


def round_by_moments(
    rows: Array, moment: Array, dtype: ir.DataType, block: int, *, symmetric: bool = True
) -> tuple[Array, Array, Array]:
    """Steps, and the scale and zero of each block of every row; one block where `block` is 0.

    Args:
        rows: weights, one row an output, one column an input.
        moment: X'X of the inputs.
    """
    count, size = rows.shape
    block = block or size
    chunk = block if block >= _CHUNK else _CHUNK // block * block
    upper = _factor(moment)
    left = rows.astype(np.float64)
    steps = np.zeros((count, size), dtype.numpy())
    scales, zeros = [], []
    grid: Grid | None = None
    for begin in range(0, size, chunk):
        end = min(begin + chunk, size)
        errors = np.zeros((count, end - begin))
        for column in range(begin, end):
            if column % block == 0:
                grid = grid_of_weights(
                    left[:, column : column + block], dtype, axis=0, symmetric=symmetric
                )
                scales.append(grid.scale)
                zeros.append(grid.zero)
            assert grid is not None
            weights = left[:, column]
            steps[:, column] = _nearest(weights, grid)
            rounded = (
                steps[:, column].astype(np.float64) - grid.zero.astype(np.float64)
            ) * grid.scale
            error = (weights - rounded) / upper[column, column]
            left[:, column + 1 : end] -= np.outer(error, upper[column, column + 1 : end])
            errors[:, column - begin] = error
        left[:, end:] -= errors @ upper[begin:end, end:]
    return steps, np.stack(scales, axis=1), np.stack(zeros, axis=1)


def _nearest(weights: Array, grid: Grid) -> Array:
    low, high = STEPS[grid.dtype]
    found: Array = np.clip(np.rint(weights / grid.scale) + grid.zero.astype(np.float64), low, high)
    return found.astype(np.int64).astype(grid.storage)


def _factor(moment: Array) -> Array:
    """The upper triangle U of the inverse, U'U: its rows say how the following weights make an error good."""
    whole = moment.astype(np.float64)
    diagonal = np.diagonal(whole)
    mean = float(diagonal.mean())
    damped = whole + np.eye(len(whole)) * (_DAMPING * mean if mean > 0 else 1.0)
    lower = np.linalg.cholesky(np.linalg.inv(damped))
    upper: Array = lower.T
    return upper
