"""The same elements in other places: other axes, another order, more of the same."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.coreml.operators.parts import sliced
from sardonyx.conversion.back.coreml.step import Entry, Step
from sardonyx.ops.facts import Shape

__all__ = ["ENTRIES"]

_TO_DEPTH, _TO_SPACE, _SHUFFLE = 0, 1, 2  # ReorganizeDataLayerParams.ReorganizationType


def reshape(step: Step) -> str:
    return step.reshape(step[0], step.shape(0), step.output_shape())


def flatten(step: Step) -> str:
    given, rank = step.call.int_attr("axis", 1), step.rank(0)
    axis = given + rank if given < 0 else given
    if not 0 < axis < rank:
        return reshape(step)
    return step.layer("flattenTo2D", step[0], axis=axis)


def transpose(step: Step) -> str:
    order = step.call.ints_attr("perm") or tuple(reversed(range(step.rank(0))))
    return step.transpose(step[0], order)


def squeeze(step: Step) -> str:
    rank = step.rank(0)
    if step.has(1):
        axes = [axis % rank for axis in step.need_integers(1, "axes")]
    else:
        axes = [axis for axis, size in enumerate(step.shape(0)) if size == 1]
    if rank - len(axes) == 0:
        return step.reshape(step[0], step.shape(0), (1,))
    return step.squeeze(step[0], axes)


def unsqueeze(step: Step) -> str:
    axes = step.need_integers(1, "axes")
    if step.rank(0) == 0:
        return step.reshape(step[0], (), step.output_shape())
    rank = step.rank(0) + len(axes)
    return step.expand_dims(step[0], sorted(axis % rank for axis in axes))


def expand(step: Step) -> str:
    """To sizes that are open by adding zeros of that size, which come from the input that has it."""
    after = step.output_shape()
    before = (1,) * (len(after) - step.rank(0)) + step.shape(0)
    made = step.reshape(step[0], step.shape(0), before)
    grown = [axis for axis, size in enumerate(after) if size != before[axis]]
    for axis in grown:
        if not isinstance(after[axis], int):
            made = step.layer("addBroadcastable", made, _zeros(step, after, axis))
    if all(isinstance(size, int) for size in after):
        target = step.fixed(after, "every size")
        return step.layer("broadcastToStatic", made, targetShape=target) if grown else made
    fixed = [after[axis] if axis in grown else 1 for axis in range(len(after))]
    sizes = [size if isinstance(size, int) else 1 for size in fixed]
    if max(sizes) == 1:
        return made
    zeros = step.layer("fillStatic", value=0.0, targetShape=sizes)
    return step.layer("addBroadcastable", made, zeros)


def _zeros(step: Step, shape: Shape, axis: int) -> str:
    """[1, …, open size, …, 1]."""
    found = step.walk.source_of(shape[axis])
    if found is None:
        step.refuse_open("a size that it expands to, and that no input has,", [shape[axis]])
    blob, place, rank = found
    bounds: list[tuple[int | None, int | None, int]]
    bounds = [(0, 1, 1) if other != place else (None, None, 1) for other in range(rank)]
    line = step.layer("fillLike", sliced(step, blob, bounds), value=0.0)
    target = [-1 if other == axis else 1 for other in range(len(shape))]
    return step.layer("reshapeStatic", line, targetShape=target)


def filled(step: Step) -> str:
    """ConstantOfShape."""
    value = step.call.attr("value")
    number = 0.0 if value is None else float(value.numpy().reshape(-1)[0])
    shape = step.fixed(step.output_shape(), "every size of what it fills")
    return step.layer("fillStatic", value=number, targetShape=shape or [1])


def sizes(step: Step) -> str:
    """Shape and Size, where they are open: those that are known are not written."""
    step.refuse_open("the size that it asks for", step.shape(0))


def tile(step: Step) -> str:
    repeats = step.need_integers(1, "repeats")
    if 0 in repeats:
        step.refuse("it repeats an axis zero times")
    return step.layer("tile", step[0], reps=repeats)


def depth_to_space(step: Step) -> str:
    mode, size = step.word("mode", "DCR", "CRD"), step.call.int_attr("blocksize")
    if mode == "CRD":
        step.walk.network.need(5)
    kind = _SHUFFLE if mode == "CRD" else _TO_SPACE
    return (
        step[0] if size == 1 else step.layer("reorganizeData", step[0], mode=kind, blockSize=size)
    )


def space_to_depth(step: Step) -> str:
    step.word("mode", "DCR")
    size = step.call.int_attr("blocksize")
    if size == 1:
        return step[0]
    return step.layer("reorganizeData", step[0], mode=_TO_DEPTH, blockSize=size)


ENTRIES: Mapping[str, Entry] = {
    "ConstantOfShape": filled,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "Flatten": flatten,
    "Reshape": reshape,
    "Shape": sizes,
    "Size": sizes,
    "SpaceToDepth": space_to_depth,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
