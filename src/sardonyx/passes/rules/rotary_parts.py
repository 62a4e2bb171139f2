"""Columns that make pairs: halves of them, or every other one, taken out of a value and put together again."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import Shape
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rules.rotary_caches import Kind

__all__ = ["Part", "Stacked", "part_of", "stacked"]


@dataclass(frozen=True)
class Part:
    """One column of each pair of x: the first one of all pairs, or the second."""

    x: ir.Value
    kind: Kind
    index: int


@dataclass(frozen=True)
class Stacked:
    """First and second columns of pairs, put together again by these nodes."""

    first: ir.Value
    second: ir.Value
    kind: Kind
    nodes: tuple[ir.Node, ...]


def part_of(value: ir.Value | None, draft: Draft) -> Part | None:
    """Which columns of which value these are."""
    node = None if value is None else value.producer()
    if value is None or node is None or node.graph is None or normal_domain(node.domain):
        return None
    if node.op_type == "Split":
        return _of_split(value, node, draft)
    if node.op_type == "Slice":
        return _of_slice(node, draft)
    if node.op_type == "Gather":
        return _of_gather(node, draft)
    if node.op_type in ("Squeeze", "Reshape"):
        return _of_squeezed(value, node, draft)
    return None


def _of_split(value: ir.Value, node: ir.Node, draft: Draft) -> Part | None:
    x, whole, half = node.inputs[0], draft.shape(node.inputs[0]), draft.shape(value)
    if x is None or not whole or not half or len(node.outputs) != 2:
        return None
    if int(draft.attribute(node, "axis", 0)) % len(whole) != len(whole) - 1:
        return None
    return Part(x, "half", node.outputs.index(value)) if 2 * half[-1] == whole[-1] else None


def _of_slice(node: ir.Node, draft: Draft) -> Part | None:
    x, shape = node.inputs[0], draft.shape(node.inputs[0])
    if draft.opset < 10 or x is None or not shape or not isinstance(shape[-1], int):
        return None
    given = [draft.integers(value) for value in node.inputs[1:]]
    if len(given) < 3 or any(one is None or len(one) != 1 for one in given):
        return None
    start, end, axis, step = (*(one[0] for one in given if one), 1)[:4]
    if axis % len(shape) != len(shape) - 1:
        return None
    taken, columns = range(shape[-1])[slice(start, end, step)], range(shape[-1])
    half = len(columns) // 2
    for kind, index, wanted in (
        ("half", 0, columns[:half]),
        ("half", 1, columns[half:]),
        ("pair", 0, columns[0::2]),
        ("pair", 1, columns[1::2]),
    ):
        if not shape[-1] % 2 and shape[-1] > 2 and taken == wanted:
            return Part(x, "half" if kind == "half" else "pair", index)
    return None


def _parted(value: ir.Value | None, draft: Draft) -> ir.Value | None:
    """What a value [..., pair, 2] is [..., column] of."""
    view = draft.made_by(value, "Reshape")
    before, after = (
        (None, None) if view is None else (draft.shape(view.inputs[0]), draft.shape(value))
    )
    if view is None or not before or after is None or len(after) != len(before) + 1:
        return None
    joined = (*after[:-2], 2 * after[-2])
    return view.inputs[0] if after[-1] == 2 and joined == before else None


def _of_gather(node: ir.Node, draft: Draft) -> Part | None:
    x, rank = _parted(node.inputs[0], draft), draft.rank(node.inputs[0])
    index = draft.integers(node.inputs[1])
    if x is None or rank is None or index is None or draft.rank(node.inputs[1]) != 0:
        return None
    if int(draft.attribute(node, "axis", 0)) % rank != rank - 1 or index[0] not in (0, 1, -1, -2):
        return None
    return Part(x, "pair", index[0] % 2)


def _of_squeezed(value: ir.Value, node: ir.Node, draft: Draft) -> Part | None:
    inner = node.inputs[0]
    split = None if inner is None else inner.producer()
    if inner is None or split is None or split.op_type != "Split" or normal_domain(split.domain):
        return None
    x, shape = _parted(split.inputs[0], draft), draft.shape(inner)
    if x is None or shape is None or len(split.outputs) != 2:
        return None
    if draft.shape(value) != shape[:-1] or shape[-1] != 1:
        return None
    return Part(x, "pair", split.outputs.index(inner))


def stacked(value: ir.Value | None, draft: Draft) -> Stacked | None:
    """Two parts put together: beside each other, or column by column."""
    joined = draft.made_by(value, "Concat")
    if joined is not None:
        sides, rank = joined.inputs, draft.rank(value)
        if (
            rank is None
            or len(sides) != 2
            or int(draft.attribute(joined, "axis", 0)) % rank != rank - 1
        ):
            return None
        if sides[0] is None or sides[1] is None or not _same(sides[0], sides[1], draft):
            return None
        return Stacked(sides[0], sides[1], "half", (joined,))
    flat = draft.made_by(value, "Reshape")
    joined = None if flat is None else draft.made_by(flat.inputs[0], "Concat")
    if flat is None or joined is None or len(joined.inputs) != 2:
        return None
    shape, pairs = draft.shape(value), draft.shape(flat.inputs[0])
    if not shape or pairs is None or len(pairs) != len(shape) + 1 or pairs[-1] != 2:
        return None
    if shape != (*pairs[:-2], 2 * pairs[-2]):
        return None
    if int(draft.attribute(joined, "axis", 0)) % len(pairs) != len(pairs) - 1:
        return None
    singles = [_single(one, (*pairs[:-1],), draft) for one in joined.inputs]
    views = [draft.made_by(one, "Unsqueeze", "Reshape") for one in joined.inputs]
    if singles[0] is None or singles[1] is None:
        return None
    nodes = (flat, joined, *(one for one in views if one is not None))
    return Stacked(singles[0], singles[1], "pair", nodes)


def _single(value: ir.Value | None, shape: Shape, draft: Draft) -> ir.Value | None:
    """What a value has one more axis than."""
    view = draft.made_by(value, "Unsqueeze", "Reshape")
    if view is None or view.inputs[0] is None or draft.shape(value) != (*shape, 1):
        return None
    return view.inputs[0] if draft.shape(view.inputs[0]) == shape else None


def _same(first: ir.Value, second: ir.Value, draft: Draft) -> bool:
    shape = draft.shape(first)
    return shape is not None and shape == draft.shape(second)
