"""Tables of a flatbuffer, as far as a reader needs them; every offset is checked before it is followed.

    table ──► vtable          field number n lies at table + vtable[n], or has its default where that is 0
      │
      └─ field ──► vector     uint32 length, then the elements; of tables and texts these are offsets again

Bytes may be shared by many tables. So that a small file cannot ask for endless work, what is read of it is counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from sardonyx.errors import InputError

__all__ = ["Flatbuffer", "Table"]

_MOST_TEXT = 4096
_FREE_WORK = 1 << 16
_WORK_PER_BYTE = 4


class Flatbuffer:
    """The bytes of a file.

    Args:
        data: all of them.
        where: the file, for errors.
    """

    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.where = where
        self._work = _FREE_WORK + _WORK_PER_BYTE * len(data)

    def root(self, identifier: bytes) -> Table:
        """The outermost table.

        Raises:
            InputError: the file has another identifier, or is too short for one.
        """
        if len(self.data) < 8 or self.data[4:8] != identifier:
            raise InputError(
                f"it is no {identifier.decode()} flatbuffer: {self.data[4:8]!r} stands where its name would.",
                where=self.where,
                hint="Give a .tflite file as the converter wrote it.",
            )
        return Table(self, self.offset(0))

    def damaged(self, what: str) -> InputError:
        return InputError(
            f"the file is damaged: {what}.",
            where=self.where,
            hint="Copy or convert it again.",
        )

    def number(self, form: str, position: int) -> Any:
        """One number, as `struct` has it."""
        try:
            return struct.unpack_from(f"<{form}", self.data, position)[0]
        except struct.error:
            raise self.damaged(
                f"a number at byte {position:,} lies outside its {len(self.data):,} bytes"
            ) from None

    def offset(self, position: int) -> int:
        """Where the offset that stands here points to."""
        target = position + int(self.number("I", position))
        if target + 4 > len(self.data):
            raise self.damaged(
                f"the offset at byte {position:,} points to byte {target:,} of {len(self.data):,}"
            )
        return target

    def span(self, position: int, size: int) -> tuple[int, int]:
        """Begin and count of the vector here, whose elements have this many bytes."""
        count = int(self.number("I", position))
        if position + 4 + count * size > len(self.data):
            raise self.damaged(
                f"the vector at byte {position:,} has {count:,} elements, more than the file holds"
            )
        return position + 4, count

    def charge(self, amount: int) -> None:
        """Count what is read."""
        self._work -= amount
        if self._work < 0:
            raise self.damaged("its tables are read over and over, as no converter writes them")


class Table:
    """One table; fields are asked for by their number in the schema."""

    def __init__(self, buffer: Flatbuffer, position: int) -> None:
        self._buffer = buffer
        self._position = position
        buffer.charge(4)
        self._fields = position - int(buffer.number("i", position))
        if self._fields < 0:
            raise buffer.damaged(f"the table at byte {position:,} has its fields before the file")
        self._count = max(0, (int(buffer.number("H", self._fields)) - 4) // 2)

    def _place(self, field: int) -> int | None:
        if field >= self._count:
            return None
        place = int(self._buffer.number("H", self._fields + 4 + 2 * field))
        return self._position + place if place else None

    def number(self, field: int, form: str, default: Any = 0) -> Any:
        place = self._place(field)
        return default if place is None else self._buffer.number(form, place)

    def table(self, field: int) -> Table | None:
        place = self._place(field)
        return None if place is None else Table(self._buffer, self._buffer.offset(place))

    def tables(self, field: int) -> Iterator[Table]:
        place = self._place(field)
        if place is None:
            return
        begin, count = self._buffer.span(self._buffer.offset(place), 4)
        for index in range(count):
            yield Table(self._buffer, self._buffer.offset(begin + 4 * index))

    def text(self, field: int) -> str:
        place = self._place(field)
        if place is None:
            return ""
        begin, count = self._buffer.span(self._buffer.offset(place), 1)
        self._buffer.charge(count // 16)  # texts are short, and may well be shared
        held = self._buffer.data[begin : begin + min(count, _MOST_TEXT)]
        return held.decode("utf-8", errors="replace")

    def vector(self, field: int, dtype: Any) -> np.ndarray[Any, np.dtype[Any]]:
        """Numbers where they lie: a view of the file."""
        place = self._place(field)
        kind = np.dtype(dtype).newbyteorder("<")
        if place is None:
            return np.zeros(0, kind)
        begin, count = self._buffer.span(self._buffer.offset(place), kind.itemsize)
        return np.frombuffer(self._buffer.data, kind, count, begin)

    def numbers(self, field: int, dtype: Any) -> tuple[int, ...]:
        """A short vector of integers."""
        found = self.vector(field, dtype)
        self._buffer.charge(found.size)
        return tuple(int(number) for number in found)
