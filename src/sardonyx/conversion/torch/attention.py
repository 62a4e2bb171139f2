"""scaled_dot_product_attention as ONNX, where a query may look at nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir
import torch

__all__ = ["attention_translations"]


def attention_translations() -> Mapping[Any, Callable[..., Any]]:
    """For `custom_translation_table`."""
    return {torch.ops.aten.scaled_dot_product_attention.default: _attend}


def _attend(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """scaled_dot_product_attention, where a query that may look at nothing answers zeros as in torch.

    The exporter's own translation has the lowest finite number for minus infinity: such a query (padding on
    the left) would answer the mean of all values.
    """
    import onnxscript

    op: Any = onnxscript.opset18

    dtype = query.dtype
    factor = _factor(op, query, scale)
    if enable_gqa and query.shape[1] != key.shape[1]:
        groups = query.shape[1] // key.shape[1]
        key, value = (_repeat(op, states, groups) for states in (key, value))
    rank = len(query.shape)
    turned = op.Transpose(key, perm=[*range(rank - 2), rank - 1, rank - 2])
    scaled = op.Mul(query, factor)
    scores = op.MatMul(scaled, turned)
    zero = op.Constant(value=ir.tensor(0.0, dtype=dtype))
    never = op.Constant(value=ir.tensor(-math.inf, dtype=dtype))
    if is_causal:
        attn_mask = _causal(op, query, key)
    may_be_empty = is_causal or (attn_mask is not None and attn_mask.dtype == ir.DataType.BOOL)
    if may_be_empty:
        attn_mask = op.Where(attn_mask, zero, never)
    if attn_mask is not None:
        scores = op.Add(scores, attn_mask)
    weights = op.Softmax(scores, axis=-1)
    if may_be_empty:
        weights = op.Where(op.IsNaN(weights), zero, weights)
    return op.MatMul(weights, value)


def _repeat(op: Any, states: Any, groups: int) -> Any:
    """[batch, heads, time, width] → [batch, heads · groups, time, width], each head `groups` times in a row."""
    heads, width = states.shape[1], states.shape[3]
    batch, time = op.Shape(states, start=0, end=1), op.Shape(states, start=2, end=3)
    known = {n: op.Constant(value_ints=[n]) for n in (groups, heads, width, heads * groups)}
    wide = op.Concat(batch, known[heads], known[groups], time, known[width], axis=0)
    flat = op.Concat(batch, known[heads * groups], time, known[width], axis=0)
    return op.Reshape(op.Expand(op.Unsqueeze(states, op.Constant(value_ints=[2])), wide), flat)


def _causal(op: Any, query: Any, key: Any) -> Any:
    lengths = [op.Shape(states, start=-2, end=-1) for states in (query, key)]
    ones = op.Expand(op.Constant(value_int=1), op.Concat(*lengths, axis=0))
    return op.Cast(op.Trilu(ones, upper=0), to=ir.DataType.BOOL)


def _factor(op: Any, query: Any, scale: float | None) -> Any:
    """What scores are multiplied with: as given, or one over the root of a query's width."""
    width = query.shape[-1]
    if scale is None and not isinstance(width, int):
        size = op.Cast(op.Shape(query, start=-1), to=query.dtype)
        return op.Reciprocal(op.Sqrt(size))
    number = 1 / math.sqrt(width) if scale is None else float(scale)
    return op.Constant(value=ir.tensor(number, dtype=query.dtype))
