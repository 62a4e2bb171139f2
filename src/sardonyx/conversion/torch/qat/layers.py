"""A convolution or linear layer with quantized weights, and the BatchNorm behind it folded in as it will be deployed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional

from sardonyx.conversion.torch.onnx_rounding import dequantize_in_onnx
from sardonyx.conversion.torch.qat.quantizers import (
    ActivationQuantizer,
    WeightQuantizer,
    round_to_grid,
)

__all__ = ["LAYERS", "NORMS", "QuantizedLayer"]

Norm: TypeAlias = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
LAYERS: tuple[type[nn.Module], ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
_CONVOLUTIONS = (functional.conv1d, functional.conv2d, functional.conv3d)
_LEAST_FACTOR = 1e-12
_SUMS = (128 - 2**31, 2**31 - 128)  # floats of 32 bits that integers of 32 bits hold


class QuantizedLayer(nn.Module):
    """A layer as inference will run it: weights on a grid per channel, after BatchNorm's factor went into them.

    In training BatchNorm still normalises by the batch: the factor is taken out of the result again before it.

    Attributes:
        layer, norm: the user's own, whose parameters are trained.
        given: quantizes the input, where nobody before the layer does.
        frozen: whether BatchNorm uses its statistics as they are in training too.
    """

    def __init__(
        self, layer: Any, norm: Norm | None = None, given: ActivationQuantizer | None = None
    ) -> None:
        super().__init__()
        self.layer = layer
        self.norm = norm
        self.given = given
        self._source = (given,)  # in a tuple, for it is no part of this module
        self.quantizer = WeightQuantizer()
        self.frozen = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.given is not None:
            x = self.given(x)
        if self.norm is None or self.frozen or not self.norm.training:
            return self._in_floats(x) if self.training else self._in_integers(x)
        factor = self._factor()
        y = self.apply_layer(x, self.quantizer(self._scaled(factor)), None)
        across = (1, -1, *(1,) * (y.ndim - 2))
        y = y / factor.reshape(across)
        if self.layer.bias is not None:
            y = y + self.layer.bias.reshape(across)
        normalized: torch.Tensor = self.norm(y)
        return normalized

    def _in_floats(self, x: torch.Tensor) -> torch.Tensor:
        """As it is trained: the gradient reaches the weights."""
        weight, bias = self.folded()
        if bias is not None:
            step = self._step(weight)
            bias = round_to_grid(bias, step, torch.zeros_like(step), _SUMS)
        return self.apply_layer(x, self.quantizer(weight), bias)

    def _in_integers(self, x: torch.Tensor) -> torch.Tensor:
        """As it is deployed: sums of integers are exact, and round once. In float32, one value in a million would land
        on the integer beside it."""
        weight, bias = self.folded()
        scale, step = self._quantizer_before().grid()[0], self._step(weight)
        steps = self.quantizer.grid_of(weight)[0].reshape(-1, *(1,) * (weight.ndim - 1))
        whole_x, whole_weight = torch.round(x / scale), torch.round(weight / steps)
        sums = self.apply_layer(whole_x.double(), whole_weight.double(), None).to(x.dtype)
        across = (-1,) if weight.ndim == 2 else (-1, *(1,) * (weight.ndim - 2))
        y = sums * step.reshape(across)
        if bias is None:
            return y
        return y + (torch.round(bias / step).clamp(*_SUMS) * step).reshape(across)

    def folded(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Weights and bias with BatchNorm's statistics in them."""
        norm, bias = self.norm, self.layer.bias
        if norm is None:
            return self.layer.weight, bias
        factor = self._factor()
        assert norm.running_mean is not None
        shift = -norm.running_mean if bias is None else bias - norm.running_mean
        shift = shift * factor
        return self._scaled(factor), shift if norm.bias is None else shift + norm.bias

    def apply_layer(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
    ) -> torch.Tensor:
        layer = self.layer
        if isinstance(layer, nn.Linear):
            return functional.linear(x, weight, bias)
        return _CONVOLUTIONS[weight.ndim - 3](
            x, weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups
        )

    def reads(self, source: ActivationQuantizer) -> None:
        """Whose grid the input is on: the bias is rounded to the sums' grid, as integer kernels have it."""
        self._source = (source,)

    def plain(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """What inference does, with weights and bias that are integers."""
        with torch.no_grad():
            weight, bias = self.folded()
            weights = self.quantizer.plain(weight.detach())
            step = self._step(weight)
            whole = None if bias is None else torch.round(bias / step).clamp(*_SUMS).int()

        def forward(x: torch.Tensor) -> torch.Tensor:
            x = x if self.given is None else self.given(x)
            if whole is None:
                return self.apply_layer(x, weights(), None)
            offsets = dequantize_in_onnx(whole, step, None, weight.dtype, axis=0)
            return self.apply_layer(x, weights(), offsets)

        return forward

    def _step(self, weight: torch.Tensor) -> torch.Tensor:
        """The grid of the sums: the steps of both factors, multiplied."""
        return self._quantizer_before().grid()[0] * self.quantizer.grid_of(weight)[0]

    def _quantizer_before(self) -> ActivationQuantizer:
        source = self._source[0]
        assert source is not None
        return source

    def _factor(self) -> torch.Tensor:
        norm = self.norm
        assert norm is not None
        assert norm.running_var is not None
        deviation = torch.sqrt(norm.running_var + norm.eps)
        factor = 1.0 / deviation if norm.weight is None else norm.weight / deviation
        # It is divided by, and a channel that BatchNorm has switched off has none.
        return torch.where(factor.abs() < _LEAST_FACTOR, _LEAST_FACTOR, factor)

    def _scaled(self, factor: torch.Tensor) -> torch.Tensor:
        weight: torch.Tensor = self.layer.weight
        return weight * factor.reshape(-1, *(1,) * (weight.ndim - 1))
