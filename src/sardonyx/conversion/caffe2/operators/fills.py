"""Weights: arrays that the file holds, or one number many times."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.caffe2.operators.table import TABLE
from sardonyx.conversion.stored.layer import Layer

_MOST_ELEMENTS = 1 << 28
_TYPES: dict[int, Any] = {
    1: np.float32,
    2: np.int32,
    3: np.uint8,
    5: np.bool_,
    6: np.uint8,
    7: np.int8,
    9: np.int16,
    10: np.int64,
    12: np.float16,
    13: np.float64,
}
_GIVEN: dict[str, Any] = {
    "GivenTensorFill": np.float32,
    "GivenTensorDoubleFill": np.float64,
    "GivenTensorIntFill": np.int32,
    "GivenTensorInt64Fill": np.int64,
    "GivenTensorBoolFill": np.bool_,
}


@TABLE.layer(*_GIVEN)
def given(layer: Layer) -> ir.Value:
    values = np.asarray(layer.get("values"), _GIVEN[layer.kind])
    return layer.graph.parameter(layer.name, values.reshape(_shape(layer, values.size)))


@TABLE.layer("GivenTensorByteStringToUInt8Fill")
def given_bytes(layer: Layer) -> ir.Value:
    stored = layer.get("values")
    if not isinstance(stored, list) or len(stored) != 1 or not isinstance(stored[0], bytes):
        raise layer.refuse("its values are not one string of bytes.")
    values = np.frombuffer(stored[0], np.uint8)
    return layer.graph.parameter(layer.name, values.reshape(_shape(layer, values.size)))


@TABLE.layer("ConstantFill")
def constant(layer: Layer) -> ir.Value:
    kind = layer.integer("dtype", 1)
    if kind not in _TYPES or layer.inputs:
        raise layer.refuse(f"it fills an array of type {kind} as large as another.")
    shape = layer.integers("shape", ())
    if any(size < 0 for size in shape) or np.prod(shape, dtype=object) > _MOST_ELEMENTS:
        raise layer.refuse(f"it fills {shape}, which is too large.")
    filled = np.full(shape, layer.number("value", 0.0), _TYPES[kind])
    return layer.graph.parameter(layer.name, filled)


def _shape(layer: Layer, size: int) -> list[int]:
    shape = layer.integers("shape", ())
    if any(each < 0 for each in shape) or np.prod(shape, dtype=object) != size:
        raise layer.refuse(f"it has {size} values for the shape {shape}.")
    return shape
