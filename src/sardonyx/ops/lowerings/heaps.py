"""A heap: the least of some entries is on top, and the next one is found in log n steps.

    entry 0            no entry is less than the one above it:
   /       \\           that of entry i is entry (i - 1) / 2
entry 1   entry 2
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.loops.build import minimum, where
from sardonyx.loops.nodes import Expr
from sardonyx.ops.lowerings.ranks import Entries, Entry, before
from sardonyx.sizes import Size

__all__ = ["Heap"]


@dataclass(frozen=True)
class Heap:
    """The first of these entries, of which there are at most `room`."""

    entries: Entries
    room: Size

    def arrange(self, count: Expr) -> None:
        """Makes a heap of the first `count` entries."""
        b = self.entries.b
        hole = b.local(count / 2)
        with b.repeat(hole > 0):
            b.set(hole, hole - 1)
            self.sink(hole, self.entries.at(b.index(hole, self.room)), count)

    def sink(self, hole: Expr, entry: Entry, count: Expr) -> None:
        """Puts an entry into the hole, or further down, past those that are less."""
        b = self.entries.b
        place = b.local(hole)
        child = b.local(place * 2 + 1)
        going = b.local(child < count)
        with b.repeat(going):
            left, right = child, b.let(minimum(child + 1, count - 1))
            one, other = (self.entries.at(b.index(at, self.room)) for at in (left, right))
            is_other = b.let(before(other, one))
            least = tuple(b.let(where(is_other, *both)) for both in zip(other, one, strict=True))
            b.set(going, before(least, entry))
            with b.when(going):
                self.entries.put(b.index(place, self.room), least)
                b.set(place, where(is_other, right, left))
                b.set(child, place * 2 + 1)
                b.set(going, child < count)
        self.entries.put(b.index(place, self.room), entry)
