"""Calls and answers of any structure, as named tensors.

model(x, {"ids": i, "mask": m}, scale=2.0)   →   x, batch.ids, batch.mask      (scale is a constant)
{"logits": l, "states": [a, b]}              →   logits, states_0, states_1
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.utils import _pytree

from sardonyx.conversion.request import Example
from sardonyx.errors import InputError

__all__ = ["Layout", "answers_of", "layout_of", "signature_of"]

Leaf: TypeAlias = tuple[str, Any]
Rebuild: TypeAlias = Callable[[Any], Any]  # takes an iterator over the tensors


@dataclass(frozen=True)
class Layout:
    """Which tensors a call is made of.

    Attributes:
        names: of the tensors, in the order of the signature.
        tensors: of the example.
        constants: what is no tensor and stays as it is, by name.
        call: tensors → positional and keyword arguments.
    """

    names: tuple[str, ...]
    tensors: tuple[torch.Tensor, ...]
    constants: Mapping[str, Any]
    call: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]]


def signature_of(model: Any) -> inspect.Signature:
    """Of `forward`, or of the function; a script's own is read from its schema."""
    if isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        script: Any = model
        schema = (
            script.forward.schema if isinstance(model, torch.jit.ScriptModule) else script.schema
        )
        kinds = inspect.Parameter
        return inspect.Signature(
            [
                kinds(
                    argument.name,
                    kinds.KEYWORD_ONLY if argument.kwarg_only else kinds.POSITIONAL_OR_KEYWORD,
                    default=argument.default_value if argument.has_default_value() else kinds.empty,
                )
                for argument in schema.arguments
                if argument.name != "self"
            ]
        )
    if isinstance(model, torch.nn.Module):
        return inspect.signature(model.forward)
    try:
        return inspect.signature(model)
    except ValueError:  # written in C
        kinds = inspect.Parameter
        rest = (
            kinds("input", kinds.VAR_POSITIONAL),
            kinds("keywords", kinds.VAR_KEYWORD),
        )
        return inspect.Signature(rest)


def layout_of(signature: inspect.Signature, example: Example) -> Layout:
    """The tensors of a call.

    Raises:
        InputError: the example does not fit the signature, or has no tensor.
    """
    try:
        bound = signature.bind(*example.args, **example.kwargs)
    except TypeError as error:
        unknown = [name for name in example.kwargs if name not in signature.parameters]
        given = f"the example gives {', '.join(map(repr, unknown))}" if unknown else str(error)
        raise InputError(
            f"the example does not fit forward{signature}: {given}.",
            value=example,
            hint="A tuple is the positional arguments; a dict (--input NAME=…) is the keyword arguments, by their names.",
        ) from None
    leaves: list[Leaf] = []
    rebuilds: dict[str, Rebuild] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        prefix = "" if kind is inspect.Parameter.VAR_KEYWORD else name
        rebuilds[name] = _take_apart(prefix, value, leaves)
    found = [(name, leaf) for name, leaf in leaves if isinstance(leaf, torch.Tensor)]
    if not found:
        raise InputError("the example has no tensor in it.", value=example)

    def call(tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        stream = iter(tensors)
        again = inspect.BoundArguments(signature, {n: r(stream) for n, r in rebuilds.items()})
        return again.args, again.kwargs

    return Layout(
        _unique([name for name, _ in found]),
        tuple(tensor for _, tensor in found),
        {name: leaf for name, leaf in leaves if not isinstance(leaf, torch.Tensor)},
        call,
    )


def answers_of(result: Any) -> tuple[tuple[str, ...], list[Any]]:
    """The names and the tensors of what a model returned; what is None is no output, a number is a tensor of it."""
    leaves: list[Leaf] = []
    _take_apart("", result, leaves)
    named = [
        (name, leaf)
        for name, leaf in leaves
        if isinstance(leaf, torch.Tensor | bool | int | float | torch.SymInt | torch.SymFloat)
    ]
    names = [_output_name(name, index) for index, (name, _) in enumerate(named)]
    return _unique(names), [_as_tensor(leaf) for _, leaf in named]


def _output_name(name: str, index: int) -> str:
    """Leaves that only have a place are numbered in order of the outputs."""
    return name if name and not name.lstrip("_").replace("_", "").isdigit() else f"output_{index}"


def _as_tensor(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf
    if isinstance(leaf, bool):
        return torch.tensor(leaf)
    whole = isinstance(leaf, int | torch.SymInt)
    return torch.scalar_tensor(leaf, dtype=torch.int64 if whole else torch.float32)


def _take_apart(name: str, value: Any, leaves: list[Leaf]) -> Rebuild:
    """Add the leaves of a value; the result puts them together again, with other tensors in their places."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        value = torch.from_numpy(np.array(value))
    if isinstance(value, torch.Tensor):
        leaves.append((name, value))
        return next
    if isinstance(value, Mapping):
        parts = {key: _take_apart(_key(name, key), item, leaves) for key, item in value.items()}
        return lambda stream: _like(value, {key: part(stream) for key, part in parts.items()})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass(name, value, leaves)
    if isinstance(value, tuple | list):
        fields = getattr(value, "_fields", None)
        keys = (
            [_key(name, f) for f in fields]
            if fields
            else [f"{name}_{i}" for i in range(len(value))]
        )
        items = [_take_apart(key, item, leaves) for key, item in zip(keys, value, strict=True)]
        make = (lambda found: type(value)(*found)) if fields else type(value)
        return lambda stream: make([item(stream) for item in items])
    if type(value) in _pytree.SUPPORTED_NODES:
        node = _pytree.SUPPORTED_NODES[type(value)]
        children, context = node.flatten_fn(value)
        inner = _take_apart(name, list(children), leaves)
        return lambda stream: node.unflatten_fn(inner(stream), context)
    leaves.append((name, value))
    return lambda stream: value


def _dataclass(name: str, value: Any, leaves: list[Leaf]) -> Rebuild:
    fields = [field.name for field in dataclasses.fields(value)]
    parts = {
        field: _take_apart(_key(name, field), getattr(value, field), leaves) for field in fields
    }

    def rebuild(stream: Any) -> Any:
        again = object.__new__(type(value))
        for field, part in parts.items():
            object.__setattr__(again, field, part(stream))
        return again

    return rebuild


def _like(value: Mapping[Any, Any], found: dict[Any, Any]) -> Any:
    return found if type(value) is dict else type(value)(found)  # type: ignore[call-arg]


def _key(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        free = name
        count = 1
        while free in found:
            free = f"{name}_{count}"
            count += 1
        found.append(free)
    return tuple(found)
