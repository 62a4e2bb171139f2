"""What reading a boosted model gives: ONNX, and the library's own answers to hold it to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import onnx_ir as ir

from sardonyx.conversion.trees.forest import Array, Ensemble

__all__ = ["InputType", "TreeConversion"]

InputType: TypeAlias = Literal["float32", "float64"]


@dataclass(frozen=True, eq=False)
class TreeConversion:
    """A converted model that nobody has checked yet.

    Attributes:
        model: standard ONNX, with one input `X` (batch, features).
        answer: what the library answers to the same rows, in the order of the model's outputs.
        ensemble: what was read, to look for rows that are hard to get right.
        notes: what the user should know.
    """

    model: ir.Model
    answer: Callable[[Array], list[Array]]
    ensemble: Ensemble
    notes: tuple[str, ...] = ()
