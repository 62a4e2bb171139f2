"""Convolutions of any rank, groups and dilation, as one matrix product an offset of the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.corrections.windows import make_windows, per_axis
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

__all__ = ["convolve"]


@corrects(
    "Conv", reason="any rank, at the speed of matrix products; bad groups and pads are errors"
)
def conv(call: Call, x: Array, w: Array, bias: Array | None = None) -> Array:
    return convolve(call, x, w, bias)


def convolve(call: Call, x: Array, w: Array, bias: Array | None) -> Array:
    """Convolve [N, C, spatial…] with [M, C / group, kernel…]."""
    groups = _groups(call, x, w, inputs=w.shape[1], outputs=w.shape[0])
    _check_kernel_shape(call, w.shape[2:])
    windows = make_windows(call, x.shape, w.shape[2:])
    source = windows.padded(call, accumulator(x), 0)
    weights = accumulator(w).reshape(groups, w.shape[0] // groups, *w.shape[1:])
    batch, sizes = x.shape[0], windows.sizes
    flat = int(np.prod(sizes))
    total = np.zeros((batch, groups, w.shape[0] // groups, flat), dtype=source.dtype)
    for position, where in windows.offsets(call):
        part = source[where].reshape(batch, groups, w.shape[1], flat)
        factor = weights[(slice(None), slice(None), slice(None), *position)]
        if w.shape[1] == 1:
            total += factor * part  # depthwise: no sum, so no matrix product
        else:
            total += np.matmul(factor, part)
    result = total.reshape(batch, w.shape[0], *sizes)
    return _with_bias(result, bias).astype(x.dtype, copy=False)


def _groups(call: Call, x: Array, w: Array, *, inputs: int, outputs: int) -> int:
    groups = int(call.attr("group", 1))
    if x.ndim < 3 or x.ndim != w.ndim:
        raise RunError(
            f"input {list(x.shape)} and weights {list(w.shape)} must have one rank of 3 or more",
            value=x.ndim,
            limit=w.ndim,
        )
    if groups < 1 or x.shape[1] != inputs * groups or outputs % groups:
        raise RunError(
            f"{groups} groups do not fit {x.shape[1]} channels and weights {list(w.shape)}",
            value=groups,
            limit=x.shape[1],
        )
    return groups


def _check_kernel_shape(call: Call, kernel: Sequence[int]) -> None:
    given = call.attr("kernel_shape")
    if given and tuple(given) != tuple(kernel):
        raise RunError(
            f"kernel_shape {list(given)} is not that of the weights, {list(kernel)}",
            value=list(given),
            limit=list(kernel),
        )


def _with_bias(result: Array, bias: Array | None) -> Array:
    if bias is None:
        return result
    if bias.shape != (result.shape[1],):
        raise RunError(
            f"a bias of shape {list(bias.shape)} for {result.shape[1]} channels",
            value=bias.shape,
            limit=result.shape[1],
        )
    return result + bias.astype(result.dtype, copy=False).reshape((-1, *[1] * (result.ndim - 2)))


@corrects(
    "ConvTranspose", reason="any rank; output_shape, output_padding and auto_pad as specified"
)
def conv_transpose(call: Call, x: Array, w: Array, bias: Array | None = None) -> Array:
    groups = int(call.attr("group", 1))
    if x.ndim < 3 or x.ndim != w.ndim or w.shape[0] != x.shape[1] or x.shape[1] % max(groups, 1):
        raise RunError(
            f"weights {list(w.shape)} in {groups} groups do not fit input {list(x.shape)}",
            value=list(w.shape),
            limit=list(x.shape),
        )
    _check_kernel_shape(call, w.shape[2:])
    spatial, kernel, count = x.shape[2:], w.shape[2:], x.ndim - 2
    strides = per_axis(call, "strides", count, 1)
    dilations = per_axis(call, "dilations", count, 1)
    full = [
        (size - 1) * stride + (k - 1) * dilation + 1
        for size, stride, k, dilation in zip(spatial, strides, kernel, dilations, strict=True)
    ]
    begin, sizes = _transposed_extent(call, spatial, full, strides)
    batch, outputs = x.shape[0], w.shape[1] * groups
    source = accumulator(x).reshape(batch, groups, x.shape[1] // groups, int(np.prod(spatial)))
    weights = accumulator(w).reshape(groups, w.shape[0] // groups, *w.shape[1:])
    # Room for the whole spread, and for outputs that reach past it.
    extent = [max(f, b + s) for f, b, s in zip(full, begin, sizes, strict=True)]
    call.claim(batch * outputs * int(np.prod(extent, dtype=object)) * source.dtype.itemsize)
    spread = np.zeros((batch, outputs, *extent), dtype=source.dtype)
    for position in np.ndindex(*kernel):
        call.check()
        factor = weights[(slice(None), slice(None), slice(None), *position)]
        part = np.matmul(factor.transpose(0, 2, 1), source).reshape(batch, outputs, *spatial)
        where = tuple(
            slice(at * d, at * d + (size - 1) * stride + 1, stride) if size else slice(0, 0)
            for at, d, size, stride in zip(position, dilations, spatial, strides, strict=True)
        )
        spread[(slice(None), slice(None), *where)] += part
    cut = tuple(slice(b, b + s) for b, s in zip(begin, sizes, strict=True))
    return _with_bias(spread[(slice(None), slice(None), *cut)], bias).astype(x.dtype, copy=False)


def _transposed_extent(
    call: Call, spatial: Sequence[int], full: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Where the output starts in the full spread, and its size, for each axis."""
    count = len(spatial)
    extra = [int(value) for value in call.attr("output_padding") or (0,) * count]
    mode = call.attr("auto_pad", "NOTSET")
    given = call.attr("output_shape")
    if given:
        sizes = [int(size) for size in given][-count:]
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        sizes = [size * stride for size, stride in zip(spatial, strides, strict=True)]
    else:
        pads = [int(pad) for pad in call.attr("pads") or (0,) * (2 * count)]
        if mode == "VALID":
            pads = [0] * (2 * count)
        if len(pads) != 2 * count or len(extra) != count or min(pads) < 0 or min(extra) < 0:
            raise RunError(f"pads {pads} and output_padding {extra} do not fit {count} axes")
        begin, end = pads[:count], pads[count:]
        sizes = [f + e - b - p for f, e, b, p in zip(full, extra, begin, end, strict=True)]
        if min(sizes) < 0:
            raise RunError(f"pads {pads} are larger than the output {full}", value=pads)
        return begin, sizes
    # An output larger than the spread has zeros at its end, as output_padding gives.
    totals = [max(f + e - s, 0) for f, e, s in zip(full, extra, sizes, strict=True)]
    half = [total // 2 for total in totals]
    if mode != "SAME_UPPER":
        half = [total - part for total, part in zip(totals, half, strict=True)]
    return half, sizes
