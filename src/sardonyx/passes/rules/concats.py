"""Concat: flattened, and taken back where it puts together what was cut apart."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule
from sardonyx.passes.rules.slices import Cut, cuts_of, parts_of_split, slice_by

__all__ = ["RULES"]


def _axis(node: ir.Node, draft: Draft) -> int | None:
    rank = draft.rank(node.outputs[0])
    axis = draft.attribute(node, "axis", 1 if draft.opset < 4 else None)
    return None if rank is None or axis is None else int(axis) % max(1, rank)


@rule("Concat")
def concat_of_concat(node: ir.Node, draft: Draft) -> Outcome:
    """Concat of a Concat along the same axis is one Concat."""
    axis = _axis(node, draft)
    inputs: list[ir.Value | None] = []
    shared = False
    for value in node.inputs:
        inner = draft.made_by(value, "Concat")
        if inner is None or axis is None or _axis(inner, draft) != axis:
            inputs.append(value)
        elif not draft.is_only_use(inner.outputs[0]):
            shared = True
            inputs.append(value)
        else:
            inputs += inner.inputs
    if len(inputs) == len(node.inputs):
        return Refusal("the inner one is read elsewhere too") if shared else None
    return draft.call("Concat", *inputs, axis=axis)


class _Piece(NamedTuple):
    """A part of a value along the axis of the Concat: from here to there."""

    source: ir.Value
    start: int
    end: int


def _piece(value: ir.Value | None, axis: int, draft: Draft) -> _Piece | None:
    node = None if value is None else value.producer()
    if node is None or value is None or normal_domain(node.domain) or node.inputs[:1] == (None,):
        return None
    source = node.inputs[0] if node.inputs else None
    if source is None or node.graph is None:
        return None
    if node.op_type == "Slice":
        cuts = cuts_of(node, draft)
        if cuts is None or set(cuts) != {axis} or not cuts[axis].is_plain:
            return None
        return _Piece(source, cuts[axis].start, max(cuts[axis].start, cuts[axis].end))
    if node.op_type == "Split":
        found = parts_of_split(node, draft)
        if found is None or found[0] != axis:
            return None
        index = list(node.outputs).index(value)
        return _Piece(source, found[1][index], found[1][index + 1])
    return None


@rule("Concat")
def concat_of_neighbours(node: ir.Node, draft: Draft) -> Outcome:
    """Concat of parts that lie side by side in one value is a part of it, or all of it."""
    axis = _axis(node, draft)
    if axis is None:
        return None
    pieces: list[_Piece | ir.Value | None] = []
    merged = 0
    for value in node.inputs:
        piece = _piece(value, axis, draft)
        last = pieces[-1] if pieces else None
        if (
            piece is not None
            and isinstance(last, _Piece)
            and last.source is piece.source
            and last.end == piece.start
        ):
            pieces[-1] = _Piece(piece.source, last.start, piece.end)
            merged += 1
        else:
            pieces.append(value if piece is None else piece)
    if not merged:
        return None
    inputs = [_value(one, axis, draft, node) for one in pieces]
    if len(inputs) > 1 and len(draft.nodes) > merged:
        return None  # a Split that others read stays, and the Slices would come beside it
    return inputs[0] if len(inputs) == 1 else draft.call("Concat", *inputs, axis=axis)


def _value(
    piece: _Piece | ir.Value | None, axis: int, draft: Draft, node: ir.Node
) -> ir.Value | None:
    """What stands for a piece: the value as it was, all of its source, or a new Slice of it."""
    if not isinstance(piece, _Piece):
        return piece
    for value in node.inputs:
        if _piece(value, axis, draft) == piece:
            return value
    shape = draft.shape(piece.source)
    if shape is not None and piece.start == 0:
        size = shape[axis]
        if isinstance(size, int) and piece.end >= size:
            return piece.source
    return slice_by(piece.source, {axis: Cut(piece.start, piece.end)}, draft)


RULES = (concat_of_concat, concat_of_neighbours)
