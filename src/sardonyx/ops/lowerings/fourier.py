"""Fourier transforms of frames, by the factors of their length.

    parts[l][k, b]     transform of x[b], x[b + n/l], x[b + 2n/l], …, at k < l, for b < n/l
    parts[1][0, b]     x[b]
    parts[lp][k + ls, b] = sum over r < p of exp(-2πi r(k + ls) / lp) * parts[l][k, b + r n/lp]

A frame of length n takes n steps for every factor p, times p. Several frames go side by side, so that all of it is vector code.
Sums are in float64, so that they are no worse than a transform in the type of the elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from sardonyx.loops.index import remainder
from sardonyx.loops.nodes import Expr, const
from sardonyx.ops.lowering import Site
from sardonyx.sizes import Size, ceil_div, max_of, min_of

__all__ = ["LANES", "Complex", "Transform", "known_length"]

MAX_LENGTH = 8192
MAX_STEPS = 1 << 22  # of a frame: lengths that have large primes among their factors take as many
LANES = 4  # frames side by side
TASKS = 8  # each has memory of its own
Complex: TypeAlias = "tuple[Expr, Expr | None]"  # without an imaginary part where it is 0


def _factors(length: int) -> list[int]:
    """What is multiplied to `length`: fours, and primes."""
    found, rest, factor = [], length, 4
    while rest > 1:
        while rest % factor == 0:
            found.append(factor)
            rest //= factor
        factor = {4: 2, 2: 3}.get(factor, factor + 2)
    return found


class Transform:
    """Frames side by side, in memory of the kernel's own: `LANES` numbers for every sample, a region for every task."""

    def __init__(self, site: Site, length: int) -> None:
        self.b, self.length = site.b, length
        angles = 2 * np.pi / length * np.arange(length)
        self.cos, self.sin = (site.table(of(angles)) for of in (np.cos, np.sin))
        self.real, self.imaginary = (
            tuple(site.scratch("f64", TASKS * length * LANES) for _ in range(2)) for _ in range(2)
        )

    @contextmanager
    def groups(self, count: Size) -> Iterator[tuple[Size, Size]]:
        """Parallel loops over so many groups of frames: the task, and the number of the group."""
        b, each = self.b, ceil_div(count, TASKS)
        with b.parallel((TASKS,), each * self.length * 64) as (task,):
            rest = max_of(0, min_of(each, count - each * task))
            with b.loop(rest) as number:
                yield task, b.named(each * task + number, count)

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


def known_length(site: Site, size: Size, largest: int = MAX_LENGTH) -> int:
    """The length of a frame, where it and its factors, which `largest` bounds, are small enough."""
    if not isinstance(size, int):
        site.refuse("the length of a frame is not known before it runs")
    if not 1 <= size <= MAX_LENGTH:
        site.refuse(f"a frame of {size} is longer than {MAX_LENGTH}, or of nothing")
    factors = _factors(size)
    if size * sum(factors) > MAX_STEPS or max(factors, default=1) > largest:
        site.refuse(f"a frame of {size} has a large prime among its factors")
    return size
