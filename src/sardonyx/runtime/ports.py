"""A model's inputs and outputs as its callers see them, and the check of what they feed.

What is fed is never copied unless it must be: a view of the caller's array goes in, byte order and strides
included, and the answer is the same for every layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.backends.values import SparseTensor, Value
from sardonyx.errors import InputError

__all__ = ["Port", "check_feeds"]


@dataclass(frozen=True)
class Port:
    """One input or output: `Port('x', 'tensor(float)', dtype('float32'), ('batch', 64))`."""

    name: str
    type: str  # as onnxruntime writes it: tensor(float), seq(tensor(int64)), optional(…), map(…)
    dtype: np.dtype[Any] | None  # of a tensor; strings are objects
    shape: tuple[int | str | None, ...] | None  # ints, symbols, None; None as a whole: rank unknown
    optional: bool = False  # has a default, or is of an optional type
    element: Port | None = None  # what a sequence or optional holds

    def __str__(self) -> str:
        if self.dtype is None:
            return f"{self.name}: {self.type}"
        dims = (
            "?"
            if self.shape is None
            else ", ".join("?" if d is None else str(d) for d in self.shape)
        )
        return f"{self.name}: {self.type.partition('(')[2][:-1]}[{dims}]"


def check_feeds(
    ports: Sequence[Port], feeds: Mapping[str, Any], fixed: Mapping[str, int] | None = None
) -> dict[str, Value]:
    """Refuse feeds that do not fit, and give the others as the backends want them.

    `fixed` gives symbolic dimensions a value beforehand; a symbol must have one value in the whole call.
    """
    if not isinstance(feeds, Mapping):
        raise InputError(
            f"arrays by input name were expected, not {type(feeds).__name__}.",
            hint="As in: {" + ", ".join(f"{port.name!r}: …" for port in ports) + "}.",
        )
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
        value = feeds.get(port.name)
        if value is not None:
            checked[port.name] = _check(port, value, bound)
        elif not port.optional:
            raise InputError(
                "nothing was fed for it.", where=f"input {port}", hint="Feed it by its name."
            )
        elif port.type.startswith("optional("):
            checked[port.name] = None
    return checked


def _check(port: Port, value: Any, bound: dict[str, tuple[int, str]]) -> Value:
    if port.element is not None:
        return _check_container(port, port.element, value, bound)
    if isinstance(value, SparseTensor | dict):
        return value  # what they hold is checked by the nodes that read them
    if port.dtype is None:
        return _texts_as_objects(np.asarray(value))
    array = _as_array(port, value)
    if port.shape is not None:
        _check_shape(port, array, bound)
    return array


def _check_container(
    port: Port, element: Port, value: Any, bound: dict[str, tuple[int, str]]
) -> Value:
    if port.type.startswith("optional("):
        return None if value is None else _check(element, value, bound)
    if not isinstance(value, list | tuple):
        raise InputError(f"a list was expected, not {type(value).__name__}.", where=f"input {port}")
    return [_check(element, item, bound) for item in value]


def _texts_as_objects(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(object) if array.dtype.kind in "US" else array


def _as_array(port: Port, value: Any) -> np.ndarray[Any, Any]:
    assert port.dtype is not None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"it cannot be made an array: {error}", where=f"input {port}") from None
    expected = port.dtype
    if expected.kind == "O":
        if array.dtype.kind not in "OUST":
            raise InputError(
                f"strings were expected, not {array.dtype}.",
                where=f"input {port}",
                value=str(array.dtype),
            )
        return _strings(array, port)
    if not isinstance(value, np.ndarray | np.generic) and not hasattr(value, "__array__"):
        array = _typed(array, expected, port)
    native = array.dtype.newbyteorder("=")
    if native != expected:
        raise InputError(
            f"{expected.name} was expected, not {array.dtype.name}.",
            where=f"input {port}",
            value=array.dtype.name,
            hint=f"Convert it: numpy.asarray(x).astype('{expected.name}').",
        )
    return array if array.dtype.isnative else array.astype(native)


def _typed(array: np.ndarray[Any, Any], dtype: np.dtype[Any], port: Port) -> np.ndarray[Any, Any]:
    """Python numbers and lists have no type of their own: they take the input's, where it can hold them."""
    whole = dtype.name.startswith(("int", "uint"))
    takes = "b" if dtype.kind == "b" else "biu" if whole else "biuf"
    if array.size and array.dtype.kind not in takes:
        return array
    with np.errstate(over="ignore"):
        typed = array.astype(dtype)
    lost = typed.astype(array.dtype) != array if whole else np.isfinite(array) > np.isfinite(typed)
    if np.any(lost):
        raise InputError(
            f"{array[lost][0]} does not fit into {typed.dtype.name}.", where=f"input {port}"
        )
    return typed


def _strings(array: np.ndarray[Any, Any], port: Port) -> np.ndarray[Any, Any]:
    texts = np.empty(array.shape, object)
    for index, item in np.ndenumerate(array):
        if not isinstance(item, bytes | str):
            raise InputError(
                f"{type(item).__name__} at {list(index)}, where a string was expected.",
                where=f"input {port}",
            )
        try:
            texts[index] = item.decode() if isinstance(item, bytes) else item.encode().decode()
        except UnicodeError:
            raise InputError(
                f"the string at {list(index)} is not UTF-8.", where=f"input {port}"
            ) from None
    return texts


def _check_shape(
    port: Port, array: np.ndarray[Any, Any], bound: dict[str, tuple[int, str]]
) -> None:
    assert port.shape is not None
    if array.ndim != len(port.shape):
        raise InputError(
            f"{len(port.shape)} dimensions were expected, not {array.ndim}: its shape is {list(array.shape)}.",
            where=f"input {port}",
            value=array.shape,
        )
    for axis, (size, dim) in enumerate(zip(array.shape, port.shape, strict=True)):
        if isinstance(dim, int) and size != dim:
            raise InputError(
                f"dimension {axis} is {size}, where {dim} was expected: its shape is {list(array.shape)}.",
                where=f"input {port}",
                value=size,
                limit=dim,
            )
        if isinstance(dim, str) and dim.isidentifier():
            first, whose = bound.setdefault(dim, (size, f"input {port.name!r}"))
            if size != first:
                raise InputError(
                    f"dimension {axis} ({dim}) is {size}, but {whose} has {dim} = {first}.",
                    where=f"input {port}",
                    value=size,
                    limit=first,
                )
