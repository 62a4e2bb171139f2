"""Quantizing as it is exported: the operators of ONNX by name, which torch.export carries along unseen.

torch's own fake quantization has no shape rule for axes that stay open, and rounds x * (1 / scale).
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["dequantize_in_onnx", "quantize_in_onnx"]


def quantize_in_onnx(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, axis: int | None = None
) -> torch.Tensor:
    """Quantized and dequantized; the type of `zero` is that of the integers."""
    whole = torch.onnx.ops.symbolic(
        "QuantizeLinear", (x, scale, zero), _on(axis), dtype=zero.dtype, shape=x.shape
    )
    return dequantize_in_onnx(whole, scale, zero, x.dtype, axis)


def dequantize_in_onnx(
    whole: torch.Tensor,
    scale: torch.Tensor,
    zero: torch.Tensor | None,
    dtype: torch.dtype,
    axis: int | None = None,
) -> torch.Tensor:
    inputs = (whole, scale) if zero is None else (whole, scale, zero)
    return torch.onnx.ops.symbolic(
        "DequantizeLinear", inputs, _on(axis), dtype=dtype, shape=whole.shape
    )


def _on(axis: int | None) -> dict[str, Any]:
    return {} if axis is None else {"axis": axis}
