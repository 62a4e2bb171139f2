"""What TensorFlow and Keras have as models, as one thing: a function from named tensors to named tensors.

keras model       model(x, training=False)              names of its inputs and outputs
tf.function       f(x, y)                               its parameters' names
SavedModel        signatures["serving_default"](x=x)    the signature's names
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from sardonyx.conversion.request import Example
from sardonyx.errors import InputError

__all__ = ["Source", "open_source"]

Call: TypeAlias = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Source:
    """A function between tensors.

    Attributes:
        names: of the inputs.
        specs: what the model itself says of them: `.shape` with None for open axes, and `.dtype`; None where it says nothing.
        call: tensors in that order → whatever the model gives.
        arrays: an example's tensors in that order; raises InputError where it does not fit.
        outputs: names of what it gives, where the model has them.
        variables: weights by the model's names for them.
    """

    names: tuple[str, ...]
    specs: tuple[Any, ...] | None
    call: Call
    arrays: Callable[[Example], Sequence[Any]]
    outputs: tuple[str, ...]
    variables: Mapping[str, Any]


def open_source(model: Any, examples: Sequence[Example], signature: str | None) -> Source:
    """Look at a model, a function, or what was loaded from a folder.

    Raises:
        InputError: it is none of these, has several signatures, or needs an example and has none.
    """
    signatures = getattr(model, "signatures", None)
    if _is_keras(model):
        return _keras(model, examples)
    if isinstance(signatures, Mapping) and signatures:
        return _signature(model, signatures, signature)
    if not callable(model):
        raise InputError(
            f"a {type(model).__qualname__} has no signature and cannot be called.",
            hint="Save it with a signature, or convert one of its functions.",
        )
    return _function(model, examples)


def _is_keras(model: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "keras" for base in type(model).__mro__)


def _keras(model: Any, examples: Sequence[Example]) -> Source:
    import keras

    variables = {v.path: v for v in model.weights}
    try:
        inputs = list(model.inputs or ())
    except (AttributeError, ValueError):  # a model of a class of the user's own
        inputs = []
    if not inputs:
        return _structured(_inferring(model), model.call, examples, variables)
    names = _unique([_short(tensor.name) for tensor in inputs])
    specs = tuple(tf.TensorSpec(t.shape, tf.as_dtype(t.dtype)) for t in inputs)

    def call(tensors: Sequence[Any]) -> Any:
        # A Sequential has no structure of its own: its only input is it.
        structure = getattr(model, "input", inputs[0])
        return model(keras.tree.pack_sequence_as(structure, list(tensors)), training=False)

    def arrays(example: Example) -> Sequence[Any]:
        return _by_name(names, keras.tree.flatten(list(example.args)), example.kwargs)

    last = (model.layers[-1].name,) if isinstance(model, keras.Sequential) else ()
    outputs = tuple(getattr(model, "output_names", None) or last)
    return Source(names, specs, call, arrays, _unique(outputs), variables)


def _inferring(model: Any) -> Callable[..., Any]:
    """The model as it is called when nobody trains it."""
    takes = "training" in inspect.signature(model.call).parameters
    fixed = {"training": False} if takes else {}
    return lambda *args, **kwargs: model(*args, **{**kwargs, **fixed})


def _signature(model: Any, signatures: Mapping[str, Any], asked: str | None) -> Source:
    key = asked or ("serving_default" if "serving_default" in signatures else None)
    if key is None and len(signatures) == 1:
        key = next(iter(signatures))
    if key is None or key not in signatures:
        raise InputError(
            f"there is no signature {key!r}." if key else f"it has {len(signatures)} signatures.",
            value=asked,
            hint=f'Choose one with options={{"signature": "…"}} or --signature: {", ".join(signatures)}.',
        )
    function = signatures[key]
    specs = dict(function.structured_input_signature[1])
    names = tuple(specs)

    def call(tensors: Sequence[Any]) -> Any:
        return function(**dict(zip(names, tensors, strict=True)))

    def arrays(example: Example) -> Sequence[Any]:
        return _by_name(names, list(example.args), example.kwargs)

    outputs = tuple(sorted(function.structured_outputs))
    variables = {v.name.partition(":")[0]: v for v in getattr(model, "variables", ())}
    return Source(names, tuple(specs.values()), call, arrays, outputs, variables)


def _function(function: Any, examples: Sequence[Example]) -> Source:
    declared = getattr(function, "input_signature", None)
    plain = getattr(function, "python_function", function)
    held = {v.name.partition(":")[0]: v for v in getattr(function, "variables", ()) or ()}
    if not declared or any(not isinstance(spec, tf.TensorSpec) for spec in declared):
        return _structured(function, plain, examples, held)
    parameters = [n for n in inspect.signature(plain).parameters if n != "self"]
    given = [spec.name or "" for spec in declared]
    fallback = [parameters[i] if i < len(parameters) else f"input_{i}" for i in range(len(given))]
    names = _unique([name or other for name, other in zip(given, fallback, strict=True)])

    def arrays(example: Example) -> Sequence[Any]:
        return _by_name(names, list(example.args), example.kwargs)

    return Source(names, tuple(declared), lambda tensors: function(*tensors), arrays, (), held)


def _structured(
    function: Callable[..., Any], plain: Any, examples: Sequence[Example], held: Mapping[str, Any]
) -> Source:
    """By an example: arrays of any structure are inputs, all else stays as it is."""
    if not examples:
        raise InputError(
            "the model does not say what it takes: there are no example inputs.",
            hint="Give them: sardonyx.convert(f, (x, y)) or --input x=float32[1,8].",
        )
    leaves = _leaves(plain, examples[0])
    names = _unique([name for name, value in leaves if _is_array(value)])

    def call(tensors: Sequence[Any]) -> Any:
        stream = iter(tensors)
        flat = [next(stream) if _is_array(value) else value for _, value in leaves]
        shape = (list(examples[0].args), dict(examples[0].kwargs))
        args, kwargs = tf.nest.pack_sequence_as(shape, flat)
        return function(*args, **kwargs)

    def arrays(example: Example) -> Sequence[Any]:
        return [value for _, value in _leaves(plain, example) if _is_array(value)]

    return Source(names, None, call, arrays, (), held)


def _leaves(plain: Any, example: Example) -> list[tuple[str, Any]]:
    """In the order of tf.nest, which sorts the keys of a dict."""
    try:
        parameters = [n for n in inspect.signature(plain).parameters if n != "self"]
    except (TypeError, ValueError):
        parameters = []
    found: list[tuple[str, Any]] = []
    for index, value in enumerate(example.args):
        _collect(parameters[index] if index < len(parameters) else f"input_{index}", value, found)
    for name in sorted(example.kwargs):
        _collect(name, example.kwargs[name], found)
    return found


def _collect(name: str, value: Any, found: list[tuple[str, Any]]) -> None:
    if isinstance(value, Mapping):
        for key in sorted(value):
            _collect(f"{name}.{key}", value[key], found)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _collect(f"{name}_{index}", item, found)
    else:
        found.append((name, value))


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic | tf.Tensor)


def _by_name(names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if len(args) > len(names) or set(given) != set(names):
        raise InputError(
            f"the example has {len(args)} values in order and {', '.join(kwargs) or 'none'} by name.",
            hint=f"The inputs are: {', '.join(names)}.",
        )
    return [given[name] for name in names]


def _short(name: str) -> str:
    return name.partition(":")[0]


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        free, count = name, 1
        while free in found:
            free, count = f"{name}_{count}", count + 1
        found.append(free)
    return tuple(found)
