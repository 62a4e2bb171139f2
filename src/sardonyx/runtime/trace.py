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
        times: where native code writes when each step began, and when the last of a phase ended.
        spans: of every step that ran.
        sizes: of the plan's symbols, those that only data decides among them.
    """

    def __init__(self, steps: int, clock: int) -> None:
        self.clock = ctypes.c_void_p(clock)
        self.times = (ctypes.c_int64 * (steps + 1))()
        self.spans: dict[int, Span] = {}
        self.sizes: dict[str, int] = {}

    def native(self, first: int, end: int) -> None:
        """The steps from `first` up to `end` ran in native code."""
        for step in range(first, end):
            self.spans[step] = (self.times[step], self.times[step + 1])

    def host(self, step: int, begin: int) -> None:
        """A step that Python ran has just ended."""
        self.spans[step] = (begin, time.monotonic_ns())
