"""The user's own examples, and how they change what is known of a model's inputs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, EncoderDecoderCache

from sardonyx.conversion.huggingface.examples import TOTAL, Array, Input, given
from sardonyx.conversion.huggingface.past import CROSS, SELF, past_names, tensors_of
from sardonyx.conversion.request import Example
from sardonyx.conversion.torch.arrays import to_array
from sardonyx.errors import InputError

__all__ = ["Given", "fit_inputs", "read_example", "sizes_of"]


@dataclass(frozen=True)
class Given:
    """One call of the user's: tensors by name, and what is no tensor."""

    feeds: Mapping[str, Array]
    constants: Mapping[str, Any]


def read_example(model: PreTrainedModel, example: Example) -> Given:
    """The arguments by the names of the model's forward; what a tokenizer returned is keyword arguments.

    Raises:
        InputError: they do not fit the model, or have no tensor.
    """
    args, kwargs = list(example.args), dict(example.kwargs)
    if len(args) == 1 and isinstance(args[0], Mapping):
        kwargs = {**args.pop(), **kwargs}
    try:
        bound = inspect.signature(model.forward).bind_partial(*args, **kwargs)
    except TypeError as error:
        raise InputError(
            f"the example does not fit {type(model).__name__}.forward: {error}.", value=example
        ) from None
    extra = next(
        (p.name for p in bound.signature.parameters.values() if p.kind is p.VAR_KEYWORD), None
    )
    arguments = dict(bound.arguments)
    arguments.update(arguments.pop(extra, {}) if extra else {})
    feeds: dict[str, Array] = {}
    constants: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, Cache):
            feeds.update(_read_cache(value))
        elif isinstance(value, torch.Tensor):
            feeds[name] = to_array(value)
        elif isinstance(value, np.ndarray):
            feeds[name] = value
        elif value is not None:
            constants[name] = value
    if not feeds:
        raise InputError(
            "the example has no tensor in it.",
            value=example,
            hint='A tokenizer gives them with return_tensors="pt".',
        )
    return Given(feeds, constants)


def _read_cache(cache: Cache) -> dict[str, Array]:
    sides = [("", cache)]
    if isinstance(cache, EncoderDecoderCache):
        sides = [(SELF, cache.self_attention_cache), (CROSS, cache.cross_attention_cache)]
    return {
        name: to_array(tensor)
        for side, part in sides
        for name, tensor in zip(past_names(len(part), side), tensors_of(part), strict=True)
    }


def fit_inputs(
    inputs: Sequence[Input], examples: Sequence[Mapping[str, Array]]
) -> tuple[Input, ...]:
    """The inputs that the examples have, with their fixed sizes; a cache is there, given or not."""
    first = examples[0]
    kept = []
    for each in inputs:
        if each.name in first:
            kept.append(_fit(each, first[each.name]))
        elif each.name.startswith("past_key_values."):
            kept.append(each)
    known = {each.name for each in kept}
    sizes = sizes_of(kept, first)
    for name, value in first.items():
        if name not in known:
            shapes = [np.shape(feeds[name]) for feeds in examples if name in feeds]
            kept.append(Input(name, _open(name, shapes, sizes), given(value)))
    return tuple(kept)


def _fit(each: Input, value: Array) -> Input:
    if value.ndim != len(each.shape):
        raise InputError(
            f"{each.name!r} has {value.ndim} axes, and the model takes {len(each.shape)}.",
            where=each.name,
            value=value.shape,
        )
    pairs = zip(each.shape, value.shape, strict=True)
    shape = tuple(axis if isinstance(axis, str) else size for axis, size in pairs)
    return Input(each.name, shape, each.draw)


def _open(
    name: str, shapes: Sequence[tuple[int, ...]], sizes: Mapping[str, int]
) -> tuple[int | str, ...]:
    """The axes of an input that only the user knows: as long as one that is known, or differing between examples."""
    if len({len(shape) for shape in shapes}) > 1:
        raise InputError(f"the examples have {name!r} with different numbers of axes.", where=name)
    alike = {size: symbol for symbol, size in reversed([*sizes.items()]) if size > 1}
    found: list[int | str] = []
    for axis, lengths in enumerate(zip(*shapes, strict=True)):
        if axis == 0 and sizes.get("batch", lengths[0]) == lengths[0]:
            found.append("batch")
        elif lengths[0] in alike:
            found.append(alike[lengths[0]])
        else:
            found.append(f"{name}_{axis}" if len(set(lengths)) > 1 else lengths[0])
    return tuple(found)


def sizes_of(inputs: Sequence[Input], feeds: Mapping[str, Array]) -> dict[str, int]:
    """The sizes of the open axes in an example; a cache that is not given is empty."""
    found: dict[str, int] = {}
    for each in inputs:
        if each.name in feeds:
            axes = zip(each.shape, np.shape(feeds[each.name]), strict=True)
            for axis, size in axes:
                if isinstance(axis, str) and found.setdefault(axis, size) != size:
                    raise InputError(
                        f"{each.name!r} has {size} where another input has {found[axis]}: both are {axis}.",
                        where=each.name,
                        value=size,
                    )
    total = found.pop(TOTAL, None)
    if any("past_sequence" in each.shape for each in inputs):
        new = found.get("sequence", 0)
        found.setdefault("past_sequence", (total or new) - new)
    return found
