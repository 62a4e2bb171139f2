"""A model's inputs and outputs as its callers see them, and the check of what they feed.

What is fed is never copied unless it must be: a view of the caller's array goes in, byte order and strides
included, and the answer is the same for every layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.backends.reference import SparseTensor, Value
from sardonyx.errors import InputError
from sardonyx.model.maps import declared_type

__all__ = ["Port", "check_feeds", "port_of"]


@dataclass(frozen=True)
class Port:
    """One input or output: `Port('x', 'tensor(float)', FLOAT, ('batch', 64))`."""

    name: str
    type: str  # as onnxruntime writes it: tensor(float), seq(tensor(int64)), optional(…), map(…)
    dtype: ir.DataType | None  # of a tensor
    shape: tuple[int | str | None, ...] | None  # ints, symbols, None; None as a whole: rank unknown
    optional: bool = False  # has a default, or is of an optional type

    def __str__(self) -> str:
        if self.dtype is None:
            return f"{self.name}: {self.type}"
        dims = (
            "?"
            if self.shape is None
            else ", ".join("?" if d is None else str(d) for d in self.shape)
        )
        return f"{self.name}: {self.dtype.name.lower()}[{dims}]"


def port_of(value: ir.Value, *, has_default: bool = False) -> Port:
    """Describe a graph's input or output."""
    kind = value.type
    mapped = declared_type(value)
    text = _proto_text(mapped) if mapped is not None else _type_text(kind)
    dtype = kind.dtype if isinstance(kind, ir.TensorType | ir.SparseTensorType) else None
    shape: tuple[int | str | None, ...] | None = None
    if value.shape is not None:
        shape = tuple(d if isinstance(d, int) else d.value for d in value.shape)
    return Port(
        value.name or "", text, dtype, shape, has_default or isinstance(kind, ir.OptionalType)
    )


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


def check_feeds(
    ports: Sequence[Port], feeds: Mapping[str, Any], fixed: Mapping[str, int] | None = None
) -> dict[str, Value]:
    """Refuse feeds that do not fit, and give the others as the backends want them.

    `fixed` gives symbolic dimensions a value beforehand; a symbol must have one value in the whole call.
    """
    known = {port.name for port in ports}
    for name in feeds:
        if name not in known:
            raise InputError(
                f"the model has no input {str(name)[:200]!r}.",
                value=name,
                hint=f"Its inputs are: {'; '.join(map(str, ports)) or 'none'}.",
            )
    bound: dict[str, tuple[int, str]] = {
        s: (v, "the session's options") for s, v in (fixed or {}).items()
    }
    checked: dict[str, Value] = {}
    for port in ports:
        if port.name in feeds:
            checked[port.name] = _check(port, feeds[port.name], bound)
        elif not port.optional:
            raise InputError(
                "nothing was fed for it.", where=f"input {port}", hint="Feed it by its name."
            )
        elif port.type.startswith("optional("):
            checked[port.name] = None
    return checked


def _check(port: Port, value: Any, bound: dict[str, tuple[int, str]]) -> Value:
    if port.type.startswith("optional(") and value is None:
        return None
    if port.dtype is None:
        return _check_structure(port, value)
    if isinstance(value, SparseTensor):
        return value
    array = _as_array(port, value)
    if port.shape is not None:
        _check_shape(port, array, bound)
    return array


def _check_structure(port: Port, value: Any) -> Value:
    """Sequences, optionals and maps: the container is checked here, its elements by the nodes that read them."""
    wants_list = port.type.startswith(("seq(", "optional(seq("))
    if wants_list:
        if not isinstance(value, list | tuple):
            raise InputError(
                f"a list was expected, not {type(value).__name__}.", where=f"input {port}"
            )
        return [item if isinstance(item, dict | SparseTensor) else _tensor(item) for item in value]
    if isinstance(value, dict):
        return value
    return _tensor(value)


def _tensor(value: Any) -> Value:
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


def _as_array(port: Port, value: Any) -> np.ndarray[Any, Any]:
    assert port.dtype is not None
    where = f"input {port}"
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"it cannot be made an array: {error}", where=where) from None
    if port.dtype == ir.DataType.STRING:
        if array.dtype.kind not in "OUST":
            raise InputError(
                f"strings were expected, not {array.dtype}.", where=where, value=str(array.dtype)
            )
        return _strings(array, where)
    expected = np.dtype(port.dtype.numpy())
    plain = not isinstance(value, np.ndarray | np.generic) and not hasattr(value, "__array__")
    if plain and np.can_cast(array.dtype, expected, casting="same_kind"):
        array = array.astype(expected)  # Python numbers and lists have no type of their own
    native = array.dtype.newbyteorder("=")
    if native != expected:
        raise InputError(
            f"{expected.name} was expected, not {array.dtype.name}.",
            where=where,
            value=array.dtype.name,
            hint=f"Convert it: x.astype('{expected.name}').",
        )
    return array if array.dtype.isnative else array.astype(native)


def _strings(array: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    texts = np.empty(array.shape, object)
    for index, item in np.ndenumerate(array):
        if isinstance(item, bytes):
            try:
                item = item.decode("utf-8")
            except UnicodeDecodeError:
                raise InputError(
                    f"the string at {list(index)} is not UTF-8.", where=where
                ) from None
        if not isinstance(item, str):
            raise InputError(
                f"{type(item).__name__} at {list(index)}, where a string was expected.", where=where
            )
        texts[index] = str(item)
    return texts


def _check_shape(
    port: Port, array: np.ndarray[Any, Any], bound: dict[str, tuple[int, str]]
) -> None:
    assert port.shape is not None
    where = f"input {port}"
    if array.ndim != len(port.shape):
        raise InputError(
            f"{len(port.shape)} dimensions were expected, not {array.ndim}: its shape is {list(array.shape)}.",
            where=where,
            value=array.shape,
        )
    for axis, (size, dim) in enumerate(zip(array.shape, port.shape, strict=True)):
        if isinstance(dim, int) and size != dim:
            raise InputError(
                f"dimension {axis} is {size}, where {dim} was expected: its shape is {list(array.shape)}.",
                where=where,
                value=size,
                limit=dim,
            )
        if isinstance(dim, str) and dim.isidentifier():
            first, whose = bound.setdefault(dim, (size, f"input {port.name!r}"))
            if size != first:
                raise InputError(
                    f"dimension {axis} ({dim}) is {size}, but {whose} has {dim} = {first}.",
                    where=where,
                    value=size,
                    limit=first,
                )
