"""Elements by their places."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.coreml.step import Entry, Step

__all__ = ["ENTRIES"]

_MODES = {"none": 0, "add": 1, "mul": 3, "max": 5, "min": 6}  # ScatterMode


def gather(step: Step) -> str:
    """A scalar place is an array of one; its axis goes again."""
    axis = step.axis()
    made = step.layer("gather", step[0], step[1], axis=axis)
    if step.rank(1) or step.rank(0) == 1:
        return made
    return step.squeeze(made, [axis])


def gather_elements(step: Step) -> str:
    axis = step.axis()
    _same_but(step, axis, "gathers")
    return step.layer("gatherAlongAxis", step[0], step[1], axis=axis)


def gather_nd(step: Step) -> str:
    if step.call.int_attr("batch_dims"):
        step.refuse("it has axes of a batch (batch_dims)")
    return step.layer("gatherND", step[0], step[1])


def scatter_elements(step: Step) -> str:
    axis = step.axis()
    _same_but(step, axis, "scatters")
    mode = _MODES[step.word("reduction", *_MODES)]
    return step.layer("scatterAlongAxis", step[0], step[1], step[2], axis=axis, mode=mode)


def scatter_nd(step: Step) -> str:
    mode = _MODES[step.word("reduction", *_MODES)]
    return step.layer("scatterND", step[0], step[1], step[2], mode=mode)


def _same_but(step: Step, axis: int, what: str) -> None:
    pairs = zip(step.shape(0), step.shape(1), strict=True)
    if any(one != other for place, (one, other) in enumerate(pairs) if place != axis):
        step.refuse(f"it {what} from a part of the other axes, and CoreML takes them whole")


def cumulated(step: Step) -> str:
    axis = step.call.axis(step.need_integers(1, "axis")[0], step.rank(0))
    return step.layer(
        "cumSum",
        step[0],
        axis=axis,
        excludeFinalSum=step.flag("exclusive"),
        reverse=step.flag("reverse"),
    )


def one_hot(step: Step) -> str:
    """Places below zero count from the end, which CoreML's own layer does not know: they are moved up."""
    depth = step.need_integers(1, "depth")[0]
    off, on = step.need_numbers(2, "values").astype(float).reshape(-1)
    rank = step.rank(0) + 1
    axis = step.call.axis(step.call.int_attr("axis", -1), rank)
    if step.rank(0) == 0:
        step.refuse("its place is a scalar")
    below = step.layer("lessThan", step[0], alpha=0.0)
    moved = step.layer("addBroadcastable", step[0], step.scaled(below, depth))
    return step.layer(
        "oneHot", moved, oneHotVectorSize=depth, axis=axis, onValue=float(on), offValue=float(off)
    )


ENTRIES: Mapping[str, Entry] = {
    "CumSum": cumulated,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "OneHot": one_hot,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
}
