"""How to quantize: one frozen object a method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import onnx_ir as ir

from sardonyx.errors import InputError
from sardonyx.quantization.observers import CALIBRATIONS, Calibration

__all__ = ["Static", "read_static"]


@dataclass(frozen=True)
class Static:
    """Integers everywhere between the products, by ranges that calibration saw.

    Attributes:
        activations: their type.
        weights: their type; those with a sign are symmetric around zero.
        symmetric: whether the activations' grids are, too.
        per_channel: whether every output channel of the weights has a scale of its own.
        calibration: which range of the numbers that were seen is covered.
        percentile: of them, for that calibration.
    """

    activations: ir.DataType = ir.DataType.UINT8
    weights: ir.DataType = ir.DataType.INT8
    symmetric: bool = False
    per_channel: bool = True
    calibration: Calibration = "minmax"
    percentile: float = 99.99

    @property
    def opset(self) -> int:
        """The oldest that has these types."""
        wide = {ir.DataType.INT16, ir.DataType.UINT16} & {self.activations, self.weights}
        return 21 if wide else 13

    def __str__(self) -> str:
        return f"{self.activations.name.lower()} x {self.weights.name.lower()}"


def read_static(
    activations: str,
    weights: str,
    per_channel: bool,
    symmetric: bool,
    calibration: str,
    percentile: float,
) -> Static:
    """The options as a user writes them.

    Raises:
        InputError: one of them is none of the choices.
    """
    for name, choice, choices in (
        ("activations", activations, ("uint8", "int8", "uint16", "int16")),
        ("weights", weights, ("int8", "uint8")),
        ("calibration", calibration, CALIBRATIONS),
    ):
        require(name, choice, choices)
    if not 50.0 < percentile <= 100.0:
        raise InputError(f"percentile={percentile}; it is above 50, and at most 100.")
    return Static(
        ir.DataType[activations.upper()],
        ir.DataType[weights.upper()],
        symmetric,
        per_channel,
        cast(Calibration, calibration),
        percentile,
    )


def require(name: str, choice: object, choices: Iterable[object]) -> None:
    """Raise where an option is none of its choices."""
    known = list(choices)
    if choice not in known:
        raise InputError(
            f"{name}={choice!r}; choose one of {', '.join(map(repr, known))}.", value=choice
        )
