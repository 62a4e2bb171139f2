"""Small models of transformers' own classes, with seeded weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers as hf

__all__ = ["MODELS", "seeded_model"]

_TEXT: Mapping[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
_SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_CAUSAL: Mapping[str, Any] = {**_TEXT, **_SPECIAL, "num_key_value_heads": 2}
_PICTURE: Mapping[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}
_SEQ2SEQ: Mapping[str, Any] = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "decoder_start_token_id": 3,
    **_SPECIAL,
}
_SOUND: Mapping[str, Any] = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "conv_dim": (32, 32, 32),
    "conv_stride": (5, 2, 2),
    "conv_kernel": (10, 3, 3),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}


def _deberta() -> Any:
    config = hf.DebertaV2Config(
        **_TEXT,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=8,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        position_biased_input=False,
    )
    return hf.DebertaV2Model(config)


def _whisper() -> Any:
    config = hf.WhisperConfig(
        **_SEQ2SEQ, max_source_positions=20, max_target_positions=40, num_mel_bins=16
    )
    return hf.WhisperForConditionalGeneration(config)


def _gpt2() -> Any:
    config = hf.GPT2Config(
        vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, **_SPECIAL
    )
    return hf.GPT2LMHeadModel(config)


def _t5() -> Any:
    config = hf.T5Config(
        vocab_size=99,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )
    return hf.T5ForConditionalGeneration(config)


def _swin() -> Any:
    config = hf.SwinConfig(
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
        num_labels=5,
    )
    return hf.SwinForImageClassification(config)


def _convnext() -> Any:
    config = hf.ConvNextConfig(
        hidden_sizes=[16, 32], depths=[1, 2], num_stages=2, image_size=32, num_labels=5
    )
    return hf.ConvNextForImageClassification(config)


def _clip() -> Any:
    config = hf.CLIPConfig(
        text_config={**_TEXT, **_SPECIAL}, vision_config=dict(_PICTURE), projection_dim=24
    )
    return hf.CLIPModel(config)


def _distilbert() -> Any:
    config = hf.DistilBertConfig(
        vocab_size=99, dim=32, hidden_dim=64, n_layers=2, n_heads=4, max_position_embeddings=64
    )
    return hf.DistilBertForSequenceClassification(config)


MODELS: Mapping[str, Callable[[], Any]] = {
    "BertModel": lambda: hf.BertModel(hf.BertConfig(**_TEXT)),
    "DistilBertForSequenceClassification": _distilbert,
    "RobertaForTokenClassification": lambda: hf.RobertaForTokenClassification(
        hf.RobertaConfig(**_TEXT)
    ),
    "DebertaV2Model": _deberta,
    "GPT2LMHeadModel": _gpt2,
    "LlamaForCausalLM": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**_CAUSAL)),
    "Qwen2ForCausalLM": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**_CAUSAL)),
    "Qwen3ForCausalLM": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**_CAUSAL, head_dim=8)),
    "Qwen3Model": lambda: hf.Qwen3Model(hf.Qwen3Config(**_CAUSAL, head_dim=8)),
    "MistralForCausalLM": lambda: hf.MistralForCausalLM(
        hf.MistralConfig(**_CAUSAL, sliding_window=5)
    ),
    "MixtralForCausalLM": lambda: hf.MixtralForCausalLM(
        hf.MixtralConfig(**_CAUSAL, num_local_experts=4)
    ),
    "GemmaForCausalLM": lambda: hf.GemmaForCausalLM(hf.GemmaConfig(**_CAUSAL, head_dim=8)),
    "Gemma3ForCausalLM": lambda: hf.Gemma3ForCausalLM(
        hf.Gemma3TextConfig(**_CAUSAL, head_dim=8, sliding_window=5)
    ),
    "T5ForConditionalGeneration": _t5,
    "BartForConditionalGeneration": lambda: hf.BartForConditionalGeneration(
        hf.BartConfig(**_SEQ2SEQ, max_position_embeddings=64)
    ),
    "WhisperForConditionalGeneration": _whisper,
    "ViTForImageClassification": lambda: hf.ViTForImageClassification(
        hf.ViTConfig(**_PICTURE, num_labels=5)
    ),
    "SwinForImageClassification": _swin,
    "ConvNextForImageClassification": _convnext,
    "CLIPModel": _clip,
    "Wav2Vec2ForCTC": lambda: hf.Wav2Vec2ForCTC(hf.Wav2Vec2Config(**_SOUND)),
    "Wav2Vec2ForCTC, padded": lambda: hf.Wav2Vec2ForCTC(
        hf.Wav2Vec2Config(**_SOUND, feat_extract_norm="layer", do_stable_layer_norm=True)
    ),
    "MambaForCausalLM": lambda: hf.MambaForCausalLM(
        hf.MambaConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2)
    ),
}


def seeded_model(name: str) -> Any:
    """A model in eval mode that answers the same in every process."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = MODELS[name]().eval()
        # By default weights are so small that an attention to the wrong tokens would hardly show.
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
    return model
