"""When each step of one run began and ended."""

from __future__ import annotations

import ctypes
import time

__all__ = ["Span", "Trace"]

Span = tuple[int, int]  # nanoseconds of the monotonic clock


class Trace:
    """Filled in by a run that is given one.

    Attributes:
        clock: address of int64_t (void), which native code reads the time with.
        times: where native code writes when each step first began, and how long all its turns took.
        spans: of every step; those that a branch left out took no time.
        sizes: of the plan's symbols, those that only data decides among them.
    """

    def __init__(self, steps: int, clock: int) -> None:
        self.clock = ctypes.c_void_p(clock)
        self.times = (ctypes.c_int64 * (2 * steps))()
        self.spans: dict[int, Span] = {}
        self.sizes: dict[str, int] = {}

    def native(self, first: int, end: int) -> None:
        """The steps from `first` up to `end` ran in native code."""
        over = 0
        for step in range(first, end):
            begin = self.times[2 * step] or over
            over = begin + self.times[2 * step + 1]
            self.spans[step] = (begin, over)

    def host(self, step: int, begin: int) -> None:
        """A step that Python ran has just ended."""
        self.spans[step] = (begin, time.monotonic_ns())
