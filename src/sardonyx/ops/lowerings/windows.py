"""Windows in loops: which taps of a window lie on the input, and how a row of windows is walked.

    input       . . 0 1 2 3 4 …        tap t of window o stands at o*stride - begin + t*dilation
    window 0    ■ ■ ■                  begin = 2: its taps 0 and 1 are padding

Loops run over the taps that are inside; no tap is tested by itself. Results are gathered lane by lane in
a small array: the lanes are the channels of one window where channels lie last, else a row of windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sardonyx.loops.build import Builder
from sardonyx.loops.index import provably_below
from sardonyx.loops.nodes import apply
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import Site
from sardonyx.ops.window import Window as Attributes
from sardonyx.sizes import Size, at_least, ceil_div, max_of, min_of

__all__ = ["NO_ROOM", "Axis", "Lanes", "axes_of", "check_room", "check_same", "place_at", "taps"]

NO_ROOM = "a window of {value} is larger than the padded input of {limit}"
MAX_LANES = 128  # a row up to this long is one block
LANES = 64  # of a longer row, or one whose length is not known


@dataclass(frozen=True)
class Axis:
    """One spatial dimension: the input's size, the number of windows, and how they lie."""

    size: Size
    windows: Size
    kernel: Size
    stride: int
    dilation: int
    begin: Size
    end: Size

    @property
    def span(self) -> Size:
        """What one window covers, its gaps included."""
        return (self.kernel - 1) * self.dilation + 1

    def place(self, window: Size, tap: Size) -> Size:
        return window * self.stride - self.begin + tap * self.dilation

    def range(self, b: Builder, window: Size) -> tuple[Size, Size]:
        """The first tap that stands on the input, and how many do."""
        return self.within(b, window, 0, self.size)

    def within(self, b: Builder, window: Size, low: Size, high: Size) -> tuple[Size, Size]:
        """The first tap that stands on low … high - 1, and how many do."""
        start = self.place(window, 0) - low
        last = window * self.stride + self.span - 1
        first: Size = 0
        if not at_least(start, 0):
            late = min_of(ceil_div(max_of(-start, 0), self.dilation), self.kernel)
            first = b.index(b.size(late), self.kernel + 1)
        if provably_below(last, high + self.begin, b.ranges):
            return first, self.kernel - first
        end = min_of(ceil_div(high - low - start, self.dilation), self.kernel)
        return first, b.index(b.size(max_of(end - first, 0)), self.kernel + 1)


def axes_of(window: Attributes, spatial: Shape, windows: Shape) -> tuple[Axis, ...]:
    """The dimensions of a window over an input of this shape, its padding worked out."""
    axes = []
    for number, (size, count) in enumerate(zip(spatial, windows, strict=True)):
        stride, begin, end = window.strides[number], window.begins[number], window.ends[number]
        pads: tuple[Size, Size] = (begin, end)
        if window.auto_pad == "VALID":
            pads = (0, 0)
        elif window.auto_pad.startswith("SAME"):
            total = max_of((count - 1) * stride + window.extent(number) - size, 0)
            half = total // 2
            pads = (half, total - half)
            if window.auto_pad == "SAME_LOWER":
                pads = (total - half, half)
        kernel, dilation = window.kernel[number], window.dilations[number]
        kernel = _within(kernel, ceil_div(size + pads[0] + pads[1], dilation))
        axes.append(Axis(size, count, kernel, stride, dilation, *pads))
    return tuple(axes)


def _within(kernel: Size, taps: Size) -> Size:
    """Taps past the padded input (of a single window, in ceil mode) are never on it."""
    known = isinstance(kernel, int) and isinstance(taps, int)
    return min_of(kernel, max_of(taps, 1)) if known else kernel


def check_room(site: Site, axes: Sequence[Axis], ceil_mode: bool = False) -> None:
    """A window that is larger than the padded input has no place; only a run may know.

    In ceil mode it may reach past the end, by less than a step.
    """
    b = site.b
    for axis in axes:
        room = b.size(axis.size + axis.begin + axis.end + (axis.stride - 1 if ceil_mode else 0))
        fault = room < b.size(axis.span)
        b.fail_if(fault, NO_ROOM, b.size(axis.span), room)


def place_at(b: Builder, place: Size, size: Size) -> Size:
    """A place that is known to be inside, as an index that says so."""
    return place if provably_below(place, size, b.ranges) else b.index(b.size(place), size)


@contextmanager
def taps(
    b: Builder, axes: Sequence[Axis], windows: Sequence[Size]
) -> Iterator[tuple[tuple[Size, ...], tuple[Size, ...]]]:
    """Loops over the taps of one window that stand on the input: (taps, their places)."""
    if not axes:
        yield (), ()
        return
    axis, window = axes[0], windows[0]
    first, count = axis.range(b, window)
    with b.loop(count) as turn:
        tap = first + turn
        place = place_at(b, axis.place(window, tap), axis.size)
        with taps(b, axes[1:], windows[1:]) as (others, places):
            yield (tap, *others), (place, *places)


class Lanes:
    """Results side by side, a block at a time; a row of up to `most` is one block.

    Attributes:
        blocks: how many blocks the lanes are cut into; a dimension of the parallel loop around.
    """

    def __init__(self, b: Builder, extent: Size, most: int = MAX_LANES) -> None:
        self.b = b
        self.extent = extent
        short = isinstance(extent, int) and extent <= most
        self.width: int = max(extent, 1) if isinstance(extent, int) and short else min(most, LANES)
        self.blocks: Size = 1 if short else ceil_div(extent, self.width)

    def block(self, number: Size) -> tuple[Size, Size]:
        """The first lane of a block, and how many it has."""
        if self.blocks == 1:
            return 0, self.extent
        start = number * self.width
        count = min_of(self.extent - start, self.width)
        return start, self.b.index(self.b.size(count), self.width + 1)

    @contextmanager
    def walk(self, start: Size, count: Size) -> Iterator[tuple[Size, Size]]:
        """A loop over a block: (its lane, the lane among all)."""
        with self.b.loop(count, "vector") as lane:
            yield lane, place_at(self.b, start + lane, self.extent)

    @contextmanager
    def served(
        self, axis: Axis, tap: Size, start: Size, count: Size
    ) -> Iterator[tuple[Size, Size]]:
        """A loop over those windows of a block whose tap is on the input: (lane, place there)."""
        b = self.b
        ahead = tap * axis.dilation - axis.begin  # where the tap of window 0 stands
        low: Size = 0
        if not at_least(ahead, 0):
            early = max_of(ceil_div(max_of(-ahead, 0), axis.stride) - start, 0)
            low = b.index(b.size(min_of(early, count)), count + 1)
        turns: Size = count
        reach = (axis.windows - 1) * axis.stride + tap * axis.dilation
        if not provably_below(reach, axis.size + axis.begin, b.ranges):
            late = ceil_div(axis.size - ahead, axis.stride)
            turns = min_of(late - start, count)
        if low != 0 or turns != count:
            turns = b.index(b.size(max_of(turns - low, 0)), count + 1)
        with b.loop(turns, "vector") as turn:
            lane = low + turn
            yield lane, place_at(b, axis.place(start + lane, tap), axis.size)


def check_same(b: Builder, a: Size, c: Size, reason: str) -> None:
    """Two sizes that must agree; only a run may know."""
    b.fail_if(apply("ne", b.size(a), b.size(c)), reason, b.size(a), b.size(c))
