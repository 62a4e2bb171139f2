"""Scaled dot products of queries, keys and values as exporters write them out, as the one operator Attention.

    s = MatMul(q, Transpose(k)) * scale + mask
    y = MatMul(Softmax(s), v)                       →   y = Attention<scale>(q, k, v, mask)

A row that is masked fully is NaN when it is written out, and 0 by the operator: a mask must be known to leave something
of every row. Keys and values that several queries share, repeated by hand, and masks of what comes later are
the operator's own business.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from sardonyx.ops.facts import Shape
from sardonyx.passes.opset.needed import needs_opset
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule
from sardonyx.passes.rules.activations import split

__all__ = ["RULES"]

_TYPES = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)
_SINCE = 23
_HEADS = [0, 2, 1, 3]  # (batch, row, head, column) ↔ (batch, head, row, column)
_KEYS = [0, 2, 3, 1]  # heads first, and rows as columns


@dataclass(frozen=True)
class Scores:
    """What the Softmax is taken of."""

    queries: ir.Value
    turned_keys: ir.Value
    scale: float
    mask: ir.Value | None
    softcap: float | None

    @property
    def form(self) -> str:
        """Which rule it is for: runtimes are fast at one and slow at another."""
        if self.softcap is not None:
            return "capped"
        return "plain" if self.mask is None else "masked"


def _scores_of(soft: ir.Node, draft: Draft) -> Scores | Refusal | None:
    """Take the input of a Softmax apart."""
    inner: list[ir.Node] = [soft]
    value, mask, scale = soft.inputs[0], None, 1.0
    add = draft.made_by(value, "Add")
    if add is not None:
        inner.append(add)
        side = 0 if draft.made_by(add.inputs[0], "MatMul", "Mul", "Div") is not None else 1
        value, mask = add.inputs[side], add.inputs[1 - side]
    value, softcap = _uncapped(value, draft, inner)
    value, scale = _unscaled(value, draft, inner)
    scale *= softcap or 1.0
    product = draft.made_by(value, "MatMul")
    if product is None:
        return None
    inner.append(product)
    queries, of_queries = _unscaled(product.inputs[0], draft, [])
    keys, of_keys = _unscaled(product.inputs[1], draft, [])
    if queries is None or keys is None:
        return None
    if not all(draft.is_only_use(one.outputs[0]) for one in inner):
        return Refusal("another node reads the scores")
    return Scores(queries, keys, scale * of_queries * of_keys, mask, softcap)


def _uncapped(
    value: ir.Value | None, draft: Draft, inner: list[ir.Node]
) -> tuple[ir.Value | None, float | None]:
    """From cap * tanh(s): s and cap, where s is what is capped, divided by it; else the value as it is."""
    outer: list[ir.Node] = []
    bent, cap = _unscaled(value, draft, outer)
    tanh = draft.made_by(bent, "Tanh")
    if tanh is None or not outer or cap <= 0 or not math.isfinite(cap):
        return value, None
    inner += [*outer, tanh]
    return tanh.inputs[0], cap


def _unscaled(
    value: ir.Value | None, draft: Draft, inner: list[ir.Node]
) -> tuple[ir.Value | None, float]:
    """A value without the number that it is multiplied with, or divided by."""
    node = draft.made_by(value, "Mul", "Div")
    found = split(node, draft)
    if node is None or found is None or draft.shape(found[0]) != draft.shape(value):
        return value, 1.0
    if node.op_type == "Div" and (node.inputs[0] is not found[0] or not found[1]):
        return value, 1.0
    inner.append(node)
    return found[0], found[1] if node.op_type == "Mul" else 1 / found[1]


def _is_softmax_of_last(node: ir.Node, draft: Draft) -> bool:
    axis = int(draft.attribute(node, "axis", -1 if draft.opset >= 13 else 1))
    return axis in (-1, 3) and draft.rank(node.inputs[0]) == 4


def _keys_of(turned: ir.Value, draft: Draft) -> ir.Value | None:
    """From keys whose rows are columns: the keys, heads first."""
    node = draft.made_by(turned, "Transpose")
    if node is None or node.inputs[0] is None:
        return None
    order = list(draft.attribute(node, "perm", []))
    if order == [0, 1, 3, 2]:
        return node.inputs[0]
    return draft.call("Transpose", node.inputs[0], perm=_HEADS) if order == _KEYS else None


def _masks_no_row(mask: ir.Value, draft: Draft) -> bool:
    """Whether every row of a mask has a finite element, in any run, and no other ones but -inf."""
    known = draft.constant(mask)
    if known is not None:
        wide = known.astype(np.float64)
        finite = np.isfinite(wide)
        return bool((finite | (wide == -np.inf)).all() and finite.any(axis=-1).all())
    largest, dtype = _largest(mask, draft), draft.dtype(mask)
    return largest is not None and dtype is not None and largest <= float(_finfo(dtype.numpy()).max)


_finfo: Any = ml_dtypes.finfo  # knows bfloat16, and numpy's own types too
_MOVING = ("Reshape", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Expand")


def _largest(value: ir.Value | None, draft: Draft, depth: int = 8) -> float | None:
    """What no element of a value is larger than, by size, because of what makes them; None where that is not known.

    Masks are chosen out of two numbers, position biases are looked up in a table, and both are added.
    """
    known = draft.constant(value)
    if known is not None:
        wide = np.abs(known.astype(np.float64))
        return float(wide.max(initial=0)) if np.isfinite(wide).all() else None
    node = draft.made_by(value, *_MOVING, "Gather", "Where", "Add") if depth else None
    if node is None:
        return None
    read = {"Where": node.inputs[1:], "Add": node.inputs}.get(node.op_type, node.inputs[:1])
    parts = [_largest(part, draft, depth - 1) for part in read]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    return sum(found) if node.op_type == "Add" else max(found)


def _fits(queries: Shape | None, keys: Shape | None, values: Shape | None) -> bool:
    """Whether all have the same batch and heads: the operator broadcasts none of them."""
    if queries is None or keys is None or values is None:
        return False
    if not len(queries) == len(keys) == len(values) == 4:
        return False
    heads = queries[1] == keys[1] == values[1]
    return heads and queries[0] == keys[0] == values[0] and keys[2] == values[2]


def _fused(node: ir.Node, draft: Draft, form: str) -> Outcome:
    soft = draft.made_by(node.inputs[0], "Softmax")
    if soft is None and draft.made_by(node.inputs[0], "Where") is not None:
        return _guarded(node, draft)
    if soft is None or not _is_softmax_of_last(soft, draft):
        return None
    scores = _scores_of(soft, draft)
    if scores is None or isinstance(scores, Refusal):
        return scores
    if scores.form != form or draft.dtype(node.outputs[0]) not in _TYPES:
        return None
    if not np.isfinite(scores.scale) or scores.scale <= 0:
        return Refusal(f"the factor of the scores is {scores.scale:g}, not a positive number")
    if scores.mask is not None and (draft.rank(scores.mask) or 0) < 2:
        return Refusal("the mask has fewer than two axes")
    if scores.mask is not None and not _masks_no_row(scores.mask, draft):
        return Refusal(
            "the mask may be -inf in a whole row, which is NaN when it is written out and 0 in Attention"
        )
    keys, values = _keys_of(scores.turned_keys, draft), node.inputs[1]
    if keys is None:
        return Refusal("the keys are not a Transpose of the last two axes")
    shapes = [draft.shape(value) for value in (scores.queries, keys, values)]
    if not _fits(shapes[0], shapes[1], shapes[2]):
        return Refusal(
            "queries, keys and values differ in batch or heads, or their shapes are not known"
        )
    return needs_opset("Attention", _SINCE, draft) or draft.call(
        "Attention",
        *(scores.queries, keys, values, scores.mask),
        scale=scores.scale,
        softcap=scores.softcap,
    )


def _guarded(node: ir.Node, draft: Draft) -> Outcome:
    guard = draft.made_by(node.inputs[0], "Where")
    test = None if guard is None else draft.made_by(guard.inputs[0], "IsNaN")
    if test is None or draft.made_by(test.inputs[0], "Softmax") is None:
        return None
    return Refusal("a NaN among queries or keys becomes 0 here, and would stay NaN in Attention")


@rule("MatMul", bound=ROUNDED)
def attention(node: ir.Node, draft: Draft) -> Outcome:
    """MatMul, Softmax and MatMul of queries, keys and values are Attention."""
    return _fused(node, draft, "plain")


@rule("MatMul", bound=ROUNDED)
def attention_with_mask(node: ir.Node, draft: Draft) -> Outcome:
    """MatMul, Add of a mask, Softmax and MatMul of queries, keys and values are Attention."""
    return _fused(node, draft, "masked")


@rule("MatMul", bound=ROUNDED)
def attention_with_softcap(node: ir.Node, draft: Draft) -> Outcome:
    """MatMul, a cap by Tanh, Softmax and MatMul of queries, keys and values are Attention."""
    return _fused(node, draft, "capped")


@rule("Reshape", bound=ROUNDED)
def attention_of_rows(node: ir.Node, draft: Draft) -> Outcome:
    """Attention between Reshapes and Transposes that only part rows into heads does that itself."""
    back = draft.made_by(node.inputs[0], "Transpose")
    inner = None if back is None else draft.made_by(back.inputs[0], "Attention")
    if back is None or inner is None or list(draft.attribute(back, "perm", [])) != _HEADS:
        return None
    if any(name in inner.attributes for name in ("q_num_heads", "kv_num_heads")):
        return None
    if len(inner.outputs) > 1 or any(value is not None for value in inner.inputs[4:]):
        return None
    if not (draft.is_only_use(back.outputs[0]) and draft.is_only_use(inner.outputs[0])):
        return Refusal("another node reads the heads")
    rows = [_rows_of(value, draft) for value in inner.inputs[:3]]
    shapes = [draft.shape(value) for value in inner.inputs[:3]]
    result, given = draft.shape(node.outputs[0]), shapes[2]
    query, key = shapes[0], shapes[1]
    if query is None or key is None or given is None or not all(rows):
        return Refusal("queries, keys or values are not rows that a Reshape has parted into heads")
    if result is None or len(result) != 3 or result != (query[0], query[2], query[1] * given[3]):
        return Refusal("the heads are not put together to rows again")
    if not isinstance(query[1], int) or not isinstance(key[1], int):
        return Refusal("the number of heads is not known")
    kept = {name: draft.attribute(inner, name) for name in ("scale", "is_causal", "softcap")}
    heads = {"q_num_heads": query[1], "kv_num_heads": key[1]}
    mask = inner.inputs[3] if len(inner.inputs) > 3 else None
    return draft.call("Attention", *rows, mask, **kept, **heads)


def _rows_of(value: ir.Value | None, draft: Draft) -> ir.Value | None:
    """The rows (batch, row, head · column) of heads (batch, head, row, column)."""
    rotary, shape = draft.made_by(value, "RotaryEmbedding"), draft.shape(value)
    if rotary is not None and shape is not None and value is not None:
        rows = _rows_of(rotary.inputs[0], draft)
        if rows is None or not draft.is_only_use(value) or not isinstance(shape[1], int):
            return None
        names = ("interleaved", "rotary_embedding_dim")
        given = {name: draft.attribute(rotary, name) for name in names}
        return draft.call("RotaryEmbedding", rows, *rotary.inputs[1:], num_heads=shape[1], **given)
    turned = draft.made_by(value, "Transpose")
    parted = None if turned is None else draft.made_by(turned.inputs[0], "Reshape")
    if turned is None or parted is None or list(draft.attribute(turned, "perm", [])) != _HEADS:
        return None
    rows, heads = parted.inputs[0], draft.shape(parted.outputs[0])
    shape = draft.shape(rows)
    if shape is None or heads is None or len(shape) != 3 or len(heads) != 4:
        return None
    return rows if shape == (heads[0], heads[1], heads[2] * heads[3]) else None


@rule("Attention", bound=ROUNDED)
def attention_of_groups(node: ir.Node, draft: Draft) -> Outcome:
    """Attention repeats the heads of keys and values by itself, where several queries share one."""
    if len(node.outputs) > 1 or any(value is not None for value in node.inputs[4:]):
        return None
    keys, values = (_unrepeated(value, draft) for value in node.inputs[1:3])
    if keys is None or values is None:
        return None
    shapes = [draft.shape(value) for value in (keys, values)]
    if shapes[0] is None or shapes[1] is None or shapes[0][:3] != shapes[1][:3]:
        return Refusal("keys and values are repeated in other ways")
    return draft.copy(node, [node.inputs[0], keys, values, *node.inputs[3:]])[0]


def _unrepeated(value: ir.Value | None, draft: Draft) -> ir.Value | None:
    """From heads (batch, head · times, row, column), each repeated in a row: what they are repeated from."""
    flat = draft.made_by(value, "Reshape")
    spread = None if flat is None else draft.made_by(flat.inputs[0], "Expand")
    single = None if spread is None else draft.made_by(spread.inputs[0], "Unsqueeze", "Reshape")
    if spread is None or single is None or single.inputs[0] is None:
        return None
    heads, shape = single.inputs[0], draft.shape(single.inputs[0])
    whole, parted = draft.shape(value), draft.shape(spread.outputs[0])
    if shape is None or whole is None or parted is None or not len(shape) == len(whole) == 4:
        return None
    if draft.shape(single.outputs[0]) != (*shape[:2], 1, *shape[2:]) or len(parted) != 5:
        return None
    if parted != (*shape[:2], parted[2], *shape[2:]):
        return None
    return heads if whole == (shape[0], shape[1] * parted[2], *shape[2:]) else None


@rule("Attention")
def attention_with_causal_mask(node: ir.Node, draft: Draft) -> Outcome:
    """A constant mask that hides what comes later is Attention's own `is_causal`."""
    mask = draft.constant(node.inputs[3]) if len(node.inputs) > 3 else None
    if mask is None or draft.attribute(node, "is_causal", 0) or mask.ndim < 2:
        return None
    if any(value is not None for value in node.inputs[4:]):
        return Refusal("it has keys of before: what comes later is counted from them")
    rows, columns = mask.shape[-2:]
    sizes = [_rows(value, draft) for value in node.inputs[:2]]
    if sizes != [rows, columns] or rows != columns or mask.size != rows * columns:
        return None
    past = np.tri(rows, dtype=bool)
    square = mask.reshape(rows, columns)
    shown, hidden = (True, False) if square.dtype == bool else (0, -np.inf)
    if not ((square == shown) == past).all() or not ((square == hidden) == ~past).all():
        return None
    given = {name: one.value for name, one in node.attributes.items()}
    return draft.call("Attention", *node.inputs[:3], **{**given, "is_causal": 1})


def _rows(value: ir.Value | None, draft: Draft) -> object:
    shape = draft.shape(value)
    return None if shape is None else shape[-2]


RULES = (
    attention,
    attention_with_mask,
    attention_with_softcap,
    attention_with_causal_mask,
    attention_of_groups,
    attention_of_rows,
)
