"""Tensors as they are after quantizing and dequantizing: in training, with a gradient; when exported, as ONNX has it.

The integers are those of QuantizeLinear, saturate(round(x / scale) + zero), ties to even. torch's own fake quantization
multiplies by 1 / scale instead, and now and then lands on the integer beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import nn

from sardonyx.conversion.torch.onnx_rounding import dequantize_in_onnx, quantize_in_onnx
from sardonyx.errors import ConvertError

__all__ = ["ActivationQuantizer", "WeightQuantizer", "round_to_grid"]

Limits: TypeAlias = tuple[int, int]
TYPES = {"uint8": torch.uint8, "int8": torch.int8}
_LIMITS: dict[str, Limits] = {"uint8": (0, 255), "int8": (-128, 127)}
_SMALLEST = float(torch.finfo(torch.float32).tiny)


class _Round(torch.autograd.Function):
    """To the grid and back; the gradient passes where nothing was cut off."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, limits: Limits
    ) -> torch.Tensor:
        whole = torch.round(x / scale) + zero
        kept = whole.clamp(*limits)
        ctx.save_for_backward(whole == kept)
        return (kept - zero) * scale

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        (inside,) = ctx.saved_tensors
        return gradients[0] * inside, None, None, None


def round_to_grid(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, limits: Limits
) -> torch.Tensor:
    """`x` after quantizing and dequantizing, with a gradient."""
    rounded: torch.Tensor = _Round.apply(x, scale, zero, limits)  # type: ignore[no-untyped-call]  # torch's own
    return rounded


class ActivationQuantizer(nn.Module):
    """One grid for a whole tensor, from the range that training sees: a moving average of what batches reach.

    The range holds zero, so that padding is exact.
    """

    low: torch.Tensor
    high: torch.Tensor
    seen: torch.Tensor

    def __init__(self, kind: str = "uint8", rate: float = 0.05) -> None:
        super().__init__()
        self.kind = kind
        self.limits = _LIMITS[kind]
        self.rate = rate
        self.watching = True
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))
        self.register_buffer("seen", torch.zeros((), dtype=torch.bool))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training and self.watching:
            self._watch(x.detach())
        return round_to_grid(x, *self.grid(), self.limits)

    def grid(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The scale, and the zero point as a float."""
        if not bool(self.seen):
            raise ConvertError(
                "a value's range is unknown: the prepared model has seen no data.",
                hint="Run it in train mode on a few batches first.",
            )
        first, last = self.limits
        if self.kind == "int8":
            scale = torch.maximum(-self.low, self.high) / last
            return scale.clamp(min=_SMALLEST), torch.zeros_like(scale)
        scale = ((self.high - self.low) / (last - first)).clamp(min=_SMALLEST)
        return scale, (first - torch.round(self.low / scale)).clamp(first, last)

    def plain(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """The same as it is exported."""
        scale, zero = self.grid()
        return functools.partial(quantize_in_onnx, scale=scale, zero=zero.to(TYPES[self.kind]))

    @torch.no_grad()
    def _watch(self, x: torch.Tensor) -> None:
        low, high = torch.aminmax(x) if x.numel() else (self.low, self.high)
        low, high = low.clamp(max=0.0), high.clamp(min=0.0)
        if not (torch.isfinite(low) and torch.isfinite(high)):
            raise ConvertError(
                f"a value to be quantized reaches from {float(low)} to {float(high)}.",
                hint="Training has diverged: lower the learning rate, or exclude the layer.",
            )
        if not bool(self.seen):
            self.low.copy_(low)
            self.high.copy_(high)
            self.seen.fill_(True)
        else:
            self.low.lerp_(low, self.rate)
            self.high.lerp_(high, self.rate)


class WeightQuantizer(nn.Module):
    """A grid for every output channel (axis 0), symmetric, from the weights as they are."""

    limits = _LIMITS["int8"]

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        scale, zero = self.grid_of(weight)
        shape = (-1, *(1,) * (weight.ndim - 1))
        return round_to_grid(weight, scale.reshape(shape), zero.reshape(shape), self.limits)

    def grid_of(self, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        largest = weight.detach().flatten(1).abs().amax(1)
        scale = (largest / self.limits[1]).clamp(min=_SMALLEST)
        return scale, torch.zeros_like(scale)

    def plain(self, weight: torch.Tensor) -> Callable[[], torch.Tensor]:
        """Constant weights as they are exported: integers, and what dequantizes them."""
        scale, zero = self.grid_of(weight)
        whole = torch.round(weight / scale.reshape(-1, *(1,) * (weight.ndim - 1)))
        return lambda: dequantize_in_onnx(
            whole.to(torch.int8), scale, zero.to(torch.int8), weight.dtype, axis=0
        )
