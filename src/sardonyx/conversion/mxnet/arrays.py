"""MXNet's `.params` files: a list of arrays and their names.

uint64 0x112, uint64 0                       what the file is
uint64 count, then every array:
    uint32 version                           F993FAC8, …C9 (with a storage type), …CA (with scalars)
    uint32 axes, int64 sizes                 before the versions: the axes stand first, with uint32 sizes
    int32 device, int32 number, int32 type   and the elements, little-endian
uint64 count, then every name: uint64 length and its bytes
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.conversion.stored.graph import Array
from sardonyx.errors import InputError

__all__ = ["read_arrays"]

_FILE = 0x112
_SIZES, _STORAGE, _SCALARS = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_MOST_AXES = 32
_DENSE = 0
_TYPES: dict[int, Any] = {
    0: np.float32,
    1: np.float64,
    2: np.float16,
    3: np.uint8,
    4: np.int32,
    5: np.int8,
    6: np.int64,
    7: np.bool_,
    12: ml_dtypes.bfloat16,
}


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays by name, as `arg:fc1_weight`.

    Raises:
        InputError: the file is damaged, or holds what is no dense array.
    """
    try:
        reader = _Reader(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}.", where=str(path)) from error
    if reader.unsigned(8) != _FILE or reader.unsigned(8) != 0:
        raise reader.damaged("it does not begin as MXNet's parameter files do")
    arrays = [_array(reader) for _ in range(reader.count("arrays"))]
    names = [reader.text() for _ in range(reader.count("names"))]
    if len(set(names)) != len(arrays) or len(names) != len(arrays):
        raise reader.damaged(f"it has {len(arrays)} arrays and {len(set(names))} names for them")
    return dict(zip(names, arrays, strict=True))


class _Reader:
    """Bytes from the front; every length is checked against what is left."""

    def __init__(self, data: bytes, where: str) -> None:
        self._data = memoryview(data)
        self._at = 0
        self._where = where

    def take(self, length: int) -> memoryview:
        left = len(self._data) - self._at
        if not 0 <= length <= left:
            raise self.damaged(f"{length} bytes are announced at byte {self._at}, and {left} left")
        self._at += length
        return self._data[self._at - length : self._at]

    def unsigned(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def signed(self) -> int:
        return int.from_bytes(self.take(4), "little", signed=True)

    def count(self, what: str) -> int:
        """How many things follow, each of at least four bytes."""
        found = self.unsigned(8)
        left = len(self._data) - self._at
        if found * 4 > left:
            raise self.damaged(f"{found} {what} are announced, in {left} bytes")
        return found

    def text(self) -> str:
        return str(self.take(self.unsigned(8)), "utf-8", "replace")

    def damaged(self, why: str) -> InputError:
        return InputError(
            f"the file is damaged: {why}.",
            where=self._where,
            hint="Save it again with mx.nd.save, save_checkpoint or export.",
        )


def _array(reader: _Reader) -> Array:
    version = reader.unsigned(4)
    if version in (_SIZES, _STORAGE, _SCALARS):
        if version != _SIZES and reader.signed() != _DENSE:
            raise reader.damaged("an array is sparse, and only dense ones can be read")
        axes, width = reader.signed(), 8
    else:
        axes, width = version, 4
    if axes == -1 or (axes == 0 and version != _SCALARS):
        return np.zeros(0, np.float32)  # an array that was never given a value
    if not 0 <= axes <= _MOST_AXES:
        raise reader.damaged(f"an array has {axes} axes")
    letter = "q" if width == 8 else "I"
    shape = struct.unpack(f"<{axes}{letter}", reader.take(axes * width))
    reader.take(8)  # the device that it was on
    kind = reader.signed()
    if kind not in _TYPES:
        raise reader.damaged(f"an array's type is {kind}")
    if any(size < 0 for size in shape):
        raise reader.damaged(f"an array's shape is {list(shape)}")
    dtype = np.dtype(_TYPES[kind])
    elements = int(np.prod(shape, dtype=object))
    data = reader.take(elements * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape)
