"""Blocks and images: Col2Im, DeformConv, CenterCropPad, DepthToSpace, SpaceToDepth, ImageDecoder."""

from __future__ import annotations

import io
import math

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator
from sardonyx.backends.reference.corrections.axes import normalize_axes
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.corrections.windows import make_windows
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import MissingExtraError, RunError


@corrects("Col2Im", reason="one strided addition an offset of the block, instead of one a pixel")
def col2im(call: Call, x: Array, image_shape: Array, block_shape: Array) -> Array:
    image = [int(side) for side in image_shape.reshape(-1)]
    block = [int(side) for side in block_shape.reshape(-1)]
    count = len(image)
    if len(block) != count or min(*image, *block, 1) < 1:
        raise RunError(f"a block of {block} does not fit an image of {image}", value=block)
    volume = math.prod(block)
    if x.ndim != 3 or x.shape[1] % volume:
        raise RunError(
            f"{x.shape[1] if x.ndim > 1 else 0} rows are not blocks of {volume}", value=x.shape
        )
    if x.dtype.kind == "O":
        raise RunError("strings cannot be added")
    channels = x.shape[1] // volume
    windows = make_windows(call, (x.shape[0], channels, *image), block)
    if math.prod(windows.sizes) != x.shape[2]:
        raise RunError(
            f"{x.shape[2]} columns, where {list(windows.sizes)} blocks are needed",
            value=x.shape[2],
            limit=math.prod(windows.sizes),
        )
    padded = [
        side + before + after
        for side, before, after in zip(image, windows.begin, windows.end, strict=True)
    ]
    call.claim(x.shape[0] * channels * math.prod(padded) * 8)
    wide = accumulator(x).reshape(x.shape[0], channels, *block, *windows.sizes)
    result = np.zeros((x.shape[0], channels, *padded), dtype=wide.dtype)
    for position, where in windows.offsets(call):
        result[where] += wide[(slice(None), slice(None), *position)]
    cut = tuple(
        slice(before, before + side) for before, side in zip(windows.begin, image, strict=True)
    )
    return result[(slice(None), slice(None), *cut)].astype(x.dtype, copy=False)


