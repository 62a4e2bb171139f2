"""Text: encoders, decoders with their cache, and encoders with decoders."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import EncoderDecoderCache

from sardonyx.conversion.huggingface.examples import (
    TOTAL,
    Input,
    draw_feeds,
    mask,
    normal,
    positions,
    token_types,
    tokens,
)
from sardonyx.conversion.huggingface.part import (
    Part,
    Sizes,
    float_type,
    ids,
    only_taken,
    padding_of,
    unknown_part,
)
from sardonyx.conversion.huggingface.past import CROSS, SELF, past_names, tensors_of, used_cache
from sardonyx.conversion.huggingface.tasks import parameters_of, text_config
from sardonyx.conversion.huggingface.wrappers import (
    call_decoder,
    call_model,
    call_seq2seq_decoder,
    call_seq2seq_encoder,
)
from sardonyx.conversion.torch.arrays import to_array, to_tensor
from sardonyx.conversion.torch.reference import inference

__all__ = [
    "TEXT_SIZES",
    "decoder",
    "seq2seq",
    "seq2seq_decoder",
    "seq2seq_encoder",
    "text",
]

TEXT_SIZES: tuple[Sizes, tuple[Sizes, ...]] = (
    {"batch": 3, "sequence": 7},
    ({"batch": 2, "sequence": 12}, {"batch": 1, "sequence": 1}),
)
_SEQ2SEQ_SIZES: tuple[Sizes, tuple[Sizes, ...]] = (
    {"batch": 3, "sequence": 5, "encoder_sequence": 7},
    (
        {"batch": 2, "sequence": 9, "encoder_sequence": 20},
        {"batch": 1, "sequence": 1, "encoder_sequence": 1},
    ),
)
_AGAIN = "one model for the first call (past_sequence 0) and for every further one: feed"


def text(model: PreTrainedModel) -> Part:
    """Every call has all tokens."""
    config, takes = text_config(model), parameters_of(model)
    inputs = [*ids("input_ids", config)]
    if "token_type_ids" in takes and (getattr(config, "type_vocab_size", 0) or 0) > 1:
        kinds = token_types(config.type_vocab_size)
        inputs.append(Input("token_type_ids", ("batch", "sequence"), kinds))
    return Part("model", only_taken(inputs, takes), call_model({}), *TEXT_SIZES)


def decoder(model: PreTrainedModel) -> Part:
    """New tokens after a past of any length, padded on the left as for generation."""
    config, takes = text_config(model), parameters_of(model)
    drawn = tokens(config.vocab_size, padding_of(config), left=True)
    inputs = [
        Input("input_ids", ("batch", "sequence"), drawn),
        Input("attention_mask", ("batch", TOTAL), mask(left=True)),
        Input("position_ids", ("batch", "sequence"), positions),
    ]
    with inference(model):
        seen = used_cache(model(input_ids=torch.ones(1, 2, dtype=torch.long), use_cache=True))
    past = _past(tensors_of(seen), "", "past_sequence")
    sizes = {"batch": 3, "sequence": 5, "past_sequence": 7}
    others = (
        {"batch": 2, "sequence": 6, "past_sequence": 0},
        {"batch": 1, "sequence": 1, "past_sequence": 9},
        {"batch": 2, "sequence": 1, "past_sequence": 1},
        {"batch": 1, "sequence": 1, "past_sequence": 0},
    )
    note = (
        f"{_AGAIN} present.N back as past_key_values.N; attention_mask covers past and new tokens"
    )
    return Part(
        "decoder", (*only_taken(inputs, takes), *past), call_decoder({}), sizes, others, (note,)
    )


def seq2seq(model: PreTrainedModel) -> Part:
    """Encoder and decoder in one, without a cache."""
    drawn = tokens(text_config(model).vocab_size)
    inputs = _encoder_inputs(model)
    if not inputs:
        return unknown_part(model)
    note = 'for generation with a cache convert the parts: options={"part": "encoder"} and {"part": "decoder"}'
    all_inputs = (*inputs, Input("decoder_input_ids", ("batch", "sequence"), drawn))
    return Part("model", all_inputs, call_model({}), *_SEQ2SEQ_SIZES, (note,))


def seq2seq_encoder(model: PreTrainedModel) -> Part:
    note = (
        "present.N.encoder are what the decoder needs of the encoder: feed them as past_key_values.N.encoder "
        "in every call of the part decoder"
    )
    inputs = _encoder_inputs(model)
    return Part("encoder", inputs, call_seq2seq_encoder, *_SEQ2SEQ_SIZES, (note,))


def seq2seq_decoder(model: PreTrainedModel) -> Part:
    first = draw_feeds(_encoder_inputs(model), _SEQ2SEQ_SIZES[0], 0)
    with inference(model):
        tensors = {name: to_tensor(array) for name, array in first.items()}
        start = torch.zeros(3, 1, dtype=torch.long)
        seen = used_cache(model(**tensors, decoder_input_ids=start, use_cache=True))
    assert isinstance(seen, EncoderDecoderCache)
    inputs = [
        Input("decoder_input_ids", ("batch", "sequence"), tokens(text_config(model).vocab_size))
    ]
    cross = tensors_of(seen.cross_attention_cache)
    length: int | str = cross[0].shape[2]
    if "attention_mask" in first:
        length = "encoder_sequence"
        inputs.append(Input("encoder_attention_mask", ("batch", length), mask()))
    past = _past(tensors_of(seen.self_attention_cache), SELF, "past_sequence")
    sizes = {"batch": 3, "sequence": 5, "past_sequence": 7, "encoder_sequence": 11}
    others = (
        {"batch": 2, "sequence": 6, "past_sequence": 0, "encoder_sequence": 4},
        {"batch": 1, "sequence": 1, "past_sequence": 9, "encoder_sequence": 20},
        {"batch": 2, "sequence": 1, "past_sequence": 1, "encoder_sequence": 1},
        {"batch": 2, "sequence": 1, "past_sequence": 0, "encoder_sequence": 5},
    )
    note = (
        f"{_AGAIN} present.N.decoder back as past_key_values.N.decoder; past_key_values.N.encoder come from "
        "the part encoder"
    )
    all_inputs = (*inputs, *past, *_past(cross, CROSS, length))
    return Part("decoder", all_inputs, call_seq2seq_decoder, sizes, others, (note,))


def _encoder_inputs(model: PreTrainedModel) -> tuple[Input, ...]:
    config, takes = model.config, parameters_of(model)
    if "input_features" in takes and hasattr(config, "max_source_positions"):
        frames = (
            2 * config.max_source_positions
        )  # two frames a position, by the strided convolution
        draw = normal(float_type(model))
        return (Input("input_features", ("batch", config.num_mel_bins, frames), draw),)
    return ids("input_ids", text_config(model), "encoder_sequence") if "input_ids" in takes else ()


def _past(tensors: list[torch.Tensor], side: str, length: int | str) -> list[Input]:
    """Inputs for keys and values like these."""
    names = past_names(len(tensors) // 2, side)
    return [
        Input(name, ("batch", t.shape[1], length, t.shape[3]), normal(to_array(t[:0]).dtype))
        for name, t in zip(names, tensors, strict=True)
    ]
