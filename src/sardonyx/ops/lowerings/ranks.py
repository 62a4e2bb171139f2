"""Elements as unsigned integers that order as they do, each with its place: what is sorted.

rank    u32, or u64 of 64-bit elements; NaN is the largest, and -0 is 0
entry   of a u32: (rank << 32 | place,), so that one comparison orders both
        of a u64: (rank, place)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sardonyx.loops.build import Builder, cast, where
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.loops.operations import UNSIGNED
from sardonyx.ops.lowering import Site
from sardonyx.ops.lowerings.checks import require_at_most
from sardonyx.sizes import Size

__all__ = [
    "Entries",
    "Entry",
    "before",
    "complement",
    "entries_of",
    "entry",
    "place_of",
    "rank",
    "rank_of",
]

Entry: TypeAlias = tuple[Expr, ...]

PLACES = 1 << 32  # that half an entry tells apart
LOW = PLACES - 1
WIDE: frozenset[Dtype] = frozenset({"f64", "i64", "u64"})
INFINITY = {"f32": 0x7F800000, "f64": 0x7FF0000000000000}  # its bits


def rank(b: Builder, value: Expr) -> Expr:
    """An unsigned integer that is larger where the value is."""
    if value.dtype == "bool":
        return cast(value, "u32")
    if value.dtype in UNSIGNED:
        return cast(value, "u64" if value.dtype in WIDE else "u32")
    signed, unsigned = _integers(value.dtype)
    number = _steps_from_zero(b, value) if value.dtype in INFINITY else cast(value, signed)
    middle = 1 << (63 if value.dtype in WIDE else 31)
    return b.let(apply("xor", cast(number, unsigned, "bits"), middle))


def _integers(dtype: Dtype) -> tuple[Dtype, Dtype]:
    return ("i64", "u64") if dtype in WIDE else ("i32", "u32")


def _steps_from_zero(b: Builder, value: Expr) -> Expr:
    """How many floats lie between 0 and this one; the most there are for NaN."""
    signed, _ = _integers(value.dtype)
    most = (1 << (63 if value.dtype in WIDE else 31)) - 1
    bits = b.let(cast(value, signed, "bits"))
    size = b.let(apply("and", bits, most))
    number = b.let(where(bits < 0, apply("neg", size), size))
    return where(size > INFINITY[value.dtype], const(most, signed), number)


def entry(value: Expr, place: Expr) -> Entry:
    """A rank with its place, an i64."""
    where_it_is = cast(place, "u64", "bits")
    if value.dtype == "u64":
        return value, where_it_is
    return (apply("shl", cast(value, "u64"), 32) | where_it_is,)


def rank_of(one: Entry) -> Expr:
    """The rank, as a u64."""
    return apply("shr", one[0], 32) if len(one) == 1 else one[0]


def place_of(one: Entry) -> Expr:
    """The place, an i64."""
    return cast(one[0] & LOW if len(one) == 1 else one[1], "i64", "bits")


def before(a: Entry, b: Entry) -> Expr:
    """Whether the first is less."""
    if len(a) == 1:
        return a[0] < b[0]
    return (a[0] < b[0]) | (apply("eq", a[0], b[0]) & (a[1] < b[1]))


def complement(one: Entry) -> Entry:
    """Of two entries, the one that was less has the larger complement."""
    return tuple(apply("not", part) for part in one)


@dataclass(frozen=True)
class Entries:
    """Entries in memory, from `base` on."""

    b: Builder
    buffers: tuple[str, ...]
    base: Size

    def at(self, index: Size) -> Entry:
        b = self.b
        return tuple(b.let(b.load(buffer, self.base + index)) for buffer in self.buffers)

    def put(self, index: Size, one: Entry) -> None:
        for buffer, part in zip(self.buffers, one, strict=True):
            self.b.store(buffer, self.base + index, part)


def entries_of(site: Site, dtype: Dtype, count: Size, places: Size) -> Entries:
    """Memory for entries of elements of this type, at places below `places`; to be asked for outside of loops."""
    if dtype in WIDE:
        return Entries(site.b, (site.scratch("u64", count), site.scratch("u64", count)), 0)
    if isinstance(places, int) and places > PLACES:
        site.refuse(f"{places} elements are too many to be ordered: {PLACES} at most")
    require_at_most(site, places, PLACES, "the number of elements to be ordered")
    return Entries(site.b, (site.scratch("u64", count),), 0)
