"""Windows, and Fourier transforms of frames, by the factors of their length.

    parts[l][k, b]     transform of x[b], x[b + n/l], x[b + 2n/l], …, at k < l, for b < n/l
    parts[1][0, b]     x[b]
    parts[lp][k + ls, b] = sum over r < p of exp(-2πi r(k + ls) / lp) * parts[l][k, b + r n/lp]

A frame of length n takes n steps for every factor p, times p. Several frames go side by side, so that all of it is vector code.
Sums are in float64, so that they are no worse than a transform in the type of the elements.
"""

from __future__ import annotations

import math

from sardonyx.loops.build import cast, where
from sardonyx.loops.index import remainder, unflatten
from sardonyx.loops.nodes import Expr, apply, const
from sardonyx.ops.lowering import Element, Nest, Position, Site
from sardonyx.ops.lowerings.parameters import require_size, whole
from sardonyx.sizes import Size, ceil_div, max_of, min_of

__all__ = ["STFT", "WINDOWS"]

MAX_LENGTH = 8192
MAX_STEPS = 1 << 22  # of a frame: lengths that have large primes among their factors take as many
LANES = 4  # frames side by side
TASKS = 8  # each has memory of its own
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


def _factors(length: int) -> list[int]:
    """What is multiplied to `length`: fours, and primes."""
    found, rest, factor = [], length, 4
    while rest > 1:
        while rest % factor == 0:
            found.append(factor)
            rest //= factor
        factor = {4: 2, 2: 3}.get(factor, factor + 2)
    return found


class _Transform:
    """Frames side by side, in memory of the kernel's own: `LANES` numbers for every sample, a region for every task."""

    def __init__(self, site: Site, length: int) -> None:
        self.b, self.length = site.b, length
        self.cos, self.sin = (site.scratch("f64", length) for _ in range(2))
        self.real, self.imaginary = (
            tuple(site.scratch("f64", TASKS * length * LANES) for _ in range(2)) for _ in range(2)
        )
        with self.b.loop(length, "vector") as i:
            angle = self.b.let(cast(self.b.size(i), "f64") * (2 * math.pi / length))
            self.b.store(self.cos, i, apply("cos", angle))
            self.b.store(self.sin, i, apply("sin", angle))

    def place(self, task: Size, sample: Size) -> Size:
        return (task * self.length + sample) * LANES

    def read(self, task: Size, sample: Size, lane: Size, element: Complex) -> None:
        at = self.place(task, sample) + lane
        self.b.store(self.real[0], at, element[0])
        self.b.store(self.imaginary[0], at, const(0, "f64") if element[1] is None else element[1])

    def run(self, task: Size) -> tuple[str, str]:
        """The buffers of the result: number k of a lane is at `place(task, k) + lane`."""
        done, now = 1, 0
        for factor in _factors(self.length):
            self._stage(task, done, factor, now)
            done, now = done * factor, 1 - now
        return self.real[now], self.imaginary[now]

    def _stage(self, task: Size, done: int, factor: int, now: int) -> None:
        """Transforms of `done` numbers become those of `factor` times as many."""
        b, left = self.b, self.length // (done * factor)
        real, imaginary = (b.array("f64", LANES) for _ in range(2))
        with b.loop(factor) as s, b.loop(done) as k, b.loop(left) as block:
            with b.loop(LANES, "vector") as lane:
                b.put(real, lane, const(0, "f64"))
                b.put(imaginary, lane, const(0, "f64"))
            with b.loop(factor) as r:
                turn = remainder(r * (k + done * s) * left, self.length, b.ranges)
                at = b.index(b.size(turn), self.length)
                cos, sin = b.let(b.load(self.cos, at)), b.let(-b.load(self.sin, at))
                place = self.place(task, k * (left * factor) + block + r * left)
                with b.loop(LANES, "vector") as lane:
                    x = b.let(b.load(self.real[now], place + lane))
                    y = b.let(b.load(self.imaginary[now], place + lane))
                    b.put(real, lane, b.element(real, lane) + x * cos - y * sin)
                    b.put(imaginary, lane, b.element(imaginary, lane) + x * sin + y * cos)
            place = self.place(task, (k + done * s) * left + block)
            with b.loop(LANES, "vector") as lane:
                b.store(self.real[1 - now], place + lane, b.element(real, lane))
                b.store(self.imaginary[1 - now], place + lane, b.element(imaginary, lane))


def _length(site: Site, size: Size) -> int:
    if not isinstance(size, int):
        site.refuse("the length of a frame is not known before it runs")
    if not 1 <= size <= MAX_LENGTH:
        site.refuse(f"a frame of {size} is longer than {MAX_LENGTH}, or of nothing")
    if size * sum(_factors(size)) > MAX_STEPS:
        site.refuse(f"a frame of {size} has a large prime among its factors")
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
    b = site.b
    batches, frames, bins, _ = site.out_shape()
    samples = site.shape(0)[1]
    length = _length(site, _frame_length(site))
    step = whole(site, 1)
    b.fail_if(step < 1, "frame_step is {value}; at least 1 is needed", step, 1)
    fits = b.size(samples - length)
    b.fail_if(fits < 0, "a frame is {value} samples too long", 0 - fits)
    last = b.let(b.size(frames - 1) * step)
    b.fail_if(last > fits, "the last frame begins at {value}, after {limit}", last, fits)
    transform = _Transform(site, length)
    groups = batches * ceil_div(frames, LANES)
    each = ceil_div(groups, TASKS)
    with b.parallel((TASKS,), each * length * 64) as (task,):
        rest = max_of(0, min_of(each, groups - each * task))
        with b.loop(rest) as number:
            group = b.named(each * task + number, groups)
            batch, block = unflatten(group, (batches, ceil_div(frames, LANES)), b.ranges)
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


WINDOWS = {
    "HannWindow": _window(0.5, 0.5, 0.0),
    "HammingWindow": _window(25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": _window(0.42, 0.5, 0.08),
}
STFT = Nest(_stft)
