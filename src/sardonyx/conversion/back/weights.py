"""Constants of a model, and which of them are trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.ops.facts import CONTINUOUS

__all__ = ["Weight", "is_trained", "weight_array"]

# Inputs that belong to how an operator is set up, or that training of the source kept as statistics.
_SETTINGS = {
    "BatchNormalization": (3, 4),
    "Clip": (1, 2),
    "DequantizeLinear": (1, 2),
    "OneHot": (2,),
    "Pad": (2,),
    "QuantizeLinear": (1, 2),
    "Resize": (1, 2),
}
_HUGE = 1e30  # of masks


@dataclass(frozen=True)
class Weight:
    """A constant.

    Attributes:
        name: in the source.
        original: in the model.
        trained: whether it is a parameter.
    """

    name: str
    original: str
    tensor: ir.TensorProtocol
    trained: bool


def is_trained(value: ir.Value, tensor: ir.TensorProtocol) -> bool:
    """Whether a constant is a parameter: an initializer of several floats that are no settings and no mask."""
    if value.producer() is not None or tensor.dtype not in CONTINUOUS or tensor.size <= 1:
        return False
    uses = list(value.uses())
    if any(use.idx in _SETTINGS.get(use.node.op_type, ()) for use in uses):
        return False
    array = (
        np.asarray(tensor.numpy(), dtype=np.float64) if tensor.nbytes < 1 << 20 else tensor.numpy()
    )
    return bool(np.isfinite(array).all()) and bool(np.abs(array).max(initial=0) < _HUGE)


def weight_array(weight: Weight) -> np.ndarray[Any, Any]:
    """Its numbers; of 4 bits in a byte each."""
    array = weight.tensor.numpy()
    narrow = {ir.DataType.INT4: "int8", ir.DataType.UINT4: "uint8"}.get(weight.tensor.dtype)
    return array.astype(narrow) if narrow else array
