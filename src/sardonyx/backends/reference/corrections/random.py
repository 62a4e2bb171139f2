"""Random operators: a seed decides every draw; without one each run draws anew. No global state."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.backends.reference.corrections.casting import cast_array, numpy_dtype
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_REASON = "a seed repeats the draw, and no global state is touched"


def generator(call: Call) -> np.random.Generator:
    """Seeded by the bits of the attribute, so that every float is a seed."""
    seed = call.attr("seed")
    if seed is None:
        return np.random.default_rng()
    return np.random.default_rng(int(np.float32(seed).view(np.uint32)))


def _draw(call: Call, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    if any(size < 0 for size in shape):
        raise RunError(f"shape {list(shape)} has a negative size", value=list(shape))
    call.claim(math.prod(shape) * 8)
    random = generator(call)
    drawn: Array
    if call.operator.name.startswith("RandomNormal"):
        drawn = random.normal(call.attr("mean", 0.0), abs(call.attr("scale", 1.0)), shape)
    else:
        low, high = call.attr("low", 0.0), call.attr("high", 1.0)
        drawn = low + (high - low) * random.random(shape)
    return drawn.astype(dtype)


@corrects("RandomNormal", "RandomUniform", reason=_REASON)
def random_of_shape(call: Call) -> Array:
    shape = tuple(int(size) for size in call.attr("shape"))
    return _draw(call, shape, numpy_dtype(call.attr("dtype", 1)))


@corrects("RandomNormalLike", "RandomUniformLike", reason=_REASON)
def random_like(call: Call, like: Array) -> Array:
    dtype = numpy_dtype(call.attr("dtype")) if call.has("dtype") else like.dtype
    return _draw(call, like.shape, dtype)


@corrects("Bernoulli", reason=_REASON)
def bernoulli(call: Call, probability: Array) -> Array:
    dtype = numpy_dtype(call.attr("dtype")) if call.has("dtype") else probability.dtype
    hit = generator(call).random(probability.shape) < probability.astype(np.float64)
    return cast_array(hit, dtype)


@corrects("Multinomial", reason="onnx.reference has none")
def multinomial(call: Call, logits: Array) -> Array:
    count = int(call.attr("sample_size", 1))
    if logits.ndim != 2 or logits.shape[1] == 0 or count < 1:
        raise RunError(
            f"{count} samples of an input of shape {list(logits.shape)}", value=logits.shape
        )
    call.claim(logits.shape[0] * count * (8 + logits.shape[1]))
    wide = logits.astype(np.float64)
    weight = np.cumsum(np.exp(wide - wide.max(1, keepdims=True)), axis=1)
    point = generator(call).random((len(logits), count)) * weight[:, -1:]
    drawn = (point[:, :, None] >= weight[:, None, :]).sum(2)
    dtype = numpy_dtype(call.attr("dtype", 6))
    return np.minimum(drawn, logits.shape[1] - 1).astype(dtype)


@corrects("Dropout", since=12, reason=_REASON + "; the ratio is checked")
def dropout(
    call: Call, x: Array, ratio: Array | None = None, training: Array | None = None
) -> tuple[Array, Array]:
    rate = 0.5 if ratio is None else float(ratio.item())
    if not 0 <= rate < 1:
        raise RunError(f"ratio is {rate}, outside [0, 1)", value=rate, limit=1)
    if training is None or not bool(training.item()) or rate == 0:
        return x, np.ones(x.shape, dtype=np.bool_)
    seed = call.attr("seed")
    # The official cases are drawn from numpy's legacy generator, under the node's integer seed.
    draw = generator(call) if seed is None else np.random.RandomState(seed & 0xFFFFFFFF)
    kept = draw.uniform(0, 1, x.shape) >= rate
    scaled = np.where(kept, x.astype(np.float64) / (1 - rate), 0)
    return scaled.astype(x.dtype), kept
