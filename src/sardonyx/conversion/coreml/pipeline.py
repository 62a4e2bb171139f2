"""Models other than networks, alone and one after another in pipelines.

CoreML takes one row at a time. An example in the declared shapes is converted as such; with one axis more in front, which is then
open, the model takes any number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.candidate import Candidate
from sardonyx.conversion.coreml.network import (
    NETWORKS,
    check_network,
    network_outputs,
    probabilities_of,
    write_network,
)
from sardonyx.conversion.coreml.stage import Column, Key, Stage
from sardonyx.conversion.coreml.stages import STAGES
from sardonyx.conversion.coreml.stages.classes import classified, largest
from sardonyx.conversion.coreml.stages.encoding import keys_of
from sardonyx.conversion.request import Request
from sardonyx.conversion.stored.graph import Array, Graph
from sardonyx.conversion.stored.subject import Subject, finish, input_of, open_subject
from sardonyx.errors import ConvertError, InputError
from sardonyx.sizes import Size

__all__ = ["check_models", "pipeline_candidate", "pipeline_subject"]

_PIPELINES = ("pipeline", "pipelineClassifier", "pipelineRegressor")
_ROWS = "batch"


def parts_of(model: Any) -> Sequence[Any] | None:
    """The models of a pipeline, in their order; None of any other model."""
    kind = model.WhichOneof("Type")
    if kind not in _PIPELINES:
        return None
    found = getattr(model, kind)
    models: Sequence[Any] = found.models if kind == "pipeline" else found.pipeline.models
    return models


def _leaves(model: Any) -> Iterator[Any]:
    parts = parts_of(model)
    if parts is None:
        yield model
    else:
        for part in parts:
            yield from _leaves(part)


def check_models(model: Any) -> None:
    """Refuse what cannot be read, before anything is written.

    Raises:
        ConvertError: with all the kinds that have no translation.
    """
    models = list(_leaves(model))
    kinds = {one.WhichOneof("Type") or "nothing" for one in models}
    unknown = sorted(kinds - STAGES.keys() - set(NETWORKS))
    if unknown:
        raise ConvertError(
            f"models of CoreML without a translation: {', '.join(unknown)}.", value=unknown
        )
    for one in models:
        if one.WhichOneof("Type") in NETWORKS:
            check_network(getattr(one, one.WhichOneof("Type")))


# What callers feed


@dataclass(frozen=True)
class Feature:
    """An input as it is declared: `shape` is None for what has no axis of its own, () where the file does not tell."""

    name: str
    shape: tuple[int, ...] | None
    keys: tuple[Key, ...] | None = None
    text: bool = False

    @property
    def rank(self) -> int:
        return 0 if self.shape is None else max(len(self.shape), 1)


def _feature(model: Any, declared: Any) -> Feature:
    name, kind = str(declared.name), declared.type.WhichOneof("Type")
    if kind in ("doubleType", "int64Type", "stringType"):
        return Feature(name, None, text=kind == "stringType")
    if kind == "multiArrayType":
        return Feature(name, tuple(int(size) for size in declared.type.multiArrayType.shape))
    if kind == "dictionaryType":
        keys = _dictionary_keys(model, name)
        return Feature(name, (len(keys),), keys)
    raise ConvertError(
        f"the input {name[:80]} is a {kind}, and only numbers, texts, arrays and dictionaries can be read."
    )


def _dictionary_keys(model: Any, name: str) -> tuple[Key, ...]:
    """The keys of a dictionary that is fed, as the first model that reads it has them."""
    for one in _leaves(model):
        if any(feature.name == name for feature in one.description.input):
            keys = keys_of(one, name)
            if keys:
                return keys
            break
    raise ConvertError(f"the keys of the dictionary {name[:80]!r} are not told by who reads it.")


def pipeline_subject(request: Request, model: Any) -> tuple[Subject, list[Feature], bool]:
    """What is asked, the inputs as they are declared, and whether examples have an axis of rows.

    Raises:
        InputError: there are no examples, or they do not fit the inputs.
    """
    features = [_feature(model, declared) for declared in model.description.input]
    outputs = [str(feature.name) for feature in model.description.output]
    subject = open_subject(request, "CoreML", [one.name for one in features], outputs)
    declared = dict(zip(subject.names, features, strict=True))
    first = {name: np.asarray(subject.examples[0][name]) for name in declared}
    many = {first[name].ndim - one.rank for name, one in declared.items()}
    if many not in ({0}, {1}):
        told = ", ".join(
            f"{name} {list(first[name].shape)} for {[*(one.shape or ())]}"
            for name, one in declared.items()
        )
        raise InputError(
            f"the example has other axes than the file declares: {told[:300]}.",
            hint="Give every input in its declared shape, or every one with an axis of rows in front.",
        )
    for example in subject.examples:
        for name, one in declared.items():
            _check_example(name, one, np.asarray(example[name]))
    if many == {1}:
        named = [axes[0] for axes in subject.dynamic.values() if 0 in axes]
        rows = named[0] if named else _ROWS
        subject = replace(subject, dynamic={name: {0: rows} for name in subject.names})
    return subject, features, many == {1}


def _check_example(name: str, feature: Feature, given: Array) -> None:
    if (given.dtype.kind in "OUT") != feature.text:
        raise InputError(
            f"the example of {name[:80]!r} is not of {'texts' if feature.text else 'numbers'}.",
            value=given.dtype.name,
        )
    inner = given.shape[given.ndim - feature.rank :]
    if feature.shape and inner != feature.shape:
        raise InputError(
            f"the example of {name[:80]!r} has {list(inner)} where {list(feature.shape)} are declared.",
            value=given.shape,
            hint="An axis of rows comes in front.",
        )


def pipeline_candidate(
    request: Request, model: Any, subject: Subject, features: Sequence[Feature], rows: bool
) -> Candidate:
    """The model of all the stages, and what it is held to.

    Raises:
        ConvertError: a stage cannot be written.
    """
    graph = Graph((*subject.names, *subject.outputs))
    ports, columns, notes = [], {}, []
    for index, feature in enumerate(features):
        ports.append(input_of(graph, subject, index))
        columns[feature.name] = _column(graph, feature, ports[-1], rows)
        if feature.keys is not None:
            notes.append(_keys_note(subject.names[index], feature.keys))
    made = _write(graph, model, columns)
    wide = any(np.asarray(value).dtype == np.float64 for value in subject.examples[0].values())
    results = []
    for name, declared in zip(subject.outputs, model.description.output, strict=True):
        column = made[declared.name]
        results.append(_result(graph, declared.type, column, rows=rows, wide=wide))
        if column.keys is not None:
            notes.append(_keys_note(name, column.keys))
    return finish(request, subject, graph, ports, results, notes)


def _keys_note(name: str, keys: Sequence[Key]) -> str:
    told = ", ".join(str(key) for key in keys)
    return f"{name} is an array of {len(keys)} columns, one a key: {told[:200]}"


def _column(graph: Graph, feature: Feature, port: ir.Value, rows: bool) -> Column:
    """An input with an axis of rows, and its elements in one line."""
    shape = graph.shape(port)
    count = shape[0] if rows else 1
    if feature.shape is None:
        return Column(graph.reshape(port, (count,)))
    width = int(np.prod([graph.size(port, axis) for axis in range(int(rows), len(shape))]))
    return Column(graph.reshape(port, (count, width)), feature.keys)


def _result(graph: Graph, declared: Any, column: Column, *, rows: bool, wide: bool) -> ir.Value:
    """An output in its declared shape; floats are float32 unless float64 is fed."""
    value = column.value
    if graph.dtype(value) == np.float64 and not wide:
        value = graph.cast(value, np.float32)
    shape = graph.shape(value)
    sizes = tuple(int(size) for size in declared.multiArrayType.shape)
    inner = sizes if declared.WhichOneof("Type") == "multiArrayType" and sizes else shape[1:]
    return graph.reshape(value, (shape[0], *inner) if rows else inner)


# The stages


def _write(graph: Graph, model: Any, columns: Mapping[str, Column]) -> dict[str, Column]:
    """What a model gives by name, of features by name."""
    read = {}
    for feature in model.description.input:
        if feature.name not in columns:
            raise graph.refuse(f"it reads {feature.name[:80]!r}, which nothing writes.")
        read[str(feature.name)] = columns[feature.name]
    parts = parts_of(model)
    if parts is not None:
        known = dict(read)
        for part in parts:
            known.update(_write(graph, part, known))
        made = known
    elif model.WhichOneof("Type") in NETWORKS:
        made = _network(graph, model, read)
    else:
        graph.layer = model.WhichOneof("Type")
        if not read:
            raise graph.refuse("it reads nothing.")
        made = STAGES[graph.layer](Stage(graph, model, read))
    missing = [f.name for f in model.description.output if f.name not in made]
    if missing:
        raise graph.refuse(f"nothing writes its outputs {', '.join(missing)[:200]}.")
    graph.layer = ""
    return {str(f.name): made[f.name] for f in model.description.output}


def _network(graph: Graph, model: Any, read: Mapping[str, Column]) -> dict[str, Column]:
    """A network takes one row, in the shapes that its description declares."""
    shapes = {f.name: f.type.multiArrayType.shape for f in model.description.input}
    given = {}
    for name, column in read.items():
        if graph.shape(column.value)[0] != 1:
            raise graph.refuse(
                "a neural network in a pipeline takes one row.",
                "Give examples in the declared shapes, without an axis of rows.",
            )
        sizes: Sequence[Size] = [int(size) for size in shapes[name]]
        sizes = sizes or graph.shape(column.value)[1:]
        given[name] = graph.reshape(graph.cast(column.value, np.float32), sizes)
    outputs = network_outputs(model)
    written = write_network(graph, model, given, outputs)
    flat = [Column(graph.reshape(one, (1, _elements(graph, one)))) for one in written]
    made = dict(zip(outputs, flat, strict=True))
    if model.WhichOneof("Type") == "neuralNetworkClassifier":
        stage = Stage(graph, model, made)
        probabilities = made[probabilities_of(stage.params)].value
        made.update(classified(stage, probabilities, largest(stage, probabilities)))
    return made


def _elements(graph: Graph, value: ir.Value) -> int:
    return int(np.prod([graph.size(value, axis) for axis in range(graph.rank(value))]))
