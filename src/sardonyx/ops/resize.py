"""Operators that sample images anew or trade depth for space."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, isfinite
from typing import Any

import numpy as np

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowerings.resizing import RESIZE, UPSAMPLE
from sardonyx.ops.lowerings.sampling import AFFINE_GRID, GRID_SAMPLE
from sardonyx.ops.lowerings.views import DEPTH_TO_SPACE, SPACE_TO_DEPTH
from sardonyx.ops.plain import move_first
from sardonyx.sizes import Expr, Ratio, Size, quotient

__all__ = ["OPERATORS"]


def scaled(call: Call, dim: Size, scale: Any, axis: int) -> Size:
    """floor(dim * scale), the product rounded to float32 as the scales are: 10 * 0.7 is 7.

    Over a symbol only a scale that float32 holds exactly, with few bits, gives an expression.
    """
    if isinstance(scale, (int, float)) and not (isfinite(scale) and scale > 0):
        call.fail(f"the scale of axis {axis} is {scale}; it must be above 0")
    if isinstance(scale, (int, float)):
        if isinstance(dim, int):
            return float32_floor(dim, scale)
        exact = Fraction(scale)
        if exact.numerator.bit_length() > 8 or exact.denominator.bit_length() > 8:
            return call.fresh(axis)
        return dim * exact.numerator // exact.denominator
    return (Ratio(dim) * scale).floor() if isinstance(scale, Ratio) else call.fresh(axis)


def float32_floor(*factors: float) -> int:
    product = np.float32(1)
    for factor in factors:
        product = product * np.float32(factor)
    return max(floor(float(product)), 0)


def upsample(call: Call) -> list[Facts]:
    """Upsample, and Resize-10: scales for every axis."""
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    scales = _upsample_scales(call, len(shape))
    if scales is None:
        return [call.out(call.fresh_shape(len(shape)))]
    if len(scales) != len(shape):
        call.fail(f"{len(scales)} scales for {len(shape)} dimensions")
    return [
        call.out(
            scaled(call, dim, scale, axis)
            for axis, (dim, scale) in enumerate(zip(shape, scales, strict=True))
        )
    ]


def _upsample_scales(call: Call, rank: int) -> Sequence[Any] | None:
    if call.node.op_type == "Upsample" and call.version < 7:
        space = [call.attr("height_scale", 1.0), call.attr("width_scale", 1.0)]
        return [1.0] * (rank - 2) + space
    if call.node.op_type == "Upsample" and call.version < 9:
        attribute: Sequence[Any] = call.attr("scales", ())
        return attribute
    call.input(1)
    return call.vector(1)


def resize(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    given = call.ints_attr("axes")
    axes = call.axes(range(len(shape)) if given is None else given, len(shape))
    scales, sizes = _given(call, 2), _given(call, 3)
    if scales and sizes:
        call.fail("both scales and sizes are given; only one of them may be")
    if scales:
        return [call.out(_by_scales(call, shape, axes))]
    if sizes:
        return [call.out(_by_sizes(call, shape, axes))]
    raise call.error("neither scales nor sizes are given")


def _given(call: Call, index: int) -> bool:
    """An empty tensor stands for an omitted one."""
    if not call.has(index):
        return False
    shape = call.shape(index)
    return shape is None or 0 not in shape


def _by_scales(call: Call, shape: Shape, axes: Sequence[int]) -> list[Size]:
    dims, scales = list(shape), call.vector(2)
    regions: list[float] | None = [0.0] * len(axes) + [1.0] * len(axes)
    if call.str_attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        regions = call.vector(1)
    if scales is not None and len(scales) != len(axes):
        call.fail(f"{len(scales)} scales for {len(axes)} axes")
    for place, axis in enumerate(axes):
        if scales is None or regions is None or len(regions) != 2 * len(axes):
            dims[axis] = call.fresh(axis)
            continue
        part = regions[place + len(axes)] - regions[place]
        dims[axis] = scaled(call, dims[axis], scales[place], axis)
        if part != 1.0:
            dim, scale = shape[axis], scales[place]
            dims[axis] = call.fresh(axis)
            if isinstance(dim, int) and isinstance(scale, (int, float)):
                dims[axis] = float32_floor(dim, part, scale)
    return dims


def _by_sizes(call: Call, shape: Shape, axes: Sequence[int]) -> list[Size]:
    dims, sizes = list(shape), call.vector(3)
    if sizes is None:
        for axis in axes:
            dims[axis] = call.fresh(axis)
        return dims
    if len(sizes) != len(axes):
        call.fail(f"{len(sizes)} sizes for {len(axes)} axes")
    if any(isinstance(size, int) and size < 0 for size in sizes):
        call.fail(f"sizes {list(map(str, sizes))} have a negative entry")
    policy = call.str_attr("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        sizes = _keep_aspect(call, [shape[axis] for axis in axes], sizes, policy, axes)
    for axis, size in zip(axes, sizes, strict=True):
        dims[axis] = size
    return dims


def _keep_aspect(
    call: Call, dims: Sequence[Size], sizes: Sequence[Any], policy: str, axes: Sequence[int]
) -> list[Size]:
    if any(isinstance(size, Expr) or size == 0 for size in (*dims, *sizes)):
        return [call.fresh(axis) for axis in axes]
    ratios = [size / dim for size, dim in zip(sizes, dims, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [floor(scale * dim + 0.5) for dim in dims]


def sampling_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Nearest copies; linear and cubic weigh 2 and 4 neighbours along each spatial axis."""
    mode = call.str_attr("mode", "nearest")
    taps = 4 if "cubic" in mode else 2 if "linear" in mode else 0
    shape, count = call.input(0).shape, outputs[0].elements
    if count is None or shape is None:
        return moved(call.inputs[:1], outputs, flops=None)
    space = max(len(shape) - 2, 1)
    return moved(call.inputs[:1], outputs, flops=count * 2 * taps**space if taps else 0)


