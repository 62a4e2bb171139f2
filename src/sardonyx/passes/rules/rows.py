"""Values that are taken out of one value, index by index, and put together again.

Concat(Unsqueeze(x[:, 0], 1), Unsqueeze(x[:, 1], 1), …)     →   x, where these are all of its rows
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule
from sardonyx.passes.rules.slices import cuts_of, parts_of_split

__all__ = ["RULES", "Row", "row_of", "squeezed", "stacked", "unsqueezed"]


class Row(NamedTuple):
    """What is at an index of an axis, without that axis."""

    source: ir.Value
    axis: int
    place: int


def row_of(value: ir.Value | None, draft: Draft) -> Row | None:
    """Where a value was taken from: by Gather, or by Squeeze of a Split's part or of a Slice."""
    taken = draft.made_by(value, "Gather")
    if taken is not None:
        index, rank = draft.constant(taken.inputs[1]), draft.rank(taken.inputs[0])
        if taken.inputs[0] is None or index is None or index.ndim or not rank:
            return None
        axis = int(draft.attribute(taken, "axis", 0)) % rank
        return _counted(Row(taken.inputs[0], axis, int(index)), draft)
    narrow = draft.made_by(value, "Squeeze")
    part = None if narrow is None else narrow.inputs[0]
    node = None if part is None else part.producer()
    axes = None if narrow is None else _axes(narrow, draft)
    if node is None or part is None or axes is None or len(axes) != 1 or normal_domain(node.domain):
        return None
    source = node.inputs[0] if node.inputs else None
    if source is None or draft.shape(source) is None:
        return None
    if node.op_type == "Split":
        found = parts_of_split(node, draft)
        if found is None or found[0] != axes[0]:
            return None
        return Row(source, axes[0], found[1][list(node.outputs).index(part)])
    if node.op_type == "Slice":
        cuts = cuts_of(node, draft)
        # A Slice past the end is empty and a Gather there an error: the size must be known to tell that it is neither.
        size = (draft.shape(source) or ())[axes[0]]
        if cuts is None or set(cuts) != {axes[0]} or not isinstance(size, int):
            return None
        taken_ones = range(size)[slice(*cuts[axes[0]])]
        return Row(source, axes[0], taken_ones[0]) if len(taken_ones) == 1 else None
    return None


def _counted(row: Row, draft: Draft) -> Row:
    """With an index that is counted from the front, where the size is known."""
    size = (draft.shape(row.source) or ())[row.axis]
    if row.place < 0 and isinstance(size, int):
        return row._replace(place=row.place + size)
    return row


def _axes(node: ir.Node, draft: Draft) -> list[int] | None:
    """The axes of a Squeeze, counted in its input, or of an Unsqueeze, counted in its output."""
    port = node.inputs[0] if node.op_type == "Squeeze" else node.outputs[0]
    rank = draft.rank(port)
    axes = draft.attribute(node, "axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        axes = draft.integers(node.inputs[1])
    return None if axes is None or rank is None else [int(axis) % rank for axis in axes]


def squeezed(value: ir.Value, axis: int, draft: Draft) -> ir.Value:
    """The value without an axis of size 1."""
    if draft.opset >= 13:
        return draft.call("Squeeze", value, draft.ints([axis]))
    return draft.call("Squeeze", value, axes=[axis])


def unsqueezed(value: ir.Value, axis: int, draft: Draft) -> ir.Value:
    """The value with one more axis, of size 1."""
    if draft.opset >= 13:
        return draft.call("Unsqueeze", value, draft.ints([axis]))
    return draft.call("Unsqueeze", value, axes=[axis])


def stacked(rows: Sequence[Row], axis: int, draft: Draft) -> ir.Value | None:
    """Rows of one value beside each other along an axis; None where they come from several values."""
    source, along, _ = rows[0]
    shape = draft.shape(source)
    if shape is None or any(row.source is not source or row.axis != along for row in rows):
        return None
    places, value = [row.place for row in rows], source
    if shape[along] != len(places) or places != list(range(len(places))):
        value = draft.call("Gather", source, draft.ints(places), axis=along)
    if along == axis:
        return value
    order = [one for one in range(len(shape)) if one != along]
    return draft.call("Transpose", value, perm=[*order[:axis], along, *order[axis:]])


@rule("Concat")
def stack_of_rows(node: ir.Node, draft: Draft) -> Outcome:
    """Rows of one value that are put beside each other again are the value, or a part of it, with its axes in order."""
    rank = draft.rank(node.outputs[0])
    if rank is None or len(node.inputs) < 2 or draft.opset < 4:
        return None
    axis = int(draft.attribute(node, "axis", 0)) % rank
    rows: list[Row] = []
    for value in node.inputs:
        wider = draft.made_by(value, "Unsqueeze")
        row = None if wider is None else row_of(wider.inputs[0], draft)
        if wider is None or row is None or _axes(wider, draft) != [axis]:
            return None
        rows.append(row)
    found = stacked(rows, axis, draft)
    if found is None:
        return None
    gone = 1 + sum(draft.is_only_use(value) for value in node.inputs if value is not None)
    if len(draft.nodes) >= gone:
        return Refusal("other nodes read the rows: no node would be saved")
    return found


RULES = (stack_of_rows,)
