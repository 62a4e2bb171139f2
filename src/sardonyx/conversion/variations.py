"""Further inputs to check a conversion on, made from the user's own example.

Numbers stay where the example's are: floats are mixed and shifted within their spread, integers and texts change
places, so that indices stay inside their tables and categories stay known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sardonyx.conversion.candidate import Feeds, Trial
from sardonyx.conversion.request import Dynamic
from sardonyx.errors import ConvertError

__all__ = ["other_sizes", "other_values", "refused_sizes", "sized_trial", "trials_of"]

Array = np.ndarray[Any, np.dtype[Any]]


def trials_of(examples: tuple[Feeds, ...], dynamic: Dynamic, *, seed: int = 0) -> tuple[Trial, ...]:
    """The examples as they are, other values of the same shapes, and another size for every dynamic axis."""
    given = [Trial(_title(index), feeds) for index, feeds in enumerate(examples)]
    if not examples:
        return ()
    generator = np.random.default_rng(seed)
    first = examples[0]
    made = [Trial("other values", other_values(first, generator))]
    symbols = {symbol for axes in dynamic.values() for symbol in axes.values()}
    if symbols:
        sizes = _sizes(first, dynamic)
        grown = {symbol: size + 1 + index for index, (symbol, size) in enumerate(sizes.items())}
        made.append(sized_trial(first, dynamic, grown, generator))
    return (*given, *made)


def other_values(feeds: Feeds, generator: np.random.Generator) -> dict[str, Any]:
    """Feeds of the same shapes and types with other numbers in them."""
    return {name: _vary(value, generator) for name, value in feeds.items()}


def other_sizes(feeds: Feeds, dynamic: Dynamic, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Feeds whose dynamic axes have these sizes; elements are repeated from the beginning."""
    made = dict(feeds)
    for name, axes in dynamic.items():
        value = made.get(name)
        if not isinstance(value, np.ndarray):
            continue
        for axis, symbol in axes.items():
            if symbol in sizes and value.shape[axis]:
                value = np.take(value, np.arange(sizes[symbol]) % value.shape[axis], axis)
        made[name] = np.ascontiguousarray(value)
    return made


def sized_trial(
    feeds: Feeds, dynamic: Dynamic, sizes: Mapping[str, int], generator: np.random.Generator
) -> Trial:
    """Other values in these sizes, with the sizes as its title."""
    made = other_values(other_sizes(feeds, dynamic, sizes), generator)
    return Trial(", ".join(f"{name} {size}" for name, size in sizes.items()), made)


def refused_sizes(
    what: str, run: Callable[[Feeds], object], feeds: Feeds, dynamic: Dynamic
) -> ConvertError:
    """The error of a model or function that runs in the example's sizes alone, with its own words about others."""
    sizes = _sizes(feeds, dynamic)
    text = ""
    try:
        run(other_sizes(feeds, dynamic, {name: size + 1 for name, size in sizes.items()}))
    except Exception as error:
        text = f" With one more of each it says: {' '.join(str(error).split())[:200]}"
    return ConvertError(
        f"the {what} itself takes no other {', '.join(sizes)} than {', '.join(map(str, sizes.values()))}.{text}",
        hint="Leave these axes out of the dynamic ones, or give a second example with sizes that work.",
    )


def _sizes(feeds: Feeds, dynamic: Dynamic) -> dict[str, int]:
    return {
        symbol: int(np.asarray(feeds[name]).shape[axis])
        for name, axes in dynamic.items()
        if name in feeds
        for axis, symbol in axes.items()
    }


def _vary(value: Any, generator: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    mixed = generator.permutation(value.reshape(-1)).reshape(value.shape)
    if value.dtype.kind == "f":
        spread = np.nanstd(np.where(np.isfinite(value), value, np.nan).astype(np.float64))
        if not np.isfinite(spread) or spread == 0:
            return mixed
        moved = mixed + generator.normal(0, 0.1 * spread, value.shape)
        return np.clip(moved, np.nanmin(value), np.nanmax(value)).astype(value.dtype)
    return mixed


def _title(index: int) -> str:
    return "the example" if index == 0 else f"example {index + 1}"
