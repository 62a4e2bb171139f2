"""Reductions along axes, and softmax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx.conversion.back.coreml.step import Entry, Step

__all__ = ["ENTRIES", "reduced"]

_LOG, _EXP = 5, 4  # UnaryFunctionLayerParams.Operation
_KINDS = {
    "ReduceL1": "reduceL1",
    "ReduceL2": "reduceL2",
    "ReduceLogSum": "reduceSum",
    "ReduceLogSumExp": "reduceLogSumExp",
    "ReduceMax": "reduceMax",
    "ReduceMean": "reduceMean",
    "ReduceMin": "reduceMin",
    "ReduceProd": "reduceProd",
    "ReduceSum": "reduceSum",
    "ReduceSumSquare": "reduceSumSquare",
}


def reduced(step: Step, kind: str, blob: str, axes: Sequence[int]) -> str:
    """With axes of 1 left."""
    return step.layer(kind, blob, axes=list(axes), keepDims=True)


def reduction(step: Step) -> str:
    """A reduction of all axes leaves one element: in an array of one axis."""
    rank, kind = step.rank(0), step.node.op_type
    given = step.need_integers(1, "axes") if step.has(1) else []
    if rank == 0 or (not given and step.flag("noop_with_empty_axes")):
        if kind not in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"):
            step.refuse("it reduces no axis")
        return step[0]
    axes = sorted(axis % rank for axis in given) or list(range(rank))
    kept = step.flag("keepdims", 1)
    if kept or len(axes) == rank:
        made = reduced(step, _KINDS[kind], step[0], axes)
        if not kept:
            made = step.reshape(made, (1,) * rank, (1,))
    else:
        made = step.layer(_KINDS[kind], step[0], axes=axes, keepDims=False)
    return step.layer("unary", made, type=_LOG) if kind == "ReduceLogSum" else made


def softmax(step: Step) -> str:
    return step.layer("softmaxND", step[0], axis=step.axis(-1))


def log_softmax(step: Step) -> str:
    axis = step.axis(-1)
    moved = step.layer(
        "subtractBroadcastable", step[0], reduced(step, "reduceMax", step[0], [axis])
    )
    total = reduced(step, "reduceSum", step.layer("unary", moved, type=_EXP), [axis])
    return step.layer("subtractBroadcastable", moved, step.layer("unary", total, type=_LOG))


ENTRIES: Mapping[str, Entry] = {
    **dict.fromkeys(_KINDS, reduction),
    "LogSoftmax": log_softmax,
    "Softmax": softmax,
}
