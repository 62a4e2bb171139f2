"""The weights that a compiled graph has inside, and whether they are still what they were.

A version counter tells of every write that torch knows of. Writes through `.data` or numpy go past it: a few elements
of every weight are looked at as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

__all__ = ["Weights", "is_weight"]

_SAMPLES = 8


def is_weight(value: Any) -> bool:
    """A parameter or buffer of a module, as torch marks them among the inputs of a graph."""
    marked = getattr(value, "_dynamo_static_input_type", None) is not None
    return isinstance(value, torch.nn.Parameter) or (isinstance(value, torch.Tensor) and marked)


@dataclass(frozen=True)
class _Weight:
    place: int
    tensor: torch.Tensor
    version: int | None
    address: int
    bits: Any
    at: Any
    values: Any

    @classmethod
    def of(cls, place: int, tensor: torch.Tensor) -> _Weight:
        bits = None
        if tensor.device.type == "cpu" and tensor.is_contiguous() and tensor.numel():
            bits = tensor.detach().reshape(-1).view(torch.uint8).numpy()
        at = np.linspace(0, 0 if bits is None else len(bits) - 1, _SAMPLES).astype(np.int64)
        values = None if bits is None else bits[at].tobytes()
        return cls(place, tensor, _version(tensor), tensor.data_ptr(), bits, at, values)

    def is_unchanged(self, tensor: Any) -> bool:
        if tensor is not self.tensor and tensor.data_ptr() != self.address:
            return False
        same = _version(tensor) == self.version and tensor.data_ptr() == self.address
        return same and (self.bits is None or self.bits[self.at].tobytes() == self.values)


def _version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


class Weights:
    """The weights among the arguments of a graph."""

    def __init__(self, weights: Sequence[tuple[int, torch.Tensor]]) -> None:
        self._weights = [_Weight.of(place, tensor) for place, tensor in weights]
        self.places = frozenset(place for place, _ in weights)

    def are_unchanged(self, args: Sequence[Any]) -> bool:
        return all(weight.is_unchanged(args[weight.place]) for weight in self._weights)