def grid_sample(call: Call) -> list[Facts]:
    x, grid = call.input(0).shape, call.input(1).shape
    if x is None or grid is None:
        known = x if x is not None else grid
        return [call.out(None if known is None else call.fresh_shape(len(known)))]
    if len(x) != len(grid):
        call.fail(f"input and grid must have one rank, but have {len(x)} and {len(grid)}")
    if len(x) < 3:
        call.fail(f"input of rank {len(x)} has no spatial dimension")
    call.agree(grid[-1], len(x) - 2, "coordinates of the grid and spatial dimensions")
    batch = call.agree(x[0], grid[0], "the batches of input and grid")
    return [call.out((batch, x[1], *grid[1:-1]))]


def grid_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    return moved(call.inputs, outputs, flops=sampling_cost(call, outputs).flops)


def affine_grid(call: Call) -> list[Facts]:
    theta, size = call.need_rank(0, 3), call.vector(1)
    if size is None:
        listed = call.shape(1)
        rank = listed[0] if listed is not None and len(listed) == 1 else None
        if rank not in (4, 5):
            return [call.out(None)]
        space = 2 if rank == 4 else 3
        batch = call.fresh(0) if theta is None else theta[0]
        return [call.out((batch, *(call.fresh(axis) for axis in range(1, 1 + space)), space))]
    if len(size) not in (4, 5):
        call.fail(f"size has {len(size)} entries, but 4 (2D) or 5 (3D) are needed")
    batch = size[0]
    if theta is not None:
        batch = call.agree(theta[0], batch, "the batches of theta and size")
    return [call.out((batch, *size[2:], len(size) - 2))]


def affine_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Each coordinate is a dot product with a row of theta."""
    count, shape = outputs[0].elements, outputs[0].shape
    if count is None or shape is None:
        return moved(call.inputs, outputs, macs=None)
    return moved(call.inputs, outputs, macs=count * (len(shape) - 1))


# Depth and space


def depth_to_space(call: Call) -> list[Facts]:
    shape, block = call.need_rank(0, 4), _block(call)
    if shape is None:
        return [call.out(call.fresh_shape(4))]
    batch, channels, height, width = shape
    depth = _divided(call, channels, block * block, "channels")
    return [call.out((batch, depth, height * block, width * block))]


def space_to_depth(call: Call) -> list[Facts]:
    shape, block = call.need_rank(0, 4), _block(call)
    if shape is None:
        return [call.out(call.fresh_shape(4))]
    batch, channels, height, width = shape
    rows, columns = (
        _divided(call, size, block, name) for size, name in ((height, "rows"), (width, "columns"))
    )
    return [call.out((batch, channels * block * block, rows, columns))]


def _block(call: Call) -> int:
    block = call.int_attr("blocksize")
    if block < 1:
        call.fail(f"blocksize is {block}, but at least 1 is needed")
    return block


def _divided(call: Call, size: Size, by: int, what: str) -> Size:
    exact = quotient(size, by)
    if exact is not None:
        return exact
    if isinstance(size, int):
        call.fail(f"{size} {what} do not divide by {by}")
    return size // by


def image_decoder(call: Call) -> list[Facts]:
    """How large the image is, only its bytes say."""
    channels = 1 if call.str_attr("pixel_format", "RGB") == "Grayscale" else 3
    return [call.out((call.fresh(0), call.fresh(1), channels))]


OPERATORS = (
    Operator("Upsample", "opaque", upsample, cost=sampling_cost, lower=UPSAMPLE),
    Operator("Resize", "opaque", upsample, cost=sampling_cost, lower=UPSAMPLE, until=10),
    Operator("Resize", "opaque", resize, cost=sampling_cost, lower=RESIZE, since=11),
    Operator("GridSample", "opaque", grid_sample, cost=grid_cost, lower=GRID_SAMPLE),
    Operator("AffineGrid", "opaque", affine_grid, cost=affine_cost, lower=AFFINE_GRID),
    Operator("DepthToSpace", "view", depth_to_space, None, move_first, DEPTH_TO_SPACE),
    Operator("SpaceToDepth", "view", space_to_depth, None, move_first, SPACE_TO_DEPTH),
    Operator("ImageDecoder", "opaque", image_decoder),
)
