"""Lists with something put in, or taken out."""

from __future__ import annotations

from typing import Any

__all__ = ["erased", "inserted"]


def inserted(sequence: Any, one: Any, place: Any) -> Any:
    """Before a place; at the end where there is none."""
    found = list(sequence)
    found.insert(len(found) if place is None else place, one)
    return found


def erased(sequence: Any, place: int) -> Any:
    found = list(sequence)
    del found[place]
    return found
