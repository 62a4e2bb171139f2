"""Which part of a model is written, as the options ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from transformers import PreTrainedModel

from sardonyx.conversion.huggingface.part import Part, unknown_part
from sardonyx.conversion.huggingface.senses import dual, dual_image, dual_text, speech, vision
from sardonyx.conversion.huggingface.tasks import Kind
from sardonyx.conversion.huggingface.text import (
    decoder,
    seq2seq,
    seq2seq_decoder,
    seq2seq_encoder,
    text,
)
from sardonyx.conversion.huggingface.wrappers import call_decoder, call_model, call_pooled
from sardonyx.errors import InputError

__all__ = ["POOLINGS", "part_of"]

POOLINGS = ("mean", "cls", "last")

# The first part of a kind is what is written where nobody asks for another.
_PARTS: Mapping[Kind, Mapping[str, Callable[[PreTrainedModel], Part]]] = {
    "text": {"model": text},
    "decoder": {"decoder": decoder, "model": text},
    "encoder-decoder": {"model": seq2seq, "encoder": seq2seq_encoder, "decoder": seq2seq_decoder},
    "vision": {"model": vision},
    "speech": {"model": speech},
    "dual": {"model": dual, "text": dual_text, "image": dual_image},
    "other": {"model": unknown_part},
}


def part_of(
    model: PreTrainedModel, kind: Kind, options: Mapping[str, Any], constants: Mapping[str, Any]
) -> Part:
    """The part to write.

    Args:
        options: "part" by its name; for text "pooling", and "normalize" of what is pooled.
        constants: further arguments of the model's forward.

    Raises:
        InputError: there is no such part, or no such pooling.
    """
    makers = _PARTS[kind]
    pooling = options.get("pooling")
    name = options.get("part") or ("model" if pooling else next(iter(makers)))
    if name not in makers:
        raise InputError(
            f"a {type(model).__name__} has no part {name!r:.80}.",
            value=name,
            hint=f"There are: {', '.join(makers)}.",
        )
    if pooling and (pooling not in POOLINGS or name != "model" or kind not in ("text", "decoder")):
        raise InputError(
            f"{pooling!r:.80} is no pooling for a {type(model).__name__}.",
            value=pooling,
            hint=f"The whole of a text model takes: {', '.join(POOLINGS)}.",
        )
    part = makers[name](model)
    if pooling:
        normalize = bool(options.get("normalize"))
        return replace(part, call=call_pooled(constants, pooling, normalize))
    if name == "model":
        return replace(part, call=call_model(constants))
    return replace(part, call=call_decoder(constants)) if kind == "decoder" else part
