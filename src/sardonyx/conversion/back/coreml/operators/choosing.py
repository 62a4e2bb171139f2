"""Comparisons, choices, and places of the largest."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.coreml.step import Entry, Step

__all__ = ["ENTRIES"]

_COMPARISONS = {
    "Equal": "equal",
    "Greater": "greaterThan",
    "GreaterOrEqual": "greaterEqual",
    "Less": "lessThan",
    "LessOrEqual": "lessEqual",
}
_LARGEST = {"ArgMax": "argMax", "ArgMin": "argMin"}


def compare(step: Step) -> str:
    kind, number = _COMPARISONS[step.node.op_type], step.single(1)
    if number is not None and step.rank(1) <= step.rank(0):
        return step.layer(kind, step[0], alpha=number)
    return step.layer(kind, step[0], step[1])


def where(step: Step) -> str:
    return step.layer("whereBroadcastable", step[0], step[1], step[2])


def place_of_largest(step: Step) -> str:
    if step.flag("select_last_index"):
        step.refuse("it takes the last of equal elements")
    axis, kept = step.axis(), step.flag("keepdims", 1)
    remove = not kept and step.rank(0) > 1
    return step.layer(_LARGEST[step.node.op_type], step[0], axis=axis, removeDim=remove)


def top_k(step: Step) -> list[str]:
    if not step.flag("sorted", 1):
        step.refuse("its elements are not sorted, and CoreML's are")
    count = step.need_integers(1, "number of elements")[0]
    axis, bottom = step.axis(-1), not step.flag("largest", 1)
    return step.layers("topK", [step[0]], 2, axis=axis, K=count, useBottomK=bottom)


ENTRIES: Mapping[str, Entry] = {
    **dict.fromkeys(_COMPARISONS, compare),
    **dict.fromkeys(_LARGEST, place_of_largest),
    "TopK": top_k,
    "Where": where,
}
