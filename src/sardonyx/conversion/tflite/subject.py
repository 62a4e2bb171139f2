"""What is to be converted of a file: one of its signatures, its calls as named arrays, and what may change in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.open_axes import find_dynamic
from sardonyx.conversion.request import Dynamic, Example, Request, chosen_names
from sardonyx.conversion.tflite.quantized import is_quantized
from sardonyx.conversion.tflite.schema import Array, Model, Signature, Subgraph, Tensor
from sardonyx.conversion.tflite.variables import Variable, find_variables
from sardonyx.errors import ConvertError, InputError

__all__ = ["Subject", "open_subject"]

_MOST_ELEMENTS = 1 << 22  # of an input that is made up
_DEFAULT = "serving_default"
_NEXT = ".next"


@dataclass(frozen=True)
class Subject:
    """A subgraph with names for its inputs and outputs.

    Attributes:
        model: the file.
        number: of the subgraph.
        signature: that leads to it.
        inputs, outputs: names in order.
        dynamic: the names of open axes, by input name.
        held_from: the axis from which on the sizes of the file hold in every run.
        variables: what it reads of former runs.
        examples: feeds by input name.
        notes: what the user should know.
    """

    model: Model
    number: int
    signature: Signature | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dynamic: Dynamic
    held_from: int
    variables: tuple[Variable, ...]
    examples: tuple[Feeds, ...]
    notes: tuple[str, ...]

    def tensor(self, name: str) -> Tensor:
        """Of an input."""
        graph = self.model.subgraphs[self.number]
        return graph.tensors[graph.inputs[self.inputs.index(name)]]

    @property
    def carried(self) -> tuple[Variable, ...]:
        """The variables that a run leaves to the next; by their names they are inputs."""
        return tuple(each for each in self.variables if each.last is not None)

    @property
    def left(self) -> tuple[str, ...]:
        """The outputs that have them."""
        return tuple(f"{each.name}{_NEXT}" for each in self.carried)


def open_subject(model: Model, request: Request) -> Subject:
    """Look at a file.

    Raises:
        InputError: there is no such signature, or the examples do not fit its inputs.
        ConvertError: what it takes or gives is no array, or its variables cannot be carried.
    """
    signature = _signature(model, request.option("signature"))
    number = 0 if signature is None else signature.subgraph
    graph = model.subgraphs[number]
    _check_ports(graph)
    found = [
        _names([graph.tensors[i] for i in ports], ports, named)
        for ports, named in (
            (graph.inputs, {} if signature is None else signature.inputs),
            (graph.outputs, {} if signature is None else signature.outputs),
        )
    ]
    inputs = chosen_names(request.input_names, found[0], "inputs", "file")
    outputs = chosen_names(request.output_names, found[1], "outputs", "file")
    tensors = dict(zip(inputs, (graph.tensors[i] for i in graph.inputs), strict=True))
    notes = []
    examples = tuple(_feeds(example, tensors) for example in request.examples)
    if not examples:
        examples = ({name: _made_up(name, tensor) for name, tensor in tensors.items()},)
        notes.append("the inputs that it was checked on were made up from the types of the file")
    asked = find_dynamic(request.dynamic, examples)
    dynamic = _with_open_axes(asked, tensors)
    if any(tensor.variable for tensor in graph.tensors):
        notes.append(
            "a state that TensorFlow Lite carries from run to run begins with zeros in each"
        )
    notes += [
        f"dynamic axes of {name}: {', '.join(f'{a} ({s})' for a, s in axes.items())}"
        for name, axes in dynamic.items()
    ]
    variables = _renamed(find_variables(model, number), {*inputs, *outputs})
    carried = [variable.name for variable in variables if variable.last is not None]
    if carried:
        notes.append(
            f"what a run leaves in {', '.join(carried)} is given as outputs ({_NEXT} behind the name): feed it to the "
            "next run; where it is not fed, a run begins anew"
        )
    held = _held_from(asked, tensors)
    told = tuple(notes)
    return Subject(
        model, number, signature, inputs, outputs, dynamic, held, variables, examples, told
    )


def _check_ports(graph: Subgraph) -> None:
    for index in (*graph.inputs, *graph.outputs):
        tensor = graph.tensors[index]
        if tensor.dtype.kind in "Vc":
            what = "complex numbers" if tensor.dtype.kind == "c" else "a handle of a variable"
            raise ConvertError(
                f"tensor {tensor.name[:80]!r} is {what}, and an input or output of the model.",
                hint="Give its parts as two arrays.",
            )


def _renamed(variables: Sequence[Variable], taken: set[str]) -> tuple[Variable, ...]:
    """With names that nobody else has."""
    found: list[Variable] = []
    for variable in variables:
        free, count = variable.name, 1
        while {free, f"{free}{_NEXT}"} & taken:
            free, count = f"{variable.name}_{count}", count + 1
        taken |= {free, f"{free}{_NEXT}"}
        found.append(replace(variable, name=free))
    return tuple(found)


def _signature(model: Model, asked: Any) -> Signature | None:
    by_key = {signature.key: signature for signature in model.signatures}
    if asked is not None:
        if asked not in by_key:
            raise InputError(
                f"there is no signature {asked!r:.80}.",
                value=asked,
                hint=f"There are: {', '.join(by_key) or 'none'}.",
            )
        return by_key[asked]
    if len(by_key) > 1 and _DEFAULT not in by_key:
        raise InputError(
            f"the file has {len(by_key)} signatures: {', '.join(by_key)}.",
            hint='Choose one: options={"signature": "…"}, or --signature.',
        )
    return by_key.get(_DEFAULT) or next(iter(by_key.values()), None)


def _names(
    tensors: Sequence[Tensor], ports: Sequence[int], named: Mapping[str, int]
) -> tuple[str, ...]:
    """The signature's, or the tensors' own without what TensorFlow puts around them."""
    by_number = {number: name for name, number in named.items()}
    found: list[str] = []
    for tensor, number in zip(tensors, ports, strict=True):
        own = tensor.name.removeprefix(f"{_DEFAULT}_").partition(":")[0]
        name = by_number.get(number) or own or f"tensor_{number}"
        free, count = name, 1
        while free in found:
            free, count = f"{name}_{count}", count + 1
        found.append(free)
    return tuple(found)


def _feeds(example: Example, tensors: Mapping[str, Tensor]) -> Feeds:
    given = dict(zip(tensors, example.args, strict=False))
    if len(example.args) > len(tensors) or set(given) & set(example.kwargs):
        raise InputError(
            f"the example has {len(example.args)} values in order and {len(example.kwargs)} by name for {len(tensors)} inputs.",
            hint=f"The inputs are: {', '.join(tensors)}.",
        )
    given.update(example.kwargs)
    if set(given) != set(tensors):
        raise InputError(
            f"the example has {', '.join(given) or 'nothing'}.",
            value=tuple(given),
            hint=f"The inputs are: {', '.join(tensors)}.",
        )
    return {name: _fitting(name, given[name], tensor) for name, tensor in tensors.items()}


def _fitting(name: str, value: Any, tensor: Tensor) -> Array:
    array = np.asarray(value)
    if array.dtype != tensor.dtype:
        if array.dtype.kind != tensor.dtype.kind:
            raise InputError(
                f"the example has {array.dtype} for {name!r}, which takes {tensor.dtype}.",
                where=name,
            )
        array = array.astype(tensor.dtype)
    if tensor.shape is not None and array.ndim != len(tensor.shape):
        raise InputError(
            f"the example has the shape {list(array.shape)} for {name!r}, which takes {_shape_text(tensor)}.",
            where=name,
        )
    return array


def _shape_text(tensor: Tensor) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in tensor.sizes)}]"


def _made_up(name: str, tensor: Tensor) -> Array:
    shape = tensor.shape
    if shape is None or int(np.prod(shape, dtype=np.float64)) > _MOST_ELEMENTS:
        raise InputError(
            f"no input can be made up for {name!r}, whose shape is {_shape_text(tensor)}.",
            limit=_MOST_ELEMENTS,
            hint="Give an example.",
        )
    generator = np.random.default_rng(0)
    if tensor.dtype.kind == "f":
        return generator.normal(size=shape).astype(tensor.dtype)
    if is_quantized(tensor) or tensor.dtype in (np.int8, np.uint8):
        limits = np.iinfo(tensor.dtype)
        return generator.integers(limits.min, limits.max, shape, tensor.dtype, endpoint=True)
    return generator.integers(0, 2, shape).astype(tensor.dtype)


def _with_open_axes(asked: Dynamic, tensors: Mapping[str, Tensor]) -> Dynamic:
    """What the user opens, and what the file does."""
    found = {name: dict(axes) for name, axes in asked.items()}
    for name, tensor in tensors.items():
        for axis, size in enumerate(tensor.sizes):
            if size is None and axis not in found.get(name, {}):
                symbol = "batch" if axis == 0 else f"{name}_{axis}"
                found.setdefault(name, {})[axis] = symbol
    return {name: dict(sorted(axes.items())) for name, axes in found.items()}


def _held_from(asked: Dynamic, tensors: Mapping[str, Tensor]) -> int:
    """Where the user opens what the file has fixed, its sizes hold no more: of other axes, where it is the batch."""
    opened = {
        axis
        for name, axes in asked.items()
        for axis in axes
        if tensors[name].sizes[axis] is not None
    }
    if not opened:
        return 0
    return 1 if opened == {0} else max(len(tensor.sizes) for tensor in tensors.values()) + 32