@corrects("DeformConv", reason="vectorised over the image; any group and offset group")
def deform_conv(
    call: Call,
    x: Array,
    w: Array,
    offset: Array,
    bias: Array | None = None,
    mask: Array | None = None,
) -> Array:
    if x.ndim != 4 or w.ndim != 4:
        raise RunError(f"images of shape {list(x.shape)}; only 2-D ones are defined", value=x.shape)
    groups, spread = int(call.attr("group", 1)), int(call.attr("offset_group", 1))
    windows = make_windows(call, x.shape, w.shape[2:])
    volume = math.prod(w.shape[2:])
    wanted = (x.shape[0], spread * volume * 2, *windows.sizes)
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups or x.shape[1] % spread:
        raise RunError(f"{groups} and {spread} groups do not fit weights {list(w.shape)}")
    if offset.shape != wanted or (
        mask is not None and mask.shape != (x.shape[0], spread * volume, *windows.sizes)
    ):
        raise RunError(f"offset {list(offset.shape)}, where {list(wanted)} is needed")
    source = accumulator(x).reshape(x.shape[0], spread, x.shape[1] // spread, *x.shape[2:])
    moves = offset.astype(np.float64).reshape(x.shape[0], spread, volume, 2, *windows.sizes)
    weights = accumulator(w).reshape(groups, w.shape[0] // groups, w.shape[1], volume)
    total = np.zeros(
        (x.shape[0], groups, w.shape[0] // groups, math.prod(windows.sizes)), source.dtype
    )
    call.claim(source.nbytes // max(math.prod(x.shape[2:]), 1) * math.prod(windows.sizes) * 4)
    for index, position in enumerate(np.ndindex(*w.shape[2:])):
        call.check()
        places = []
        for axis in range(2):
            start = np.arange(windows.sizes[axis]) * windows.strides[axis] - windows.begin[axis]
            line = start + position[axis] * windows.dilations[axis]
            shape = (-1, 1) if axis == 0 else (1, -1)
            places.append(moves[:, :, index, axis] + line.reshape(shape))
        sampled = _bilinear(source, places[0], places[1])
        if mask is not None:
            part = mask.reshape(x.shape[0], spread, volume, *windows.sizes)[:, :, index]
            sampled = sampled * accumulator(part)[:, :, None]
        flat = sampled.reshape(x.shape[0], groups, w.shape[1], -1)
        total += np.matmul(weights[..., index], flat)
    result = total.reshape(x.shape[0], w.shape[0], *windows.sizes)
    if bias is not None:
        result = result + accumulator(bias).reshape(-1, 1, 1)
    return result.astype(x.dtype, copy=False)


def _bilinear(x: Array, y: Array, z: Array) -> Array:
    """Sample [N, G, C, H, W] at places [N, G, h, w]; outside is 0."""
    height, width = x.shape[-2:]
    n = np.arange(x.shape[0])[:, None, None, None]
    g = np.arange(x.shape[1])[None, :, None, None]
    y, z = (np.clip(np.nan_to_num(place, nan=-9.0), -1e9, 1e9) for place in (y, z))
    total: Array = 0.0
    for row in (np.floor(y), np.floor(y) + 1):
        for column in (np.floor(z), np.floor(z) + 1):
            weight = (1 - np.abs(y - row)) * (1 - np.abs(z - column))
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            rows = np.clip(row, 0, height - 1).astype(np.int64)
            columns = np.clip(column, 0, width - 1).astype(np.int64)
            picked = x[n, g, :, rows, columns]  # the channels come last
            total = total + picked * np.where(inside, weight, 0)[..., None].astype(x.dtype)
    return np.moveaxis(total, -1, 2)


@corrects("CenterCropPad", reason="negative sizes are an error, and the result is claimed first")
def center_crop_pad(call: Call, x: Array, shape: Array) -> Array:
    axes = normalize_axes(call.attr("axes", range(x.ndim)), x.ndim)
    wanted = [int(side) for side in shape.reshape(-1)]
    if len(wanted) != len(axes) or any(side < 0 for side in wanted):
        raise RunError(f"shape {wanted} does not fit {len(axes)} axes", value=wanted)
    sizes = list(x.shape)
    into, out_of = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for axis, side in zip(axes, wanted, strict=True):
        kept = min(side, x.shape[axis])
        start, skip = (side - kept) // 2, (x.shape[axis] - kept) // 2
        into[axis], out_of[axis] = slice(start, start + kept), slice(skip, skip + kept)
        sizes[axis] = side
    call.claim(math.prod(sizes) * x.dtype.itemsize)
    result = np.zeros(sizes, dtype=x.dtype)
    if x.dtype.kind == "O":
        result[...] = ""
    result[tuple(into)] = x[tuple(out_of)]
    return result


@corrects("DepthToSpace", "SpaceToDepth", reason="a block that does not divide is an error")
def blocks(call: Call, x: Array) -> Array:
    side = int(call.attr("blocksize"))
    if x.ndim != 4 or side < 1:
        raise RunError(f"blocks of {side} in an input of shape {list(x.shape)}", value=side)
    n, c, h, w = x.shape
    if call.operator.name == "SpaceToDepth":
        if h % side or w % side:
            raise RunError(f"blocks of {side} do not divide {h} × {w}", value=side)
        split = x.reshape(n, c, h // side, side, w // side, side)
        order = (0, 1, 3, 5, 2, 4) if call.attr("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
        return split.transpose(order).reshape(n, c * side * side, h // side, w // side)
    if c % (side * side):
        raise RunError(f"{c} channels are not blocks of {side} × {side}", value=c)
    depth = c // (side * side)
    if call.attr("mode", "DCR") == "CRD":
        split = x.reshape(n, depth, side, side, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        split = x.reshape(n, side, side, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    return split.reshape(n, depth, h * side, w * side)


@corrects(
    "ImageDecoder", reason="Pillow is an extra, and an image's size is claimed from its header"
)
def image_decoder(call: Call, encoded: Array) -> Array:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError(
            "ImageDecoder needs Pillow.", hint="Run: pip install 'sardonyx[image]'"
        ) from error
    pixel_format = call.attr("pixel_format", "RGB")
    if pixel_format not in ("RGB", "BGR", "Grayscale"):
        raise RunError(f"pixel_format {pixel_format!r} is unknown", value=pixel_format)
    with Image.open(io.BytesIO(encoded.tobytes())) as image:
        call.claim(image.width * image.height * 4)
        pixels = np.array(image.convert("L" if pixel_format == "Grayscale" else "RGB"))
    if pixel_format == "Grayscale":
        return pixels[:, :, None]
    return pixels if pixel_format == "RGB" else np.ascontiguousarray(pixels[:, :, ::-1])
