"""Operators that move, repeat, pad and resample elements."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper
from tests.differential.graphs import TYPES, Builder, Skip, family


@family
def reshape(b: Builder) -> None:
    x, values = b.tensor(b.dtype("Reshape"))
    sizes = b.rng.permutation(values.shape).astype(int).tolist() if values.ndim else []
    if len(sizes) >= 2 and b.chance():
        sizes[:2] = [sizes[0] * sizes[1]]
    if b.chance(0.3):
        sizes.insert(b.integer(0, len(sizes)), 1)
    literal = 0 in sizes
    if literal and b.version("Reshape") < 14:
        raise Skip
    if not literal:
        copied = [i < values.ndim and sizes[i] == values.shape[i] for i in range(len(sizes))]
        sizes = [0 if c and b.chance(0.4) else s for c, s in zip(copied, sizes, strict=True)]
        if sizes and b.chance(0.6):
            sizes[b.integer(0, len(sizes) - 1)] = -1
    b.node("Reshape", [x, b.whole(sizes)], **({"allowzero": 1} if literal else {}))


@family
def squeeze(b: Builder) -> None:
    op = b.pick(["Squeeze", "Unsqueeze"])
    x, values = b.tensor(b.dtype(op))
    if op == "Squeeze":
        rank = values.ndim
        axes = [axis for axis, size in enumerate(values.shape) if size == 1 and b.chance(0.7)]
    else:
        rank = values.ndim + b.integer(1, 2)
        axes = b.rng.permutation(rank)[: rank - values.ndim].tolist()
    if b.opset >= 11:
        axes = [axis - rank if b.chance(0.3) else axis for axis in axes]
    if not axes:  # onnxruntime takes an empty list of axes for none at all
        b.node(op, [x])
    elif b.opset < 13:
        b.node(op, [x], axes=axes)
    else:
        b.node(op, [x, b.whole(axes)])


@family
def rearrange(b: Builder) -> None:
    op = b.pick(["Transpose", "Flatten", "Shape", "Size", "Identity"])
    x, values = b.tensor(b.dtype(op))
    rank = values.ndim
    attributes = {}
    if op == "Transpose" and rank:
        attributes = b.some(0.8, perm=b.rng.permutation(rank).tolist())
    if op == "Flatten":
        attributes = {"axis": b.integer(-rank if b.opset >= 11 else 0, rank)}
    if op == "Shape" and b.opset >= 15:
        attributes = b.some(start=b.integer(-5, 5), end=b.integer(-5, 5))
    b.node(op, [x], **attributes)


@family
def repeat(b: Builder) -> None:
    op = b.pick(["Expand", "Tile"])
    x, values = b.tensor(b.dtype(op))
    if op == "Tile":
        b.node(op, [x, b.whole(b.integers(values.ndim, 0 if b.chance(0.1) else 1, 3))])
        return
    sizes = [b.integer(1, 3) if size == 1 else b.pick([size, 1]) for size in values.shape]
    b.node(op, [x, b.whole([2, *sizes] if b.chance(0.3) else sizes[b.integer(0, len(sizes)) :])])


@family
def join(b: Builder) -> None:
    op = b.pick(["Concat", "Split"])
    x, values = b.tensor(b.dtype(op), 1)
    axis = b.axis(values.ndim, 11)
    if op == "Concat":
        others = []
        for _ in range(b.integer(0, 2)):
            shape = list(values.shape)
            shape[axis] = b.integer(0, 3)
            others.append(b.new(values.dtype.name, shape))
        b.node(op, [x, *others], axis=axis)
        return
    length = values.shape[axis]
    count = b.integer(1, max(min(length, 3), 1))
    chunk = -(-length // count)
    if b.opset >= 18 and b.chance() and (count - 1) * chunk < length:
        b.node(op, [x], count, axis=axis, num_outputs=count)
        return
    cuts = sorted(b.integers(count - 1, 0, length))
    parts = np.diff([0, *cuts, length]).tolist()
    if b.opset < 13:
        b.node(op, [x], count, axis=axis, split=parts)
    else:
        b.node(op, [x, b.whole(parts)], count, axis=axis)


@family
def pad(b: Builder) -> None:
    dtype = b.dtype("Pad")
    x, values = b.tensor(dtype, 1, empty=0)
    mode = b.pick(["constant", "reflect", "edge", *(["wrap"] if b.opset >= 19 else [])])
    axes = b.axes(values.ndim) if b.opset >= 18 and b.chance() else list(range(values.ndim))
    before, after = [], []
    for axis in axes:
        size = values.shape[axis]
        most = {"reflect": size - 1, "wrap": size}.get(mode, 3)
        before.append(-1 if size >= 3 and b.chance(0.2) else b.integer(0, min(most, 3)))
        after.append(b.integer(0, min(most - (before[-1] < 0), 3)))
    if b.opset < 11:
        b.node("Pad", [x], mode=mode, pads=before + after, **b.some(value=1.5))
        return
    inputs = [x, b.whole(before + after), b.put(b.array(dtype, [])) if b.chance() else ""]
    if axes != list(range(values.ndim)):
        inputs.append(b.whole(axes))
    b.node("Pad", inputs, mode=mode)


@family
def resize(b: Builder) -> None:
    version = b.version("Resize")
    mode = b.pick(["nearest", "linear", *(["cubic"] if version >= 11 else [])])
    # How a fraction becomes an integer is nobody's word, so only nearest has integers.
    among = TYPES if mode == "nearest" else ["float32", "float64"]
    dtype = b.dtype("Resize", [t for t in among if t in ("float32", "float64", "int32", "uint8")])
    shape = [b.integer(1, 2), b.integer(1, 2), b.integer(1, 6), b.integer(1, 6)]
    factors = [b.pick([0.5, 2.0, 1.5, 0.6, 3.0, 0.75, 2.5]) for _ in range(2)]
    # onnxruntime leaves an axis alone whose length does not change, wherever it samples.
    factors = [
        f if int(s * f) not in (0, s) else 2.0 for s, f in zip(shape[2:], factors, strict=True)
    ]
    x = b.put(b.array(dtype, shape), False)
    scales = np.array([1, 1, *factors], np.float32)
    if version == 10:
        b.node("Resize", [x, b.put(scales, True)], mode=mode)
        return
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": b.pick(
            ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]
        ),
    }
    if mode == "nearest":
        kinds = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        attributes |= b.some(0.8, nearest_mode=b.pick(kinds))
    if mode == "cubic":
        attributes |= b.some(0.4, cubic_coeff_a=-0.5, exclude_outside=1)
    if version >= 18 and mode != "nearest":
        attributes |= b.some(0.3, antialias=1)
    none = b.put(np.zeros(0, np.float32), True)
    # Of align_corners with scales, the standard's own case divides by a length that is no integer.
    if attributes["coordinate_transformation_mode"] != "align_corners" and b.chance():
        b.node("Resize", [x, none, b.put(scales, True)], **attributes)
        return
    sizes = b.put([*shape[:2], *b.integers(2, 1, 9)], True)
    (y,) = b.node("Resize", [x, none, none if version < 13 else "", sizes], **attributes)
    b.types[y] = dtype


@family
def upsample(b: Builder) -> None:
    x = b.new("float32", [1, 2, b.integer(1, 4), b.integer(1, 4)])
    scales = [1.0, 1.0, b.pick([1.0, 2.0, 1.5, 3.0]), b.pick([1.0, 2.0, 2.5])]
    mode = b.pick(["nearest", "linear"])
    if b.version("Upsample") < 9:
        b.node("Upsample", [x], mode=mode, scales=scales)
    else:
        b.node("Upsample", [x, b.put(np.array(scales, np.float32))], mode=mode)


@family
def blocks(b: Builder) -> None:
    op = b.pick(["DepthToSpace", "SpaceToDepth"])
    dtype = b.dtype(op, ["float32", "float64", "uint8"])
    size = b.integer(1, 3)
    if op == "DepthToSpace":
        shape = [1, size * size * b.integer(1, 2), b.integer(1, 3), b.integer(1, 3)]
        attributes = b.some(mode=b.pick(["DCR", "CRD"])) if b.opset >= 11 else {}
    else:
        shape, attributes = [1, b.integer(1, 2), size * b.integer(1, 2), size * 2], {}
    b.node(op, [b.put(b.array(dtype, shape), False)], blocksize=size, **attributes)


@family
def sample(b: Builder) -> None:
    version = b.version("GridSample")
    rank = b.pick([2, 3]) if version >= 20 else 2
    modes = ["linear", "nearest", "cubic"] if version >= 20 else ["bilinear", "nearest", "bicubic"]
    mode = b.pick(modes[: 3 if rank == 2 else 2])
    image = b.array("float32", [2, b.integer(1, 2), *b.integers(rank, 1, 5)])
    grid = b.array("float32", [2, *b.integers(rank, 1, 4), rank], -1.6, 1.6)
    padding = b.pick(["zeros", "border", "reflection"])
    attributes = b.some(padding_mode=padding, align_corners=b.integer(0, 1))
    b.node("GridSample", [b.put(image, False), b.put(grid)], mode=mode, **attributes)


@family
def align_rois(b: Builder) -> None:
    version = b.version("RoiAlign")
    count = b.integer(1, 3)
    corner = b.rng.uniform(-1, 5, (count, 2))
    rois = np.concatenate([corner, corner + b.rng.uniform(0, 4, (count, 2))], 1)
    attributes = b.some(
        mode=b.pick(["avg", "max"]),
        output_height=b.integer(1, 3),
        output_width=b.integer(1, 3),
        sampling_ratio=b.integer(0, 3),
        spatial_scale=0.5,
    )
    if version >= 16:
        modes = ["half_pixel", "output_half_pixel"]
        attributes |= b.some(coordinate_transformation_mode=b.pick(modes))
    image = b.new("float32", [2, 2, b.integer(3, 7), b.integer(3, 7)])
    inputs = [image, b.put(rois.astype(np.float32)), b.put(b.rng.integers(0, 2, count))]
    b.node("RoiAlign", inputs, **attributes)


@family
def generate(b: Builder) -> None:
    op = b.pick(["Range", "ConstantOfShape", "EyeLike", "CenterCropPad", "AffineGrid"])
    b.version(op)
    if op == "Range":
        dtype = b.dtype(op, ["float32", "float64", "int64", "int32"])
        step = b.pick([1, 2, -1, -2]) if dtype[0] == "i" else b.pick([0.5, 0.3, -0.7])
        ends = (b.integer(-5, 5), b.integer(-5, 12))
        b.node(op, [b.put(np.array(value, dtype)) for value in (*ends, step)])
    elif op == "ConstantOfShape":
        value = numpy_helper.from_array(b.array(b.pick(TYPES), [1]))
        b.node(op, [b.whole(b.shape(0, 3, 0.1))], **b.some(0.7, value=value))
    elif op == "EyeLike":
        x, _ = b.tensor(b.dtype(op), 2, 2)
        b.node(op, [x], **b.some(k=b.integer(-5, 5), dtype=b.pick([1, 6, 7, 11])))
    elif op == "CenterCropPad":
        x, values = b.tensor(b.dtype(op), 1, 3, empty=0)
        axes = b.axes(values.ndim)
        b.node(op, [x, b.whole(b.integers(len(axes), 1, 6))], axes=axes)
    else:
        rank, count = b.pick([2, 3]), b.integer(1, 2)
        theta = b.new("float32", [count, rank, rank + 1])
        sizes = b.whole([count, 2, *b.integers(rank, 2, 4)])  # of 1, the ends are the same place
        b.node(op, [theta, sizes], **b.some(align_corners=b.integer(0, 1)))
