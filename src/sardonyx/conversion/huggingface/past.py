"""Caches of keys and values as named tensors.

    past_key_values.0.key, past_key_values.0.value, …              what a decoder has seen
    past_key_values.0.decoder.key, past_key_values.0.encoder.key   of a decoder that looks at an encoder too

Layers with a sliding window keep all their past here: the window is in the mask, so the answers are the same, and the
same tensors serve for no past, for a short one and for one longer than the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from transformers.cache_utils import (
    Cache,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
)

from sardonyx.errors import ConvertError

__all__ = [
    "CROSS",
    "SELF",
    "build_cache",
    "past_names",
    "present_names",
    "tensors_of",
    "used_cache",
]

SELF, CROSS = ".decoder", ".encoder"


class _PastLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer whose length is read off its tensors, so that a graph holds for no past as for any other."""

    def __init__(self, key: torch.Tensor, value: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lazy_initialization(key, value)
        self.keys, self.values = key, value

    def get_seq_length(self) -> int:
        assert self.keys is not None
        return self.keys.shape[-2]


def past_names(layers: int, side: str = "") -> list[str]:
    return [f"past_key_values.{i}{side}.{what}" for i in range(layers) for what in ("key", "value")]


def present_names(layers: int, side: str = "") -> list[str]:
    return [f"present.{i}{side}.{what}" for i in range(layers) for what in ("key", "value")]


def build_cache(tensors: Mapping[str, torch.Tensor], *, exporting: bool) -> Cache | None:
    """The cache that these named tensors are; None where none of them is of one.

    Args:
        exporting: with layers that take any length for open; otherwise it is as transformers itself makes it.
    """
    own = _pairs(tensors, "") or _pairs(tensors, SELF)
    if not own:
        return None
    cache = _dynamic(own, exporting)
    cross = _pairs(tensors, CROSS)
    if not cross:
        return cache
    both = EncoderDecoderCache(cache, DynamicCache())
    both.cross_attention_cache = _dynamic(cross, exporting)
    both.is_updated = dict.fromkeys(range(len(cross)), True)
    return both


def _pairs(
    tensors: Mapping[str, torch.Tensor], side: str
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    found: list[tuple[torch.Tensor, torch.Tensor]] = []
    while (key := f"past_key_values.{len(found)}{side}.key") in tensors:
        found.append((tensors[key], tensors[f"past_key_values.{len(found)}{side}.value"]))
    return found


def _dynamic(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]], exporting: bool) -> DynamicCache:
    if not exporting:
        return DynamicCache(pairs)
    cache = DynamicCache()
    cache.layers.extend(_PastLayer(key, value) for key, value in pairs)
    return cache


def tensors_of(cache: Any) -> list[torch.Tensor]:
    """Key and value of every layer of one side."""
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]


def used_cache(result: Any) -> Any:
    """The cache in what a model returned.

    Raises:
        ConvertError: it is no cache, or holds more than keys and values.
    """
    cache = getattr(result, "past_key_values", None)
    if not isinstance(cache, Cache):
        raise _no_cache(type(cache).__name__ if cache is not None else "thing of its own")
    sides: Sequence[Any] = (cache,)
    if isinstance(cache, EncoderDecoderCache):
        sides = (cache.self_attention_cache, cache.cross_attention_cache)
    for layer in (layer for side in sides for layer in side.layers):
        if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer) or layer.keys is None:
            raise _no_cache(type(layer).__name__)
    return cache


def _no_cache(what: str) -> ConvertError:
    return ConvertError(
        f"the model's state is a {what}, which is more than keys and values of tokens.",
        hint='Convert it without a cache: options={"part": "model"}.',
    )
