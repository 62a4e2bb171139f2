"""What is to be converted: a function between named tensors, its calls, and what the result is held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from sardonyx.conversion.candidate import Feeds, Trial
from sardonyx.conversion.open_axes import find_dynamic
from sardonyx.conversion.request import Dynamic, Request, chosen_names
from sardonyx.conversion.tensorflow.source import Source, open_source
from sardonyx.conversion.trials import make_trials
from sardonyx.errors import ConvertError, InputError

__all__ = ["Reference", "Subject", "open_subject"]

Array = np.ndarray[Any, np.dtype[Any]]

_OPEN_BATCH, _OPEN_SIZE = 2, 8  # of axes that the model leaves open, where no example is given


class Reference:
    """TensorFlow's own answers."""

    def __init__(self, source: Source, names: tuple[str, ...]) -> None:
        self._names = names
        self._outputs: tuple[str, ...] = ()
        self._source = source
        self.flat = tf.function(self._flat)

    def _flat(self, *tensors: Any) -> list[Any]:
        given = self._source.call(tensors)
        self._outputs, found = _answers(given, self._source.outputs)
        return [tf.identity(value) for value in found]

    def answer(self, feeds: Feeds) -> Sequence[Array]:
        given = [tf.constant(feeds[name]) for name in self._names]
        return [np.asarray(value) for value in self.flat(*given)]

    def outputs(self, feeds: Feeds) -> tuple[str, ...]:
        """Names of what it gives."""
        self.answer(feeds)
        return self._outputs


@dataclass(frozen=True)
class Subject:
    """A function of TensorFlow, ready to be converted.

    Attributes:
        reference: its answers, and the function between tensors alone.
        specs: of its inputs, with open axes.
        inputs, outputs: names in order.
        dynamic: the names of open axes, by input name.
        variables: weights by the model's names for them.
        trials: what the result is checked on.
        notes: what the user should know.
    """

    reference: Reference
    specs: tuple[Any, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dynamic: Dynamic
    variables: Mapping[str, Any]
    trials: tuple[Trial, ...]
    notes: tuple[str, ...]


def open_subject(model: Any, request: Request) -> Subject:
    """Look at a model and run it on its examples.

    Raises:
        InputError: it needs an example, or one does not fit.
        ConvertError: its answers are random, or it takes no other sizes.
    """
    source = open_source(model, request.examples, request.option("signature"))
    inputs = chosen_names(request.input_names, source.names, "inputs", "model")
    notes = []
    examples = tuple(_feeds(source, inputs, example) for example in request.examples)
    if not examples:
        assert source.specs is not None
        made = [_made_up(spec) for spec in source.specs]
        examples = (dict(zip(inputs, made, strict=True)),)
        notes.append("the inputs that it was checked on were made up from the model's own types")
    dynamic = _with_open_axes(find_dynamic(request.dynamic, examples), inputs, source.specs)
    reference = Reference(source, inputs)
    trials, told = make_trials("model", reference.answer, examples, dynamic)
    _refuse_random(reference, examples[0])
    outputs = chosen_names(request.output_names, reference.outputs(examples[0]), "outputs", "model")
    specs = tuple(_spec(name, examples[0][name], dynamic) for name in inputs)
    notes += [
        f"dynamic axes of {name}: {', '.join(f'{a} ({s})' for a, s in axes.items())}"
        for name, axes in dynamic.items()
    ]
    return Subject(
        reference, specs, inputs, outputs, dynamic, source.variables, trials, (*notes, *told)
    )


def _answers(given: Any, named: Sequence[str]) -> tuple[tuple[str, ...], list[Any]]:
    """The tensors of what a model gave, by their places in it; the model's own names go first."""
    found: list[tuple[str, Any]] = []

    def collect(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key in sorted(value):
                collect(f"{name}.{key}" if name else str(key), value[key])
        elif hasattr(value, "_fields"):
            for key in value._fields:
                collect(f"{name}.{key}" if name else key, getattr(value, key))
        elif isinstance(value, list | tuple):
            for index, item in enumerate(value):
                collect(f"{name}_{index}" if name else f"output_{index}", item)
        elif value is not None:
            found.append((name or "output_0", tf.convert_to_tensor(value)))

    collect("", given)
    names = [name for name, _ in found]
    if len(named) == len(found) and not isinstance(given, Mapping):
        names = list(named)
    return tuple(names), [value for _, value in found]


def _feeds(source: Source, inputs: Sequence[str], example: Any) -> Feeds:
    found: dict[str, Array] = {}
    arrays = source.arrays(example)
    if len(arrays) != len(inputs):
        raise InputError(
            f"an example has {len(arrays)} arrays, and the first one {len(inputs)}.",
            hint=f"The inputs are: {', '.join(inputs)}.",
        )
    for index, (name, value) in enumerate(zip(inputs, arrays, strict=True)):
        array = np.asarray(value)
        if source.specs is not None:
            spec = source.specs[index]
            if array.dtype.kind == spec.dtype.as_numpy_dtype().dtype.kind:
                array = array.astype(spec.dtype.as_numpy_dtype)
            if array.dtype != spec.dtype.as_numpy_dtype or not spec.shape.is_compatible_with(
                array.shape
            ):
                raise InputError(
                    f"the example has {array.dtype}{list(array.shape)} for {name!r}, which takes {spec.dtype.name}{spec.shape}.",
                    where=name,
                )
        found[name] = array
    return found


def _made_up(spec: Any) -> Array:
    if spec.shape.rank is None:
        raise InputError(
            "the model does not say how many axes its input has.", hint="Give an example."
        )
    sizes = [
        size if size is not None else (_OPEN_BATCH if axis == 0 else _OPEN_SIZE)
        for axis, size in enumerate(spec.shape)
    ]
    generator = np.random.default_rng(0)
    dtype = spec.dtype.as_numpy_dtype
    if np.dtype(dtype).kind == "f":
        return generator.normal(size=sizes).astype(dtype)
    return generator.integers(0, 2, sizes).astype(dtype)


def _with_open_axes(asked: Dynamic, inputs: Sequence[str], specs: Sequence[Any] | None) -> Dynamic:
    """What the user opens, and what the model does."""
    found = {name: dict(axes) for name, axes in asked.items()}
    for name, spec in zip(inputs, specs or (), strict=False):
        for axis, size in enumerate(spec.shape if spec.shape.rank is not None else ()):
            if size is None and axis not in found.get(name, {}):
                found.setdefault(name, {})[axis] = "batch" if axis == 0 else f"{name}_{axis}"
    return {name: dict(sorted(axes.items())) for name, axes in found.items()}


def _spec(name: str, array: Any, dynamic: Dynamic) -> Any:
    shape = [None if axis in dynamic.get(name, {}) else n for axis, n in enumerate(array.shape)]
    return tf.TensorSpec(shape, array.dtype)


def _refuse_random(reference: Reference, feeds: Feeds) -> None:
    first, second = reference.answer(feeds), reference.answer(feeds)
    for index, (a, b) in enumerate(zip(first, second, strict=True)):
        if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
            raise ConvertError(
                f"output {index} is random: two runs on the same inputs differ, so no answer can be proved equal.",
                hint="Give the random numbers as an input.",
            )
