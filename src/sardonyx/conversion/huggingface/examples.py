"""Inputs made from what a model's config says: ids within the vocabulary, padding, positions, pictures, sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "TOTAL",
    "Draw",
    "Input",
    "draw_feeds",
    "given",
    "mask",
    "normal",
    "positions",
    "token_types",
    "tokens",
]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
TOTAL = "past_sequence + sequence"


@dataclass(frozen=True)
class Draw:
    """What an input is drawn from.

    Attributes:
        shape: that it is to have.
        sizes: of all open axes by name.
        generator: of the numbers.
    """

    shape: tuple[int, ...]
    sizes: Mapping[str, int]
    generator: np.random.Generator


@dataclass(frozen=True)
class Input:
    """One input of the model.

    Attributes:
        name: as the framework calls it.
        shape: a text is an open axis of that name.
        draw: makes values for it.
    """

    name: str
    shape: tuple[int | str, ...]
    draw: Callable[[Draw], Array]


def draw_feeds(inputs: Sequence[Input], sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Values for all inputs at these sizes."""
    generator = np.random.default_rng(seed)
    known = dict(sizes)
    known[TOTAL] = sizes.get("past_sequence", 0) + sizes.get("sequence", 0)
    return {
        each.name: each.draw(Draw(_shape(each.shape, known), known, generator)) for each in inputs
    }


def _shape(shape: Sequence[int | str], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in shape)


def _padding(batch: int, length: int, *, left: bool) -> Array:
    """1 for a token, 0 for padding: none in the first row, more in every further one, never all."""
    lengths = length - np.arange(batch) % max(length - 1, 1)
    place = np.arange(length)[None, :]
    kept = place >= length - lengths[:, None] if left else place < lengths[:, None]
    return kept.astype(np.int64)


def mask(*, left: bool = False) -> Callable[[Draw], Array]:
    return lambda draw: _padding(draw.shape[0], draw.shape[1], left=left)


def tokens(
    vocabulary: int, padding: int | None = None, *, left: bool = False
) -> Callable[[Draw], Array]:
    """Ids, with the padding's own where the mask of the same call has padding."""

    def draw(what: Draw) -> Array:
        ids = what.generator.integers(0, vocabulary, what.shape)
        if padding is None or not 0 <= padding < vocabulary:
            return ids
        ids[ids == padding] = (padding + 1) % vocabulary
        total = what.sizes["past_sequence"] + what.shape[1] if left else what.shape[1]
        kept = _padding(what.shape[0], total, left=left)[:, total - what.shape[1] :]
        return np.where(kept == 1, ids, padding)

    return draw


def positions(draw: Draw) -> Array:
    """The place of every token among those that are no padding, as transformers' generation counts them."""
    total = draw.sizes[TOTAL]
    kept = _padding(draw.shape[0], total, left=True)
    counted = np.where(kept == 1, np.cumsum(kept, axis=1) - 1, 0)
    return np.ascontiguousarray(counted[:, total - draw.shape[1] :])


def token_types(kinds: int) -> Callable[[Draw], Array]:
    return lambda draw: np.sort(draw.generator.integers(0, kinds, draw.shape), axis=1)


def normal(dtype: Any = np.float32) -> Callable[[Draw], Array]:
    return lambda draw: draw.generator.normal(size=draw.shape).astype(dtype)


def given(values: Array) -> Callable[[Draw], Array]:
    """The caller's own values in other places, repeated where there must be more."""

    def draw(what: Draw) -> Array:
        flat = what.generator.permutation(values.reshape(-1))
        return np.resize(flat, what.shape).astype(values.dtype)

    return draw
