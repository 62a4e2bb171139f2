"""TensorFlow Lite files of single operators, in types that TensorFlow's converter rarely writes.

python -m benchmarks.conversions.tflite_operators                        all of them, held to the interpreter by the Session
python -m benchmarks.conversions.tflite_operators --engine reference     by onnx.reference, which compiles nothing: 30 s
python -m benchmarks.conversions.tflite_operators layers --every 9       a part of a family
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Request
from sardonyx.conversion.tflite.schema import OPERATORS
from sardonyx.errors import SardonyxError

__all__ = ["FAMILIES", "INEXACT", "Case", "build", "is_inexact", "taken"]

_AT_ONCE = 60  # operators of a file

_TYPES = {
    np.dtype(kind): code
    for code, kind in enumerate(["f4", "f2", "i4", "u1", "i8", "O", "?", "i2"])
    if kind != "O"
}
_TYPES |= {np.dtype("c8"): 8, np.dtype("i1"): 9, np.dtype("f8"): 10, np.dtype("u4"): 15}


@dataclass(frozen=True)
class Value:
    """A tensor: a constant, or what is fed or computed.

    Attributes:
        shape: None for what an operator computes.
        scale, zero: where its integers stand for reals; one, or one for every place along `axis`.
    """

    dtype: Any
    shape: tuple[int, ...] | None = None
    data: Any = None
    scale: Any = None
    zero: Any = 0
    axis: int = 0


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    inputs: Sequence[Value | None]
    outputs: Sequence[Value]
    options: Any = None
    fields: Mapping[str, Any] = field(default_factory=dict)


def build(cases: Sequence[Case]) -> bytes:
    """One file with all these operators; what they compute are its outputs."""
    return _pack(cases, _shapes(_pack(cases, {})))


def _pack(cases: Sequence[Case], shapes: Mapping[int, Sequence[int]]) -> bytes:
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.subgraphs, model.signatureDefs = 3, [graph], []
    model.operatorCodes, model.buffers = [], [schema.BufferT()]
    graph.tensors, graph.operators, graph.inputs, graph.outputs = [], [], [], []
    numbers: dict[int, int] = {}

    def number(value: Value | None) -> int:
        if value is None:
            return -1
        if id(value) not in numbers:
            numbers[id(value)] = len(graph.tensors)
            graph.tensors.append(_tensor(model, value, len(graph.tensors), shapes))
            if value.shape is not None and value.data is None:
                graph.inputs.append(numbers[id(value)])
        return numbers[id(value)]

    for case in cases:
        code = schema.OperatorCodeT()
        code.builtinCode = OPERATORS.index(case.kind)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        made = schema.OperatorT()
        made.opcodeIndex = len(model.operatorCodes)
        model.operatorCodes.append(code)
        made.inputs = [number(value) for value in case.inputs]
        made.outputs = [number(value) for value in case.outputs]
        graph.outputs += made.outputs
        if case.options:
            made.builtinOptions = getattr(schema, f"{case.options}T")()
            made.builtinOptionsType = getattr(schema.BuiltinOptions, case.options)
            for name, value in case.fields.items():
                assert hasattr(made.builtinOptions, name), name
                setattr(made.builtinOptions, name, value)
        graph.operators.append(made)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _tensor(model: Any, value: Value, number: int, shapes: Mapping[int, Sequence[int]]) -> Any:
    made = schema.TensorT()
    made.name = f"t{number}"
    made.type = _TYPES[np.dtype(value.dtype)]
    made.shape = list(shapes.get(number, ()) if value.shape is None else value.shape)
    made.hasRank = value.shape is not None or number in shapes
    made.buffer = 0
    if value.data is not None:
        made.buffer = len(model.buffers)
        held = schema.BufferT()
        held.data = np.frombuffer(np.ascontiguousarray(value.data).tobytes(), np.uint8)
        model.buffers.append(held)
    if value.scale is not None:
        made.quantization = schema.QuantizationParametersT()
        scale = np.atleast_1d(np.asarray(value.scale, np.float32))
        made.quantization.scale = scale
        made.quantization.zeroPoint = np.broadcast_to(np.asarray(value.zero, np.int64), scale.shape)
        made.quantization.quantizedDimension = value.axis
    return made


def _shapes(data: bytes) -> dict[int, Sequence[int]]:
    """What the interpreter makes of the sizes of results."""
    interpreter = _open(data)
    interpreter.allocate_tensors()
    for port in interpreter.get_input_details():
        interpreter.set_tensor(port["index"], np.ones(port["shape"], port["dtype"]))
    interpreter.invoke()
    found = interpreter.get_output_details()
    return {port["index"]: list(interpreter.get_tensor(port["index"]).shape) for port in found}


def _open(data: bytes) -> Interpreter:
    return Interpreter(
        model_content=data,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )


# ---------------------------------------------------------------- values

_STEPS = {"i1": (0.05, 3), "u1": (0.05, 120), "i2": (0.0003, 0)}
_rng = np.random.default_rng(5)


def _fed(dtype: str, *shape: int, scale: Any = None, zero: Any = None) -> Value:
    if dtype in _STEPS:
        found = _STEPS[dtype]
        return Value(dtype, shape, None, scale or found[0], found[1] if zero is None else zero)
    return Value(dtype, shape)


def _const(data: Any, dtype: Any = None, scale: Any = None, zero: Any = 0, axis: int = 0) -> Value:
    array = np.asarray(data, dtype)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.dtype == np.int64 and dtype is None:
        array = array.astype(np.int32)
    return Value(array.dtype, array.shape, array, scale, zero, axis)


def _out(dtype: str, scale: Any = None, zero: Any = None) -> Value:
    if dtype in _STEPS and scale != 0:
        found = _STEPS[dtype]
        return Value(dtype, None, None, scale or found[0], found[1] if zero is None else zero)
    return Value(dtype)


def _ints(dtype: str, *shape: int) -> Any:
    limits = np.iinfo(dtype)
    low, high = max(limits.min + 1, -1000), min(limits.max, 1000)
    return _rng.integers(low, high, shape, np.dtype(dtype).type)


_REAL, _BYTES = ("f4",), ("i1", "u1", "i2")
_ALL = (*_REAL, *_BYTES)
_WHOLE = ("i4", "i8")


def _name(kind: str, *parts: Any) -> str:
    return " ".join([kind, *map(str, parts)])


def _unary() -> Iterator[Case]:
    kinds = "ABS CEIL COS ELU EXP FLOOR LOG LOGISTIC NEG RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 ROUND SIGN SIN"
    kinds += " SQRT RSQRT SQUARE TANH HARD_SWISH GELU LEAKY_RELU SOFTMAX LOG_SOFTMAX L2_NORMALIZATION ZEROS_LIKE"
    options = {
        "GELU": ("GeluOptions", {"approximate": False}),
        "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.3}),
        "SOFTMAX": ("SoftmaxOptions", {"beta": 1.0}),
        "L2_NORMALIZATION": ("L2NormOptions", {}),
    }
    # Grids that a kernel insists on.
    grids = {
        "SOFTMAX": {"i1": (1 / 256, -128), "u1": (1 / 256, 0), "i2": (1 / 32768, 0)},
        "LOGISTIC": {"i1": (1 / 256, -128), "u1": (1 / 256, 0), "i2": (1 / 32768, 0)},
        "LOG_SOFTMAX": {"i1": (16 / 256, 127), "u1": (16 / 256, 255)},
        "TANH": {"i1": (1 / 128, 0), "u1": (1 / 128, 128), "i2": (1 / 32768, 0)},
        "L2_NORMALIZATION": {"i1": (1 / 128, 0), "u1": (1 / 128, 128)},
    }
    for kind in kinds.split():
        for dtype in (*_ALL, *_WHOLE):
            positive = kind in ("LOG", "SQRT", "RSQRT")
            x = _fed(dtype, 2, 5)
            if dtype in _BYTES and positive:  # from 0 on
                x = _fed(dtype, 2, 5, zero={"i1": -128, "u1": 0, "i2": 0}[dtype])
            if dtype == "f4" and positive:
                x = _const(_rng.uniform(0.1, 4, (2, 5)), np.float32)
            grid = grids.get(kind, {}).get(dtype)
            if kind in ("ABS", "RSQRT") and dtype in _BYTES:
                grid = (0.06, 1 if dtype != "i2" else 0)
            y = _out(dtype, *grid) if grid else _out(dtype)
            name, fields = options.get(kind, (None, {}))
            yield Case(_name(kind, dtype), kind, [x], [y], name, fields)
    yield Case(
        "GELU tanh f4", "GELU", [_fed("f4", 9)], [_out("f4")], "GeluOptions", {"approximate": True}
    )
    yield Case(
        "SOFTMAX beta f4",
        "SOFTMAX",
        [_fed("f4", 2, 5)],
        [_out("f4")],
        "SoftmaxOptions",
        {"beta": 0.5},
    )
    yield Case("LOGICAL_NOT", "LOGICAL_NOT", [_fed("?", 2, 5)], [_out("?")])


_ARITHMETIC = {
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "DIV": "DivOptions",
    "POW": "PowOptions",
    "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
}


def _divisor(kind: str, dtype: str, y: Value) -> Value:
    """Another right side, where not every number will do."""
    data: Any = None
    if kind in ("DIV", "FLOOR_DIV", "FLOOR_MOD", "POW") and dtype != "f4":
        data = [[1, 2, 3, 5, 7]] if kind == "POW" else [[3, -2, 7, 5, -4]]
        data = [[3, 200, 7, 5, 250]] if dtype == "u1" else data
    if kind == "PRELU" and dtype in _ALL:
        data = _rng.normal(size=5) if dtype == "f4" else _ints(dtype, 5)
    return y if data is None else _const(data, dtype, y.scale, y.zero)


def _binary() -> Iterator[Case]:
    for kind in [
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "MAXIMUM",
        "MINIMUM",
        "POW",
        "SQUARED_DIFFERENCE",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "ATAN2",
        "PRELU",
    ]:
        for dtype in (*_ALL, *_WHOLE):
            x, y = _fed(dtype, 3, 5), _fed(dtype, 3 if kind == "ATAN2" else 1, 5)
            if dtype in _BYTES and kind not in ("MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD"):
                found = _STEPS[dtype]
                y = _fed(dtype, 1, 5, scale=found[0] * 0.7, zero=found[1] and found[1] - 9)
            y = _divisor(kind, dtype, y)
            if kind == "POW" and dtype == "f4":
                x = _const(_rng.uniform(0.2, 3, (3, 5)), np.float32)
            plain = kind in ("FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM") and dtype in _BYTES
            if plain:  # integers that stand for themselves, too
                a, b = Value(dtype, (3, 5)), Value(dtype, (1, 5), y.data)
                yield Case(
                    _name(kind, dtype, "plain"), kind, [a, b], [Value(dtype)], _ARITHMETIC.get(kind)
                )
            scale = {"MUL": 0.12, "SQUARED_DIFFERENCE": 0.4}.get(kind)
            z = _out(dtype, scale if dtype != "i2" and dtype in _BYTES else None)
            yield Case(_name(kind, dtype), kind, [x, y], [z], _ARITHMETIC.get(kind))


def _activated() -> Iterator[Case]:
    for kind in ("ADD", "SUB", "MUL", "DIV"):
        for code, dtype in (
            (1, "f4"),
            (2, "f4"),
            (3, "f4"),
            (1, "i1"),
            (3, "i1"),
            (2, "u1"),
            (1, "i4"),
            (3, "i4"),
        ):
            x, y = _fed(dtype, 3, 5), _fed(dtype, 3, 5)
            yield Case(
                _name(kind, dtype, "activation", code),
                kind,
                [x, y],
                [_out(dtype)],
                _ARITHMETIC[kind],
                {"fusedActivationFunction": code},
            )


def _compared() -> Iterator[Case]:
    for kind in ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"]:
        for dtype in (*_ALL, *_WHOLE, "?"):
            x = _fed(dtype, 3, 5)
            y = _fed(dtype, 1, 5)
            if dtype in _BYTES:  # another grid
                y = _fed(dtype, 1, 5, scale=_STEPS[dtype][0] * 0.7)
            yield Case(_name(kind, dtype), kind, [x, y], [_out("?")])
    for kind in ("LOGICAL_AND", "LOGICAL_OR"):
        yield Case(kind, kind, [_fed("?", 3, 5), _fed("?", 1, 5)], [_out("?")])
    for dtype in ("i1", "u1", "i2", "i4", "u4"):
        x, y = Value(dtype, (3, 5)), Value(dtype, (3, 5))
        yield Case(_name("BITWISE_XOR", dtype), "BITWISE_XOR", [x, y], [Value(dtype)])
    for dtype in ("f4", "i4"):
        yield Case(
            _name("ADD_N", dtype), "ADD_N", [_fed(dtype, 3, 5) for _ in range(3)], [_out(dtype)]
        )
    for dtype in (*_ALL, *_WHOLE):
        x, y = _fed(dtype, 3, 5), _fed(dtype, 3, 5)
        yield Case(_name("SELECT_V2", dtype), "SELECT_V2", [_fed("?", 3, 1), x, y], [_out(dtype)])
        yield Case(_name("SELECT", dtype), "SELECT", [_fed("?", 3), x, y], [_out(dtype)])


def _reduced() -> Iterator[Case]:
    for kind in ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"]:
        for dtype in (*_ALL, *_WHOLE):
            for axes, keep in (([1], False), ([0, 2], True), ([], False), (1, False), ([-1], True)):
                scale = (
                    {"SUM": 0.12, "REDUCE_PROD": 0.5}.get(kind) if dtype in ("i1", "u1") else None
                )
                fields = {"keepDims": keep}
                x, a = _fed(dtype, 2, 3, 4), _const(axes, np.int32)
                name = _name(kind, dtype, axes, keep)
                yield Case(name, kind, [x, a], [_out(dtype, scale)], "ReducerOptions", fields)
    for kind in ("REDUCE_ANY", "REDUCE_ALL"):
        for axes, keep in (([1], False), ([0, 2], True), ([], False)):
            x, a = _fed("?", 2, 3, 4), _const(axes, np.int32)
            name = _name(kind, axes, keep)
            yield Case(name, kind, [x, a], [_out("?")], "ReducerOptions", {"keepDims": keep})
    for kind, option in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        for dtype in (*_ALL, "i4", "?"):
            for place in ("i4", "i8"):
                code = {"i4": 2, "i8": 4}[place]
                x, y = _fed(dtype, 3, 6), _out(place)
                name = _name(kind, dtype, place)
                yield Case(name, kind, [x, _const(-1, np.int32)], [y], option, {"outputType": code})
    for dtype in (*_ALL, *_WHOLE):
        x = _fed(dtype, 3, 6)
        ends = [_out(dtype), _out("i4")]
        yield Case(_name("TOPK_V2", dtype), "TOPK_V2", [x, _const(3, np.int32)], ends)
        for exclusive, reverse in ((False, False), (True, False), (True, True)):
            name = _name("CUMSUM", dtype, exclusive, reverse)
            fields = {"exclusive": exclusive, "reverse": reverse}
            axis = _const(-1, np.int32)
            yield Case(name, "CUMSUM", [x, axis], [_out(dtype)], "CumsumOptions", fields)


def _moved() -> Iterator[Case]:
    for dtype in (*_ALL, *_WHOLE, "?"):
        yield from _moved_of(dtype)
    for a, b in (([3, 1], [1, 4]), ([2, 3, 1], [4])):
        shapes = [_const(a, np.int32), _const(b, np.int32)]
        yield Case(_name("BROADCAST_ARGS", a, b), "BROADCAST_ARGS", list(shapes), [_out("i4")])
    for dtype in _BYTES:
        x = _fed(dtype, 3, 4)
        other = {"i1": "u1", "u1": "i1", "i2": "i1"}[dtype]
        yield Case(_name("QUANTIZE", dtype, other), "QUANTIZE", [x], [_out(other)])
        yield Case(_name("QUANTIZE f4", dtype), "QUANTIZE", [_fed("f4", 3, 4)], [_out(dtype)])
        yield Case(_name("DEQUANTIZE", dtype), "DEQUANTIZE", [x], [_out("f4")])
        parts = [_fed(dtype, 2, 3), _fed(dtype, 2, 3, scale=_STEPS[dtype][0] * 0.5)]
        yield Case(_name("CONCATENATION", dtype, "two grids"), "CONCATENATION", list(parts),
                   [_out(dtype)], "ConcatenationOptions", {"axis": 1})  # fmt: skip
    for bits, narrow in ((8, False), (8, True), (4, False)):
        fields = {"min": -1.1, "max": 2.3, "numBits": bits, "narrowRange": narrow}
        yield Case(_name("FAKE_QUANT", bits, narrow), "FAKE_QUANT", [_fed("f4", 40)], [_out("f4")],
                   "FakeQuantOptions", fields)  # fmt: skip


def _moved_of(dtype: str) -> Iterator[Case]:
    def case(kind: str, inputs: list[Value | None], count: int = 1, options: str | None = None,
             said: str = "", **fields: Any) -> Case:  # fmt: skip
        made = [_out(dtype) for _ in range(count)]
        return Case(_name(kind, dtype, said), kind, inputs, made, options, fields)

    x = _fed(dtype, 2, 3, 4)
    flat = _fed(dtype, 1, 4, 6, 8)
    filler = _const(1, dtype, x.scale, x.zero)
    widths = _const([[1, 0], [0, 2], [1, 1]], np.int32)
    yield case("TRANSPOSE", [x, _const([2, 0, 1], np.int32)])
    yield case("RESHAPE", [x, _const([4, -1], np.int32)])
    yield case("RESHAPE", [x], options="ReshapeOptions", said="by option", newShape=[4, 6])
    yield case("SQUEEZE", [_fed(dtype, 1, 3, 1)], options="SqueezeOptions", squeezeDims=[-1])
    yield case(
        "SQUEEZE", [_fed(dtype, 1, 3, 1)], options="SqueezeOptions", said="all", squeezeDims=[]
    )
    yield case("EXPAND_DIMS", [x, _const(-2, np.int32)])
    yield case("SLICE", [x, _const([0, 1, 1], np.int32), _const([2, -1, 2], np.int32)])
    yield case(
        "SPLIT_V",
        [x, _const([1, -1], np.int32), _const(2, np.int32)],
        2,
        "SplitVOptions",
        numSplits=2,
    )
    yield case("SPLIT", [_const(-1, np.int32), x], 2, "SplitOptions", numSplits=2)
    yield case("PACK", [x, x], options="PackOptions", valuesCount=2, axis=-1)
    yield case("UNPACK", [x], 3, "UnpackOptions", num=3, axis=-2)
    yield case("TILE", [x, _const([1, 2, 3], np.int32)])
    yield case("BROADCAST_TO", [_fed(dtype, 3, 1), _const([2, 3, 4], np.int32)])
    yield case("PAD", [x, widths])
    yield case("PADV2", [x, widths, filler])
    for mode in (0, 1):
        narrow = _const([[1, 0], [0, 2], [1, 1]], np.int32)
        yield case("MIRROR_PAD", [x, narrow], options="MirrorPadOptions", said=str(mode), mode=mode)
    yield case("REVERSE_V2", [x, _const([1], np.int32)])
    yield case("GATHER", [x, _const([[2, 0], [1, 1]], np.int32)], options="GatherOptions", axis=1)
    yield case("GATHER", [x, _const([[2, 0], [1, 1]], np.int32)], options="GatherOptions", said="batches",
               axis=1, batchDims=1)  # fmt: skip
    yield case("GATHER_ND", [x, _const([[1, 2], [0, 0]], np.int32)])
    yield case("ZEROS_LIKE", [x])
    yield case("FILL", [_const([2, 3], np.int32), filler])
    yield case(
        "SCATTER_ND",
        [_const([[2], [0], [2]], np.int32), _fed(dtype, 3, 4), _const([5, 4], np.int32)],
    )
    yield case("DYNAMIC_UPDATE_SLICE", [x, _fed(dtype, 1, 2, 2), _const([1, 2, -1], np.int32)])
    yield case("ONE_HOT", [_const([1, -1, 3, 0], np.int32), _const(4, np.int32), filler,
                           _const(0, dtype, x.scale, x.zero)], options="OneHotOptions", axis=-1)  # fmt: skip
    yield case("DEPTH_TO_SPACE", [flat], options="DepthToSpaceOptions", blockSize=2)
    yield case("SPACE_TO_DEPTH", [flat], options="SpaceToDepthOptions", blockSize=2)
    block, sides = _const([2, 2], np.int32), _const([[1, 1], [0, 2]], np.int32)
    yield case("SPACE_TO_BATCH_ND", [flat, block, sides])
    yield case(
        "BATCH_TO_SPACE_ND",
        [_fed(dtype, 4, 2, 3, 2), block, _const([[0, 1], [1, 0]], np.int32)],
    )
    yield case("CONCATENATION", [x, x], options="ConcatenationOptions", axis=-1)
    yield case("STRIDED_SLICE", [x, _const([0, -1, 0], np.int32), _const([0, 0, 4], np.int32),
                                 _const([1, -1, 2], np.int32)], options="StridedSliceOptions",
               beginMask=0, endMask=2, shrinkAxisMask=1)  # fmt: skip
    if dtype in ("f4", "i4", "i8"):
        ends = [_const(n, dtype) for n in (1, 9, 3)]
        yield case("RANGE", list(ends))
    yield Case(_name("SHAPE", dtype), "SHAPE", [x], [_out("i8")], "ShapeOptions", {"outType": 4})
    yield Case(_name("RANK", dtype), "RANK", [x], [_out("i4")])
    if dtype not in _BYTES:
        yield Case(
            _name("WHERE", dtype),
            "WHERE",
            [_const(_rng.integers(0, 2, (3, 4)), dtype)],
            [_out("i8")],
        )
    for other in ("f4", "i4", "i8", "?", "i1", "u1", "i2"):
        a, b = Value(dtype, (3, 4)), Value(other)
        codes = {"inDataType": _TYPES[np.dtype(dtype)], "outDataType": _TYPES[np.dtype(other)]}
        yield Case(_name("CAST", dtype, other), "CAST", [a], [b], "CastOptions", codes)


def _weights(dtype: str, shape: tuple[int, ...], axis: int | None) -> Value:
    if dtype == "f4":
        return _const(_rng.normal(size=shape), np.float32)
    data = _ints("u1" if dtype == "u1" else "i1", *shape)
    if dtype == "u1":
        return _const(data, np.uint8, 0.02, 127)
    scale = 0.02 if axis is None else _rng.uniform(0.01, 0.03, shape[axis])
    return _const(data, np.int8, scale, 0, axis or 0)


def _bias(dtype: str, count: int, x: Value, w: Value) -> Value:
    if dtype == "f4":
        return _const(_rng.normal(size=count), np.float32)
    kind = np.int64 if dtype == "i2" else np.int32
    data = _rng.integers(-300, 300, count)
    return _const(data, kind, np.asarray(x.scale) * np.asarray(w.scale), 0)


def _layers() -> Iterator[Case]:
    for dtype in _ALL:
        yield from _convolved(dtype)
        yield from _products(dtype)
        yield from _windows(dtype)
    for radius in (1, 3):
        fields = {"radius": radius, "bias": 1.0, "alpha": 0.3, "beta": 0.7}
        yield Case(_name("LOCAL_RESPONSE_NORMALIZATION", radius), "LOCAL_RESPONSE_NORMALIZATION",
                   [_fed("f4", 1, 3, 3, 6)], [_out("f4")], "LocalResponseNormalizationOptions", fields)  # fmt: skip
    deep = _fed("f4", 1, 5, 6, 7, 2)
    for padding, stride in ((0, 1), (1, 2), (0, 2)):
        fields = {"padding": padding, "strideD": stride, "strideW": stride, "strideH": stride}
        w = _weights("f4", (3, 3, 3, 2, 4), None)
        gaps = {"dilationDFactor": 1, "dilationWFactor": 1, "dilationHFactor": 1}
        yield Case(_name("CONV_3D", padding, stride), "CONV_3D", [deep, w, _bias("f4", 4, deep, w)],
                   [_out("f4")], "Conv3DOptions", fields | gaps)  # fmt: skip
    for asymmetric in (False, True):
        rows, w = _fed("f4", 3, 8), _weights("i1", (5, 8), None)
        yield Case(_name("FULLY_CONNECTED hybrid", asymmetric), "FULLY_CONNECTED",
                   [rows, w, _const(_rng.normal(size=5), np.float32)], [_out("f4")], "FullyConnectedOptions",
                   {"asymmetricQuantizeInputs": asymmetric})  # fmt: skip


def _result(dtype: str) -> Value:
    """Of sums of products: on a wide grid."""
    return _out(dtype, None if dtype == "f4" else {"i2": 0.0012}.get(dtype, 0.35))


def _convolved(dtype: str) -> Iterator[Case]:
    axis = 0 if dtype != "u1" else None
    x = _fed(dtype, 1, 7, 8, 4)
    y = _result(dtype)
    for padding, stride, gap in ((0, 1, 1), (1, 2, 1), (0, 2, 1), (1, 1, 2)):
        fields = {"padding": padding, "strideW": stride, "strideH": stride}
        gaps = {"dilationWFactor": gap, "dilationHFactor": gap}
        w = _weights(dtype, (6, 3, 3, 4), axis)
        inputs = [x, w, _bias(dtype, 6, x, w)]
        said = (dtype, ("SAME", "VALID")[padding], stride, gap)
        yield Case(_name("CONV_2D", *said), "CONV_2D", inputs, [y], "Conv2DOptions", fields | gaps)
        w = _weights(dtype, (1, 3, 3, 8), 3 if dtype != "u1" else None)
        inputs = [x, w, _bias(dtype, 8, x, w)]
        more = fields | gaps | {"depthMultiplier": 2}
        z = _out(dtype, y.scale)
        yield Case(_name("DEPTHWISE_CONV_2D", *said), "DEPTHWISE_CONV_2D", inputs, [z],
                   "DepthwiseConv2DOptions", more)  # fmt: skip
        y = _out(dtype, y.scale)
        if gap > 1:
            continue
        w = _weights(dtype, (5, 3, 3, 4), axis)
        size = (
            [1, 7 * stride, 8 * stride, 5]
            if not padding
            else [1, 6 * stride + 3, 7 * stride + 3, 5]
        )
        inputs = [_const(size, np.int32), w, x, _bias(dtype, 5, x, w)]
        yield Case(_name("TRANSPOSE_CONV", *said), "TRANSPOSE_CONV", inputs, [_out(dtype, y.scale)],
                   "TransposeConvOptions", fields)  # fmt: skip


def _products(dtype: str) -> Iterator[Case]:
    y = _result(dtype)
    rows = _fed(dtype, 3, 8)
    w = _weights(dtype, (5, 8), None)
    for code in (0, 1, 3):
        yield Case(_name("FULLY_CONNECTED", dtype, code), "FULLY_CONNECTED",
                   [rows, w, _bias(dtype, 5, rows, w)], [_out(dtype, y.scale)], "FullyConnectedOptions",
                   {"fusedActivationFunction": code})  # fmt: skip
    for kept in (False, True):
        deep = _fed(dtype, 2, 3, 8)
        yield Case(_name("FULLY_CONNECTED deep", dtype, kept), "FULLY_CONNECTED", [deep, w, None],
                   [_out(dtype, y.scale)], "FullyConnectedOptions", {"keepNumDims": kept})  # fmt: skip
    for adj_x, adj_y in ((False, False), (True, False), (False, True)):
        a = _fed(dtype, 2, 3, 4) if not adj_x else _fed(dtype, 2, 4, 3)
        b = _fed(dtype, 1, 4, 5) if not adj_y else _fed(dtype, 1, 5, 4)
        yield Case(_name("BATCH_MATMUL", dtype, adj_x, adj_y), "BATCH_MATMUL", [a, b],
                   [_out(dtype, y.scale)], "BatchMatMulOptions", {"adjX": adj_x, "adjY": adj_y})  # fmt: skip


def _windows(dtype: str) -> Iterator[Case]:
    x = _fed(dtype, 1, 7, 8, 4)
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for padding, code in ((0, 0), (1, 1), (0, 3)):
            fields = {
                "padding": padding,
                "strideW": 2,
                "strideH": 2,
                "filterWidth": 3,
                "filterHeight": 3,
            }
            yield Case(_name(kind, dtype, padding, code), kind, [x], [_out(dtype)], "Pool2DOptions",
                       fields | {"fusedActivationFunction": code})  # fmt: skip
    image = _fed(dtype, 1, 5, 6, 3)
    for kind, options in (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    ):
        for corners, centers in ((False, False), (True, False), (False, True)):
            for size in ([10, 12], [3, 4], [7, 13]):
                fields = {"alignCorners": corners, "halfPixelCenters": centers}
                yield Case(_name(kind, dtype, corners, centers, size), kind,
                           [image, _const(size, np.int32)], [_out(dtype)], options, fields)  # fmt: skip
    ids = _const([2, 0, 3], np.int32)
    rows = _weights(dtype, (4, 6), 0 if dtype == "i1" else None)
    ends = (
        _out("f4")
        if dtype in ("f4", "i1")
        else Value(rows.dtype, None, None, rows.scale, rows.zero)
    )
    yield Case(_name("EMBEDDING_LOOKUP", dtype), "EMBEDDING_LOOKUP", [ids, rows], [ends])


def _families() -> dict[str, list[Case]]:
    made = {
        "unary": _unary,
        "binary": _binary,
        "activated": _activated,
        "compared": _compared,
        "reduced": _reduced,
        "moved": _moved,
        "layers": _layers,
    }
    return {name: list(family()) for name, family in made.items()}


# Kernels that answer with less than their type could hold, or by other numbers than their grids say; the proof refuses them.
INEXACT = {
    "LOG i2": "a table of 513 numbers",
    "SOFTMAX i2": "a table of 513 numbers",
    "NEG i1": "stored numbers are negated, with a zero point that is not 0",
    "PRELU i2": "factors of 16 bits are read as bytes",
    "REDUCE_PROD i1": "every product on its way is rounded",
    "REDUCE_PROD i2": "every product on its way is rounded",
    "RESIZE_BILINEAR i2": "weights of 10 bits",
}
# What these are given here, they do not take.
_UNFIT = ("SQRT i2", "RSQRT i2", "DIV i4 activation", "CAST f4 u1", "CONCATENATION i2 two grids")


def is_inexact(case: Case) -> bool:
    return case.name.strip().startswith(tuple(INEXACT))


def taken(cases: Sequence[Case]) -> list[Case]:
    """Those that the interpreter itself takes."""
    found = []
    for case in cases:
        try:
            build([case])
        except (RuntimeError, ValueError):
            continue
        if not case.name.startswith(_UNFIT):
            found.append(case)
    return found


FAMILIES: Mapping[str, Sequence[Case]] = _families()


def _held(cases: Sequence[Case], engine: str) -> str:
    """What became of them, in one file."""
    try:
        converted = convert_model(Request(build(cases)), framework="tflite", engine=engine)
    except SardonyxError as error:
        return " ".join(str(error).split())[:300]
    assert converted.verification is not None
    return f"held, max abs {converted.verification.max_abs:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", choices=[*FAMILIES, []], default=[])
    parser.add_argument("--engine", default="sardonyx", help="that runs the results")
    parser.add_argument("--every", type=int, default=1, help="one case in so many")
    arguments = parser.parse_args()
    bad = 0
    for name in arguments.families or FAMILIES:
        cases = taken(FAMILIES[name][:: arguments.every])
        exact = [case for case in cases if not is_inexact(case)]
        for begin in range(0, len(exact), _AT_ONCE):
            some = exact[begin : begin + _AT_ONCE]
            said = _held(some, arguments.engine)
            print(f"{name}, {len(some)} from {some[0].name} on: {said}", flush=True)
            if said.startswith("held"):
                continue
            bad += 1
            for case in some:
                print("   ", case.name, _held([case], arguments.engine), flush=True)
        for case in cases:
            if is_inexact(case):
                print("    inexact:", case.name, _held([case], "reference")[:120], flush=True)
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
