"""Names of values in a graph that is being written: no two are the same."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["FreeNames"]


class FreeNames:
    """Remembers the names that are taken."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def reserve(self, name: str) -> str:
        """The name, with a number behind it where it is taken."""
        free = name
        while free in self._taken or not free:
            self._counts[name] = self._counts.get(name, 0) + 1
            free = f"{name}_{self._counts[name]}"
        self._taken.add(free)
        return free

    def release(self, free: str, name: str) -> None:
        """Give back what was reserved for a name; numbers behind it begin anew."""
        self._taken.discard(free)
        self._counts.pop(name, None)
