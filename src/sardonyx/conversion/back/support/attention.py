"""Attention as ONNX has it."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import places, weights_like, xp

__all__ = ["attention", "seen_keys", "split_heads"]


def split_heads(x: Any, heads: int) -> Any:
    """[batch, row, head · column] as [batch, head, row, column]."""
    return xp.swapaxes(xp.reshape(x, (x.shape[0], x.shape[1], heads, -1)), 1, 2)


def seen_keys(scores: Any, before: Any, lengths: Any, causal: bool, window: Any) -> Any:
    """Which keys each row of the scores sees; None where it sees all."""
    row = places(scores.shape[2], scores)[:, None] + before
    key = places(scores.shape[3], scores)
    left, right = window
    seen = None if lengths is None else key < lengths
    for wanted, found in (
        (causal, key <= row),
        (left >= 0, key >= row - left),
        (right >= 0, key <= row + right),
    ):
        if wanted:
            seen = found if seen is None else seen & found
    return seen


def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    past_key: Any,
    past_value: Any,
    lengths: Any,
    heads: Any,
    scale: Any,
    softcap: float,
    causal: bool,
    window: Any,
    precise: Any,
    mode: int,
) -> Any:
    """What is attended to, all keys and values, and the scores of one of four stages; a row that sees no key is 0."""
    if heads is not None:
        q, k, v = split_heads(q, heads[0]), split_heads(k, heads[1]), split_heads(v, heads[1])
    if past_key is not None:
        k, v = xp.concatenate([past_key, k], 2), xp.concatenate([past_value, v], 2)
    before = 0 if past_key is None else past_key.shape[2]
    if lengths is not None:
        lengths = xp.reshape(lengths, (-1, 1, 1, 1))
        before = lengths - q.shape[2]
    all_k, all_v, times = k, v, q.shape[1] // k.shape[1]
    if times > 1:
        each, n, rows = k.shape[0], k.shape[1], k.shape[2]
        k = xp.broadcast_to(k[:, :, None], (each, n, times, rows, k.shape[3]))
        v = xp.broadcast_to(v[:, :, None], (each, n, times, rows, v.shape[3]))
        k = xp.reshape(k, (each, n * times, rows, k.shape[4]))
        v = xp.reshape(v, (each, n * times, rows, v.shape[4]))
    root = (q.shape[-1] ** -0.5 if scale is None else scale) ** 0.5
    stages = [xp.matmul(q * root, xp.swapaxes(k * root, 2, 3))]
    stages.append(xp.tanh(stages[0] / softcap) * softcap if softcap else stages[0])
    bias, scores = None, stages[1]
    seen = seen_keys(scores, before, lengths, causal, window)
    if mask is not None and str(mask.dtype).endswith("bool"):
        seen = mask if seen is None else seen & mask
    elif mask is not None:
        bias = mask
    if seen is not None:
        unseen = xp.where(seen, xp.zeros_like(scores), -float("inf"))
        bias = unseen if bias is None else bias + unseen
    stages.append(scores if bias is None else scores + bias)
    last = stages[2] if precise is None else weights_like(stages[2], precise)
    if bias is None:
        weights = xp.exp(last - xp.amax(last, -1, keepdims=True))
    else:
        none = xp.amax(bias, -1, keepdims=True) == -float("inf")
        last = xp.where(none, xp.zeros_like(last), last)
        weights = xp.exp(last - xp.amax(last, -1, keepdims=True))
        weights = xp.where(none, xp.zeros_like(weights), weights)
    total = xp.sum(weights, -1, keepdims=True)
    weights = weights_like(weights / xp.where(total == 0, xp.ones_like(total), total), q)
    stages.append(weights)
    y = xp.matmul(weights, v)
    if heads is not None:
        y = xp.swapaxes(y, 1, 2)
        y = xp.reshape(y, (y.shape[0], y.shape[1], -1))
    return y, all_k, all_v, stages[mode]
