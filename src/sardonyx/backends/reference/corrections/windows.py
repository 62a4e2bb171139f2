"""The geometry of sliding windows, shared by convolutions and pools.

A window is walked offset by offset: for each position inside the kernel, one strided slice of
the padded input holds what every window has there. So no column matrix is ever built, and the
scratch memory is one padded copy of the input.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

__all__ = ["Windows", "make_windows", "per_axis"]


@dataclass(frozen=True)
class Windows:
    """Windows over the spatial axes of one input.

    Attributes:
        kernel, strides, dilations: one a spatial axis.
        begin, end: padding on each side of each axis, as asked for.
        sizes: windows along each axis, the spatial shape of the output.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    sizes: tuple[int, ...]

    def padded(self, call: Call, x: Array, fill: float) -> Array:
        """The input with padding around it, wide enough for the last window of ceil mode."""
        spatial = x.shape[2:]
        widths = [(0, 0), (0, 0)]
        for size, axis in zip(spatial, range(len(spatial)), strict=True):
            reach = (self.sizes[axis] - 1) * self.strides[axis] + self.span(axis)
            after = max(self.end[axis], reach - size - self.begin[axis])
            widths.append((self.begin[axis], after))
        if not any(width for pair in widths for width in pair):
            return x
        shape = [size + sum(width) for size, width in zip(x.shape, widths, strict=True)]
        call.claim(int(np.prod(shape, dtype=object)) * x.dtype.itemsize)
        return np.pad(x, widths, constant_values=np.asarray(fill).astype(x.dtype))

    def span(self, axis: int) -> int:
        """What one window covers along an axis, its gaps included."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def offsets(self, call: Call) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each position in the kernel, with the slice of the padded input that stands there."""
        for position in itertools.product(*(range(size) for size in self.kernel)):
            call.check()
            starts = [at * dilation for at, dilation in zip(position, self.dilations, strict=True)]
            yield (
                position,
                (
                    slice(None),
                    slice(None),
                    *(
                        slice(start, start + (size - 1) * stride + 1, stride)
                        if size
                        else slice(0, 0)
                        for start, size, stride in zip(
                            starts, self.sizes, self.strides, strict=True
                        )
                    ),
                ),
            )


def per_axis(call: Call, name: str, count: int, least: int) -> tuple[int, ...]:
    """An attribute with one integer a spatial axis; ones where it is left out."""
    values = tuple(int(value) for value in call.attr(name) or (1,) * count)
    if len(values) != count:
        raise RunError(
            f"{name} has {len(values)} values for {count} spatial axes",
            value=list(values),
            limit=count,
        )
    if any(value < least for value in values):
        raise RunError(f"{name} {list(values)} must be {least} or more", value=list(values))
    return values


def make_windows(call: Call, shape: Sequence[int], kernel: Sequence[int]) -> Windows:
    """Windows of `kernel` over an input of `shape` [N, C, spatial…], by the node's attributes."""
    spatial, count = shape[2:], len(shape) - 2
    if count < 0 or len(kernel) != count:
        raise RunError(
            f"a kernel of {len(kernel)} axes does not fit an input of shape {list(shape)}",
            value=list(kernel),
            limit=count,
        )
    if any(size < 1 for size in kernel):
        raise RunError(f"kernel {list(kernel)} has no elements", value=list(kernel))
    strides = per_axis(call, "strides", count, 1)
    dilations = per_axis(call, "dilations", count, 1)
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    begin, end = _padding(call, spatial, spans, strides)
    ceil = bool(call.attr("ceil_mode", 0)) and call.attr("auto_pad", "NOTSET") == "NOTSET"
    sizes, taps = [], []
    for axis in range(count):
        padded = spatial[axis] + begin[axis] + end[axis]
        room = padded - spans[axis]
        if room <= (-strides[axis] if ceil else -1):
            raise RunError(
                f"a window of {spans[axis]} is larger than the padded input of "
                f"{padded} on axis {axis + 2}",
                value=spans[axis],
                limit=padded,
            )
        size = (-(-room // strides[axis]) if ceil else room // strides[axis]) + 1
        if ceil and (size - 1) * strides[axis] >= spatial[axis] + begin[axis]:
            size -= 1  # it would start in the padding on the right
        sizes.append(size)
        # A single window may reach past all padding in ceil mode: what is there is never counted.
        taps.append(min(kernel[axis], max(-(-padded // dilations[axis]), 1)))
    return Windows(tuple(taps), strides, dilations, begin, end, tuple(sizes))


def _padding(
    call: Call, spatial: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    count = len(spatial)
    mode = call.attr("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = tuple(int(pad) for pad in call.attr("pads") or (0,) * (2 * count))
        if len(pads) != 2 * count:
            raise RunError(
                f"pads has {len(pads)} values for {count} spatial axes",
                value=list(pads),
                limit=2 * count,
            )
        if any(pad < 0 for pad in pads):
            raise RunError(f"pads {list(pads)} must be 0 or more", value=list(pads))
        return pads[:count], pads[count:]
    if mode == "VALID":
        return (0,) * count, (0,) * count
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise RunError(f"auto_pad {mode!r} is unknown", value=mode)
    totals = [
        max((-(-size // stride) - 1) * stride + span - size, 0)
        for size, span, stride in zip(spatial, spans, strides, strict=True)
    ]
    less = tuple(total // 2 for total in totals)
    more = tuple(total - half for total, half in zip(totals, less, strict=True))
    return (less, more) if mode == "SAME_UPPER" else (more, less)
