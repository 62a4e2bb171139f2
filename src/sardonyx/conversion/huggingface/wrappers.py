"""How a model is called with plain named tensors, and which named tensors it answers.

A call is used twice: inside a module that is exported, and by itself with transformers' own caches, for the answers
that the export is held to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils.generic import ModelOutput

from sardonyx.conversion.huggingface.past import (
    CROSS,
    SELF,
    build_cache,
    present_names,
    tensors_of,
)
from sardonyx.conversion.huggingface.tasks import parameters_of
from sardonyx.conversion.torch.structure import answers_of
from sardonyx.errors import InputError

__all__ = [
    "Call",
    "Wrapped",
    "call_decoder",
    "call_features",
    "call_model",
    "call_pooled",
    "call_seq2seq_decoder",
    "call_seq2seq_encoder",
]

Tensors: TypeAlias = Mapping[str, torch.Tensor]
Call: TypeAlias = Callable[[PreTrainedModel, Tensors, bool], dict[str, torch.Tensor]]


class Wrapped(nn.Module):
    """A call as a module from tensors to tensors."""

    def __init__(self, model: PreTrainedModel, call: Call, names: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self._call = call
        self._names = tuple(names)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        named = dict(zip(self._names, tensors, strict=True))
        return tuple(self._call(self.model, named, True).values())


def call_model(constants: Mapping[str, Any]) -> Call:
    """The model's own forward, without a cache."""

    def call(model: PreTrainedModel, tensors: Tensors, exporting: bool) -> dict[str, torch.Tensor]:
        return _named(model(**tensors, **_no_cache(model), **constants))

    return call


def call_decoder(constants: Mapping[str, Any]) -> Call:
    """A decoder that takes its past and gives it back with the new tokens added."""

    def call(model: PreTrainedModel, tensors: Tensors, exporting: bool) -> dict[str, torch.Tensor]:
        cache = build_cache(tensors, exporting=exporting)
        rest = _without_past(tensors)
        result = model(**rest, past_key_values=cache, use_cache=True, **constants)
        present = tensors_of(cache)
        names = present_names(len(present) // 2)
        return {**_named(result), **dict(zip(names, present, strict=True))}

    return call


def call_seq2seq_encoder(
    model: PreTrainedModel, tensors: Tensors, exporting: bool
) -> dict[str, torch.Tensor]:
    """The encoder, and the keys and values that the decoder's layers make of its answer.

    They are taken from one step of the decoder, of which a graph keeps nothing else.
    """
    encoded = _encoder(model)(**tensors, return_dict=True)
    hidden = encoded.last_hidden_state
    start = torch.zeros(hidden.shape[0], 1, dtype=torch.long)
    result = _decode(model, start, hidden, tensors.get("attention_mask"), None)
    cross = tensors_of(result.past_key_values.cross_attention_cache)
    names = present_names(len(cross) // 2, CROSS)
    return {"last_hidden_state": hidden, **dict(zip(names, cross, strict=True))}


def call_seq2seq_decoder(
    model: PreTrainedModel, tensors: Tensors, exporting: bool
) -> dict[str, torch.Tensor]:
    """The decoder with its past, and with what the encoder left for it."""
    cache = build_cache(tensors, exporting=exporting)
    assert isinstance(cache, EncoderDecoderCache)
    key = tensors_of(cache.cross_attention_cache)[0]
    # The layers read the encoder's answer from the cache; of this one they only see how long it is.
    width = getattr(model.config, "d_model", None) or model.config.hidden_size
    hidden = key.new_zeros(key.shape[0], key.shape[2], width)
    seen = tensors.get("encoder_attention_mask")
    result = _decode(model, tensors["decoder_input_ids"], hidden, seen, cache)
    present = tensors_of(cache.self_attention_cache)
    names = present_names(len(present) // 2, SELF)
    answers = {n: t for n, t in _named(result).items() if n != "encoder_last_hidden_state"}
    return {**answers, **dict(zip(names, present, strict=True))}


def call_features(method: str) -> Call:
    """One side of a model of two, as far as the space that both share."""

    def call(model: PreTrainedModel, tensors: Tensors, exporting: bool) -> dict[str, torch.Tensor]:
        result = getattr(model, method)(**tensors)
        features = result if isinstance(result, torch.Tensor) else result.pooler_output
        return {method.removeprefix("get_"): features}

    return call


def call_pooled(constants: Mapping[str, Any], pooling: str, normalize: bool) -> Call:
    """One vector a text: the mean of its tokens, or the first or last of them."""

    def call(model: PreTrainedModel, tensors: Tensors, exporting: bool) -> dict[str, torch.Tensor]:
        hidden = getattr(
            model(**tensors, **_no_cache(model), **constants), "last_hidden_state", None
        )
        if hidden is None:
            raise InputError(
                f"a {type(model).__name__} gives no last_hidden_state to pool.",
                hint="Give the model without its head, as AutoModel loads it.",
            )
        seen = tensors.get("attention_mask")
        vector = _pool(hidden, torch.ones_like(hidden[..., 0]) if seen is None else seen, pooling)
        if normalize:
            vector = torch.nn.functional.normalize(vector, dim=-1)
        return {"sentence_embedding": vector}

    return call


def _pool(hidden: torch.Tensor, seen: torch.Tensor, pooling: str) -> torch.Tensor:
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "last":
        places = torch.arange(hidden.shape[1]) * (seen != 0)
        last = places.argmax(dim=1)
        return hidden.gather(1, last[:, None, None].expand(-1, 1, hidden.shape[2]))[:, 0]
    weights = seen.to(hidden.dtype)[..., None]
    return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)


def _encoder(model: PreTrainedModel) -> nn.Module:
    encoder: nn.Module = model.get_encoder()
    return encoder


def _decode(
    model: PreTrainedModel,
    ids: torch.Tensor,
    hidden: torch.Tensor,
    seen: torch.Tensor | None,
    cache: Cache | None,
) -> Any:
    mask = {} if seen is None else {"attention_mask": seen}
    encoded = BaseModelOutput(hidden)
    return model(
        encoder_outputs=encoded,
        decoder_input_ids=ids,
        past_key_values=cache,
        use_cache=True,
        return_dict=True,
        **mask,
    )


def _no_cache(model: PreTrainedModel) -> dict[str, Any]:
    return {"use_cache": False} if "use_cache" in parameters_of(model) else {}


def _without_past(tensors: Tensors) -> dict[str, torch.Tensor]:
    return {name: t for name, t in tensors.items() if not name.startswith("past_key_values.")}


def _named(result: Any) -> dict[str, torch.Tensor]:
    """Tensors by name; hidden_states and the like are numbered. Caches and the answers of inner models are no outputs."""
    if not isinstance(result, ModelOutput):
        names, tensors = answers_of(result)
        return dict(zip(names, tensors, strict=True))
    found: dict[str, torch.Tensor] = {}
    for name, value in result.items():
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, tuple | list):
            pieces = {f"{name}.{i}": v for i, v in enumerate(value) if isinstance(v, torch.Tensor)}
            found.update(pieces)
    return found
