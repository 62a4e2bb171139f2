"""Slices: merged, and those that cut one value into parts become a Split."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule
from sardonyx.sizes import Size

__all__ = ["RULES", "TO_THE_END", "Cut", "comes_before", "cuts_of", "parts_of_split", "slice_by"]

TO_THE_END = (1 << 31) - 1  # a file's own way to say so; larger than any axis that is sliced
_MOST = 1 << 62


class Cut(NamedTuple):
    """What a Slice takes of one axis, as Python's slices do."""

    start: int
    end: int
    step: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether it counts from the beginning, one by one: what it takes does not depend on the size."""
        return self.step == 1 and self.start >= 0 and self.end >= 0


def cuts_of(node: ir.Node, draft: Draft) -> dict[int, Cut] | None:
    """What a Slice takes, by axis; None where that is not constant."""
    rank = draft.rank(node.inputs[0])
    if rank is None:
        return None
    if draft.opset < 10:
        starts, ends = draft.attribute(node, "starts"), draft.attribute(node, "ends")
        axes, steps = draft.attribute(node, "axes"), None
    else:
        given = [*node.inputs[1:], None, None]
        starts, ends = draft.integers(given[0]), draft.integers(given[1])
        axes, steps = draft.integers(given[2]), draft.integers(given[3])
        if (given[2] is not None and axes is None) or (given[3] is not None and steps is None):
            return None
    if starts is None or ends is None:
        return None
    axes = list(range(len(starts))) if axes is None else [int(axis) % rank for axis in axes]
    steps = [1] * len(starts) if steps is None else steps
    if len({len(starts), len(ends), len(axes), len(steps), len(set(axes))}) != 1:
        return None
    return {
        axis: Cut(int(start), int(end), int(step))
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    }


def slice_by(value: ir.Value | None, cuts: Mapping[int, Cut], draft: Draft) -> ir.Value:
    """A new Slice."""
    axes = sorted(cuts)
    starts, ends, steps = ([cuts[axis][part] for axis in axes] for part in range(3))
    if draft.opset < 10:
        return draft.call("Slice", value, starts=starts, ends=ends, axes=axes)
    given = [draft.ints(numbers) for numbers in (starts, ends, axes)]
    if any(step != 1 for step in steps):
        given.append(draft.ints(steps))
    return draft.call("Slice", value, *given)


@rule("Slice")
def slice_of_slice(node: ir.Node, draft: Draft) -> Outcome:
    """Slice(Slice(x)) is one Slice."""
    inner = draft.made_by(node.inputs[0], "Slice")
    if inner is None:
        return None
    outer, first = cuts_of(node, draft), cuts_of(inner, draft)
    shape = draft.shape(inner.inputs[0])
    if outer is None or first is None or shape is None:
        return Refusal("what they take is not constant")
    merged = dict(first)
    for axis, cut in outer.items():
        if axis not in first:
            merged[axis] = cut
            continue
        both = _one_after_other(first[axis], cut, shape[axis])
        if both is None:
            return Refusal(f"what they take of axis {axis} depends on its size {shape[axis]}")
        merged[axis] = both
    if draft.opset < 10 and any(cut.step != 1 for cut in merged.values()):
        return None
    return slice_by(inner.inputs[0], merged, draft)


def _one_after_other(first: Cut, second: Cut, size: Size) -> Cut | None:
    if isinstance(size, int) and first.step and second.step:
        taken = range(size)[slice(*first)][slice(*second)]
        if len(taken) == 0:
            return Cut(0, 0)
        end = taken[-1] + (1 if taken.step > 0 else -1)
        return Cut(taken.start, -size - 1 if end < 0 else end, taken.step)
    if not (first.is_plain and second.is_plain):
        return None
    # Whatever the size: the second's elements begin at the first's start, and end where either ends.
    return Cut(
        min(first.start + second.start, _MOST), min(first.end, first.start + second.end, _MOST)
    )


def parts_of_split(node: ir.Node, draft: Draft) -> tuple[int, list[int]] | None:
    """The axis of a Split, and where its parts begin, with the axis's size at the end; None if not known."""
    shape = draft.shape(node.inputs[0])
    if shape is None:
        return None
    axis = int(draft.attribute(node, "axis", 0)) % max(1, len(shape))
    begins = [0]
    for value in node.outputs:
        part = draft.shape(value)
        size = None if part is None else part[axis]
        if not isinstance(size, int):
            return None
        begins.append(begins[-1] + size)
    return (axis, begins) if begins[-1] == shape[axis] else None


def comes_before(first: ir.Node, second: ir.Node) -> bool:
    """Whether a node stands before another one of the same graph."""
    if first.graph is None or first.graph is not second.graph:
        return False
    for node in first.graph:
        if node is first or node is second:
            return node is first
    return False


def _plain_part(node: ir.Node, draft: Draft) -> tuple[int, int, int] | None:
    """A Slice along one axis of known size, one by one: the axis, and from where to where."""
    cuts, shape = cuts_of(node, draft), draft.shape(node.inputs[0])
    if cuts is None or shape is None or len(cuts) != 1:
        return None
    ((axis, cut),) = cuts.items()
    size = shape[axis]
    if not isinstance(size, int) or cut.step != 1:
        return None
    begin, end, _ = slice(cut.start, cut.end).indices(size)
    return (axis, begin, end) if end > begin else None


@rule("Slice")
def slices_that_tile(node: ir.Node, draft: Draft) -> Outcome:
    """Slices that cut one value into parts, without a rest, are one Split."""
    source, own = node.inputs[0], _plain_part(node, draft)
    if source is None or own is None or draft.opset < 2:
        return None
    made = _existing_split(node, source, own, draft)
    if made is not None:
        return made
    axis = own[0]
    parts = {own[1:]}
    for other, index in source.uses():
        if index != 0 or other.op_type != "Slice" or other.graph is not node.graph:
            continue
        part = None if normal_domain(other.domain) else _plain_part(other, draft)
        if part is not None and part[0] == axis:
            parts.add(part[1:])
    shape = draft.shape(source)
    ordered = sorted(parts)
    if shape is None or len(ordered) < 2:
        return None
    is_whole = ordered[0][0] == 0 and ordered[-1][1] == shape[axis]
    if not is_whole or any(a[1] != b[0] for a, b in pairwise(ordered)):
        return None
    sizes = [end - begin for begin, end in ordered]
    inputs: list[ir.Value | None] = [source]
    attributes: dict[str, object] = {"axis": axis}
    if draft.opset >= 13:
        inputs.append(draft.ints(sizes))
    else:
        attributes["split"] = sizes
    values = draft.calls("Split", inputs, len(sizes), attributes)
    return values[ordered.index(own[1:])]


def _existing_split(
    node: ir.Node, source: ir.Value, own: tuple[int, int, int], draft: Draft
) -> ir.Value | None:
    """The output of an earlier Split of the same value that is exactly this part."""
    axis, begin, end = own
    for other, index in source.uses():
        if index != 0 or other.op_type != "Split" or normal_domain(other.domain):
            continue
        found = parts_of_split(other, draft)
        if found is None or found[0] != axis:
            continue
        for value, part in zip(other.outputs, pairwise(found[1]), strict=True):
            if part == (begin, end) and comes_before(other, node):
                return value
    return None


RULES = (slice_of_slice, slices_that_tile)
