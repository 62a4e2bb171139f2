"""What a compiler is told of a vector loop: how many vectors at a time, and whether the last one is masked.

    SX_VECTORS                  iterations that do not depend on each other; a remainder is done one by one
    SX_INTERLEAVED              sums
    SX_SHORT_SUMS               sums that a compiler would write out before it sees that they are vectors
    SX_SIXTEENS(2, …)           sums, two vectors at a time where vectors have 16 lanes: so that less of the loop remains
    SX_MASKED(4, …)             a loop of up to 64 iterations as four vectors, of which masks hide a part, where there are masks
    SX_REGISTERS                an array on the stack that need not be in memory

The words are macros of `support/index.h`. Rows of 49 or 63 values are as common as those of 64 (windows of 7×7, classes of a
head), and what remained of them took most of their time: 63 exponentials 90 ns, or 27 under masks (Cascade Lake).
"""

from __future__ import annotations

from collections.abc import Collection

from sardonyx.loops.nodes import Expr, For, Let, Load, Local, Set, Store
from sardonyx.loops.walk import expressions, statements
from sardonyx.sizes import Size, substitute, symbol

__all__ = ["accumulated", "vectors_of"]

_SHORT = 64  # iterations: four vectors, and arrays that may be held in registers
_FEW_SUMS = 4  # of a loop, which is interleaved four times
_LONG = 32  # iterations of a loop that is worth several vectors at a time
_UNROLLED = 8  # iterations of a sum that is better written out
_MASKED = 5  # iterations that are worth a mask, at least
_LANES = 16
# What a vector takes in sums of so many at a time, and an iteration that is left over (measured on Cascade Lake).
_VECTOR = {4: 1.0, 2: 1.15, 1: 1.5}
_ITERATION = 0.28


def vectors_of(loop: For, arrays: Collection[str]) -> str:
    """The macro before a vector loop; `arrays` are the kernel's own."""
    sums, extent = len(accumulated(loop)), loop.extent
    if sums > _FEW_SUMS:  # many would not fit the registers several times
        return "SX_VECTOR"
    held = _stays_in_registers(loop, arrays)
    usual = "SX_REGISTERS" if held else _usual(sums, extent)
    least = _UNROLLED + 1 if sums or held else _MASKED
    if not isinstance(extent, int) or extent < least or not _is_plain(loop):
        return usual
    if extent > _SHORT:
        several = _at_a_time(extent)
        return f"SX_SIXTEENS({several}, {usual})" if sums and several < max(_VECTOR) else usual
    if extent % _LANES == 0 or (held and not _is_moved(loop)):
        return usual
    return f"SX_MASKED({min(each for each in _VECTOR if each * _LANES >= extent)}, {usual})"


def _usual(sums: int, extent: Size) -> str:
    """What suits any vectors."""
    if not sums:
        return "SX_VECTOR" if isinstance(extent, int) and extent < _LONG else "SX_VECTORS"
    if isinstance(extent, int) and _UNROLLED < extent <= _SHORT:
        return "SX_SHORT_SUMS"
    return "SX_INTERLEAVED"  # those of one vector would wait for each other


def accumulated(loop: For) -> set[str]:
    """What iterations hand on: Locals that were there before the loop and are set in it."""
    inside = {one.name for one in statements(loop.body) if isinstance(one, Local)}
    return {one.name for one in statements(loop.body) if isinstance(one, Set)} - inside


def _at_a_time(extent: int) -> int:
    """The vectors of a sum of so many iterations that take the least time."""

    def time(several: int) -> float:
        rest = extent % (several * _LANES)
        return (extent - rest) / _LANES * _VECTOR[several] + rest * _ITERATION

    return min(_VECTOR, key=time)


def _stays_in_registers(loop: For, arrays: Collection[str]) -> bool:
    """Whether all that a short loop writes are arrays of the kernel's own."""
    found = list(statements(loop.body))
    written = {one.buffer for one in found if isinstance(one, Store)}
    return (
        isinstance(loop.extent, int)
        and loop.extent <= _SHORT
        and bool(written)
        and written <= set(arrays)
        and all(isinstance(one, (Let, Store)) for one in found)
    )


def _is_moved(loop: For) -> bool:
    """Whether what it writes begins further on in an array, as a row behind its padding: that is memory, for it is read elsewhere."""
    places = [one.offset for one in loop.body if isinstance(one, Store)]
    return any(place - symbol(loop.var) != 0 for place in places)


def _is_plain(loop: For) -> bool:
    """Whether it is straight code over floats that lie side by side, or are the same in all iterations."""
    if not all(isinstance(one, (Let, Local, Set, Store)) for one in loop.body):
        return False
    parts = [part for one in loop.body for part in expressions(one)]
    places = [part.offset for part in parts if isinstance(part, Load)]
    places += [one.offset for one in loop.body if isinstance(one, Store)]
    floats = all(_is_float(part) for part in parts)
    return floats and all(_is_straight(place, loop) for place in places)


def _is_float(part: Expr) -> bool:
    return part.dtype in ("f32", "bool")


def _is_straight(place: Size, loop: For) -> bool:
    assert isinstance(loop.extent, int)
    first, second = (substitute(place, {loop.var: at}) for at in (0, 1))
    last = substitute(place, {loop.var: loop.extent - 1})
    apart = second - first
    return apart in (0, 1) and last - first == apart * (loop.extent - 1)
