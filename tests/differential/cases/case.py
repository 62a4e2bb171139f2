"""A single node to run on two engines, and short ways to write what it is fed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

RANDOM = np.random.default_rng(2026)
ML = "ai.onnx.ml"


@dataclass(frozen=True)
class Case:
    """One node and what to feed it."""

    op: str
    version: int
    inputs: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    slack: int = 0  # integers may differ by so much, where the standard leaves rounding open

    def __str__(self) -> str:
        shapes = ",".join("-" if x is None else f"{x.dtype}{list(x.shape)}" for x in self.inputs)
        given = ",".join(f"{key}={value}" for key, value in self.attributes.items())
        return f"{self.op}-{self.version}({shapes};{given})"[:160].replace(" ", "")


def f(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def pos(*shape: int) -> np.ndarray:
    return np.abs(f(*shape)) + np.float32(0.1)


def i(low: int, high: int, *shape: int, dtype: Any = np.int64) -> np.ndarray:
    return RANDOM.integers(low, high, shape).astype(dtype)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def words(*values: str) -> np.ndarray:
    return np.array(values, dtype=object)


EDGE = floats(-3, -1, -0.5, -0.0, 0, 0.5, 1, 3, 88, -88, 1e-20, np.inf, -np.inf, np.nan)
