"""Windows, and Fourier transforms of signals and of their frames (`fourier`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx.loops.build import cast, where
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Expr, apply
from sardonyx.ops.call import Call
from sardonyx.ops.lowering import Element, Nest, Position, Site
from sardonyx.ops.lowerings.fourier import LANES, Complex, Transform, known_length
from sardonyx.ops.lowerings.parameters import require_size, whole
from sardonyx.sizes import Size, ceil_div, min_of, product

__all__ = ["DFT", "STFT", "WINDOWS", "dft_axis"]

# A factor of 127 takes half of the reference backend's time for one signal, one of 509 six times as much (Cascade Lake).
LARGEST = 128  # factor of a signal's length


def _window(a: float, b: float, c: float) -> Element:
    """a - b cos(t) + c cos(2t), over one period."""

    def value(site: Site, position: Position) -> Expr:
        (size,) = site.out_shape()
        require_size(site, whole(site, 0), size, "size")
        period = site.b.size(size if site.call.int_attr("periodic", 1) else size - 1)
        # A symmetric window of one element is its own centre.
        safe = cast(apply("max", period, 1), "f64")
        angle = site.b.let(cast(site.b.size(position[0]), "f64") * (2 * math.pi) / safe)
        wave = a - b * apply("cos", angle) + c * apply("cos", angle * 2)
        return where(apply("eq", period, 0), 1.0, wave)

    return Element(value, weight=16)


def _parts(site: Site) -> int:
    parts = site.shape(0)[-1]
    if not isinstance(parts, int):
        site.refuse("whether the signal is real is not known before it runs")
    return parts


def _read(site: Site, position: Position) -> Complex:
    """A number of the signal; the last axis holds its parts."""
    real = cast(site.operand(0, (*position, 0)), "f64")
    parts = _parts(site)
    return real, None if parts == 1 else cast(site.operand(0, (*position, 1)), "f64")


def _stft(site: Site) -> None:
    b = site.b
    batches, frames, bins, _ = site.out_shape()
    samples = site.shape(0)[1]
    length = known_length(site, _frame_length(site))
    step = whole(site, 1)
    b.fail_if(step < 1, "frame_step is {value}; at least 1 is needed", step, 1)
    fits = b.size(samples - length)
    b.fail_if(fits < 0, "a frame is {value} samples too long", 0 - fits)
    last = b.let(b.size(frames - 1) * step)
    b.fail_if(last > fits, "the last frame begins at {value}, after {limit}", last, fits)
    transform = Transform(site, length)
    blocks = ceil_div(frames, LANES)
    with transform.groups(batches * blocks) as (task, group):
        batch, block = unflatten(group, (batches, blocks), b.ranges)
        first = b.named(LANES * block, frames)
        with b.loop(length) as j, b.loop(LANES, "vector") as lane:
            frame = b.size(
                min_of(first + lane, frames - 1)
            )  # the last one again, where there is none
            begin = b.index(frame * step, samples)
            at = (batch, b.index(b.size(begin + j), samples))
            transform.read(task, j, lane, _weighed(site, _read(site, at), j))
        results = transform.run(task)
        with b.loop(bins) as k, b.loop(min_of(LANES, frames - first), "vector") as lane:
            for part, buffer in enumerate(results):
                value = b.load(buffer, transform.place(task, k) + lane)
                site.store((batch, b.named(first + lane, frames), k, part), value)


def _weighed(site: Site, element: Complex, j: Size) -> Complex:
    """What the window leaves of number `j` of a frame."""
    if not site.call.has(2):
        return element
    weight = site.b.let(cast(site.operand(2, (j,)), "f64"))
    real, imaginary = element
    return real * weight, None if imaginary is None else imaginary * weight


def _frame_length(site: Site) -> Size:
    call = site.call
    if call.has(2):
        return site.shape(2)[0]
    if not call.has(3):
        return site.shape(0)[1]
    given = call.whole(3)
    if given is None:
        site.refuse("the length of a frame is not known before it runs")
    return given


def dft_axis(call: Call, rank: int) -> int | None:
    """An attribute until opset 19, an input since."""
    if call.version < 20:
        found: int | None = call.int_attr("axis", 1)
    elif not call.has(2):
        found = -2
    else:
        found = call.scalar(2)
    if not isinstance(found, int):
        return None
    axis = call.axis(found, rank)
    if axis == rank - 1:
        call.fail(f"axis {found} holds the real and imaginary parts, not a signal")
    return axis


class _Signals:
    """Signals along one axis; those that lie side by side along the last of the others share a group.

    Attributes:
        mirrored: of a real signal's transform, whose second half is the conjugate of the first.
    """

    def __init__(self, site: Site, axis: int, size: int) -> None:
        self.site, self.axis, self.size = site, axis, size
        self.inverse = bool(site.call.int_attr("inverse"))
        self.mirrored = self.inverse and bool(site.call.int_attr("onesided"))
        self.length = known_length(site, self._asked(), LARGEST)
        shape = site.shape(0)
        others = [one for one in range(len(shape) - 1) if one != axis and shape[one] != 1]
        self.outer, self.beside = others[:-1], others[-1:]
        self.sizes = [shape[one] for one in self.outer]
        self.extent = product(shape[one] for one in self.beside)

    def _asked(self) -> Size:
        if not self.site.call.has(1):
            return 2 * (self.size - 1) if self.mirrored else self.size
        given = self.site.call.whole(1)
        if given is None:
            self.site.refuse("the length of the transform is not known before it runs")
        return given

    def position(self, places: Sequence[Size], column: Size, sample: Size) -> Position:
        at: list[Size] = [0] * (len(self.site.shape(0)) - 1)
        for axis, place in zip(self.outer, places, strict=True):
            at[axis] = place
        for axis in self.beside:
            at[axis] = column
        at[self.axis] = sample
        return tuple(at)

    def read(self, places: Sequence[Size], column: Size, number: Size) -> Complex:
        """Number `number` of what is transformed: zeros behind the end, conjugates for the inverse."""
        b = self.site.b
        sample = min_of(number, self.length - number) if self.mirrored else number
        held = min(self.size, self.length // 2 + 1 if self.mirrored else self.length)
        inside = b.index(b.size(min_of(sample, held - 1)), self.size)
        real, imaginary = _read(self.site, self.position(places, column, inside))
        known = b.size(sample) < b.size(held)
        real = where(known, real, 0.0)
        if imaginary is None:
            return real, None
        if self.mirrored:
            imaginary = where(b.size(number) <= b.size(self.length // 2), -imaginary, imaginary)
        elif self.inverse:
            imaginary = -imaginary
        return real, where(known, imaginary, 0.0)


def _dft(site: Site) -> None:
    """The inverse of X is what the conjugates of X become, conjugated, and divided by their number."""
    b, shape = site.b, site.shape(0)
    axis = dft_axis(site.call, len(shape))
    if axis is None:
        site.refuse("the axis of the transform is not known before it runs")
    size, bins = shape[axis], site.out_shape()[axis]
    if not isinstance(size, int) or size < 1:
        site.refuse("the length of the signal is not known before it runs, or is 0")
    signals = _Signals(site, axis, size)
    if site.call.int_attr("onesided") and not signals.inverse and _parts(site) != 1:
        site.refuse("a one-sided transform is of real signals only")
    scale = 1 / signals.length if signals.inverse else 1.0
    scales = [scale] if signals.mirrored else [scale, -scale if signals.inverse else scale]
    extent, transform = signals.extent, Transform(site, signals.length)
    blocks = ceil_div(extent, LANES)
    with transform.groups(product(signals.sizes) * blocks) as (task, group):
        *places, block = unflatten(group, (*signals.sizes, blocks), b.ranges)
        first = b.named(LANES * block, extent)
        with b.loop(signals.length) as j, b.loop(LANES, "vector") as lane:
            column = b.index(b.size(min_of(first + lane, extent - 1)), extent)  # or the last again
            transform.read(task, j, lane, signals.read(places, column, j))
        results = transform.run(task)
        with b.loop(bins) as k, b.loop(min_of(LANES, extent - first), "vector") as lane:
            column = b.named(first + lane, extent)
            for part, (factor, buffer) in enumerate(zip(scales, results, strict=False)):
                value = b.load(buffer, transform.place(task, k) + lane) * factor
                site.store((*signals.position(places, column, k), part), value)


WINDOWS = {
    "HannWindow": _window(0.5, 0.5, 0.0),
    "HammingWindow": _window(25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": _window(0.42, 0.5, 0.08),
}
STFT = Nest(_stft)
DFT = Nest(_dft)
