"""What decoders of language models need: attention, positions, caches, causal convolutions."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator
from sardonyx.backends.reference.corrections.activations import sigmoid
from sardonyx.backends.reference.corrections.axes import normalize_axis
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.onnx_reference import find_reference
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError


@corrects(
    "Attention",
    reason="qk_matmul_output_mode 0 is the product itself; a mask of one row serves all rows",
)
def attention(call: Call, query: Array, key: Array, *rest: Array | None) -> tuple[Array, ...]:
    run = find_reference(call.operator)
    if run is None:
        raise RunError(f"onnx.reference has no Attention of opset {call.since}", value=call.since)
    if len(rest) > 1 and rest[1] is not None:  # the causal mask would take its shape from it
        rest = (rest[0], _in_rows(rest[1], query.shape[-2]), *rest[2:])
    results = list(run([query, key, *rest], call.guard))
    if call.wants(3) and not call.attr("qk_matmul_output_mode", 0) and call.attr("softcap", 0.0):
        past = rest[2] if len(rest) > 2 else None
        results[3] = _products(call, query, key, past)
    return tuple(results)


def _in_rows(mask: Array, rows: int) -> Array:
    if mask.ndim > 1 and mask.shape[-2] != 1:
        return mask
    return np.broadcast_to(mask, (*mask.shape[:-2], rows, mask.shape[-1]))


def _products(call: Call, query: Array, key: Array, past: Array | None) -> Array:
    """Scaled queries × keys: [batch, head, query, key]."""
    if query.ndim == 3:
        query, key = (
            x.reshape(*x.shape[:2], int(call.attr(heads)), -1).transpose(0, 2, 1, 3)
            for x, heads in ((query, "q_num_heads"), (key, "kv_num_heads"))
        )
    if past is not None:
        key = np.concatenate([past, key], 2)
    key = np.repeat(key, query.shape[1] // key.shape[1], axis=1)
    scale = call.attr("scale", 1 / math.sqrt(query.shape[3]))
    root = np.asarray(np.sqrt(scale), query.dtype)
    rows, columns = accumulator(query * root), accumulator(key * root)
    return (rows @ columns.swapaxes(2, 3)).astype(query.dtype)


@corrects("RotaryEmbedding", reason="positions outside the cache are an error, negative ones too")
def rotary_embedding(
    call: Call, x: Array, cosines: Array, sines: Array, positions: Array | None = None
) -> Array:
    heads = int(call.attr("num_heads", 0))
    if x.ndim == 3:
        if heads < 1 or x.shape[2] % heads:
            raise RunError(f"{heads} heads do not divide {x.shape[2]}", value=heads)
        tokens = x.reshape(*x.shape[:2], heads, -1)
    else:
        tokens = x.transpose(0, 2, 1, 3)  # [batch, position, head, size]
    turned = int(call.attr("rotary_embedding_dim", 0)) or tokens.shape[3]
    if positions is not None:
        if ((positions < 0) | (positions >= len(cosines))).any():
            raise RunError(
                f"position_ids lie outside 0..{len(cosines) - 1}", limit=len(cosines) - 1
            )
        cosines, sines = cosines[positions], sines[positions]
    if turned % 2 or cosines.shape[-1] != turned // 2 or sines.shape != cosines.shape:
        raise RunError(
            f"caches of {cosines.shape[-1]} do not turn {turned} of {tokens.shape[3]}", value=turned
        )
    cosine, sine = cosines[:, :, None], sines[:, :, None]
    part, rest = tokens[..., :turned], tokens[..., turned:]
    if call.attr("interleaved", 0):
        a, b = part[..., 0::2], part[..., 1::2]
    else:
        a, b = np.split(part, 2, axis=-1)
    real, imaginary = cosine * a - sine * b, sine * a + cosine * b
    if call.attr("interleaved", 0):
        rotated = np.stack([real, imaginary], -1).reshape(part.shape)
    else:
        rotated = np.concatenate([real, imaginary], -1)
    result = np.concatenate([rotated, rest], -1)
    return result.reshape(x.shape) if x.ndim == 3 else result.transpose(0, 2, 1, 3)


@corrects("TensorScatter", reason="a write past the cache is an error; one assignment, no loop")
def tensor_scatter(
    call: Call, cache: Array, update: Array, write_indices: Array | None = None
) -> Array:
    axis = normalize_axis(call.attr("axis", -2), cache.ndim)
    size, count = cache.shape[axis], update.shape[axis] if update.ndim == cache.ndim else -1
    fits = update.ndim == cache.ndim and all(
        a == b for i, (a, b) in enumerate(zip(cache.shape, update.shape, strict=True)) if i != axis
    )
    if axis == 0 or not fits or count > size:
        raise RunError(
            f"an update {list(update.shape)} does not fit a cache {list(cache.shape)}",
            value=update.shape,
            limit=cache.shape,
        )
    first = np.zeros(len(cache), np.int64) if write_indices is None else write_indices
    mode = call.attr("mode", "linear")
    if mode not in ("linear", "circular") or first.shape != (len(cache),):
        raise RunError(f"mode {mode!r} with write_indices {list(first.shape)}", value=mode)
    if (first < 0).any() or (mode == "linear" and (first + count > size).any()):
        raise RunError(
            f"write_indices {first.tolist()[:8]} and {count} more pass the cache of {size}",
            limit=size,
        )
    places = (first.astype(np.int64)[:, None] + np.arange(count)) % max(size, 1)
    result = cache.copy()
    moved = np.moveaxis(result, axis, 1)
    moved[np.arange(len(cache))[:, None], places] = np.moveaxis(update, axis, 1)
    return result


@corrects("CausalConvWithState", reason="one product an offset of the kernel, no loop over places")
def causal_conv_with_state(
    call: Call,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    past: Array | None = None,
) -> tuple[Array, Array]:
    if x.ndim != 3 or weight.ndim != 3 or weight.shape[:2] != (x.shape[1], 1):
        raise RunError(f"weights {list(weight.shape)} for an input {list(x.shape)}")
    activation = call.attr("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise RunError(f"activation {activation!r} is unknown", value=activation)
    width = weight.shape[2]
    before = np.zeros((*x.shape[:2], width - 1), dtype=x.dtype) if past is None else past
    if before.shape != (*x.shape[:2], width - 1):
        raise RunError(f"past_state {list(before.shape)} for a kernel of {width}")
    padded = np.concatenate([before, x], axis=2)
    wide, kernel = accumulator(padded), accumulator(weight)
    total = np.zeros(x.shape, dtype=wide.dtype)
    for offset in range(width):
        total += wide[:, :, offset : offset + x.shape[2]] * kernel[:, :, offset]
    if bias is not None:
        total += accumulator(bias)[:, None]
    if activation != "none":
        # The unfused nodes round the convolution first, and the official cases do as they do.
        rounded = accumulator(total.astype(x.dtype))
        total = rounded * sigmoid(rounded)
    return total.astype(x.dtype), padded[:, :, padded.shape[2] - (width - 1) :]
