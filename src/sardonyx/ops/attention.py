"""Attention in its standard forms, and rotary positions.

4D: Q (batch, heads, length, size)      3D: Q (batch, length, heads * size), with head counts
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowerings.attention import ATTENTION
from sardonyx.ops.lowerings.linear_attention import LINEAR_ATTENTION
from sardonyx.ops.lowerings.rotary import ROTARY
from sardonyx.ops.plain import flops_per_input
from sardonyx.sizes import Size, quotient

__all__ = ["OPERATORS"]


@dataclass(frozen=True)
class Heads:
    """One of Q, K, V, whichever way it is laid out."""

    batch: Size
    heads: Size
    length: Size
    size: Size


def split_heads(call: Call, index: int, attribute: str) -> Heads | None:
    """An input as (batch, heads, length, size); None when its rank is unknown."""
    shape = call.need_rank(index, 3, 4)
    if shape is None:
        return None
    if len(shape) == 4:
        return Heads(*shape)
    count = call.int_attr(attribute)
    if count < 1:
        call.fail(f"input {index} has rank 3, so attribute {attribute} is needed, above 0")
    return Heads(shape[0], count, shape[1], _per_head(call, shape[2], count, index))


def _per_head(call: Call, hidden: Size, heads: int, index: int) -> Size:
    size = quotient(hidden, heads)
    if size is None:
        if isinstance(hidden, int):
            call.fail(f"{hidden} hidden units of input {index} do not divide into {heads} heads")
        return hidden // heads
    return size


def attention(call: Call) -> list[Facts]:
    query = split_heads(call, 0, "q_num_heads")
    key = split_heads(call, 1, "kv_num_heads")
    value = split_heads(call, 2, "kv_num_heads")
    if query is None or key is None or value is None:
        rank = None if call.shape(0) is None else len(call.shape(0) or ())
        first = call.out(None if rank is None else call.fresh_shape(rank))
        return [first, *(call.out(call.fresh_shape(4, output), output) for output in (1, 2, 3))]
    _check_heads(call, query, key, value)
    past = call.need_rank(4, 4) if call.has(4) else None
    before = past[2] if past is not None else (0 if not call.has(4) else call.fresh(2, 1))
    total = before + key.length
    flat = len(call.input(0).shape or ()) == 3
    result: Shape = (query.batch, query.heads, query.length, value.size)
    if flat:
        result = (query.batch, query.length, query.heads * value.size)
    return [
        call.out(result),
        call.out((key.batch, key.heads, total, key.size), 1),
        call.out((value.batch, value.heads, total, value.size), 2),
        call.out((query.batch, query.heads, query.length, total), 3),
    ]


def _check_heads(call: Call, query: Heads, key: Heads, value: Heads) -> None:
    call.agree(query.batch, key.batch, "the batches of Q and K")
    call.agree(query.batch, value.batch, "the batches of Q and V")
    call.agree(query.size, key.size, "the head sizes of Q and K")
    call.agree(key.length, value.length, "the lengths of K and V")
    call.agree(key.heads, value.heads, "the heads of K and V")
    known = isinstance(query.heads, int) and isinstance(key.heads, int)
    if known and (key.heads == 0 or quotient(query.heads, key.heads) is None):
        call.fail(f"{query.heads} query heads do not share {key.heads} key heads evenly")


def attention_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Scores and their product with the values; the softmax in between."""
    query = split_heads(call, 0, "q_num_heads")
    key = split_heads(call, 1, "kv_num_heads")
    value = split_heads(call, 2, "kv_num_heads")
    past = call.shape(4)
    if query is None or key is None or value is None or (call.has(4) and past is None):
        return moved(call.inputs, outputs, macs=None, flops=None)
    total = key.length + (past[2] if past is not None else 0)
    scores = query.batch * query.heads * query.length * total
    return moved(call.inputs, outputs, macs=scores * (query.size + value.size), flops=scores * 6)


def flex_attention(call: Call) -> list[Facts]:
    query, key, value = (call.need_rank(index, 4) for index in range(3))
    if query is None or value is None:
        return [call.out(call.fresh_shape(4))]
    if key is not None:
        _check_heads(call, Heads(*query), Heads(*key), Heads(*value))
    return [call.out((*query[:3], value[3]))]


def linear_attention(call: Call) -> list[Facts]:
    query = split_heads(call, 0, "q_num_heads")
    key = split_heads(call, 1, "kv_num_heads")
    value = split_heads(call, 2, "kv_num_heads")
    if query is None or key is None or value is None:
        return [call.out(call.fresh_shape(3)), call.out(call.fresh_shape(4, 1), 1)]
    call.agree(query.size, key.size, "the head sizes of query and key")
    state = call.dtype(3) or call.dtype(0)
    return [
        call.out((query.batch, query.length, query.heads * value.size)),
        call.out((key.batch, key.heads, key.size, value.size), 1, state),
    ]


def linear_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Every token updates its heads' state, and reads it: an outer and an inner product."""
    query = split_heads(call, 0, "q_num_heads")
    key = split_heads(call, 1, "kv_num_heads")
    value = split_heads(call, 2, "kv_num_heads")
    if query is None or key is None or value is None:
        return moved(call.inputs, outputs, macs=None, flops=None)
    state = key.size * value.size
    updates = 2 if "delta" in call.str_attr("update_rule", "gated_delta") else 1
    decays = 1 if "gated" in call.str_attr("update_rule", "gated_delta") else 0
    tokens = query.batch * query.length
    macs = tokens * state * (key.heads * updates + query.heads)
    return moved(call.inputs, outputs, macs=macs, flops=tokens * state * key.heads * decays)


def rotary(call: Call) -> list[Facts]:
    shape = call.need_rank(0, 3, 4)
    if shape is not None and len(shape) == 3 and not call.int_attr("num_heads"):
        call.fail("the input has rank 3, so attribute num_heads is needed")
    return [call.same()]


OPERATORS = (
    Operator("Attention", "contraction", attention, None, attention_cost, ATTENTION),
    Operator(
        "FlexAttention",
        "contraction",
        flex_attention,
        cost=attention_cost,
        domain="ai.onnx.preview",
    ),
    Operator(
        "LinearAttention", "contraction", linear_attention, None, linear_cost, LINEAR_ATTENTION
    ),
    Operator("RotaryEmbedding", "pointwise", rotary, None, flops_per_input(3), ROTARY),
)
