"""What a cache holds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["KindUsage", "Usage"]


@dataclass(frozen=True)
class KindUsage:
    """The entries of one kind: how many, their bytes, and seconds since the use of the least recent."""

    kind: str
    count: int
    bytes: int
    oldest: float


@dataclass(frozen=True)
class Usage:
    """Entries by kind, only those kinds that have any, and how many bytes there may be."""

    root: Path
    kinds: tuple[KindUsage, ...]
    limit: int

    @property
    def count(self) -> int:
        return sum(kind.count for kind in self.kinds)

    @property
    def bytes(self) -> int:
        return sum(kind.bytes for kind in self.kinds)
