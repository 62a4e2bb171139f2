"""Cases → the bytes of one .tflite file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from benchmarks.conversions.tflite_operators.cases import Case, Value
from sardonyx.conversion.tflite.schema import OPERATORS

__all__ = ["TYPES", "build"]


TYPES = {
    np.dtype(kind): code
    for code, kind in enumerate(["f4", "f2", "i4", "u1", "i8", "O", "?", "i2"])
    if kind != "O"
}
TYPES |= {np.dtype("c8"): 8, np.dtype("i1"): 9, np.dtype("f8"): 10, np.dtype("u4"): 15}


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
    made.type = TYPES[np.dtype(value.dtype)]
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
