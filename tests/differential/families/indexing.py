"""Operators that read or write where indices say: Gather, Scatter, Slice, TopK and their kin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.differential.graphs import Array, Builder, Skip, family

FAR = [2**63 - 1, -(2**63), 2**31 - 1, -(2**31), 2**40]


def indices(b: Builder, shape: Sequence[int], size: int, dtype: str | None = None) -> Array:
    """Places in an axis of `size`, counted from either end."""
    low = -size if b.opset >= 11 and b.chance(0.6) else 0
    places = b.rng.integers(low, size, shape) if size else np.zeros([0, *shape[1:]])
    return np.asarray(places, dtype or b.pick(["int32", "int64"]))


def reduction(b: Builder, op: str, dtype: str) -> str:
    version = b.version(op)
    # onnxruntime reduces no booleans and no float16.
    if version < 16 or dtype in ("bool", "float16"):
        return "none"
    return str(b.pick(["none", "add", "mul", *(["max", "min"] if version >= 18 else [])]))


@family
def gather(b: Builder) -> None:
    x, values = b.tensor(b.dtype("Gather"), 1, empty=0)
    axis = b.axis(values.ndim)
    b.node("Gather", [x, b.put(indices(b, b.shape(0, 2), values.shape[axis]))], axis=axis)


@family
def gather_elements(b: Builder) -> None:
    x, values = b.tensor(b.dtype("GatherElements"), 1, empty=0)
    axis = b.axis(values.ndim)
    shape = [b.integer(1, size) for size in values.shape]
    shape[axis] = b.integer(0, 4)
    b.node("GatherElements", [x, b.put(indices(b, shape, values.shape[axis]))], axis=axis)


@family
def gather_nd(b: Builder) -> None:
    x, values = b.tensor(b.dtype("GatherND"), 1, empty=0)
    batch = b.integer(0, values.ndim - 1) if b.version("GatherND") >= 12 and b.chance() else 0
    depth = b.integer(1, values.ndim - batch)
    leading = [*values.shape[:batch], *b.shape(0, 2)]
    columns = [indices(b, leading, size, "int64") for size in values.shape[batch : batch + depth]]
    attributes = {"batch_dims": batch} if batch else {}
    b.node("GatherND", [x, b.put(np.stack(columns, -1))], **attributes)


@family
def scatter_elements(b: Builder) -> None:
    op = "Scatter" if b.opset < 11 else "ScatterElements"
    dtype = b.dtype(op)
    x, values = b.tensor(dtype, 1, empty=0)
    how = reduction(b, op, dtype)
    axis = b.axis(values.ndim)
    size = values.shape[axis]
    shape = [b.integer(1, length) for length in values.shape]
    if how == "none":  # every place at most once
        shape[axis] = b.integer(1, size)
        places = np.empty(shape, np.int64)
        rows = np.moveaxis(places, axis, -1)
        for row in np.ndindex(*rows.shape[:-1]):
            rows[row] = b.rng.permutation(size)[: shape[axis]]
    else:
        shape[axis] = b.integer(1, 5)
        places = indices(b, shape, size, "int64")
    attributes = {} if how == "none" else {"reduction": how}
    inputs = [x, b.put(places), b.new(dtype, shape)]
    b.node(op, inputs, axis=axis, **attributes)


@family
def scatter_nd(b: Builder) -> None:
    dtype = b.dtype("ScatterND")
    x, values = b.tensor(dtype, 1, empty=0)
    how = reduction(b, "ScatterND", dtype)
    depth = b.integer(1, values.ndim)
    outer = values.shape[:depth]
    if how == "none":
        places = b.rng.permutation(int(np.prod(outer)))[: b.integer(1, 4)]
        where = np.stack(np.unravel_index(places, outer), -1).astype(np.int64)
    else:
        leading = b.shape(1, 2)
        where = np.stack([indices(b, leading, size, "int64") for size in outer], -1)
    updates = b.new(dtype, [*where.shape[:-1], *values.shape[depth:]])
    attributes = {} if how == "none" else {"reduction": how}
    b.node("ScatterND", [x, b.put(where), updates], **attributes)


@family
def slices(b: Builder) -> None:
    x, values = b.tensor(b.dtype("Slice"), 1)
    axes = b.axes(values.ndim)
    count = len(axes)
    if b.opset < 10:
        axes = [axis % values.ndim for axis in axes]
    starts, ends = (
        [b.pick(FAR) if b.chance(0.2) else b.integer(-6, 6) for _ in axes] for _ in range(2)
    )
    if b.opset < 10:
        b.node("Slice", [x], starts=starts, ends=ends, axes=axes)
        return
    steps = [b.pick([1, 2, 3, -1, -2, -3]) for _ in range(count)]
    # The standard writes "to the beginning" as INT_MIN; onnxruntime takes INT_MAX for it too.
    ends = [-(2**63) if s < 0 and e > 2**30 else e for e, s in zip(ends, steps, strict=True)]
    dtype = b.pick(["int64", "int32"])
    info = np.iinfo(dtype)
    lists = [np.clip(part, info.min, info.max).tolist() for part in (starts, ends, axes, steps)]
    b.node("Slice", [x, *(b.whole(part, dtype) for part in lists)])


@family
def arg_extreme(b: Builder) -> None:
    op = b.pick(["ArgMax", "ArgMin"])
    x, values = b.tensor(b.dtype(op), 1, least=-2, most=2, empty=0)
    attributes = b.some(axis=b.axis(values.ndim, 11), keepdims=b.integer(0, 1))
    if b.version(op) >= 12:
        attributes |= b.some(select_last_index=b.integer(0, 1))
    b.node(op, [x], **attributes)


@family
def top_k(b: Builder) -> None:
    x, values = b.tensor(b.dtype("TopK"), 1, 3, least=-2, most=2, empty=0)
    axis = b.axis(values.ndim, 11)
    count = b.integer(1, values.shape[axis])
    if b.opset < 10:
        b.node("TopK", [x], 2, k=count, axis=axis)
    else:
        attributes = b.some(largest=b.integer(0, 1)) if b.opset >= 11 else {}
        b.node("TopK", [x, b.whole([count])], 2, axis=axis, **attributes)


@family
def one_hot(b: Builder) -> None:
    b.version("OneHot")
    places = b.array(b.pick(["int64", "float32"]), b.shape(1, 3), -6, 6).round()
    depth = np.array(b.integer(1, 5))
    pair = np.array([2, 5], b.pick(["float32", "int64"]))
    axis = b.axis(places.ndim + 1)
    b.node("OneHot", [b.put(places, False), b.put(depth), b.put(pair)], axis=axis)


@family
def selection(b: Builder) -> None:
    op = b.pick(["NonZero", "Compress", "Unique", "Trilu", "ReverseSequence"])
    # The places in a scalar are [0, n] by the standard, [1, n] in onnxruntime.
    ranks = {"Trilu": (2, 4), "ReverseSequence": (2, 3)}.get(op, (1, 3))
    x, values = b.tensor(b.dtype(op), *ranks, least=-2, most=2, empty=0)
    if op == "NonZero":
        b.node(op, [x])
    elif op == "Compress":
        axis = b.axis(values.ndim, 11)
        b.node(op, [x, b.put(b.array("bool", [b.integer(0, values.shape[axis])]))], axis=axis)
    elif op == "Unique":
        b.node(op, [x], 4, **b.some(axis=b.axis(values.ndim), sorted=b.integer(0, 1)))
    elif op == "Trilu":
        inputs = [x, b.put(np.array(b.integer(-5, 5))) if b.chance(0.7) else ""]
        b.node(op, inputs, **b.some(upper=b.integer(0, 1)))
    else:
        batch = b.integer(0, 1)
        lengths = b.rng.integers(1, values.shape[1 - batch] + 1, values.shape[batch])
        b.node(op, [x, b.put(lengths)], batch_axis=batch, time_axis=1 - batch)


@family
def suppression(b: Builder) -> None:
    b.version("NonMaxSuppression")
    batches, classes, count = b.integer(1, 2), b.integer(1, 2), b.integer(1, 6)
    corner = b.rng.uniform(0, 5, (batches, count, 2))
    boxes = np.concatenate([corner, corner + b.rng.uniform(0.5, 4, corner.shape)], -1)
    inputs = [
        b.put(boxes.astype(np.float32), False),
        b.put(b.rng.random((batches, classes, count)).astype(np.float32), False),
        b.put(np.array([b.integer(0, 4)])),
    ]
    inputs += [
        b.put(np.array([threshold], np.float32)) if b.chance(0.6) else ""
        for threshold in (b.pick([0.3, 0.5, 0.0]), 0.3)
    ]
    b.node("NonMaxSuppression", inputs, **b.some(center_point_box=b.integer(0, 1)))


@family
def strings(b: Builder) -> None:
    op = b.pick(["StringConcat", "StringSplit", "RegexFullMatch"])
    b.version(op)
    words = ["abc", "a b", "Ünïcode", "x,y,,z", "THE the", "日本"]
    if op != "StringSplit":  # of nothing onnxruntime makes no substring, the standard an empty one
        words.append("")

    def array(shape: Sequence[int]) -> Array:
        flat = [b.pick(words) for _ in range(int(np.prod(shape)))]
        return np.array(flat, object).reshape(shape)

    shape = b.shape(1, 2, empty=0)
    x = b.put(array(shape), False)
    if op == "StringConcat":
        b.node(op, [x, b.put(array(b.broadcasting(shape)), False)])
    elif op == "StringSplit":
        b.node(op, [x], 2, **b.some(delimiter=b.pick([",", " ", "b"]), maxsplit=b.integer(1, 3)))
    else:
        b.node(op, [x], pattern=b.pick(["a.*", "[a-z ]+", r"\w+", "", "(a|b| )*", ".*,.*"]))


@family
def sequences(b: Builder) -> None:
    b.version("SequenceConstruct")
    dtype, shape = b.pick(["float32", "int64", "bool"]), b.shape(1, 3)
    items = [b.new(dtype, shape) for _ in range(b.integer(1, 3))]
    (sequence,) = b.node("SequenceConstruct", items)
    b.outputs.remove(sequence)
    place = b.put(np.array(b.integer(-len(items), len(items) - 1)))
    op = b.pick(["SequenceAt", "SequenceErase", "SequenceInsert", "ConcatFromSequence"])
    if op == "SequenceAt":
        b.node(op, [sequence, place])
        return
    if op == "ConcatFromSequence":
        new = b.integer(0, 1)
        b.node(op, [sequence], axis=b.axis(len(shape) + new), new_axis=new)
        return
    given = [sequence, place] if op == "SequenceErase" else [sequence, b.new(dtype, shape), place]
    (changed,) = b.node(op, given)
    b.outputs.remove(changed)
    if op == "SequenceErase":
        b.node("SequenceLength", [changed])
    elif 0 in shape:
        raise Skip
    else:
        b.node("ConcatFromSequence", [changed], axis=0)
