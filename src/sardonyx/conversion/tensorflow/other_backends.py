"""Keras models that compute with JAX or PyTorch are functions of those, and go their ways."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from sardonyx.conversion.candidate import Route
from sardonyx.conversion.request import Example, Request
from sardonyx.conversion.tensorflow.files import open_file
from sardonyx.errors import ConvertError, InputError

__all__ = ["other_routes"]

_OPEN_BATCH, _OPEN_SIZE = 2, 8  # of axes that the model leaves open, where no example is given


def other_routes(request: Request, backend: str) -> Sequence[Route]:
    """The ways of the framework that the model computes with.

    Raises:
        ConvertError: Keras computes with another framework.
        InputError: the model does not say what it takes, and there is no example.
    """
    model = request.source if request.path is None else open_file(request)
    tensors = list(getattr(model, "inputs", None) or ())
    if not tensors:
        raise InputError(
            "the Keras model does not say what it takes.",
            hint="Write it with keras.Input, or convert its function by the framework that it computes with.",
        )
    names = [tensor.name.partition(":")[0] for tensor in tensors]
    dynamic = {name: dict(axes) for name, axes in request.dynamic.items()}
    for name, tensor in zip(names, tensors, strict=True):
        for axis, size in enumerate(tensor.shape):
            if size is None:
                symbol = "batch" if axis == 0 else f"{name}_{axis}"
                dynamic.setdefault(name, {}).setdefault(axis, symbol)
    examples = tuple(_by_name(names, example) for example in request.examples)
    if not examples:
        examples = (Example(kwargs={n: _made_up(t) for n, t in zip(names, tensors, strict=True)}),)
    asked = replace(request, examples=examples, dynamic=dynamic)
    if not asked.output_names:
        last = (model.layers[-1].name,) if isinstance(model, keras.Sequential) else ()
        found = tuple(getattr(model, "output_names", None) or last)
        asked = replace(asked, output_names=found)
    if backend == "jax":
        from sardonyx.conversion.jax import frontend as jax_frontend

        return jax_frontend.routes(replace(asked, source=_jax_function(model, names)))
    if backend == "torch":
        from sardonyx.conversion.torch import frontend as torch_frontend

        return torch_frontend.routes(replace(asked, source=_torch_module(model, names)))
    raise ConvertError(f"Keras computes with {backend}, which is not converted.", value=backend)


def _by_name(names: Sequence[str], example: Example) -> Example:
    given = {
        **dict(zip(names, keras.tree.flatten(list(example.args)), strict=False)),
        **example.kwargs,
    }
    return Example(kwargs=given)


def _made_up(tensor: Any) -> np.ndarray[Any, np.dtype[Any]]:
    sizes = [
        size if size is not None else (_OPEN_BATCH if axis == 0 else _OPEN_SIZE)
        for axis, size in enumerate(tensor.shape)
    ]
    generator = np.random.default_rng(0)
    dtype = np.dtype(keras.backend.standardize_dtype(tensor.dtype))
    if dtype.kind == "f":
        return generator.normal(size=sizes).astype(dtype)
    return generator.integers(0, 2, sizes).astype(dtype)


def _structure(model: Any) -> Any:
    """What the model takes; a Sequential has one input."""
    return getattr(model, "input", model.inputs[0])


def _signed(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Arguments by the names of the model's inputs."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _jax_function(model: Any, names: Sequence[str]) -> Callable[..., Any]:
    trained = [variable.value for variable in model.trainable_variables]
    other = [variable.value for variable in model.non_trainable_variables]

    def function(*args: Any, **kwargs: Any) -> Any:
        leaves = [*args, *(kwargs[name] for name in names[len(args) :])]
        given = keras.tree.pack_sequence_as(_structure(model), leaves)
        answers, _ = model.stateless_call(trained, other, given, training=False)
        return answers

    return _signed(function, names)


def _torch_module(model: Any, names: Sequence[str]) -> Any:
    import torch

    class Wrapped(torch.nn.Module):
        """The model with its inputs as arguments."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            leaves = [*args, *(kwargs[name] for name in names[len(args) :])]
            given = keras.tree.pack_sequence_as(_structure(model), leaves)
            return self.model(given, training=False)

    _signed(Wrapped.forward, ["self", *names])
    return Wrapped().eval()
