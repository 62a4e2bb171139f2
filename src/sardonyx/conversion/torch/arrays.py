"""Tensors of torch and arrays of numpy. Complex numbers are pairs of reals on the last axis."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

__all__ = ["to_array", "to_tensor"]

# numpy has no such types; the bits are carried over.
_SMALL = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
}
_BY_NAME = {
    np.dtype(theirs).name: (torch_type, bits) for torch_type, (bits, theirs) in _SMALL.items()
}


def to_array(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[Any]]:
    """A copy, so that nobody's writing reaches the other side."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    if plain.dtype in _SMALL:
        bits, dtype = _SMALL[plain.dtype]
        return np.array(plain.contiguous().view(bits).numpy()).view(dtype)
    return np.array(plain.numpy())


def to_tensor(array: Any, like: torch.Tensor | None = None) -> torch.Tensor:
    """A copy; complex where `like` is."""
    given = np.array(array)
    if given.dtype.name in _BY_NAME:
        dtype, bits = _BY_NAME[given.dtype.name]
        size = {1: np.uint8, 2: np.int16}[given.dtype.itemsize]
        return torch.from_numpy(given.view(size)).view(bits).view(dtype)
    tensor = torch.from_numpy(given)
    return torch.view_as_complex(tensor) if like is not None and like.is_complex() else tensor
