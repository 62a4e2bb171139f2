"""Shapes: Reshape, Transpose, Squeeze, Concat and their kin, and tensors made of a shape alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, number_text, tuple_text
from sardonyx.sizes import Size, product

__all__ = ["ENTRIES"]


def reshaped(step: Step, text: str, sizes: list[Size] | list[str]) -> str:
    """A tensor in another shape."""
    texts = [one if isinstance(one, str) else step.size(one) for one in sizes]
    return step.say("reshape", text, tuple_text(texts))


def _reshape(step: Step) -> str:
    known, shape = step.sizes(1), step.call.shape(0)
    if known is None:
        if step.flag("allowzero"):
            return reshaped(step, step[0], step.integer_texts(1, "sizes"))
        step_texts = step.output_sizes() or step.integer_texts(1, "sizes")
        return reshaped(step, step[0], step_texts)
    sizes: list[Size] = []
    for axis, size in enumerate(known):
        if size == 0 and not step.flag("allowzero"):
            if shape is None:
                step.refuse("a size of 0 stands for one that is not known before a run")
            size = shape[axis]
        sizes.append(size)
    if -1 in sizes and any(size == 0 for size in sizes):  # nothing tells what -1 is
        return reshaped(step, step[0], step.output_sizes() or step.refuse("the tensor is empty"))
    return reshaped(step, step[0], sizes)


def _flatten(step: Step) -> str:
    shape = step.shape(0)
    axis = step.call.int_attr("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    before, after = product(shape[:axis]), product(shape[axis:])
    sizes: list[Size] = [before, after]
    if not isinstance(after, int) and before != 0:
        sizes = [before, -1]
    elif not isinstance(before, int) and after != 0:
        sizes = [-1, after]
    return reshaped(step, step[0], sizes)


def _transpose(step: Step) -> str:
    rank = step.rank(0)
    perm = step.call.ints_attr("perm") or tuple(reversed(range(rank)))
    return step[0] if rank < 2 else step.say("transpose", step[0], tuple_text(perm))


def _squeeze(step: Step) -> str:
    shape = step.shape(0)
    if step.has(1):
        axes = step.call.axes(step.need_integers(1, "axes"), len(shape))
    else:
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
        if any(not isinstance(size, int) for size in shape):
            step.refuse("which of its dimensions are 1 is not known before a run")
    return step.say("squeeze", step[0], tuple_text(axes)) if axes else step[0]


def _unsqueeze(step: Step) -> str:
    given = step.need_integers(1, "axes")
    rank = step.rank(0) + len(given)
    axes = step.call.axes(given, rank)
    items = ["None" if axis in axes else ":" for axis in range(rank)]
    while items and items[-1] == ":":
        items.pop()
    return f"{step[0]}[{', '.join(items)}]" if items else step[0]


def _expand(step: Step) -> str:
    sizes = step.output_sizes()
    if sizes is not None:
        return step.say("expand", step[0], tuple_text(sizes))
    given = step.integer_texts(1, "sizes")
    ones = step.say("full", tuple_text(given), "1", step.output_type(), step[0])
    return f"{step[0]} * {ones}"


def _concat(step: Step) -> str:
    if step.count == 1:
        return step[0]
    return step.say("concat", ", ".join(step.tensors()), step.axis())


def _tile(step: Step) -> str:
    return step.say("tile", step[0], tuple_text(step.integer_texts(1, "repeats")))


def _shape(step: Step) -> str:
    shape = step.shape(0)
    rank = len(shape)
    start = max(0, min(rank, _from_end(step.call.int_attr("start"), rank)))
    end = max(0, min(rank, _from_end(step.call.int_attr("end", rank), rank)))
    language, x = step.writer.language, step[0]
    texts = [
        language.size.format(language.dimension.format(x, axis), x) for axis in range(start, end)
    ]
    if not texts:
        return step.say("full", "(0,)", "0", step.output_type(), x)
    return step.say("stack", ", ".join(texts), 0)


def _from_end(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def _size(step: Step) -> str:
    language, x = step.writer.language, step[0]
    text = " * ".join(language.dimension.format(x, axis) for axis in range(step.rank(0)))
    return language.size.format(text or "1", x)


def _constant_of_shape(step: Step) -> str:
    value = step.call.attr("value")
    array = np.zeros(1, np.float32) if value is None else value.numpy()
    number = array.reshape(-1)[0]
    text = number_text(number) if array.dtype.kind not in "iub" else str(number.item())
    sizes = step.output_sizes() or step.integer_texts(0, "sizes")
    return step.say("full", tuple_text(sizes), text, step.output_type(), step.writer.anything(step))


def _range(step: Step) -> str:
    parts = []
    for index in range(3):
        known = step.sizes(index) if step.dtype(index) in _WHOLE else None
        number = step.numbers(index)
        if known is not None:
            parts.append(step.size(known[0]))
        elif number is not None:
            parts.append(number_text(number.reshape(-1)[0]))
        elif step.writer.language.integer:
            parts.append(f"{step[index]}.item()")
        else:
            step.refuse("its bounds are data, which a traced program cannot ask for")
    return step.say("arange", ", ".join(parts), step.output_type(), step.writer.anything(step))


_WHOLE = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.INT16)


def _eye_like(step: Step) -> str:
    shape = step.shape(0)
    rows, columns = (step.size(one) for one in shape)
    kind, x = step.type_text(ir.DataType.INT64), step[0]
    down = step.say("arange", f"0, {rows}, 1", kind, x)
    along = step.say("arange", f"0, {columns}, 1", kind, x)
    offset = step.call.int_attr("k")
    return step.say("cast", f"({down}[:, None] + {offset} == {along})", step.output_type())


def _depth_to_space(step: Step) -> str:
    n, c, h, w = step.shape(0)
    block = step.call.int_attr("blocksize")
    channels = c // (block * block)
    crd = step.word("mode", "DCR", "CRD") == "CRD"
    split: list[Size] = (
        [n, channels, block, block, h, w] if crd else [n, block, block, channels, h, w]
    )
    order = (0, 1, 4, 2, 5, 3) if crd else (0, 3, 4, 1, 5, 2)
    moved = step.say("transpose", reshaped(step, step[0], split), order)
    return reshaped(step, moved, [n, channels, h * block, w * block])


def _space_to_depth(step: Step) -> str:
    n, c, h, w = step.shape(0)
    block = step.call.int_attr("blocksize")
    split: list[Size] = [n, c, h // block, block, w // block, block]
    crd = step.word("mode", "DCR", "CRD") == "CRD"
    order = (0, 1, 3, 5, 2, 4) if crd else (0, 3, 5, 1, 2, 4)
    moved = step.say("transpose", reshaped(step, step[0], split), order)
    return reshaped(step, moved, [n, c * (block * block), h // block, w // block])


ENTRIES: Mapping[str, Entry] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": _transpose,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Expand": _expand,
    "Concat": _concat,
    "Tile": _tile,
    "Shape": _shape,
    "Size": _size,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "EyeLike": _eye_like,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}
