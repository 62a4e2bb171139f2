"""Inputs for any model, made from a seed.

feeds = example_inputs(model, seed=0, dims={"batch": 2, "seq": 16})
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.backends.reference import Value
from sardonyx.comparison.feeding import integer_bound
from sardonyx.errors import (
    BudgetError,
    CancelledError,
    DeadlineError,
    InputError,
    SardonyxError,
    ShapeError,
)
from sardonyx.runtime.declared_ports import port_of
from sardonyx.runtime.ports import Port
from sardonyx.sizes import check_given, evaluate, parse, symbols

__all__ = ["blame_sizes", "describe_feeds", "example_inputs", "input_ports"]

_D = ir.DataType
_MOST_ELEMENTS = 1 << 30
_UNBOUNDED = 10  # integers that index nothing known: 0 … 9
_ONES = re.compile(r"mask", re.IGNORECASE)  # attention masks: all zeros would attend to nothing

# What a dynamic dimension is when nobody says: the first pattern that matches its name.
_DEFAULT_DIMS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), size)
    for pattern, size in (
        (r"batch|^n$|^b$", 1),
        (r"past|cache", 8),
        (r"seq|len|time|frame|token|^t$|^s$", 16),
        (r"sample|audio|wave", 16_000),
        (r"height|width|^h$|^w$|image|size", 224),
        (r"channel|^c$", 3),
    )
)
_ANY_NAME = 8
_PICTURE = (
    64  # pixels along a side of something with four dimensions; networks halve it several times
)
_WORDS = ("onyx", "sard", "agate", "jasper", "opal", "quartz")


def input_ports(model: ir.Model) -> list[tuple[ir.Value, Port]]:
    """The inputs that a caller has to feed: those without an initializer."""
    graph = model.graph
    return [(v, port_of(v)) for v in graph.inputs if v.name not in graph.initializers]


def example_inputs(
    model: ir.Model, *, seed: int = 0, dims: Mapping[str, int] | None = None
) -> dict[str, Value]:
    """Inputs of the declared types and shapes; the same seed and dimensions give the same numbers.

    Floats are normal, images-like bytes cover their range, integers stay inside the tables that they
    index, masks are ones. Dynamic dimensions are `dims`, or a plausible size by their name.

    Raises:
        InputError: a type that has no sensible example, an unknown dimension, or absurd sizes.
    """
    ports = input_ports(model)
    sizes = _sizes([port for _, port in ports], dict(dims or {}))
    generator = np.random.default_rng(seed)
    return {port.name: _example(value, port, sizes, generator) for value, port in ports}


def sizes_of_feeds(model: ir.Model, feeds: Mapping[str, Value]) -> dict[str, int]:
    """The dynamic dimensions that these feeds give a size to, by name."""
    found: dict[str, int] = {}
    for _, port in input_ports(model):
        fed = feeds.get(port.name)
        if isinstance(fed, np.ndarray) and port.shape is not None and fed.ndim == len(port.shape):
            sizes = zip(port.shape, fed.shape, strict=True)
            found |= {dim: size for dim, size in sizes if isinstance(dim, str)}
    return found


def describe_feeds(feeds: Mapping[str, Value]) -> dict[str, str]:
    """Type and shape by name: `{"x": "float32[1, 3, 224, 224]"}`."""
    return {name: _type_text(value) for name, value in feeds.items()}


def _type_text(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{'string' if value.dtype.kind == 'O' else value.dtype.name}{list(value.shape)}"
    if isinstance(value, list):
        return f"sequence of {len(value)}"
    return "nothing" if value is None else type(value).__name__


def blame_sizes(error: SardonyxError, model: ir.Model, feeds: Mapping[str, Value]) -> None:
    """Add to an error of a run on example inputs which sizes were guessed, and how to choose others."""
    names = sorted(_sizes([port for _, port in input_ports(model)], {}))
    if not names or isinstance(error, BudgetError | DeadlineError | CancelledError):
        return
    shapes = ", ".join(f"{name} {text}" for name, text in describe_feeds(feeds).items())
    choices = " ".join(f"--dim {name}=N" for name in names[:4])
    guessed = f"The example inputs were {shapes}; for other sizes: {choices}."
    error.hint = f"{error.hint} {guessed}" if error.hint else guessed


def _sizes(ports: list[Port], dims: dict[str, int]) -> dict[str, int]:
    """A number for every symbol of the inputs' shapes; one without a name is called `x.0`."""
    defaults: dict[str, int] = {}
    for port in ports:
        pictured = _picture_shape(port)
        for axis, dim in enumerate(port.shape or ()):
            if dim is None:  # 1 broadcasts against anything
                defaults[f"{port.name}.{axis}"] = pictured[axis] if pictured else 1
            elif isinstance(dim, str):
                other = pictured[axis] if pictured else _ANY_NAME
                for name in symbols(parse(dim)):
                    defaults.setdefault(name, _default(name, other))
    check_given(dims, defaults)
    return defaults | dims


