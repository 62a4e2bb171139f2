"""Families of transformers' models: what differs from the sizes that their authors gave them.

Two layers where there would be twelve or more, and a thousand words, so that all of them are built, exported and timed in half an hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import transformers

__all__ = ["FAMILIES", "Family", "Input"]


@dataclass(frozen=True)
class Input:
    """Its shape; whole numbers below `below` where that is given."""

    shape: tuple[int, ...]
    below: int = 0


@dataclass(frozen=True)
class Family:
    """The names of transformers' classes, the model's inputs, and what its configuration is given.

    Attributes:
        behind_resnet: its configuration has another one inside, of the network that sees the picture.
    """

    model: str
    config: str
    inputs: Mapping[str, Input]
    given: Mapping[str, Any]
    behind_resnet: bool = False

    def sizes(self) -> dict[str, Any]:
        if not self.behind_resnet:
            return dict(self.given)
        seen = transformers.ResNetConfig(out_features=["stage4"])
        own = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
        return {**self.given, **own, "backbone_config": seen}


def _family(
    stem: str, inputs: Mapping[str, Input], given: Mapping[str, Any], model: str = "", *, behind_resnet: bool = False
) -> Family:  # fmt: skip
    return Family(model or f"{stem}Model", f"{stem}Config", inputs, given, behind_resnet)


_TEXT = {"input_ids": Input((1, 128), 900), "attention_mask": Input((1, 128))}
_PAIR = {
    "input_ids": Input((1, 64), 900),
    "attention_mask": Input((1, 64)),
    "decoder_input_ids": Input((1, 32), 900),
}
_PICTURE = {"pixel_values": Input((1, 3, 224, 224))}
_LAYERS: dict[str, Any] = {"num_hidden_layers": 2}
_VOCABULARY: dict[str, Any] = {"vocab_size": 1000}
_WORDS = _VOCABULARY | _LAYERS
_DECODER = _WORDS | {
    "hidden_size": 512,
    "intermediate_size": 1376,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
}
_SEQ2SEQ = _VOCABULARY | {"encoder_layers": 2, "decoder_layers": 2, "use_cache": False}

# fmt: off
FAMILIES: Mapping[str, Family] = {
    "distilbert": _family("DistilBert", _TEXT, _VOCABULARY | {"n_layers": 2}),
    "roberta": _family("Roberta", _TEXT, _WORDS),
    "albert": _family("Albert", _TEXT, _WORDS | {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}),
    "electra": _family("Electra", _TEXT, _WORDS),
    "deberta": _family("Deberta", _TEXT, _WORDS | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "deberta_v2": _family("DebertaV2", _TEXT, _WORDS | {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}),
    "mpnet": _family("MPNet", _TEXT, _WORDS),
    "xlnet": _family("XLNet", {"input_ids": Input((1, 128), 900)}, _VOCABULARY | {"d_model": 768, "n_layer": 2, "n_head": 12, "d_inner": 3072}),
    "modernbert": _family("ModernBert", _TEXT, _VOCABULARY | {"num_hidden_layers": 4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}),
    "funnel": _family("Funnel", _TEXT, _VOCABULARY | {"block_sizes": [1, 1, 1]}, model="FunnelBaseModel"),
    "squeezebert": _family("SqueezeBert", _TEXT, _WORDS),
    "mobilebert": _family("MobileBert", _TEXT, _WORDS),
    "convbert": _family("ConvBert", _TEXT, _WORDS),
    "fnet": _family("FNet", {"input_ids": Input((1, 128), 900)}, _WORDS),
    "bigbird": _family("BigBird", _TEXT, _WORDS | {"attention_type": "original_full"}),
    "rembert": _family("RemBert", _TEXT, _WORDS | {"hidden_size": 576, "num_attention_heads": 18, "intermediate_size": 2304}),
    "esm": _family("Esm", _TEXT, _WORDS | {"pad_token_id": 1, "position_embedding_type": "rotary"}),
    "nystromformer": _family("Nystromformer", _TEXT, _WORDS),
    "yoso": _family("Yoso", _TEXT, _WORDS | {"use_expectation": True}),
    "ibert": _family("IBert", _TEXT, _WORDS | {"quant_mode": False}),
    "canine": _family("Canine", _TEXT, _LAYERS),
    "llama": _family("Llama", _TEXT, _DECODER),
    "mistral": _family("Mistral", _TEXT, _DECODER),
    "qwen2": _family("Qwen2", _TEXT, _DECODER),
    "qwen3": _family("Qwen3", _TEXT, _DECODER | {"head_dim": 64}),
    "gemma": _family("Gemma", _TEXT, _DECODER | {"head_dim": 64}),
    "gemma2": _family("Gemma2", _TEXT, _DECODER | {"head_dim": 64}),
    "gemma3": _family("Gemma3Text", _TEXT, _DECODER | {"head_dim": 64}),
    "phi": _family("Phi", _TEXT, _WORDS | {"hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8}),
    "phi3": _family("Phi3", _TEXT, _DECODER | {"pad_token_id": 0}),
    "gpt_neox": _family("GPTNeoX", _TEXT, _WORDS | {"hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8}),
    "gpt_neo": _family("GPTNeo", _TEXT, _VOCABULARY | {"hidden_size": 512, "num_layers": 2, "num_heads": 8, "attention_types": [[["global", "local"], 1]]}),
    "gptj": _family("GPTJ", _TEXT, _VOCABULARY | {"n_embd": 512, "n_layer": 2, "n_head": 8, "rotary_dim": 32}),
    "codegen": _family("CodeGen", _TEXT, _VOCABULARY | {"n_embd": 512, "n_layer": 2, "n_head": 8, "rotary_dim": 32}),
    "opt": _family("OPT", _TEXT, _WORDS | {"hidden_size": 512, "ffn_dim": 2048, "num_attention_heads": 8, "word_embed_proj_dim": 512}),
    "bloom": _family("Bloom", _TEXT, _VOCABULARY | {"n_layer": 2, "n_head": 8, "hidden_size": 512}),
    "falcon": _family("Falcon", _TEXT, _WORDS | {"hidden_size": 512, "num_attention_heads": 8}),
    "mpt": _family("Mpt", _TEXT, _VOCABULARY | {"d_model": 512, "n_heads": 8, "n_layers": 2}),
    "olmo2": _family("Olmo2", _TEXT, _DECODER),
    "cohere": _family("Cohere", _TEXT, _DECODER),
    "granite": _family("Granite", _TEXT, _DECODER),
    "stablelm": _family("StableLm", _TEXT, _DECODER),
    "mamba": _family("Mamba", {"input_ids": Input((1, 32), 900)}, _WORDS | {"hidden_size": 256, "use_cache": False}),
    "mamba2": _family("Mamba2", {"input_ids": Input((1, 64), 900)}, _WORDS | {"hidden_size": 256, "num_heads": 8, "head_dim": 64, "expand": 2, "n_groups": 1, "use_cache": False}),
    "rwkv": _family("Rwkv", {"input_ids": Input((1, 32), 900)}, _WORDS | {"hidden_size": 256, "use_cache": False}),
    "t5": _family("T5", _PAIR, _VOCABULARY | {"num_layers": 2, "num_decoder_layers": 2, "use_cache": False}),
    "umt5": _family("UMT5", _PAIR, _VOCABULARY | {"num_layers": 2, "num_decoder_layers": 2, "use_cache": False}),
    "bart": _family("Bart", _PAIR, _SEQ2SEQ),
    "mbart": _family("MBart", _PAIR, _SEQ2SEQ),
    "marian": _family("Marian", _PAIR, _SEQ2SEQ | {"d_model": 512, "pad_token_id": 0, "decoder_start_token_id": 0}),
    "pegasus": _family("Pegasus", _PAIR, _SEQ2SEQ),
    "m2m100": _family("M2M100", _PAIR, _SEQ2SEQ),
    "vit": _family("ViT", _PICTURE, _LAYERS),
    "deit": _family("DeiT", _PICTURE, _LAYERS),
    "beit": _family("Beit", _PICTURE, _LAYERS | {"use_relative_position_bias": True}),
    "dinov2": _family("Dinov2", _PICTURE, _LAYERS),
    "dinov2_reg": _family("Dinov2WithRegisters", _PICTURE, _LAYERS),
    "swin": _family("Swin", _PICTURE, {"depths": [1, 2, 2, 1]}),
    "swinv2": _family("Swinv2", _PICTURE, {"depths": [1, 2, 2, 1], "window_size": 7}),
    "swin2sr": _family("Swin2SR", {"pixel_values": Input((1, 3, 64, 64))}, {"depths": [2, 2], "num_heads": [6, 6]}),
    "convnext": _family("ConvNext", _PICTURE, {}),
    "convnextv2": _family("ConvNextV2", _PICTURE, {}),
    "segformer": _family("Segformer", _PICTURE, {}, model="SegformerForSemanticSegmentation"),
    "mobilevit": _family("MobileViT", {"pixel_values": Input((1, 3, 256, 256))}, {}),
    "mobilevitv2": _family("MobileViTV2", {"pixel_values": Input((1, 3, 256, 256))}, {}),
    "mobilenet_v1": _family("MobileNetV1", _PICTURE, {}),
    "efficientnet": _family("EfficientNet", _PICTURE, {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280}),
    "poolformer": _family("PoolFormer", _PICTURE, {}),
    "regnet": _family("RegNet", _PICTURE, {"hidden_sizes": [64, 128, 288, 672], "depths": [1, 2, 4, 2], "groups_width": 16, "layer_type": "y"}),
    "resnet": _family("ResNet", _PICTURE, {}),
    "bit": _family("Bit", _PICTURE, {}),
    "levit": _family("Levit", _PICTURE, {}),
    "cvt": _family("Cvt", _PICTURE, {"depth": [1, 2, 4]}),
    "pvt": _family("Pvt", _PICTURE, {}),
    "pvt_v2": _family("PvtV2", _PICTURE, {}),
    "focalnet": _family("FocalNet", _PICTURE, {}),
    "hiera": _family("Hiera", _PICTURE, {}),
    "swiftformer": _family("SwiftFormer", _PICTURE, {}),
    "dpt": _family("DPT", {"pixel_values": Input((1, 3, 384, 384))}, {"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3]}, model="DPTForDepthEstimation"),
    "depth_anything": _family("DepthAnything", _PICTURE, {}, model="DepthAnythingForDepthEstimation"),
    "glpn": _family("GLPN", _PICTURE, {}, model="GLPNForDepthEstimation"),
    "upernet": _family("UperNet", _PICTURE, {}, model="UperNetForSemanticSegmentation"),
    "yolos": _family("Yolos", _PICTURE, _LAYERS | {"image_size": [224, 224], "num_detection_tokens": 20}, model="YolosForObjectDetection"),
    "detr": _family("Detr", {"pixel_values": Input((1, 3, 256, 256)), "pixel_mask": Input((1, 256, 256))}, {"encoder_layers": 2, "decoder_layers": 2}, behind_resnet=True),
    "vit_msn": _family("ViTMSN", _PICTURE, _LAYERS),
    "vitdet": _family("VitDet", _PICTURE, _LAYERS | {"use_relative_position_embeddings": True, "window_size": 7, "window_block_indices": [0]}),
    "sam_vision": _family("SamVision", {"pixel_values": Input((1, 3, 512, 512))}, _LAYERS | {"image_size": 512, "hidden_size": 384, "num_attention_heads": 6, "global_attn_indexes": [1], "use_rel_pos": True}),
    "siglip_vision": _family("SiglipVision", _PICTURE, _LAYERS),
    "clip_vision": _family("CLIPVision", _PICTURE, _LAYERS),
    "clip_text": _family("CLIPText", {"input_ids": Input((1, 77), 900)}, _WORDS | {"eos_token_id": 999}),
    "xclip": _family("XCLIPVision", {"pixel_values": Input((8, 3, 224, 224))}, _LAYERS | {"num_frames": 8, "mit_num_hidden_layers": 1}),
    "wav2vec2": _family("Wav2Vec2", {"input_values": Input((1, 16000))}, _LAYERS),
    "hubert": _family("Hubert", {"input_values": Input((1, 16000))}, _LAYERS),
    "wavlm": _family("WavLM", {"input_values": Input((1, 16000))}, _LAYERS),
    "sew": _family("SEW", {"input_values": Input((1, 16000))}, _LAYERS),
    "data2vec_audio": _family("Data2VecAudio", {"input_values": Input((1, 16000))}, _LAYERS),
    "w2v2_conformer": _family("Wav2Vec2Conformer", {"input_values": Input((1, 16000))}, _LAYERS),
    "w2v2_bert": _family("Wav2Vec2Bert", {"input_features": Input((1, 100, 160))}, _LAYERS),
    "ast": _family("AST", {"input_values": Input((1, 1024, 128))}, _LAYERS),
    "moonshine": _family("Moonshine", {"input_values": Input((1, 16000)), "decoder_input_ids": Input((1, 8), 900)}, _VOCABULARY | {"encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2, "use_cache": False}),
    "s2t": _family("Speech2Text", {"input_features": Input((1, 200, 80)), "decoder_input_ids": Input((1, 16), 900)}, _SEQ2SEQ),
    "dac": _family("Dac", {"input_values": Input((1, 1, 8192))}, {}),
    "univnet": _family("UnivNet", {"input_features": Input((1, 40, 100)), "noise_sequence": Input((1, 40, 64))}, {}),
    "hifigan": _family("SpeechT5HifiGan", {"spectrogram": Input((1, 50, 80))}, {}, model="SpeechT5HifiGan"),
    "clap_audio": _family("ClapAudio", {"input_features": Input((1, 1, 1001, 64))}, {"depths": [1, 1, 2, 1]}),
    "timesformer": _family("Timesformer", {"pixel_values": Input((1, 4, 3, 224, 224))}, _LAYERS | {"num_frames": 4}),
    "videomae": _family("VideoMAE", {"pixel_values": Input((1, 4, 3, 224, 224))}, _LAYERS | {"num_frames": 4}),
    "vivit": _family("Vivit", {"pixel_values": Input((1, 8, 3, 224, 224))}, _LAYERS | {"num_frames": 8}),
    "patchtst": _family("PatchTST", {"past_values": Input((1, 512, 7))}, {"num_input_channels": 7, "context_length": 512, "patch_length": 16, "patch_stride": 8}),
    "patchtsmixer": _family("PatchTSMixer", {"past_values": Input((1, 512, 7))}, {"num_input_channels": 7, "context_length": 512, "patch_length": 16, "patch_stride": 8}),
    "perceiver": _family("Perceiver", {"inputs": Input((1, 256, 768))}, {"num_self_attends_per_block": 2, "d_model": 768}),
    "layoutlm": _family("LayoutLM", _TEXT, _WORDS),
    "layoutlmv3": _family("LayoutLMv3", {"input_ids": Input((1, 64), 900), "bbox": Input((1, 64, 4), 900), "pixel_values": Input((1, 3, 224, 224))}, _WORDS),
    "table_transformer": _family("TableTransformer", {"pixel_values": Input((1, 3, 256, 256)), "pixel_mask": Input((1, 256, 256))}, {"encoder_layers": 2, "decoder_layers": 2}, behind_resnet=True),
    "textnet": _family("TextNet", _PICTURE, {}),
    "ijepa": _family("IJepa", _PICTURE, _LAYERS),
    "lfm2": _family("Lfm2", _TEXT, _DECODER),
}
# fmt: on
