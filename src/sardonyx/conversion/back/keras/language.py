"""The operator table of Keras 3, over keras.ops."""

from __future__ import annotations

import inspect

import keras
import onnx_ir as ir

from sardonyx.conversion.back.arrays import array_phrases
from sardonyx.conversion.back.common import COMMON
from sardonyx.conversion.back.keras import support
from sardonyx.conversion.back.language import Language

__all__ = ["KERAS"]

HEADER = """
from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops
"""

_OWN = {
    "BitwiseNot": "ops.bitwise_not({0})",
    "Det": "ops.det({0})",
    "Erf": "ops.erf({0})",
    "Mish": "{0} * ops.tanh(ops.softplus({0}))",
    "Sigmoid": "ops.sigmoid({0})",
    "Softplus": "ops.softplus({0})",
    "Swish": "{0} * ops.sigmoid({alpha} * {0})",
    "cast": "ops.cast({0}, {1})",
    "gelu": "ops.gelu({0}, approximate=False)",
    "gelu_tanh": "ops.gelu({0}, approximate=True)",
    "if": "ops.cond({0}, {1}, {2})",
    "log_softmax": "ops.log_softmax({0}, axis={1})",
    "logsumexp": "ops.logsumexp({0}, axis={1}, keepdims={2})",
    "softmax": "ops.softmax({0}, axis={1})",
}

_TYPES = {
    ir.DataType.BOOL: '"bool"',
    ir.DataType.UINT8: '"uint8"',
    ir.DataType.UINT16: '"uint16"',
    ir.DataType.UINT32: '"uint32"',
    ir.DataType.UINT64: '"uint64"',
    ir.DataType.INT8: '"int8"',
    ir.DataType.INT16: '"int16"',
    ir.DataType.INT32: '"int32"',
    ir.DataType.INT64: '"int"',  # as wide as the backend has it
    ir.DataType.FLOAT16: '"float16"',
    ir.DataType.BFLOAT16: '"bfloat16"',
    ir.DataType.FLOAT: '"float32"',
    ir.DataType.DOUBLE: '"float64"',
    ir.DataType.INT4: '"int8"',  # in a byte each
    ir.DataType.UINT4: '"uint8"',
}


def _accepts(dtype: ir.DataType) -> str | None:
    if dtype in (ir.DataType.DOUBLE, ir.DataType.UINT64) and keras.backend.backend() == "jax":
        return f"the backend jax computes {dtype} in 32 bits"
    return None


KERAS = Language(
    name="keras",
    array="ops",
    header=HEADER,
    reserved=frozenset({"keras", "ops", "np", "p", "xp", "Any"}),
    phrases={**array_phrases("ops"), **_OWN},
    entries=COMMON,
    support=dict(inspect.getmembers(support, inspect.isfunction)),
    dtypes=_TYPES,
    parameter='p["{0}"]',
    constant='p["{0}"]',
    size='ops.cast({0}, "int")',
    dimension="ops.shape({0})[{1}]",
    accepts=_accepts,
)