def _default(name: str, other: int) -> int:
    return next((size for pattern, size in _DEFAULT_DIMS if pattern.search(name)), other)


def _picture_shape(port: Port) -> tuple[int, ...]:
    """What four dimensions most likely are: a picture, its channels before or after its sides."""
    if port.shape is None or len(port.shape) != 4:
        return ()
    second, last = port.shape[1], port.shape[3]
    channels_last = isinstance(last, int) and last <= 4 and not isinstance(second, int)
    return (1, _PICTURE, _PICTURE, 3) if channels_last else (1, 3, _PICTURE, _PICTURE)


def _shape(port: Port, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The concrete shape of an example."""
    if port.shape is None:
        raise InputError(
            "it does not declare a shape, so no example can be made.",
            where=f"input {port}",
            hint="Give inputs of your own (--inputs).",
        )
    shape: list[int] = []
    for axis, dim in enumerate(port.shape):
        if dim is None:
            shape.append(sizes[f"{port.name}.{axis}"])
        elif isinstance(dim, int):
            shape.append(dim)
        else:
            shape.append(_evaluated(dim, sizes, port))
    if any(size < 0 for size in shape) or np.prod(shape, dtype=object) > _MOST_ELEMENTS:
        raise InputError(
            f"an example of shape {shape} is out of the question (at most {_MOST_ELEMENTS:,} elements).",
            where=f"input {port}",
            value=shape,
            limit=_MOST_ELEMENTS,
            hint="Choose the dynamic dimensions with --dim name=value.",
        )
    return tuple(shape)


def _evaluated(dim: str, sizes: Mapping[str, int], port: Port) -> int:
    try:
        return evaluate(parse(dim), sizes)
    except (ShapeError, ZeroDivisionError) as error:
        raise InputError(
            f"the dimension {dim[:120]!r} has no size: {error}", where=f"input {port}"
        ) from None


def _example(
    value: ir.Value, port: Port, sizes: Mapping[str, int], generator: np.random.Generator
) -> Value:
    kind = value.type
    if isinstance(kind, ir.OptionalType):
        return None
    if isinstance(kind, ir.SequenceType) and isinstance(kind.elem_type, ir.TensorType):
        shape = _shape(port, sizes) if port.shape is not None else (2, 3)
        return [_tensor(kind.elem_type.dtype, shape, generator) for _ in range(2)]
    if isinstance(kind, ir.TensorType):
        shape = _shape(port, sizes)
        if kind.dtype in (_D.INT32, _D.INT64):
            return _integers(value, kind.dtype, shape, generator)
        return _tensor(kind.dtype, shape, generator)
    raise InputError(
        f"no example can be made of {port.type}.",
        where=f"input {port.name!r}",
        hint="Give inputs of your own (--inputs).",
    )


def _integers(
    value: ir.Value, dtype: ir.DataType, shape: tuple[int, ...], generator: np.random.Generator
) -> Value:
    bound = integer_bound(value)
    if bound is None and _ONES.search(value.name or ""):
        return np.ones(shape, dtype.numpy())
    return generator.integers(0, bound or _UNBOUNDED, shape).astype(dtype.numpy())


def _tensor(
    dtype: ir.DataType, shape: tuple[int, ...], generator: np.random.Generator
) -> np.ndarray[Any, Any]:
    if dtype == _D.STRING:
        words = np.empty(shape, object)
        words.reshape(-1)[:] = [str(w) for w in generator.choice(_WORDS, int(np.prod(shape)))]
        return words
    if dtype == _D.BOOL:
        return generator.integers(0, 2, shape).astype(np.bool_)
    target = np.dtype(dtype.numpy())
    if dtype.is_integer():
        if dtype.bitwidth > 16:
            return generator.integers(0, _UNBOUNDED, shape).astype(target)
        low = -(1 << (dtype.bitwidth - 1)) if dtype.is_signed() else 0
        return generator.integers(low, low + (1 << dtype.bitwidth), shape).astype(target)
    numbers = generator.standard_normal(shape)
    if target.kind == "c":
        numbers = numbers + 1j * generator.standard_normal(shape)
    if dtype == _D.FLOAT8E8M0:
        numbers = np.exp2(generator.integers(-3, 4, shape))  # powers of two is all it holds
    return (
        numbers.astype(np.float32).astype(target) if target.kind == "V" else numbers.astype(target)
    )
