"""A window that slides over spatial dimensions: what Conv and the pools have in common.

input   ├── begin ──┤■■■■■■■■■■■■■■■■■■■├── end ──┤
window  ├ ─ ─extent ─ ─ ┤ → stride → …            extent = (kernel - 1) * dilation + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.ops.call import Call
from sardonyx.ops.facts import Shape
from sardonyx.sizes import Size, ceil_div

__all__ = ["Window", "read_window"]

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


@dataclass(frozen=True)
class Window:
    """The attributes of a window, checked and completed with their defaults."""

    kernel: Shape
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    auto_pad: str

    def extent(self, axis: int) -> Size:
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def slide(self, call: Call, spatial: Shape, ceil_mode: bool = False) -> Shape:
        """How many positions the window has along each dimension."""
        return tuple(
            self._positions(call, axis, size, ceil_mode) for axis, size in enumerate(spatial)
        )

    def _positions(self, call: Call, axis: int, size: Size, ceil_mode: bool) -> Size:
        stride = self.strides[axis]
        if self.auto_pad.startswith("SAME"):
            return ceil_div(size, stride)
        begin, end = (0, 0) if self.auto_pad == "VALID" else (self.begins[axis], self.ends[axis])
        extent = self.extent(axis)
        room = size + begin + end - extent
        rounded = ceil_mode and self.auto_pad == "NOTSET"  # a window may reach past the input
        if isinstance(room, int) and room <= (-stride if rounded else -1):
            call.fail(
                f"the window of {extent} is larger than the padded input of {size} + {begin} + "
                f"{end} along spatial dimension {axis}"
            )
        if not rounded:
            return room // stride + 1
        # Rounded up, but a window may not start past the input and its leading padding.
        past = end + stride - extent
        if isinstance(past, int) and past > 0:
            return ceil_div(size + begin, stride)
        return ceil_div(room, stride) + 1

    def spread(self, spatial: Shape, extra: Sequence[int]) -> Shape:
        """The inverse: the size whose windows these would be (ConvTranspose, MaxUnpool)."""
        if self.auto_pad.startswith("SAME"):
            return tuple(size * stride for size, stride in zip(spatial, self.strides, strict=True))
        pads = [b + e for b, e in zip(self.begins, self.ends, strict=True)]
        if self.auto_pad == "VALID":
            pads = [0] * len(pads)
        return tuple(
            (size - 1) * self.strides[axis] + extra[axis] + self.extent(axis) - pads[axis]
            for axis, size in enumerate(spatial)
        )


def read_window(call: Call, rank: int, kernel: Shape | None) -> Window:
    """The node's window over `rank` spatial dimensions; `kernel` is the weights' own, if any."""
    declared = call.ints_attr("kernel_shape")
    if declared is not None:
        _positive(call, "kernel_shape", declared, rank)
        if kernel is not None:
            kernel = tuple(
                call.agree(a, b, "kernel_shape and the weights")
                for a, b in zip(declared, kernel, strict=True)
            )
    size = kernel if kernel is not None else declared
    if size is None:
        call.fail("attribute kernel_shape is missing")
    strides = call.ints_attr("strides") or (1,) * rank
    dilations = call.ints_attr("dilations") or (1,) * rank
    _positive(call, "strides", strides, rank)
    _positive(call, "dilations", dilations, rank)
    pads = call.ints_attr("pads") or (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        call.fail(f"pads has {len(pads)} entries, but {rank} spatial dimensions need {2 * rank}")
    if min(pads, default=0) < 0:
        call.fail(f"pads {list(pads)} has a negative entry")
    auto_pad = call.str_attr("auto_pad", "NOTSET") or "NOTSET"
    if auto_pad not in AUTO_PADS:
        call.fail(f"auto_pad is {auto_pad!r}, which is none of {', '.join(AUTO_PADS)}")
    return Window(size, strides, dilations, pads[:rank], pads[rank:], auto_pad)


def _positive(call: Call, name: str, entries: tuple[int, ...], rank: int) -> None:
    if len(entries) != rank:
        call.fail(f"{name} has {len(entries)} entries for {rank} spatial dimensions")
    if min(entries, default=1) < 1:
        call.fail(f"{name} {list(entries)} has an entry below 1")
