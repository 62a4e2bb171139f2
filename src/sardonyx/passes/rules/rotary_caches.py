"""Sines and cosines of rotary embeddings: one number a pair of columns, and one row a token.

Exporters write them twice, as wide as the heads, so that one product turns both columns of a pair:

    half    Cos(Concat(angles, angles))                     [a b c a b c]
    pair    Cos(Reshape(Expand(Unsqueeze(angles, -1))))     [a a b b c c]

`narrow` finds out whether a value is so, and makes [a b c] by the same operators.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.ops.facts import Shape
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.sizes import Size

__all__ = ["Kind", "cache", "narrow"]

Kind: TypeAlias = Literal["half", "pair"]
_POINTWISE = ("Cos", "Sin", "Cast", "Neg", "Identity")
_VIEWS = ("Unsqueeze", "Squeeze", "Reshape", "Expand")
_DEEPEST = 12


def narrow(
    value: ir.Value | None, kind: Kind, draft: Draft, depth: int = _DEEPEST
) -> ir.Value | None:
    """One of each two equal columns of a value; None where they are not known to be equal.

    Axes of size 1, and what only repeats other axes, may be missing.
    """
    if value is None or not depth:
        return None
    if draft.is_constant(value):
        return _narrow_constant(value, kind, draft)
    whole = _doubled(value, kind, draft)
    if whole is not None:
        return whole
    node = draft.made_by(value, *_POINTWISE, *_VIEWS, "Mul", "Div", "Gather", "Slice")
    if node is None:
        return None
    if node.op_type in ("Mul", "Div"):
        return _narrow_scaled(node, kind, draft, depth)
    if node.op_type in _VIEWS and not _keeps_columns(node, draft):
        return None
    if node.op_type in ("Gather", "Slice") and not _moves_rows_only(node, draft):
        return None
    inner = narrow(node.inputs[0], kind, draft, depth - 1)
    if inner is None or node.op_type in _VIEWS:
        return inner
    if node.op_type in ("Gather", "Slice") and draft.rank(inner) != draft.rank(node.inputs[0]):
        return None
    return draft.copy(node, [inner, *node.inputs[1:]])[0]


def _narrow_constant(value: ir.Value, kind: Kind, draft: Draft) -> ir.Value | None:
    array, dtype = draft.constant(value), draft.dtype(value)
    if array is None or array.ndim == 0 or array.shape[-1] % 2 or dtype is None:
        return None
    half = array.shape[-1] // 2
    first, second = (
        (array[..., :half], array[..., half:])
        if kind == "half"
        else (array[..., 0::2], array[..., 1::2])
    )
    if first.tobytes() != second.tobytes():
        return None
    return draft.tensor(np.ascontiguousarray(first), dtype)


def _doubled(value: ir.Value, kind: Kind, draft: Draft) -> ir.Value | None:
    """What a value has every column of twice."""
    if kind == "half":
        twice, rank = draft.made_by(value, "Concat"), draft.rank(value)
        if twice is None or rank is None or len(twice.inputs) != 2:
            return None
        same = twice.inputs[0] is twice.inputs[1]
        return (
            twice.inputs[0]
            if same and twice.attributes["axis"].as_int() % rank == rank - 1
            else None
        )
    flat = draft.made_by(value, "Reshape")
    spread = None if flat is None else draft.made_by(flat.inputs[0], "Expand")
    single = None if spread is None else spread.inputs[0]
    shape, pairs = draft.shape(value), draft.shape(None if spread is None else spread.outputs[0])
    if single is None or not shape or pairs is None or len(pairs) < 2 or pairs[-1] != 2:
        return None
    if draft.shape(single) != (*pairs[:-1], 1) or shape != (*pairs[:-2], 2 * pairs[-2]):
        return None
    return draft.call("Squeeze", single, draft.ints([-1]))


def _narrow_scaled(node: ir.Node, kind: Kind, draft: Draft, depth: int) -> ir.Value | None:
    """A value times or by one number."""
    for side in (0, 1) if node.op_type == "Mul" else (0,):
        number, dtype = draft.constant(node.inputs[1 - side]), draft.dtype(node.outputs[0])
        if number is None or number.size != 1 or dtype is None:
            continue
        inner = narrow(node.inputs[side], kind, draft, depth - 1)
        scalar = draft.tensor(number.reshape(()), dtype)
        return None if inner is None else draft.call(node.op_type, inner, scalar)
    return None


def _keeps_columns(node: ir.Node, draft: Draft) -> bool:
    """Whether a view only adds, drops or repeats axes of size 1 before the last one."""
    before, after = draft.shape(node.inputs[0]), draft.shape(node.outputs[0])
    if not before or not after or before[-1] != after[-1] or before[-1] == 1:
        return False
    if node.op_type == "Expand":
        added = len(after) - len(before)
        return all(a in (1, b) for a, b in zip(before, after[added:], strict=True))
    return [size for size in before if size != 1] == [size for size in after if size != 1]


def _moves_rows_only(node: ir.Node, draft: Draft) -> bool:
    rank = draft.rank(node.inputs[0])
    if rank is None:
        return False
    if node.op_type == "Gather":
        return int(draft.attribute(node, "axis", 0)) % rank != rank - 1
    axes = draft.integers(node.inputs[3]) if len(node.inputs) > 3 else None
    return axes is not None and all(axis % rank != rank - 1 for axis in axes)


def cache(
    value: ir.Value, batch: Size, tokens: Size, columns: Size, x: ir.Value, draft: Draft
) -> ir.Value | None:
    """A value as [batch, token, column]: without other axes of size 1, and repeated for the batch of x."""
    for rows in (batch, 1):
        fitted = _fitted(value, (rows, tokens, columns), draft)
        if fitted is None:
            continue
        if rows == batch:
            return fitted
        size = (
            draft.ints([batch, 1, 1])
            if isinstance(batch, int)
            else draft.call(
                "Concat", draft.call("Shape", x, start=0, end=1), draft.ints([1, 1]), axis=0
            )
        )
        return draft.call("Expand", fitted, size)
    return None


def _fitted(value: ir.Value, target: Shape, draft: Draft) -> ir.Value | None:
    """A value with axes of size 1 dropped and added, so that it has this shape; None where that is not enough."""
    shape = draft.shape(value)
    if shape is None or [s for s in shape if s != 1] != [s for s in target if s != 1]:
        return None
    if shape == target:
        return value
    dropped = [axis for axis, size in enumerate(shape) if size == 1]
    added = [axis for axis, size in enumerate(target) if size == 1]
    if dropped:
        value = draft.call("Squeeze", value, draft.ints(dropped))
    return draft.call("Unsqueeze", value, draft.ints(added)) if added else value
