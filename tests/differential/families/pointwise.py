"""One element at a time: unary and broadcasting operators, Where, Clip, Cast."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from tests.differential.graphs import FLOATS, INTEGERS, TYPES, Builder, Skip, family

UNARY = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Ceil",
    "Celu",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
]
PARAMETERS = {
    "Celu": ["alpha"],
    "Elu": ["alpha"],
    "HardSigmoid": ["alpha", "beta"],
    "LeakyRelu": ["alpha"],
    "Selu": ["alpha", "gamma"],
    "Shrink": ["lambd", "bias"],
    "Swish": ["alpha"],
    "ThresholdedRelu": ["alpha"],
}
BINARY = [
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "PRelu",
    "Pow",
    "Sub",
    "Sum",
    "Xor",
]
# onnxruntime reads their parameters, or computes, in float32 or in float16.
ROUNDED = {"Gelu", "Shrink"}


@family
def unary(b: Builder) -> None:
    op = b.pick(UNARY)
    dtype = b.dtype(op, ["float32"] if op in ROUNDED else TYPES)
    x, _ = b.tensor(dtype, odd=b.chance(0.4))
    attributes = b.some(
        0.6, **{name: round(b.rng.uniform(0.1, 2), 2) for name in PARAMETERS.get(op, ())}
    )
    if op == "Gelu":
        attributes = b.some(approximate="tanh")
    if op == "IsInf":
        attributes = b.some(detect_negative=b.integer(0, 1), detect_positive=b.integer(0, 1))
    b.node(op, [x], **attributes)


@family
def binary(b: Builder) -> None:
    op = b.pick(BINARY)
    dtype = b.dtype(op)
    odd = b.chance(0.3) and op not in ("Div", "Mod", "Pow", "BitShift")
    x, values = b.tensor(dtype, odd=odd)
    # Of Mean before opset 8 the standard asks for equal shapes.
    same = op in ("Max", "Mean", "Min", "Sum") and b.version(op) < 8
    shape = list(values.shape) if same else b.broadcasting(values.shape)
    other = b.array(dtype, shape, odd=odd)
    if op in ("Div", "Mod"):
        other = np.where(other == 0, 3, other).astype(other.dtype)
    if op == "BitShift":
        other = b.array(dtype, shape, 0, 7)
    if op == "Pow":
        wide = b.version(op) >= 12 and not b.small
        other = b.array(b.dtype(op, index=1) if wide else dtype, shape, 0, 3)
    inputs = [x, b.put(other)]
    if op in ("Add", "Mul", "Greater", "Max", "Equal", "And") and b.chance(0.3):
        inputs.reverse()
    attributes = {}
    if op == "Mod":
        attributes = {"fmod": 1 if values.dtype.kind not in "iu" else b.integer(0, 1)}
    if op == "BitShift":
        attributes = {"direction": b.pick(["LEFT", "RIGHT"])}
    b.node(op, inputs, **attributes)


@family
def choose(b: Builder) -> None:
    dtype = b.dtype("Where", index=1)
    x, values = b.tensor(dtype, odd=b.chance(0.3))
    condition = b.put(b.array("bool", b.broadcasting(values.shape)))
    b.node("Where", [condition, x, b.new(dtype, b.broadcasting(values.shape))])


@family
def clip(b: Builder) -> None:
    dtype = b.dtype("Clip")
    # Without a bound, onnxruntime moves infinities to the largest finite number.
    x, _ = b.tensor(dtype)
    low, high = b.pick([(1, 2), (2, 1), (0, 3)])
    if b.version("Clip") < 11:
        b.node("Clip", [x], **b.some(min=float(low), max=float(high)))
    else:
        bounds = [b.put(b.array(dtype, [], v, v)) if b.chance(0.6) else "" for v in (low, high)]
        b.node("Clip", [x, *bounds])


@family
def cast(b: Builder) -> None:
    dtype, to = b.dtype("Cast"), b.pick(TYPES)
    low, high = -300, 300
    if dtype in FLOATS and to in INTEGERS:
        # What lies outside the range is undefined by the standard.
        info = np.iinfo(to)
        low, high = max(int(info.min), -60000), min(int(info.max), 60000)
    odd = b.chance(0.5) and to not in INTEGERS
    x = b.put(b.array(dtype, b.shape(), low, high, odd), False)
    b.node("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


@family
def cast_strings(b: Builder) -> None:
    if b.chance():
        b.node("Cast", [b.put(b.array(b.pick(INTEGERS), b.shape(0, 2)), False)], to=8)
        return
    words = ["1", "0", "42", "007", "+3"]
    dtype = b.pick(["float32", "float64", "int32", "int64", "uint8"])
    if dtype in FLOATS:
        words += ["-2.5", "1e3", "inf", "-INF", "NaN", "3.0", "1E-2", "-0"]
    x = np.array([b.pick(words) for _ in range(4)], object)
    b.node("Cast", [b.put(x, False)], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


@family
def cast_small(b: Builder) -> None:
    if b.opset < 21:
        raise Skip
    to = b.pick(
        [
            TensorProto.FLOAT8E4M3FN,
            TensorProto.FLOAT8E4M3FNUZ,
            TensorProto.FLOAT8E5M2,
            TensorProto.FLOAT8E5M2FNUZ,
            TensorProto.BFLOAT16,
            TensorProto.INT4,
            TensorProto.UINT4,
        ]
    )
    integer = to in (TensorProto.INT4, TensorProto.UINT4)
    low, high = (
        (0 if to == TensorProto.UINT4 else -8, 7) if integer else b.pick([(-600, 600), (-1, 1)])
    )
    x = b.array(
        b.pick(["float32", "float16"]), b.shape(1, 2), low, high, not integer and b.chance(0.4)
    )
    if integer:
        x = np.where(x % 1 == 0.5, 0, x)  # of ties onnxruntime rounds away from 0
    saturate = {} if integer or to == TensorProto.BFLOAT16 else b.some(saturate=b.integer(0, 1))
    between = b.name("t")
    b.nodes.append(helper.make_node("Cast", [b.put(x, False)], [between], to=to, **saturate))
    b.node("Cast", [between], to=TensorProto.FLOAT)
