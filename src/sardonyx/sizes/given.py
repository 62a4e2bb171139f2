"""Sizes that a caller gives to dimensions by their names."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sardonyx.errors import InputError

__all__ = ["check_given"]


def check_given(dims: Mapping[str, int], known: Collection[str], *, least: int = 0) -> None:
    """Whether these are dimensions, and sizes.

    Raises:
        InputError: one is not known, or less than the least that it can be.
    """
    for name, size in dims.items():
        if name not in known:
            raise InputError(
                f"no input has the dimension {name[:120]!r}.",
                value=name,
                hint=f"The dimensions are: {', '.join(sorted(known))}."
                if known
                else "All are fixed.",
            )
        if size < least:
            raise InputError(f"the dimension {name!r} cannot be {size}.", value=size, limit=least)
