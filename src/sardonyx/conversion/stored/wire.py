"""Protocol buffers without their schema: the fields of a message by number, read where they are asked for.

A message is read one level at a time, and nothing is copied before it is asked for, so that a stranger's file takes
no more memory than it has bytes, and no deeper a stack than its reader goes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sardonyx.conversion.stored.graph import Array
from sardonyx.errors import InputError

__all__ = ["Message"]

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_SIGN, _WRAP = 1 << 63, 1 << 64


class Message:
    """The fields of one message, in the order of the file."""

    def __init__(self, data: bytes | memoryview, where: str) -> None:
        self._where = where
        self._fields: dict[int, list[tuple[int, int | memoryview]]] = {}
        view = memoryview(data)
        for number, kind, value in _fields(view, where):
            self._fields.setdefault(number, []).append((kind, value))

    def messages(self, number: int) -> list[Message]:
        return [Message(each, self._where) for each in self._bytes(number)]

    def texts(self, number: int) -> list[str]:
        return [str(each, "utf-8", "replace") for each in self._bytes(number)]

    def text(self, number: int) -> str | None:
        found = self.texts(number)
        return found[-1] if found else None

    def blobs(self, number: int) -> list[bytes]:
        return [bytes(each) for each in self._bytes(number)]

    def integers(self, number: int) -> list[int]:
        """Signed 64-bit integers, one by one or packed."""
        found: list[int] = []
        for kind, value in self._fields.get(number, ()):
            if isinstance(value, int) and kind == _VARINT:
                found.append(_signed(value))
            elif isinstance(value, memoryview) and kind == _BYTES:
                at = 0
                while at < len(value):
                    packed, at = _varint(value, at, self._where)
                    found.append(_signed(packed))
            else:
                raise _damaged(self._where, f"field {number} is no integer")
        return found

    def floats(self, number: int) -> Array:
        """32-bit floats, one by one or packed."""
        parts = []
        for kind, value in self._fields.get(number, ()):
            if isinstance(value, memoryview) and kind in (_FOUR, _BYTES) and len(value) % 4 == 0:
                parts.append(value)
            else:
                raise _damaged(self._where, f"field {number} is no float")
        return np.frombuffer(b"".join(parts), "<f4")

    def __contains__(self, number: object) -> bool:
        return number in self._fields

    def _bytes(self, number: int) -> Iterator[memoryview]:
        for kind, value in self._fields.get(number, ()):
            if kind != _BYTES or not isinstance(value, memoryview):
                raise _damaged(self._where, f"field {number} is no text or message")
            yield value


def _fields(view: memoryview, where: str) -> Iterator[tuple[int, int, int | memoryview]]:
    at = 0
    while at < len(view):
        tag, at = _varint(view, at, where)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise _damaged(where, f"a field at byte {at} has the number 0")
        if kind == _VARINT:
            value, at = _varint(view, at, where)
            yield number, kind, value
            continue
        if kind == _BYTES:
            length, at = _varint(view, at, where)
        elif kind in (_FOUR, _EIGHT):
            length = 4 if kind == _FOUR else 8
        else:
            raise _damaged(where, f"a field at byte {at} is of the kind {kind}")
        if length > len(view) - at:
            raise _damaged(where, f"{length} bytes are announced, and {len(view) - at} left")
        yield number, kind, view[at : at + length]
        at += length


def _varint(view: memoryview, at: int, where: str) -> tuple[int, int]:
    value = 0
    for step in range(10):
        if at >= len(view):
            raise _damaged(where, "it ends inside a number")
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << 7 * step
        if byte < 0x80:
            return value % _WRAP, at
    raise _damaged(where, "a number has more than ten bytes")


def _signed(value: int) -> int:
    return value - _WRAP if value >= _SIGN else value


def _damaged(where: str, why: str) -> InputError:
    return InputError(
        f"the file is damaged, or of another kind: {why}.", where=where, hint="Save it again."
    )
