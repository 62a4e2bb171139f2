"""Sums run wide: small floats are added up in float32 and rounded once."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.backends.reference.values import Array

__all__ = ["accumulator", "average"]


def accumulator(array: Array) -> Array:
    """The same elements, in a type that is good to sum in."""
    return array if array.dtype.itemsize >= 4 else array.astype(np.float32)


def average(array: Array, axes: tuple[int, ...]) -> Array:
    """The mean over axes, which stay as 1; over nothing it is NaN, without numpy's warning."""
    count = math.prod(array.shape[axis] for axis in axes)
    return np.sum(array, axes, keepdims=True, dtype=array.dtype) / array.dtype.type(count)
