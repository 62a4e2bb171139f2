"""Rotary embeddings as models write them out, as the one operator RotaryEmbedding.

    x * cos + Concat(-second half, first half) * sin            →   RotaryEmbedding(x, cos, sin)
    Concat(a * cos - b * sin, b * cos + a * sin)                →   the same, of the halves a and b
    with every other column instead of halves                   →   RotaryEmbedding<interleaved>
    Concat(RotaryEmbedding(first columns of x), the others)     →   RotaryEmbedding<rotary_embedding_dim>(x)

x is [batch, head, token, column], or [batch, token, head, column] between Reshapes to rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.ops.facts import Shape
from sardonyx.passes.opset.needed import needs_opset
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule
from sardonyx.passes.rules.rotary_caches import Kind, cache, narrow
from sardonyx.passes.rules.rotary_parts import Part, part_of, stacked

__all__ = ["RULES"]

_TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_SINCE = 23


@dataclass(frozen=True)
class Turned:
    """What is turned, how its columns make pairs, and by which numbers: one a pair."""

    x: ir.Value
    kind: Kind
    cosines: ir.Value
    sines: ir.Value


def _written(found: Turned, angles: Shape | None, draft: Draft) -> Outcome:
    """The operator; `angles` is the shape that the numbers were multiplied with."""
    shape = draft.shape(found.x)
    if shape is None or angles is None or len(shape) != 4 or draft.dtype(found.x) not in _TYPES:
        return None
    batch, columns = shape[0], shape[3]
    if not isinstance(columns, int) or columns % 2:
        return None
    broadcast = (1,) * (4 - len(angles)) + tuple(angles)
    if broadcast[1:3] == (1, shape[2]):
        heads, tokens, rows = shape[1], shape[2], False
    elif broadcast[1:3] == (shape[1], 1):
        heads, tokens, rows = shape[2], shape[1], True
    else:
        return Refusal("the sines and cosines are not one row a token")
    if broadcast[0] not in (1, batch) or not isinstance(heads, int):
        return Refusal("the batch or the number of heads is not known")
    missing = needs_opset("RotaryEmbedding", _SINCE, draft)
    if missing is not None:
        return missing
    caches = [
        cache(value, batch, tokens, columns // 2, found.x, draft)
        for value in (found.cosines, found.sines)
    ]
    if caches[0] is None or caches[1] is None:
        return Refusal("the sines and cosines are not one row a token")
    given = {"interleaved": int(found.kind == "pair"), "num_heads": heads}
    if not rows:
        return draft.call("RotaryEmbedding", found.x, *caches, **given)
    flat = draft.call("Reshape", found.x, draft.ints([0, 0, heads * columns]))
    made = draft.call("RotaryEmbedding", flat, *caches, **given)
    return draft.call("Reshape", made, draft.ints([0, 0, heads, columns]))


@rule("Add", bound=ROUNDED)
def rotary_embedding(node: ir.Node, draft: Draft) -> Outcome:
    """x * cos plus x with its pairs swapped * sin is RotaryEmbedding."""
    products = [draft.made_by(value, "Mul") for value in node.inputs]
    for first, second in (products, reversed(products)):
        if first is None or second is None:
            continue
        for side in (0, 1):
            swapped = _swapped(second.inputs[side], draft)
            if swapped is None or swapped[0] not in first.inputs:
                continue
            x, kind, inner = swapped
            cosine = first.inputs[1 - list(first.inputs).index(x)]
            sine = second.inputs[1 - side]
            if not all(draft.is_only_use(one.outputs[0]) for one in (first, second, *inner)):
                return Refusal("another node reads a value inside of it")
            if draft.shape(cosine) != draft.shape(sine):
                return Refusal("the sines and the cosines have other shapes")
            narrowed = [narrow(value, kind, draft) for value in (cosine, sine)]
            if narrowed[0] is None or narrowed[1] is None:
                return Refusal("the two columns of a pair are not known to have the same angle")
            found = Turned(x, kind, narrowed[0], narrowed[1])
            return _written(found, draft.shape(cosine), draft)
    return None


def _swapped(value: ir.Value | None, draft: Draft) -> tuple[ir.Value, Kind, list[ir.Node]] | None:
    """From (-b, a) for the pairs (a, b) of x: x, how its columns make pairs, and the nodes on the way."""
    joined = stacked(value, draft)
    if joined is None:
        return None
    negated = draft.made_by(joined.first, "Neg")
    a, b = (
        part_of(joined.second, draft),
        part_of(None if negated is None else negated.inputs[0], draft),
    )
    if negated is None or not _is_pair(a, b, joined.kind) or a is None:
        return None
    return a.x, a.kind, [negated, *joined.nodes]


def _is_pair(a: Part | None, b: Part | None, kind: Kind) -> bool:
    if a is None or b is None or a.x is not b.x:
        return False
    return (a.index, b.index) == (0, 1) and a.kind == b.kind == kind


@rule("Concat", "Reshape", bound=ROUNDED)
def rotary_embedding_of_parts(node: ir.Node, draft: Draft) -> Outcome:
    """a * cos - b * sin beside b * cos + a * sin, for parts a and b of x, is RotaryEmbedding."""
    joined = stacked(node.outputs[0], draft)
    if joined is None:
        return None
    difference, total = draft.made_by(joined.first, "Sub"), draft.made_by(joined.second, "Add")
    if difference is None or total is None:
        return None
    products = [draft.made_by(v, "Mul") for v in (*difference.inputs, *total.inputs)]
    parts = [None if one is None else _factors(one, draft) for one in products]
    if parts[0] is None or parts[1] is None or parts[2] is None or parts[3] is None:
        return None
    (a, cosine), (b, sine) = parts[0], parts[1]
    others = {(parts[2][0], parts[2][1]), (parts[3][0], parts[3][1])}
    if not _is_pair(a, b, joined.kind) or others != {(b, cosine), (a, sine)}:
        return None
    inner = [difference, total, *(one for one in products if one), *joined.nodes]
    if not all(one is node or draft.is_only_use(one.outputs[0]) for one in inner):
        return Refusal("another node reads a value inside of it")
    if draft.shape(cosine) != draft.shape(sine) or draft.shape(a.x) != draft.shape(node.outputs[0]):
        return None
    return _written(Turned(a.x, a.kind, cosine, sine), draft.shape(cosine), draft)


def _factors(product: ir.Node, draft: Draft) -> tuple[Part, ir.Value] | None:
    """From a * c: which part of x a is, and c."""
    for side in (0, 1):
        part, other = part_of(product.inputs[side], draft), product.inputs[1 - side]
        if part is not None and other is not None:
            return part, other
    return None


@rule("Concat", bound=ROUNDED)
def rotary_embedding_of_first_columns(node: ir.Node, draft: Draft) -> Outcome:
    """RotaryEmbedding of the first columns, beside the others as they are, is one of all columns."""
    shape = draft.shape(node.outputs[0])
    if shape is None or len(node.inputs) != 2 or len(shape) != 4:
        return None
    if int(draft.attribute(node, "axis", 0)) % 4 != 3:
        return None
    rows = draft.made_by(node.inputs[0], "Reshape")
    turned = draft.made_by(node.inputs[0] if rows is None else rows.inputs[0], "RotaryEmbedding")
    if turned is None or draft.attribute(turned, "rotary_embedding_dim", 0):
        return None
    first = turned.inputs[0]
    flat = None if rows is None else draft.made_by(first, "Reshape")
    if rows is not None:
        first = None if flat is None else flat.inputs[0]
    whole, count = _first_columns(first, node.inputs[1], draft), draft.shape(first)
    if whole is None or count is None or draft.shape(whole) != shape:
        return None
    if draft.shape(node.inputs[0]) != count or not isinstance(shape[3], int):
        return None
    if not all(draft.is_only_use(one.outputs[0]) for one in (turned, rows) if one is not None):
        return Refusal("another node reads the turned columns")
    given = {
        "interleaved": draft.attribute(turned, "interleaved", 0),
        "num_heads": draft.attribute(turned, "num_heads", 0) or shape[1],
        "rotary_embedding_dim": count[3],
    }
    if not isinstance(given["num_heads"], int):
        return None
    if rows is None:
        return draft.call("RotaryEmbedding", whole, *turned.inputs[1:], **given)
    heads = int(given["num_heads"])
    if shape[2] != heads:
        return None
    wide = draft.call("Reshape", whole, draft.ints([0, 0, heads * shape[3]]))
    made = draft.call("RotaryEmbedding", wide, *turned.inputs[1:], **given)
    return draft.call("Reshape", made, draft.ints([0, 0, heads, shape[3]]))


def _first_columns(
    first: ir.Value | None, others: ir.Value | None, draft: Draft
) -> ir.Value | None:
    """What two values are the first columns and the other columns of."""
    node = None if first is None else first.producer()
    rank = draft.rank(first)
    if node is None or rank is None or node.op_type != "Split" or node.domain:
        return None
    if list(node.outputs) != [first, others]:
        return None
    return node.inputs[0] if int(draft.attribute(node, "axis", 0)) % rank == rank - 1 else None


RULES = (rotary_embedding, rotary_embedding_of_parts, rotary_embedding_of_first_columns)
