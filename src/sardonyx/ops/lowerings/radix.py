"""Sorting by bytes of the ranks, the lowest first; equals stay in order.

which bits differ at all
for each byte that has some of them
  how many entries have each value of the byte, and so where those of each value begin
  every entry to its place, from one half of the memory into the other
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.loops.build import cast
from sardonyx.loops.nodes import Expr, Var, apply, const
from sardonyx.ops.lowerings.ranks import Entries, Entry
from sardonyx.sizes import Size

__all__ = ["Sorting"]

VALUES = 256  # of a byte


@dataclass(frozen=True)
class Sorting:
    """`size` entries, with room for as many behind them; their places ascend."""

    entries: Entries
    size: Size

    def run(self) -> Var:
        """Sorts them; where they are then: from the first entry on, or from the one at `size`."""
        b = self.entries.b
        differing = self._differing()
        source = b.local(const(0, "i64"))
        counts = b.array("i64", VALUES)
        bits = 32 if len(self.entries.buffers) == 1 else 64  # of the rank, which is on top
        with b.loop(bits // 8) as turn:
            shift = b.let(cast(b.size(64 - bits + 8 * turn), "u64"))
            with b.when(apply("ne", _byte(differing, shift), 0)):
                self._count(counts, source, shift)
                self._move(counts, source, shift)
                b.set(source, b.size(self.size) - source)
        return source

    def _differing(self) -> Expr:
        """The bits in which ranks differ."""
        b = self.entries.b
        some, every = b.local(const(0, "u64")), b.local(const((1 << 64) - 1, "u64"))
        with b.loop(self.size, "vector") as i:
            rank = self.entries.at(i)[0]
            b.set(some, some | rank)
            b.set(every, every & rank)
        return b.let(apply("xor", some, every))

    def _count(self, counts: str, source: Expr, shift: Expr) -> None:
        """Where the entries of each value of the byte begin."""
        b = self.entries.b
        with b.loop(VALUES, "vector") as value:
            b.put(counts, value, const(0, "i64"))
        with b.loop(self.size) as i:
            value = self._value(self._at(source, i), shift)
            b.put(counts, value, b.element(counts, value) + 1)
        total = b.local(const(0, "i64"))
        with b.loop(VALUES) as value:
            here = b.let(b.element(counts, value))
            b.put(counts, value, total)
            b.set(total, total + here)

    def _move(self, counts: str, source: Expr, shift: Expr) -> None:
        b = self.entries.b
        target = b.let(b.size(self.size) - source)
        with b.loop(self.size) as i:
            one = self._at(source, i)
            value = self._value(one, shift)
            place = b.let(b.element(counts, value))
            b.put(counts, value, place + 1)
            self.entries.put(b.index(target + place, 2 * self.size), one)

    def _at(self, source: Expr, i: Size) -> Entry:
        b = self.entries.b
        return self.entries.at(b.index(source + b.size(i), 2 * self.size))

    def _value(self, one: Entry, shift: Expr) -> Size:
        return self.entries.b.index(_byte(one[0], shift), VALUES)


def _byte(rank: Expr, shift: Expr) -> Expr:
    return apply("shr", rank, shift) & (VALUES - 1)
