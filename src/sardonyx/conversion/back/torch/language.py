"""The operator table of torch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import onnx_ir as ir
from torch import nn

from sardonyx.conversion.back.common import COMMON
from sardonyx.conversion.back.language import Entry, Language
from sardonyx.conversion.back.torch import data_sized, support

__all__ = ["TORCH"]

HEADER = """
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
"""

_OPERATORS = {
    "Abs": "torch.abs({0})",
    "Acos": "torch.acos({0})",
    "Acosh": "torch.acosh({0})",
    "And": "{0} & {1}",
    "Asin": "torch.asin({0})",
    "Asinh": "torch.asinh({0})",
    "Atan": "torch.atan({0})",
    "Atanh": "torch.atanh({0})",
    "BitwiseAnd": "{0} & {1}",
    "BitwiseNot": "~{0}",
    "BitwiseOr": "{0} | {1}",
    "BitwiseXor": "{0} ^ {1}",
    "Ceil": "torch.ceil({0})",
    "Celu": "F.celu({0}, {alpha})",
    "Cos": "torch.cos({0})",
    "Cosh": "torch.cosh({0})",
    "Det": "torch.linalg.det({0})",
    "Elu": "F.elu({0}, {alpha})",
    "Erf": "torch.erf({0})",
    "Exp": "torch.exp({0})",
    "Floor": "torch.floor({0})",
    "HardSigmoid": "torch.clamp({alpha} * {0} + {beta}, 0, 1)",
    "HardSwish": "F.hardswish({0})",
    "IsNaN": "torch.isnan({0})",
    "LeakyRelu": "F.leaky_relu({0}, {alpha})",
    "Log": "torch.log({0})",
    "Mish": "F.mish({0})",
    "Neg": "-{0}",
    "Not": "~{0}",
    "Or": "{0} | {1}",
    "Reciprocal": "torch.reciprocal({0})",
    "Relu": "F.relu({0})",
    "Round": "torch.round({0})",
    "Selu": "{gamma} * torch.where({0} > 0, {0}, {alpha} * torch.expm1({0}))",
    "Shrink": "torch.where({0} < -{lambd}, {0} + {bias}, torch.where({0} > {lambd}, {0} - {bias}, 0))",
    "Sigmoid": "torch.sigmoid({0})",
    "Sign": "torch.sign({0})",
    "Sin": "torch.sin({0})",
    "Sinh": "torch.sinh({0})",
    "Softplus": "F.softplus({0})",
    "Softsign": "F.softsign({0})",
    "Sqrt": "torch.sqrt({0})",
    "Swish": "{0} * torch.sigmoid({alpha} * {0})",
    "Tan": "torch.tan({0})",
    "Tanh": "torch.tanh({0})",
    "ThresholdedRelu": "torch.where({0} > {alpha}, {0}, 0)",
    "Where": "torch.where({0}, {1}, {2})",
    "Xor": "{0} ^ {1}",
}

_WORDS = {
    "abs": "torch.abs({0})",
    "all": "torch.all({0}, dim={1}, keepdim={2})",
    "amax": "torch.amax({0}, dim={1}, keepdim={2})",
    "amin": "torch.amin({0}, dim={1}, keepdim={2})",
    "any": "torch.any({0}, dim={1}, keepdim={2})",
    "arange": "torch.arange({0}, dtype={1}, device=device_of({2}))",
    "argmax": "torch.argmax({0}, dim={1}, keepdim={2})",
    "argmin": "torch.argmin({0}, dim={1}, keepdim={2})",
    "at_least": "torch.clamp({0}, min={1})",
    "at_most": "torch.clamp({0}, max={1})",
    "avg_pool1d": "F.avg_pool1d({0}, {1}, stride={2}, padding={3}, count_include_pad={4})",
    "avg_pool2d": "F.avg_pool2d({0}, {1}, stride={2}, padding={3}, count_include_pad={4})",
    "avg_pool3d": "F.avg_pool3d({0}, {1}, stride={2}, padding={3}, count_include_pad={4})",
    "batch_norm": "F.batch_norm({0}, {3}, {4}, {1}, {2}, eps={5})",
    "cast": "{0}.to({1})",
    "concat": "torch.cat([{0}], dim={1})",
    "conv1d": "F.conv1d({0}, {1}, {2}, stride={3}, padding={4}, dilation={5}, groups={6})",
    "conv2d": "F.conv2d({0}, {1}, {2}, stride={3}, padding={4}, dilation={5}, groups={6})",
    "conv3d": "F.conv3d({0}, {1}, {2}, stride={3}, padding={4}, dilation={5}, groups={6})",
    "cumprod": "torch.cumprod({0}, dim={1})",
    "cumsum": "torch.cumsum({0}, dim={1})",
    "einsum": "torch.einsum('{0}', {1})",
    "expand": "{0}.expand({1})",
    "full": "torch.full({0}, {1}, dtype={2}, device=device_of({3}))",
    "full_like": "torch.full_like({0}, {1}, dtype={2})",
    "gelu": "F.gelu({0})",
    "gelu_tanh": "F.gelu({0}, approximate='tanh')",
    "grid_sample": "F.grid_sample({0}, {1}, padding_mode={2}, align_corners={3})",
    "group_norm": "F.group_norm({0}, {1}, {2}, {3}, eps={4})",
    "if": "{1}() if {0} else {2}()",
    "layer_norm": "F.layer_norm({0}, {1}, {2}, {3}, eps={4})",
    "linear": "F.linear({0}, {1}, {2})",
    "log": "torch.log({0})",
    "log_softmax": "F.log_softmax({0}, dim={1})",
    "logsumexp": "torch.logsumexp({0}, dim={1}, keepdim={2})",
    "matmul": "{0} @ {1}",
    "max_pool1d": "F.max_pool1d({0}, {1}, stride={2}, padding={3}, dilation={4})",
    "max_pool2d": "F.max_pool2d({0}, {1}, stride={2}, padding={3}, dilation={4})",
    "max_pool3d": "F.max_pool3d({0}, {1}, stride={2}, padding={3}, dilation={4})",
    "maximum": "torch.maximum({0}, {1})",
    "mean": "torch.mean({0}, dim={1}, keepdim={2})",
    "minimum": "torch.minimum({0}, {1})",
    "pad": "F.pad({0}, {1}, value={2})",
    "prod": "product_of({0}, {1}, {2})",
    "repeat": "torch.repeat_interleave({0}, {1}, dim={2})",
    "reshape": "{0}.reshape({1})",
    "softmax": "F.softmax({0}, dim={1})",
    "sqrt": "torch.sqrt({0})",
    "squeeze": "{0}.squeeze({1})",
    "stack": "torch.stack([{0}], dim={1})",
    "sum": "torch.sum({0}, dim={1}, keepdim={2})",
    "take_along_axis": "torch.gather({0}, {2}, {1})",
    "tile": "{0}.repeat({1})",
    "transpose": "{0}.permute({1})",
    "where": "torch.where({0}, {1}, {2})",
}

_TYPES = {  # of other unsigned integers torch has tensors, but does not compute with them
    ir.DataType.BOOL: "torch.bool",
    ir.DataType.UINT8: "torch.uint8",
    ir.DataType.INT8: "torch.int8",
    ir.DataType.INT16: "torch.int16",
    ir.DataType.INT32: "torch.int32",
    ir.DataType.INT64: "torch.int64",
    ir.DataType.FLOAT16: "torch.float16",
    ir.DataType.BFLOAT16: "torch.bfloat16",
    ir.DataType.FLOAT: "torch.float32",
    ir.DataType.DOUBLE: "torch.float64",
    ir.DataType.INT4: "torch.int8",  # in a byte each
    ir.DataType.UINT4: "torch.uint8",
}

_ENTRIES: Mapping[str, Entry] = {
    "Compress": data_sized.compress,
    "NonMaxSuppression": data_sized.non_max_suppression,
    "NonZero": lambda step: f"torch.nonzero({step[0]}).permute(1, 0)",
    "Unique": data_sized.unique,
}

_OWN_WORDS = {"torch", "F", "nn", "self", "xp", "Any", "Model", "load", "training"}
_RESERVED = frozenset(
    _OWN_WORDS | set(dir(nn.Module)) - {"forward"}
)  # which is what the program is

TORCH = Language(
    name="torch",
    array="torch",
    header=HEADER,
    reserved=_RESERVED,
    phrases={**_OPERATORS, **_WORDS},
    entries={**COMMON, **_ENTRIES},
    support=dict(inspect.getmembers(support, inspect.isfunction)),
    dtypes=_TYPES,
    parameter="self.{0}",
    constant="self.{0}",
    size="torch.full((), {0}, device={1}.device)",
    integer="int({0})",
)
