"""Pictures and sound, and pictures beside text."""

from __future__ import annotations

import math
from typing import Any

from transformers import PreTrainedModel

from sardonyx.conversion.huggingface.examples import Input, mask, normal
from sardonyx.conversion.huggingface.part import Part, float_type, ids, only_taken, unknown_part
from sardonyx.conversion.huggingface.tasks import parameters_of
from sardonyx.conversion.huggingface.text import TEXT_SIZES
from sardonyx.conversion.huggingface.wrappers import call_features, call_model

__all__ = ["dual", "dual_image", "dual_text", "speech", "vision"]


def vision(model: PreTrainedModel) -> Part:
    pixels = _pixels(model, model.config, "batch")
    sizes = ({"batch": 1}, {"batch": 2})
    return Part("model", (pixels,), call_model({}), {"batch": 3}, sizes)


def speech(model: PreTrainedModel) -> Part:
    config = model.config
    if model.main_input_name != "input_values" or not hasattr(config, "conv_stride"):
        return unknown_part(model)
    inputs = [Input("input_values", ("batch", "samples"), normal(float_type(model)))]
    # Models whose features are normed over all of time are made to be called without a mask.
    if getattr(config, "feat_extract_norm", "layer") == "layer":
        inputs.append(Input("attention_mask", ("batch", "samples"), mask()))
    step = math.prod(config.conv_stride)
    least = step * max(config.conv_kernel)
    sizes = {"batch": 3, "samples": least + 9 * step + 7}
    others = (
        {"batch": 1, "samples": least + 4 * step},
        {"batch": 2, "samples": least + 13 * step + 3},
    )
    return Part("model", only_taken(inputs, parameters_of(model)), call_model({}), sizes, others)


def dual(model: PreTrainedModel) -> Part:
    """Texts and pictures, each with a batch of its own."""
    text, image = dual_text(model), dual_image(model)
    inputs = (text.inputs[0], *image.inputs, *text.inputs[1:])
    others = tuple({**a, "image_batch": b} for a, b in zip(text.others, (1, 4), strict=True))
    return Part("model", inputs, call_model({}), {**text.sizes, "image_batch": 2}, others)


def dual_text(model: PreTrainedModel) -> Part:
    inputs = ids("input_ids", model.config.text_config)
    return Part("text", inputs, call_features("get_text_features"), *TEXT_SIZES)


def dual_image(model: PreTrainedModel) -> Part:
    pixels = _pixels(model, model.config.vision_config, "image_batch")
    sizes = ({"image_batch": 1}, {"image_batch": 4})
    call = call_features("get_image_features")
    return Part("image", (pixels,), call, {"image_batch": 3}, sizes)


def _pixels(model: PreTrainedModel, config: Any, batch: str) -> Input:
    size = getattr(config, "image_size", None) or 224
    height, width = size if isinstance(size, list | tuple) else (size, size)
    channels = getattr(config, "num_channels", 3)
    return Input("pixel_values", (batch, channels, height, width), normal(float_type(model)))
