"""Rounded weights give sums that are off on average; the bias takes that back.

E[sum (q - w) x] = sum (q - w) E[x]        q: the rounded weights; E[x]: of every input channel, over the data
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sardonyx.quantization.grid import Array
from sardonyx.quantization.recipe import Steps
from sardonyx.quantization.targets import Target, constant_of, input_axis, number_of

__all__ = ["Mean", "corrected_bias"]


class Mean:
    """The mean of every channel of a value."""

    def __init__(self, axis: int) -> None:
        self._axis = axis
        self._total: Array | None = None
        self._count = 0

    def see(self, batch: Array) -> None:
        rows = np.moveaxis(batch, self._axis, -1).reshape(-1, batch.shape[self._axis])
        total = rows.sum(axis=0, dtype=np.float64)
        self._total = total if self._total is None else self._total + total
        self._count += len(rows)

    @property
    def found(self) -> Array:
        assert self._total is not None
        mean: Array = self._total / max(self._count, 1)
        return mean


def corrected_bias(target: Target, weights: Steps, means: Mapping[str, Mean]) -> Array | None:
    """The bias without what rounding adds on average; None where the node has no bias of its own."""
    node = target.node
    if target.bias is None or target.weights is None:
        return None
    bias, exact = constant_of(node.inputs[target.bias]), constant_of(node.inputs[target.weights[0]])
    source = node.inputs[0]
    assert bias is not None
    assert exact is not None
    assert source is not None
    mean = means[source.name or ""].found
    off = weights.grid.dequantize(weights.steps).astype(np.float64) - exact
    axis, channels = input_axis(node, exact.ndim), target.weights[1]
    assert axis is not None
    spatial = tuple(range(2, exact.ndim))
    summed = np.moveaxis(off.sum(axis=spatial) if spatial else off, channels, 0)  # outputs, inputs
    groups = number_of(node, "group", 1)
    if groups != 1:
        each = np.repeat(mean.reshape(groups, -1), len(summed) // groups, axis=0)
        shift = (summed * each).sum(axis=1)
    else:
        shift = summed @ mean
    corrected: Array = (bias - shift).astype(np.float32)
    return corrected
