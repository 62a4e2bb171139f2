"""Which kind of model it is, by its own class and config."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import torch
from transformers import PreTrainedModel

from sardonyx.conversion.torch.reference import inference
from sardonyx.errors import ConvertError, InputError

__all__ = ["Kind", "check_model", "kind_of", "parameters_of", "text_config"]

_STATES = ("past_key_values", "cache_params")  # what models call the state that they hand on
Kind: TypeAlias = Literal["text", "decoder", "encoder-decoder", "vision", "speech", "dual", "other"]


def parameters_of(model: PreTrainedModel) -> Mapping[str, inspect.Parameter]:
    """Of the model's own `forward`."""
    return inspect.signature(model.forward).parameters


def kind_of(model: PreTrainedModel) -> Kind:
    """What the model takes and gives; "other" is one that only its user knows how to call."""
    takes = parameters_of(model)
    if "decoder_input_ids" in takes and getattr(model.config, "is_encoder_decoder", False):
        return "encoder-decoder"
    if "pixel_values" in takes and "input_ids" in takes:
        return "dual" if hasattr(model, "get_text_features") else "other"
    main = model.main_input_name
    if main == "input_ids" and main in takes:
        return "decoder" if _keeps_past(model) else "text"
    if main == "pixel_values":
        return "vision"
    return "speech" if main in ("input_values", "input_features") else "other"


def text_config(model: PreTrainedModel) -> Any:
    return model.config.get_text_config()


def check_model(source: Any) -> PreTrainedModel:
    """The model itself.

    Raises:
        InputError: it is none, or one that lies elsewhere than in this machine's memory.
        ConvertError: its weights are of a form that ONNX has no operators for.
    """
    model = getattr(source, "model", None) if not isinstance(source, torch.nn.Module) else source
    if not isinstance(model, PreTrainedModel):
        raise InputError(
            f"a {type(source).__name__} is no model.",
            value=source,
            hint="Give a transformers model, as AutoModel.from_pretrained(folder), or the folder itself.",
        )
    places = {tensor.device.type for tensor in (*model.parameters(), *model.buffers())}
    if places - {"cpu"}:
        raise InputError(
            f"the model's weights are on {', '.join(sorted(places))}.",
            where=type(model).__name__,
            hint="Move them first: model.cpu().",
        )
    if getattr(model, "hf_quantizer", None) is not None:
        raise ConvertError(
            "the model is loaded with a quantization_config, whose packed weights have no ONNX form.",
            where=type(model).__name__,
            hint="Load it without, convert, and quantize the ONNX model.",
        )
    return model


def _keeps_past(model: PreTrainedModel) -> bool:
    takes = parameters_of(model)
    if not any(name in takes for name in _STATES):
        return False
    with inference(model):
        try:
            result = model(input_ids=torch.ones(1, 2, dtype=torch.long), use_cache=True)
        except Exception:  # it needs more than tokens, which its user will give
            return False
    return any(getattr(result, name, None) is not None for name in _STATES)
