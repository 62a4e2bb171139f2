"""How to quantize: one frozen object a method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

import onnx_ir as ir

from sardonyx.errors import InputError
from sardonyx.quantization.observers import CALIBRATIONS, Calibration

__all__ = [
    "METHODS",
    "Dynamic",
    "Half",
    "Method",
    "Options",
    "Static",
    "WeightOnly",
    "read_options",
    "require",
]


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
        smooth: how strongly channels are evened out between values and the weights of products; None for not at all.
        equalize: whether they are between one convolution and the next.
        correct_bias: whether biases take back what rounded weights add on average.
        attention: whether products of two computed values are quantized, too.
    """

    activations: ir.DataType = ir.DataType.UINT8
    weights: ir.DataType = ir.DataType.INT8
    symmetric: bool = False
    per_channel: bool = True
    calibration: Calibration = "minmax"
    percentile: float = 99.99
    smooth: float | None = None
    equalize: bool = False
    correct_bias: bool = False
    attention: bool = False

    @property
    def opset(self) -> int:
        """The oldest that has these types."""
        types = {self.activations, self.weights}
        if types & {ir.DataType.INT16, ir.DataType.UINT16}:
            return 21
        return 19 if ir.DataType.FLOAT8E4M3FN in types else 13

    def __str__(self) -> str:
        return f"{self.activations.name.lower()} x {self.weights.name.lower()}"


@dataclass(frozen=True)
class WeightOnly:
    """Weights as integers in the file; the arithmetic stays in float.

    Attributes:
        bits: 8 or 4.
        block: how many weights of a column share a scale; 0 for all of them.
        symmetric: whether zero is in the middle of the range.
        algorithm: "rtn" rounds to nearest; "gptq" lets later weights make errors of earlier ones good; "awq" makes
            channels that matter larger before they are rounded.
    """

    bits: int = 8
    block: int = 0
    symmetric: bool = True
    algorithm: str = "rtn"

    @property
    def dtype(self) -> ir.DataType:
        return ir.DataType[f"{'INT' if self.symmetric else 'UINT'}{self.bits}"]

    @property
    def opset(self) -> int:
        return 21 if self.block or self.bits < 8 else 13

    def __str__(self) -> str:
        blocks = f" in blocks of {self.block}" if self.block else ""
        how = "" if self.algorithm == "rtn" else f" by {self.algorithm.upper()}"
        return f"{self.dtype.name.lower()}{blocks}{how}"


@dataclass(frozen=True)
class Dynamic:
    """Products of integers by ranges that every run finds for itself."""

    per_channel: bool = True

    @property
    def opset(self) -> int:
        return 13

    def __str__(self) -> str:
        return "uint8 x int8"


@dataclass(frozen=True)
class Half:
    """Floats of 16 bits where that is safe."""

    dtype: ir.DataType = ir.DataType.FLOAT16

    @property
    def opset(self) -> int:
        """The oldest where products and convolutions have the type."""
        return 13 if self.dtype == ir.DataType.FLOAT16 else 22

    def __str__(self) -> str:
        return self.dtype.name.lower()


Options: TypeAlias = "Static | WeightOnly | Dynamic | Half"
Method = Literal["static", "dynamic", "weight-only", "float16", "bfloat16", "float8"]
METHODS: tuple[str, ...] = get_args(Method)


def read_options(
    method: str,
    *,
    activations: str = "uint8",
    weights: str = "int8",
    per_channel: bool = True,
    symmetric: bool | None = None,
    calibration: str = "minmax",
    percentile: float = 99.99,
    bits: int = 8,
    block: int | None = None,
    algorithm: str = "rtn",
    smooth: float | None = None,
    equalize: bool = False,
    correct_bias: bool = False,
    attention: bool = False,
) -> Options:
    """The options as a user writes them.

    Raises:
        InputError: one of them is none of the choices.
    """
    require("method", method, METHODS)
    if method == "dynamic":
        return Dynamic(per_channel)
    if method in ("float16", "bfloat16"):
        return Half(ir.DataType[method.upper()])
    if method == "weight-only":
        return _weight_only(bits, block, symmetric is not False, algorithm)
    for name, choice, choices in (
        ("activations", activations, ("uint8", "int8", "uint16", "int16")),
        ("weights", weights, ("int8", "uint8")),
        ("calibration", calibration, CALIBRATIONS),
    ):
        require(name, choice, choices)
    if not 50.0 < percentile <= 100.0:
        raise InputError(f"percentile={percentile}; it is above 50, and at most 100.")
    if smooth is not None and not 0.0 <= smooth <= 1.0:
        raise InputError(
            f"smooth={smooth}; it is between 0 and 1, and 0.8 is a good start.", value=smooth
        )
    small = "float8e4m3fn" if method == "float8" else None
    return Static(
        ir.DataType[(small or activations).upper()],
        ir.DataType[(small or weights).upper()],
        bool(symmetric),
        per_channel,
        cast(Calibration, calibration),
        percentile,
        smooth,
        equalize,
        correct_bias,
        attention,
    )


def _weight_only(bits: int, block: int | None, symmetric: bool, algorithm: str) -> WeightOnly:
    """Blocks are of 32 where weights have 4 bits and nothing else is said."""
    require("bits", bits, (8, 4))
    require("algorithm", algorithm, ("rtn", "gptq", "awq"))
    if block is None:
        block = 32 if bits == 4 else 0
    if block != 0 and (block < 16 or block & (block - 1)):
        raise InputError(f"block={block}; it is 0 or a power of two from 16.", value=block)
    return WeightOnly(bits, block, symmetric, algorithm)


def require(name: str, choice: object, choices: Iterable[object]) -> None:
    """Raise where an option is none of its choices."""
    known = list(choices)
    if choice not in known:
        raise InputError(
            f"{name}={choice!r}; choose one of {', '.join(map(repr, known))}.", value=choice
        )
