"""Functions: those of the model, and the bodies that the standard itself gives to operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.backends.reference.operator import Operator, Schema
from sardonyx.backends.reference.values import SparseTensor, Value

__all__ = [
    "FunctionKey",
    "bind_function",
    "contextual_body",
    "function_key",
    "schema_body",
    "type_key",
]

FunctionKey: TypeAlias = tuple[int, tuple[tuple[str, Any], ...]]


def bind_function(function: ir.Function, given: Mapping[str, ir.Attr]) -> dict[str, ir.Attr]:
    """The attributes inside a function: those of the call, else the function's defaults."""
    bound = {name: attr for name, attr in function.attributes.items() if attr.value is not None}
    bound.update({name: attr for name, attr in given.items() if name in function.attributes})
    return bound


def function_key(function: ir.Function, bindings: Mapping[str, ir.Attr]) -> FunctionKey:
    """Calls with equal keys share one compiled body."""
    return id(function), tuple(
        sorted((name, _hashable(attribute)) for name, attribute in bindings.items())
    )


def _hashable(attribute: ir.Attr) -> tuple[str, str]:
    value = attribute.value
    plain = (int, float, str, bytes, tuple)
    return attribute.type.name, repr(value) if isinstance(value, plain) else str(id(value))


@cache
def schema_body(domain: str, name: str, since: int) -> ir.Function:
    """The function body that the standard defines for an operator."""
    schema: Schema = onnx.defs.get_schema(name, since, domain)
    function: ir.Function = ir.from_proto(schema.function_body)
    for name, attribute in schema.attributes.items():
        if name in function.attributes and attribute.default_value.type != 0:
            function.attributes[name] = ir.from_proto(attribute.default_value)
    return function


def contextual_body(schema: Schema, operator: Operator, inputs: Sequence[Value]) -> ir.Function:
    """The body of an operator whose definition depends on the types of its inputs."""
    node = ir.serde.serialize_node(operator.node)
    del node.input[:]
    node.input.extend("" if value is None else f"input_{i}" for i, value in enumerate(inputs))
    types = [_type_proto(value).SerializeToString() for value in inputs]
    proto = onnx.FunctionProto()
    proto.ParseFromString(schema.get_context_dependent_function(node.SerializeToString(), types))
    function: ir.Function = ir.from_proto(proto)
    return function


def type_key(inputs: Sequence[Value]) -> tuple[object, ...]:
    """What a contextual body depends on."""
    return tuple(
        (value.dtype, value.shape) if isinstance(value, np.ndarray) else type(value)
        for value in inputs
    )


def _type_proto(value: Value) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    if isinstance(value, np.ndarray):
        elem_type = (
            onnx.TensorProto.STRING
            if value.dtype == object
            else ir.DataType.from_numpy(value.dtype).value
        )
        proto = onnx.helper.make_tensor_type_proto(elem_type, value.shape)
    elif isinstance(value, list):
        proto = onnx.helper.make_sequence_type_proto(
            _type_proto(value[0]) if value else onnx.TypeProto()
        )
    elif isinstance(value, SparseTensor):
        elem_type = ir.DataType.from_numpy(value.dtype).value
        proto = onnx.helper.make_sparse_tensor_type_proto(elem_type, value.shape)
    return proto
