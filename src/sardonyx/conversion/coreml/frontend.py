"""CoreML: `.mlmodel` files of neural networks, trees, linear models, machines, what makes features ready, and pipelines of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.conversion.candidate import Candidate, Route
from sardonyx.conversion.coreml.network import (
    NETWORKS,
    check_network,
    network_outputs,
    write_network,
)
from sardonyx.conversion.coreml.pipeline import check_models, pipeline_candidate, pipeline_subject
from sardonyx.conversion.coreml.specification import read_specification
from sardonyx.conversion.request import Request
from sardonyx.conversion.stored.graph import Graph
from sardonyx.conversion.stored.subject import Subject, finish, input_of, open_subject
from sardonyx.errors import ConvertError, InputError

__all__ = ["routes"]


def routes(request: Request) -> Sequence[Route]:
    """The one way: what is stored.

    Raises:
        InputError: the file is damaged, or the examples do not fit.
        ConvertError: it has models or layers without a translation.
        MissingExtraError: coremltools is not installed.
    """
    if request.path is None:
        raise InputError(
            "CoreML models are converted from their files.",
            hint="Save it, and give the .mlmodel file.",
        )
    model = read_specification(request.path)
    kind = model.WhichOneof("Type")
    if kind in NETWORKS:
        return _of_a_network(request, model, getattr(model, kind))
    check_models(model)
    subject, features, rows = pipeline_subject(request, model)
    return [
        Route("its models", lambda: pipeline_candidate(request, model, subject, features, rows))
    ]


def _of_a_network(request: Request, model: Any, network: Any) -> Sequence[Route]:
    check_network(network)
    inputs = [_array(feature) for feature in model.description.input]
    outputs = network_outputs(model)
    subject = open_subject(request, "CoreML", inputs, outputs)
    return [Route("its layers", lambda: _candidate(request, model, subject, outputs))]


def _array(feature: Any) -> str:
    found = feature.type.WhichOneof("Type")
    if found != "multiArrayType":
        raise ConvertError(f"the input {feature.name} is a {found}, and only arrays can be read.")
    return str(feature.name)


def _candidate(request: Request, model: Any, subject: Subject, outputs: Sequence[str]) -> Candidate:
    graph = Graph((*subject.names, *subject.outputs))
    ports = [input_of(graph, subject, index) for index in range(len(subject.names))]
    names = [str(feature.name) for feature in model.description.input]
    results = write_network(graph, model, dict(zip(names, ports, strict=True)), outputs)
    return finish(request, subject, graph, ports, results, _labels_note(model, outputs))


def _labels_note(model: Any, outputs: Sequence[str]) -> list[str]:
    if model.WhichOneof("Type") != "neuralNetworkClassifier":
        return []
    network = model.neuralNetworkClassifier
    labels = network.stringClassLabels.vector or network.int64ClassLabels.vector
    told = ", ".join(str(label) for label in labels)
    return [f"{outputs[0]} has the probabilities of the {len(labels)} labels: {told[:200]}"]
