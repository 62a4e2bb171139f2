"""Windows, and short Fourier transforms as plain sums over a table of roots of unity.

X[k] = sum over j of x[j] * root[j*k mod n],  root[i] = cos(2πi/n) - i sin(2πi/n)

n² steps: frames longer than MAX_LENGTH are left to the reference backend, which has a fast one. Sums
are in float64, so that they are no worse than a fast transform in the type of the elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sardonyx.loops.build import cast, where
from sardonyx.loops.index import remainder
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Element, Nest, Position, Site
from sardonyx.ops.lowerings.parameters import require_size, whole
from sardonyx.sizes import Size

__all__ = ["STFT", "WINDOWS"]

MAX_LENGTH = 2048
Complex = tuple[Expr, Expr | None]  # without an imaginary part where it is 0


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


class _Roots:
    """cos and sin of 2πi/n for i < n, in the kernel's own memory."""

    def __init__(self, site: Site, length: int) -> None:
        self.b, self.length = site.b, length
        self.cos, self.sin = (site.scratch("f64", length) for _ in range(2))
        with self.b.loop(length, "vector") as i:
            angle = self.b.let(cast(self.b.size(i), "f64") * (2 * math.pi / length))
            self.b.store(self.cos, i, apply("cos", angle))
            self.b.store(self.sin, i, apply("sin", angle))

    def sum(self, k: Size, element: Callable[[Size], Complex]) -> tuple[Expr, Expr]:
        """The sum over j of element(j) * exp(-2πi jk/n)."""
        b = self.b
        real, imaginary = b.local(const(0, "f64")), b.local(const(0, "f64"))
        with b.loop(self.length, "vector") as j:
            at = b.index(b.size(remainder(j * k, self.length, b.ranges)), self.length)
            cos, sin = b.let(b.load(self.cos, at)), b.let(-b.load(self.sin, at))
            x, y = element(j)
            b.set(real, real + (x * cos if y is None else x * cos - y * sin))
            b.set(imaginary, imaginary + (x * sin if y is None else x * sin + y * cos))
        return real, imaginary


def _length(site: Site, size: Size) -> int:
    if not isinstance(size, int):
        site.refuse("the length of a frame is not known before it runs")
    if not 1 <= size <= MAX_LENGTH:
        site.refuse(f"a frame of {size} is longer than {MAX_LENGTH}, or of nothing")
    return size


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
    b, call = site.b, site.call
    batches, frames, bins, _ = site.out_shape()
    samples = site.shape(0)[1]
    length = _length(site, _frame_length(site))
    step = whole(site, 1)
    b.fail_if(step < 1, "frame_step is {value}; at least 1 is needed", step, 1)
    fits = b.size(samples - length)
    b.fail_if(fits < 0, "a frame is {value} samples too long", 0 - fits)
    last = b.let(b.size(frames - 1) * step)
    b.fail_if(last > fits, "the last frame begins at {value}, after {limit}", last, fits)
    roots = _Roots(site, length)
    with b.parallel((batches, frames, bins), length * 8) as (batch, frame, k):
        begin = b.index(b.size(frame) * step, samples)

        def element(j: Size) -> Complex:
            real, imaginary = _read(site, (batch, b.index(b.size(begin + j), samples)))
            if not call.has(2):
                return real, imaginary
            weight = b.let(cast(site.operand(2, (j,)), "f64"))
            return real * weight, None if imaginary is None else imaginary * weight

        for part, value in enumerate(roots.sum(k, element)):
            site.store((batch, frame, k, part), value)


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


WINDOWS = {
    "HannWindow": _window(0.5, 0.5, 0.0),
    "HammingWindow": _window(25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": _window(0.42, 0.5, 0.08),
}
STFT = Nest(_stft)
