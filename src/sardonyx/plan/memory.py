"""Where in the arena each slot lies, for given sizes.

    steps   0   1   2   3   4
    slot a  ███████               offset 0
    slot b          ███████       offset 0: a is dead by then
    slot c      ███████████████   offset after the larger of both

Slots that live at the same time never share bytes. Each is placed at the lowest offset that is free for
as long as it lives: the largest first, or else the longest-lived or the earliest first, whichever of these
orders needs the smallest arena.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

__all__ = ["ALIGNMENT", "Layout", "Span", "most_alive", "place_slots"]

ALIGNMENT = 64

Span = tuple[int, int, int]  # bytes, first step, last step


class Layout(NamedTuple):
    """Offsets of the slots, and how many bytes the arena needs."""

    offsets: tuple[int, ...]
    bytes: int


def place_slots(spans: Sequence[Span]) -> Layout:
    """Offsets for slots of these sizes and lives. The same spans get the same offsets."""
    orders = (
        sorted(range(len(spans)), key=lambda i: (-spans[i][0], spans[i][1], i)),
        sorted(range(len(spans)), key=lambda i: (spans[i][1] - spans[i][2], -spans[i][0], i)),
        sorted(range(len(spans)), key=lambda i: (spans[i][1], -spans[i][0], i)),
    )
    needed = most_alive([(_aligned(size), first, last) for size, first, last in spans])
    best: Layout | None = None
    for order in orders:
        layout = _place(spans, order)
        if best is None or layout.bytes < best.bytes:
            best = layout
        if best.bytes == needed:
            break
    assert best is not None
    return best


def _place(spans: Sequence[Span], order: Sequence[int]) -> Layout:
    """Slots in this order, each at the lowest offset that is free while it lives."""
    offsets = [0] * len(spans)
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first, last
    total = 0
    for number in order:
        size, first, last = spans[number]
        size = _aligned(size)
        at = 0
        for offset, end, begin, until in placed:
            if begin <= last and first <= until:
                if offset - at >= size:
                    break
                if end > at:
                    at = end
        offsets[number] = at
        insort(placed, (at, at + size, first, last))
        total = max(total, at + size)
    return Layout(tuple(offsets), total)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def most_alive(spans: Sequence[Span]) -> int:
    """The most bytes that are alive at any one step: no arena can be smaller."""
    change = [0] * (max((last for _, _, last in spans), default=-1) + 2)
    for size, first, last in spans:
        change[first] += size
        change[last + 1] -= size
    return max(accumulate(change))
