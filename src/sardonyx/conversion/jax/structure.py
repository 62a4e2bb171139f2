"""Calls and answers of any pytree, as named arrays.

apply(x, {"ids": i, "mask": m}, train=False)   →   x, batch.ids, batch.mask      (train is a constant)
{"logits": l, "states": (a, b)}                →   logits, states_0, states_1
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from sardonyx.conversion.request import Example
from sardonyx.errors import InputError

__all__ = ["Layout", "answers_of", "is_array", "is_key", "layout_of", "named_leaves", "to_numpy"]


@dataclass(frozen=True)
class Layout:
    """Which arrays a call is made of.

    Attributes:
        names: of the arrays, in the order of the signature.
        arrays: of the example, as JAX holds them; keys of random numbers as their words.
        keys: which of them are such keys.
        pairs: which of them are complex: real and imaginary parts on a last axis of 2.
        constants: what is no array and stays as it is, by name.
        call: arrays → positional and keyword arguments.
    """

    names: tuple[str, ...]
    arrays: tuple[np.ndarray[Any, np.dtype[Any]], ...]
    keys: tuple[bool, ...]
    pairs: tuple[bool, ...]
    constants: Mapping[str, Any]
    call: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]]


def is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic)


def is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def to_numpy(array: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """As JAX would hold it: float64 is float32 unless jax_enable_x64 is set; complex numbers are pairs."""
    held = np.array(jax.random.key_data(array) if is_key(array) else jnp.asarray(array))
    return np.stack([held.real, held.imag], -1) if held.dtype.kind == "c" else held


def named_leaves(prefix: str, value: Any) -> list[tuple[str, Any]]:
    """The leaves of a pytree with their paths: `prefix.key`, `prefix_0`."""
    flat, _ = tree_util.tree_flatten_with_path(value)
    return [(_join(prefix, path), leaf) for path, leaf in flat]


def _join(prefix: str, path: Sequence[Any]) -> str:
    name = prefix
    for entry in path:
        if isinstance(entry, tree_util.SequenceKey | tree_util.FlattenedIndexKey):
            index = entry.idx if isinstance(entry, tree_util.SequenceKey) else entry.key
            name = f"{name}_{index}" if name else str(index)
            continue
        key = getattr(entry, "name", getattr(entry, "key", entry))
        name = f"{name}.{key}" if name else str(key)
    return name


def layout_of(signature: inspect.Signature, example: Example) -> Layout:
    """Take a call apart.

    Raises:
        InputError: the arguments do not fit the signature, or there is no array among them.
    """
    try:
        bound = signature.bind(*example.args, **example.kwargs)
    except TypeError as error:
        raise InputError(
            f"the example does not fit {signature}: {error}.",
            value=example,
            hint="A tuple is the positional arguments; a dict (--input NAME=…) is the keyword arguments, by their names.",
        ) from None
    named: list[tuple[str, Any]] = []
    trees: dict[str, tuple[int, Any]] = {}
    for name, value in bound.arguments.items():
        keywords = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        leaves = named_leaves("" if keywords else name, value)
        trees[name] = (len(leaves), tree_util.tree_structure(value))
        named += leaves
    given = [leaf for _, leaf in named if is_array(leaf)]
    if not given:
        raise InputError("the example has no array in it.", value=example)

    def call(arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        stream = iter(arrays)
        filled = iter([next(stream) if is_array(leaf) else leaf for _, leaf in named])
        arguments = {
            name: tree.unflatten([next(filled) for _ in range(count)])
            for name, (count, tree) in trees.items()
        }
        again = inspect.BoundArguments(signature, arguments)
        return again.args, again.kwargs

    return Layout(
        _unique([name for name, leaf in named if is_array(leaf)]),
        tuple(to_numpy(leaf) for leaf in given),
        tuple(is_key(leaf) for leaf in given),
        tuple(not is_key(leaf) and np.dtype(leaf.dtype).kind == "c" for leaf in given),
        {name: leaf for name, leaf in named if not is_array(leaf)},
        call,
    )


def answers_of(result: Any) -> tuple[tuple[str, ...], list[Any]]:
    """The names and the arrays of what a function returned; a number is an array of it."""
    named = named_leaves("", result)
    names = [
        name if name and not name.replace("_", "").isdigit() else f"output_{index}"
        for index, (name, _) in enumerate(named)
    ]
    return _unique(names), [jnp.asarray(leaf) if not is_key(leaf) else leaf for _, leaf in named]


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        free, count = name, 1
        while free in found:
            free, count = f"{name}_{count}", count + 1
        found.append(free)
    return tuple(found)
