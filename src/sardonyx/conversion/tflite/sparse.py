"""Sparse constants, written out: a level for each axis, and for each axis within blocks.

    level 0, dense: 4 rows         every row that the level before has, 4 times
    level 1, sparse                segments [0 2 2 3 …]: row 0 has 2 places, row 1 has none; indices: which they are

The last level's places are where the stored numbers belong. What the file says is checked against what it holds
before memory is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.conversion.tflite.flatbuffer import Table
from sardonyx.conversion.tflite.schema import Array

__all__ = ["Level", "Sparsity", "read_sparsity", "write_out"]

_INDICES = {1: np.int32, 2: np.uint16, 3: np.uint8}  # by the number of the union's member


@dataclass(frozen=True)
class Level:
    """Places along one axis: `size` of them, or those that are listed."""

    size: int
    segments: Array | None
    indices: Array | None


@dataclass(frozen=True)
class Sparsity:
    """How the numbers of a sparse tensor lie.

    Attributes:
        order: the axis of each level; axes within blocks come after the tensor's own.
        blocked: the tensor's axis of each axis within blocks.
        levels: from the outermost to the innermost.
    """

    order: tuple[int, ...]
    blocked: tuple[int, ...]
    levels: tuple[Level, ...]


def read_sparsity(table: Table) -> Sparsity:
    return Sparsity(
        table.numbers(0, np.int32),
        table.numbers(1, np.int32),
        tuple(_level(each) for each in table.tables(2)),
    )


def _level(table: Table) -> Level:
    if not table.number(0, "b"):
        return Level(int(table.number(1, "i")), None, None)
    return Level(0, _indices(table, 2), _indices(table, 4))


def _indices(table: Table, field: int) -> Array | None:
    kind, held = _INDICES.get(int(table.number(field, "B"))), table.table(field + 1)
    return None if kind is None or held is None else held.vector(0, kind).astype(np.int64)


def write_out(found: Sparsity, stored: Array, shape: Sequence[int]) -> Array | None:
    """The dense tensor; None where the levels do not fit its shape or what is stored."""
    blocks = _blocks(found, shape)
    if blocks is None:
        return None
    most, rank = math.prod(shape), len(shape)
    places = np.zeros(1, np.int64)
    for number, level in zip(found.order, found.levels, strict=True):
        axis, step = (
            (number, blocks[number]) if number < rank else (found.blocked[number - rank], 1)
        )
        taken = _walked(level, places.size, most)
        if taken is None:
            return None
        parents, along = taken
        room = shape[axis] // blocks[axis] if number < rank else blocks[axis]
        if not ((along >= 0) & (along < room)).all():
            return None
        places = places[parents] + along * (step * math.prod(shape[axis + 1 :]))
    if places.size != stored.size:
        return None
    dense = np.zeros(most, stored.dtype)
    dense[places] = stored
    return dense.reshape(shape)


def _blocks(found: Sparsity, shape: Sequence[int]) -> list[int] | None:
    """The size of blocks along each axis of the tensor, 1 where it has none."""
    rank = len(shape)
    count = rank + len(found.blocked)
    if sorted(found.order) != list(range(count)) or len(found.levels) != count:
        return None
    if len(set(found.blocked)) < len(found.blocked):
        return None
    blocks = [1] * rank
    for number, axis in enumerate(found.blocked):
        size = found.levels[found.order.index(rank + number)].size
        if not 0 <= axis < rank or size < 1:
            return None
        blocks[axis] = size
    return blocks


def _walked(level: Level, count: int, most: int) -> tuple[Array, Array] | None:
    """For every place of a level: the place of the level before that it belongs to, and its number along the axis."""
    if level.segments is None or level.indices is None:
        if level.size < 1 or count * level.size > most:
            return None
        parents: Any = np.repeat(np.arange(count), level.size)
        return parents, np.tile(np.arange(level.size), count)
    ends, indices = level.segments, level.indices
    if ends.size != count + 1 or ends[0] != 0 or ends[-1] != indices.size or indices.size > most:
        return None
    lengths = np.diff(ends)
    if (lengths < 0).any():
        return None
    return np.repeat(np.arange(count), lengths), indices
