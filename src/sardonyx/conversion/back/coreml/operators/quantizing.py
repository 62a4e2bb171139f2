"""Numbers on a grid, computed with as floats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sardonyx.conversion.back.coreml.network import Array
from sardonyx.conversion.back.coreml.operators.arithmetic import nearest
from sardonyx.conversion.back.coreml.step import Entry, Step

__all__ = ["ENTRIES"]


def _grid(step: Step) -> tuple[Array, Array]:
    """Scale and zero, in axes that broadcast."""
    if step.call.int_attr("block_size"):
        step.refuse("its scales are of blocks")
    scale = step.weight(1, "scale")
    zero = step.weight(2, "zero point") if step.has(2) else np.zeros_like(scale)
    shape = [1] * max(step.rank(0), 1)
    if scale.size > 1:
        shape[step.axis(1)] = scale.size
    return scale.reshape(shape), zero.reshape(shape)


def quantize(step: Step) -> str:
    dtype = step.outputs[0].dtype
    if dtype is None or dtype.numpy().kind not in "iu":
        step.refuse(f"it rounds to {dtype}, which is no integer")
    scale, zero = _grid(step)
    bounds = np.iinfo(dtype.numpy())
    moved = step.layer("divideBroadcastable", step[0], step.constant(scale))
    made = nearest(step, moved)
    if zero.any():
        made = step.layer("addBroadcastable", made, step.constant(zero))
    return step.layer("clip", made, minVal=float(bounds.min), maxVal=float(bounds.max))


def dequantize(step: Step) -> str | Array:
    """Constants are decoded at once: CoreML's layers have weights of floats."""
    scale, zero = _grid(step)
    stored = step.numbers(0)
    if stored is not None:
        decoded = (stored.astype(np.float32) - zero) * scale
        return np.asarray(decoded, np.float32).reshape(stored.shape)
    made = step[0]
    if zero.any():
        made = step.layer("subtractBroadcastable", made, step.constant(zero))
    return step.layer("multiplyBroadcastable", made, step.constant(scale))


ENTRIES: Mapping[str, Entry] = {"DequantizeLinear": dequantize, "QuantizeLinear": quantize}
