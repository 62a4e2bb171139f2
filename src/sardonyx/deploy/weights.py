"""A model's constants as one blob: a head that says whose they are, then every array at a multiple of 64 bytes.

0    "SARDONYX", format, bytes of the whole blob
32   SHA-256 of all that follows the head
64   the first constant …
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np

from sardonyx.plan.graph import Array
from sardonyx.plan.memory import ALIGNMENT

__all__ = ["HEAD_BYTES", "Weights", "join_weights", "lay_out_weights"]

HEAD_BYTES = 64
_FORMAT = 1


@dataclass(frozen=True)
class Weights:
    """Arrays in their places.

    Attributes:
        offsets: where each constant begins; equal arrays lie in one place.
        size: of the whole blob, in bytes.
        head: its first 64 bytes.
    """

    offsets: tuple[int, ...]
    size: int
    head: bytes
    arrays: tuple[tuple[int, Array], ...]  # offset, array; sorted

    def write(self, file: IO[bytes]) -> None:
        file.write(self.head)
        for piece in _pieces(self.arrays, self.size):
            file.write(piece)


def lay_out_weights(constants: Sequence[Array | None]) -> Weights:
    """Give each array its place, and the blob its digest; what is None has no bytes."""
    offsets: list[int] = []
    placed: list[tuple[int, Array]] = []
    seen: dict[bytes, int] = {}
    at = HEAD_BYTES
    for array in constants:
        if array is None:
            offsets.append(0)
            continue
        content = _bytes_of(array)
        key = hashlib.sha256(content).digest()
        if key not in seen:
            seen[key] = at
            placed.append((at, array))
            at += -(-len(content) // ALIGNMENT) * ALIGNMENT
        offsets.append(seen[key])
    digest = hashlib.sha256()
    for piece in _pieces(placed, at):
        digest.update(piece)
    head = struct.pack("<8sQQ8x", b"SARDONYX", _FORMAT, at) + digest.digest()
    return Weights(tuple(offsets), at, head, tuple(placed))


def join_weights(several: Sequence[Weights]) -> list[Weights]:
    """One blob for all: the same bytes and size, each with the offsets of its own constants."""
    constants: list[Array | None] = []
    for weights in several:
        held = dict(weights.arrays)
        constants += [held.get(offset) for offset in weights.offsets]
    whole = lay_out_weights(constants)
    found, at = [], 0
    for weights in several:
        end = at + len(weights.offsets)
        found.append(Weights(whole.offsets[at:end], whole.size, whole.head, whole.arrays))
        at = end
    return found


def _pieces(arrays: Sequence[tuple[int, Array]], size: int) -> Iterator[memoryview | bytes]:
    """The blob behind its head."""
    at = HEAD_BYTES
    for offset, array in arrays:
        content = _bytes_of(array)
        yield bytes(offset - at)
        yield content
        at = offset + len(content)
    yield bytes(size - at)


def _bytes_of(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
