"""CoreML: the layers of a neural network one by one.

Arrays of one axis are channels and of three are (channels, height, width), as files before version 4 have them: inside they have an
axis of one image before. Where the file maps arrays exactly, they are as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.candidate import Candidate, Route
from sardonyx.conversion.coreml.layers import TABLE
from sardonyx.conversion.coreml.specification import read_specification
from sardonyx.conversion.request import Request
from sardonyx.conversion.stored.graph import Graph
from sardonyx.conversion.stored.layer import Layer
from sardonyx.conversion.stored.subject import Subject, finish, input_of, open_subject
from sardonyx.errors import ConvertError, InputError
from sardonyx.sizes import Size

__all__ = ["routes"]

_INT32 = 131104  # of ArrayFeatureType.ArrayDataType
_NETWORKS = ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")


def routes(request: Request) -> Sequence[Route]:
    """The one way: the stored layers.

    Raises:
        InputError: the file is damaged, or the examples do not fit.
        ConvertError: it is no neural network, or has layers without a translation.
        MissingExtraError: coremltools is not installed.
    """
    if request.path is None:
        raise InputError(
            "CoreML models are converted from their files.",
            hint="Save it, and give the .mlmodel file.",
        )
    model = read_specification(request.path)
    kind = model.WhichOneof("Type")
    if kind not in _NETWORKS:
        raise ConvertError(
            f"it is a {kind}, and only neural networks can be read.",
            where=str(request.path),
            value=kind,
        )
    network = getattr(model, kind)
    if len(network.preprocessing):
        raise ConvertError(
            "it scales or shifts images before the first layer.", where=str(request.path)
        )
    TABLE.check_known({layer.WhichOneof("layer") or "nothing" for layer in network.layers})
    inputs = [_array(feature) for feature in model.description.input]
    outputs, notes = _outputs(model, kind)
    subject = open_subject(request, "CoreML", inputs, outputs)
    return [
        Route("its layers", lambda: _candidate(request, model, network, subject, outputs, notes))
    ]


def _array(feature: Any) -> str:
    found = feature.type.WhichOneof("Type")
    if found != "multiArrayType":
        raise ConvertError(f"the input {feature.name} is a {found}, and only arrays can be read.")
    return str(feature.name)


def _outputs(model: Any, kind: str) -> tuple[list[str], list[str]]:
    """Arrays by name; of a classifier the probabilities, in the order of its labels."""
    if kind != "neuralNetworkClassifier":
        return [str(feature.name) for feature in model.description.output], []
    network = model.neuralNetworkClassifier
    labels = network.stringClassLabels.vector or network.int64ClassLabels.vector
    name = network.labelProbabilityLayerName or _last(network)
    told = ", ".join(str(label) for label in labels)
    return [name], [f"{name} has the probabilities of the {len(labels)} labels: {told[:200]}"]


def _last(network: Any) -> str:
    if not network.layers or not network.layers[-1].output:
        raise ConvertError("its last layer has no output.")
    return str(network.layers[-1].output[0])


def _candidate(
    request: Request,
    model: Any,
    network: Any,
    subject: Subject,
    outputs: Sequence[str],
    notes: Sequence[str],
) -> Candidate:
    graph = Graph((*subject.names, *subject.outputs))
    blobs: dict[str, ir.Value] = {}
    ports = []
    exact = bool(network.arrayInputShapeMapping)
    for index, feature in enumerate(model.description.input):
        ports.append(input_of(graph, subject, index))
        entering = _as_floats(graph, ports[-1])
        blobs[feature.name] = entering if exact else _image(graph, entering)
    for stored in network.layers:
        missing = [name for name in stored.input if name not in blobs]
        if missing:
            raise ConvertError(
                f"it reads {missing[0]!r:.80}, which nothing writes.", where=stored.name
            )
        operands = [blobs[name] for name in stored.input]
        kind = stored.WhichOneof("layer")
        layer = Layer(graph, kind, stored.name, operands, _attributes(stored), len(stored.output))
        blobs.update(zip(stored.output, TABLE.write(layer), strict=False))
    missing = [name for name in outputs if name not in blobs]
    if missing:
        raise ConvertError(f"nothing writes the outputs {', '.join(missing)[:200]}.")
    ranks = {f.name: len(f.type.multiArrayType.shape) for f in model.description.output}
    results = [
        blobs[name] if exact else _declared(graph, blobs[name], ranks.get(name, 1))
        for name in outputs
    ]
    whole = {f.name for f in model.description.output if f.type.multiArrayType.dataType == _INT32}
    given = [
        graph.cast(value, np.int32) if name in whole else value
        for name, value in zip(outputs, results, strict=True)
    ]
    return finish(request, subject, graph, ports, given, notes)


def _as_floats(graph: Graph, value: ir.Value) -> ir.Value:
    """Layers compute with floats, whatever enters them."""
    return value if graph.dtype(value).kind == "f" else graph.cast(value, np.float32)


def _attributes(stored: Any) -> Mapping[str, Any]:
    """The fields that are set; of an activation those of its kind."""
    params = getattr(stored, stored.WhichOneof("layer"))
    found: dict[str, Any] = {}
    if stored.WhichOneof("layer") == "activation":
        found["kind"] = params.WhichOneof("NonlinearityType")
        params = getattr(params, found["kind"]) if found["kind"] else params
    for field, value in params.ListFields():
        found[field.name] = [int(each) for each in value] if _is_integers(value) else value
    return found


def _is_integers(value: Any) -> bool:
    plain = isinstance(value, int | float | str | bytes) or hasattr(value, "ListFields")
    return not plain and all(isinstance(each, int) for each in value)


def _image(graph: Graph, value: ir.Value) -> ir.Value:
    shape = graph.shape(value)
    if len(shape) == 1:
        return graph.reshape(value, (1, *shape, 1, 1))
    if len(shape) == 3:
        return graph.reshape(value, (1, *shape))
    raise graph.refuse(f"an array of {len(shape)} axes is neither channels nor an image.")


def _declared(graph: Graph, value: ir.Value, rank: int) -> ir.Value:
    shape: tuple[Size, ...] = graph.shape(value)
    if rank == 3 or shape[2:] != (1, 1):
        return graph.reshape(value, shape[1:])
    return graph.reshape(value, shape[1:2])
