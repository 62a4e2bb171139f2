"""Windows with their padding said outright, whatever way the node says it."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.conversion.back.step import Step
from sardonyx.ops.facts import Shape
from sardonyx.ops.window import read_window
from sardonyx.sizes import Size, max_of

__all__ = ["Explicit", "Transposed", "explicit_window", "transposed_window"]


@dataclass(frozen=True)
class Explicit:
    """A window that slides over padded dimensions and fits: nothing is left over, nothing is missing.

    Attributes:
        pads: before and after, of every spatial dimension.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, Size], ...]

    @property
    def symmetric(self) -> tuple[int, ...] | None:
        """The padding, where it is a number that is the same before and after."""
        found = [a for a, b in self.pads if a == b and isinstance(a, int)]
        return tuple(found) if len(found) == len(self.pads) else None


def explicit_window(step: Step, kernel: Shape | None, *, ceil: bool = False) -> Explicit:
    """The window of a convolution or a pool; `ceil` rounds the number of its places up."""
    spatial = step.shape(0)[2:]
    window = read_window(step.call, len(spatial), kernel)
    sizes = [
        one if isinstance(one, int) else step.refuse("its kernel is of no fixed size")
        for one in window.kernel
    ]
    pads: list[tuple[Size, Size]] = []
    places = window.slide(step.call, spatial, ceil)
    for axis, size in enumerate(spatial):
        needed = (places[axis] - 1) * window.strides[axis] + window.extent(axis)
        if window.auto_pad.startswith("SAME"):
            total = max_of(needed - size, 0)
            small, large = total // 2, total - total // 2
            pads.append((small, large) if window.auto_pad == "SAME_UPPER" else (large, small))
        elif window.auto_pad == "VALID":
            pads.append((0, 0))
        else:
            begin, end = window.begins[axis], window.ends[axis]
            pads.append((begin, max_of(needed - size - begin, end) if ceil else end))
    return Explicit(tuple(sizes), window.strides, window.dilations, tuple(pads))


@dataclass(frozen=True)
class Transposed:
    """A window that spreads every element.

    Attributes:
        pads: what is cut off before and after.
        extra: what is added after.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, Size], ...]
    extra: tuple[int, ...]


def transposed_window(step: Step) -> Transposed:
    """The window of a ConvTranspose."""
    spatial = step.shape(0)[2:]
    window = read_window(step.call, len(spatial), step.shape(1)[2:])
    extra = step.call.ints_attr("output_padding") or (0,) * len(spatial)
    wanted = (step.outputs[0].shape or ())[2:]
    pads: list[tuple[Size, Size]] = []
    for axis, size in enumerate(spatial):
        full = (size - 1) * window.strides[axis] + window.extent(axis) + extra[axis]
        total = full - wanted[axis]
        if window.auto_pad.startswith("SAME") or step.call.ints_attr("output_shape"):
            small, large = total // 2, total - total // 2
            upper = window.auto_pad == "SAME_UPPER"
            pads.append((small, large) if upper else (large, small))
        elif window.auto_pad == "VALID":
            pads.append((0, 0))
        else:
            pads.append((window.begins[axis], window.ends[axis]))
    return Transposed(window.strides, window.dilations, tuple(pads), extra)
