"""Fake quantization of quantization-aware training, as the operators that ONNX has.

The modules observe and quantize in one operator that only training knows. In inference the scales stand still, and
what is left is to quantize and dequantize.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from sardonyx.conversion.torch.qat.layers import QuantizedLayer
from sardonyx.conversion.torch.qat.quantizers import ActivationQuantizer
from sardonyx.conversion.torch.reference import modules_of
from sardonyx.errors import ConvertError

__all__ = ["plain_fake_quantization"]


@contextmanager
def plain_fake_quantization(model: Any) -> Iterator[None]:
    """Inside, fake quantization modules only quantize and dequantize.

    Raises:
        ConvertError: one still observes, so that its scales change with every call.
    """
    changed: list[Any] = [module for module in modules_of(model) if _rounds(module)]
    try:
        for module in changed:
            vars(module)["forward"] = _plain(module)
        yield
    finally:
        for module in changed:
            vars(module).pop("forward", None)


def _rounds(module: nn.Module) -> bool:
    """Our own; or torch's or torchao's, which both have the class under this name, with the same buffers."""
    if isinstance(module, ActivationQuantizer | QuantizedLayer):
        return True
    names = {base.__name__ for base in type(module).__mro__}
    return "FakeQuantize" in names and not isinstance(module, torch.jit.ScriptModule)


def _plain(module: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """What the module does in inference. Whether and by what it quantizes is read now: an export sees no values."""
    if isinstance(module, ActivationQuantizer | QuantizedLayer):
        return module.plain()
    if bool(module.observer_enabled[0]):
        raise ConvertError(
            "the model still observes: a call changes the scales that it quantizes by.",
            hint="Run model.apply(torch.ao.quantization.disable_observer) first.",
        )
    if not bool(module.fake_quant_enabled[0]):
        return lambda x: x
    limits = module.activation_post_process.quant_min, module.activation_post_process.quant_max
    if module.is_per_channel:
        return lambda x: torch.fake_quantize_per_channel_affine(
            x, module.scale, module.zero_point, module.ch_axis, *limits
        )
    scale, zero = float(module.scale), int(module.zero_point)
    return lambda x: torch.fake_quantize_per_tensor_affine(x, scale, zero, *limits)
