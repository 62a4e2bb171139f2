"""The operator table of JAX."""

from __future__ import annotations

import inspect

import jax
import onnx_ir as ir

from sardonyx.conversion.back.arrays import array_phrases
from sardonyx.conversion.back.common import COMMON
from sardonyx.conversion.back.jax import support
from sardonyx.conversion.back.language import Language

__all__ = ["JAX"]

HEADER = """
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
"""

_OWN = {
    "Det": "jnp.linalg.det({0})",
    "Erf": "jax.scipy.special.erf({0})",
    "Mish": "{0} * jnp.tanh(jax.nn.softplus({0}))",
    "Sigmoid": "jax.nn.sigmoid({0})",
    "Softplus": "jax.nn.softplus({0})",
    "Swish": "{0} * jax.nn.sigmoid({alpha} * {0})",
    "cast": "{0}.astype({1})",
    "gelu": "jax.nn.gelu({0}, approximate=False)",
    "gelu_tanh": "jax.nn.gelu({0}, approximate=True)",
    "if": "jax.lax.cond({0}, {1}, {2})",
    "log_softmax": "jax.nn.log_softmax({0}, axis={1})",
    "logsumexp": "jax.nn.logsumexp({0}, axis={1}, keepdims={2})",
    "softmax": "jax.nn.softmax({0}, axis={1})",
}

# `int` and `float` are 64 bits wide where jax_enable_x64 is set, and 32 elsewhere.
_TYPES = {
    ir.DataType.BOOL: "bool",
    ir.DataType.UINT8: "jnp.uint8",
    ir.DataType.UINT16: "jnp.uint16",
    ir.DataType.UINT32: "jnp.uint32",
    ir.DataType.UINT64: "jnp.uint64",
    ir.DataType.INT8: "jnp.int8",
    ir.DataType.INT16: "jnp.int16",
    ir.DataType.INT32: "jnp.int32",
    ir.DataType.INT64: "int",
    ir.DataType.FLOAT16: "jnp.float16",
    ir.DataType.BFLOAT16: "jnp.bfloat16",
    ir.DataType.FLOAT: "jnp.float32",
    ir.DataType.DOUBLE: "float",
    ir.DataType.INT4: "jnp.int8",  # in a byte each
    ir.DataType.UINT4: "jnp.uint8",
}


def _accepts(dtype: ir.DataType) -> str | None:
    wide = dtype in (ir.DataType.DOUBLE, ir.DataType.UINT64)
    if wide and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        return f"{dtype} needs jax.config.update('jax_enable_x64', True)"
    return None


JAX = Language(
    name="jax",
    array="jnp",
    header=HEADER,
    reserved=frozenset({"jax", "jnp", "np", "p", "xp", "Any", "constants", "load"}),
    phrases={**array_phrases("jnp"), **_OWN},
    entries=COMMON,
    support=dict(inspect.getmembers(support, inspect.isfunction)),
    dtypes=_TYPES,
    parameter='p["{0}"]',
    constant='constants["{0}"]',
    size="jnp.asarray({0}, dtype=int)",
    accepts=_accepts,
)
