"""The ports of a graph: its inputs and outputs as they are declared."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.model.carried.maps import declared_type
from sardonyx.runtime.ports import Port

__all__ = ["port_of"]


def port_of(value: ir.Value, *, has_default: bool = False) -> Port:
    """Describe a graph's input or output."""
    kind = value.type
    mapped = declared_type(value)
    text = _proto_text(mapped) if mapped is not None else _type_text(kind)
    dtype = _numpy_type(kind)
    shape: tuple[int | str | None, ...] | None = None
    if value.shape is not None:
        shape = tuple(d if isinstance(d, int) else d.value for d in value.shape)
    is_optional = has_default or isinstance(kind, ir.OptionalType)
    name = value.name or ""
    element = _element_of(name, kind) if mapped is None else None
    return Port(name, text, dtype, shape, is_optional, element)


def _element_of(name: str, kind: ir.TypeProtocol | None) -> Port | None:
    if not isinstance(kind, ir.SequenceType | ir.OptionalType):
        return None
    inner = kind.elem_type
    dtype = _numpy_type(inner)
    label = f"{name}[…]" if isinstance(kind, ir.SequenceType) else name
    return Port(label, _type_text(inner), dtype, None, element=_element_of(label, inner))


def _type_text(kind: ir.TypeProtocol | None) -> str:
    if isinstance(kind, ir.SequenceType):
        return f"seq({_type_text(kind.elem_type)})"
    if isinstance(kind, ir.OptionalType):
        return f"optional({_type_text(kind.elem_type)})"
    if isinstance(kind, ir.SparseTensorType):
        return f"sparse_tensor({kind.dtype.name.lower()})"
    return f"tensor({kind.dtype.name.lower()})" if kind is not None else "unknown"


def _proto_text(kind: onnx.TypeProto) -> str:
    which = kind.WhichOneof("value")
    if which == "map_type":
        key = ir.DataType(kind.map_type.key_type).name.lower()
        return f"map({key},{_proto_text(kind.map_type.value_type)})"
    if which == "sequence_type":
        return f"seq({_proto_text(kind.sequence_type.elem_type)})"
    if which == "optional_type":
        return f"optional({_proto_text(kind.optional_type.elem_type)})"
    return f"tensor({ir.DataType(kind.tensor_type.elem_type).name.lower()})"


def _numpy_type(kind: ir.TypeProtocol | None) -> np.dtype[Any] | None:
    is_tensor = isinstance(kind, ir.TensorType | ir.SparseTensorType)
    return np.dtype(kind.dtype.numpy()) if is_tensor and kind is not None else None
