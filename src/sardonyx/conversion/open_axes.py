"""Which axes stay open: those that the user names, or those whose sizes differ between two examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.request import Dynamic
from sardonyx.conversion.variations import other_sizes
from sardonyx.errors import InputError

__all__ = ["find_dynamic", "sizes_of", "with_plain_sizes"]

_MOST_DISTINCT = 64  # a size is moved by less than this to be unlike all others


def find_dynamic(asked: Dynamic, examples: Sequence[Feeds]) -> Dynamic:
    """The open axes by input name.

    Raises:
        InputError: an input or an axis that there is not, or examples of different ranks.
    """
    first = examples[0]
    found: dict[str, dict[int, str]] = {}
    for name, axes in asked.items():
        if name not in first:
            raise InputError(
                f"there is no input {name[:80]!r} to have dynamic axes.",
                value=name,
                hint=f"The inputs are: {', '.join(first)}.",
            )
        rank = len(_shape(first[name]))
        for axis, symbol in axes.items():
            if not -rank <= axis < rank:
                raise InputError(
                    f"axis {axis} of {name!r} is outside its {rank} axes.", value=axis, limit=rank
                )
            found.setdefault(name, {})[axis % rank] = symbol
    for name, axes in _differing(examples).items():
        for axis, symbol in axes.items():
            found.setdefault(name, {}).setdefault(axis, symbol)
    return found


def _differing(examples: Sequence[Feeds]) -> Mapping[str, Mapping[int, str]]:
    """Axes that change together from example to example are one symbol."""
    names: dict[tuple[int, ...], str] = {}
    found: dict[str, dict[int, str]] = {}
    for name in examples[0]:
        shapes = [_shape(feeds[name]) for feeds in examples]
        if len({len(shape) for shape in shapes}) > 1:
            raise InputError(
                f"the examples have {name!r} with different numbers of axes: {', '.join(map(str, shapes))}.",
                where=name,
                hint="Convert the model once for each rank.",
            )
        for axis, sizes in enumerate(zip(*shapes, strict=True)):
            if len(set(sizes)) > 1:
                fresh = "batch" if axis == 0 and "batch" not in names.values() else f"{name}_{axis}"
                found.setdefault(name, {})[axis] = names.setdefault(sizes, fresh)
    return found


def sizes_of(feeds: Feeds, dynamic: Dynamic) -> dict[str, int]:
    """The size that every symbol has in these feeds."""
    return {
        symbol: int(_shape(feeds[name])[axis])
        for name, axes in dynamic.items()
        for axis, symbol in axes.items()
    }


def with_plain_sizes(feeds: Feeds, dynamic: Dynamic) -> tuple[dict[str, Any], dict[str, int]]:
    """Feeds to export on: no open axis has size 0 or 1, or a size that another axis has.

    torch.export takes a size of 1 for broadcasting, and two that are equal for one; what it then writes holds for
    such sizes alone.
    """
    sizes = sizes_of(feeds, dynamic)
    taken = {
        size
        for name, value in feeds.items()
        for axis, size in enumerate(_shape(value))
        if axis not in dynamic.get(name, {})
    }
    plain: dict[str, int] = {}
    for symbol, size in sizes.items():
        steps = range(_MOST_DISTINCT)
        free = (max(size, 2) + s for s in steps if max(size, 2) + s not in taken)
        plain[symbol] = next(free, max(size, 2))
        taken.add(plain[symbol])
    return other_sizes(feeds, dynamic, plain), plain


def _shape(value: Any) -> tuple[int, ...]:
    return np.shape(value)
