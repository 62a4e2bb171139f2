"""Caffe2: what `init_net` fills are weights, and `predict_net` is written operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx_ir as ir

from sardonyx.conversion.caffe2.network import Network, Operator, read_network
from sardonyx.conversion.caffe2.operators import FILLS, TABLE
from sardonyx.conversion.candidate import Candidate, Route
from sardonyx.conversion.request import Request
from sardonyx.conversion.stored.graph import Graph
from sardonyx.conversion.stored.layer import Layer
from sardonyx.conversion.stored.subject import Subject, finish, input_of, open_subject
from sardonyx.errors import ConvertError, InputError

__all__ = ["routes"]

_PREDICT, _INIT = "predict_net.pb", "init_net.pb"


def routes(request: Request) -> Sequence[Route]:
    """The one way: the stored operators.

    Raises:
        InputError: a file is missing or damaged, or the examples do not fit.
        ConvertError: it has operators without a translation.
    """
    predict_path, init_path = _files(request)
    predict, init = read_network(predict_path), read_network(init_path)
    if not predict.operators:
        raise InputError("it has no operators.", where=str(predict_path))
    TABLE.check_known({operator.kind for operator in (*init.operators, *predict.operators)})
    inputs = _inputs(request, predict, init)
    if not inputs:
        raise InputError("it has no inputs: every blob has a value.", where=str(predict_path))
    outputs = predict.outputs or predict.operators[-1].outputs[:1]
    subject = open_subject(request, "Caffe2", inputs, outputs)
    own = outputs
    return [
        Route("its operators", lambda: _candidate(request, predict, init, subject, inputs, own))
    ]


def _files(request: Request) -> tuple[Path, Path]:
    path = request.path
    if path is None:
        raise InputError(
            "Caffe2 models are converted from their files.",
            hint="Save predict_net.pb and init_net.pb, and give the first or their folder.",
        )
    predict = path / _PREDICT if path.is_dir() else path
    given = request.option("init_net")
    init = (
        Path(given) if given else predict.with_name(predict.name.replace("predict_net", "init_net"))
    )
    if init == predict or not init.is_file():
        raise InputError(
            f"there is no {_INIT} beside it.",
            where=str(predict),
            hint="Put it there, or name it: options={'init_net': 'weights.pb'}.",
        )
    return predict, init


def _inputs(request: Request, predict: Network, init: Network) -> list[str]:
    """The blobs that nobody fills, or that the example names; some files fill the data with a placeholder."""
    fills = {output: operator.kind for operator in init.operators for output in operator.outputs}
    named = {name for example in request.examples for name in example.kwargs}
    written: set[str] = set()
    read: dict[str, None] = {}
    for operator in predict.operators:
        read.update((name, None) for name in operator.inputs if name not in written)
        written.update(operator.outputs)
    found = [name for name in read if name not in fills or name in named]
    if found:
        return found
    return [name for name in read if fills[name] == "ConstantFill"][:1]


def _candidate(
    request: Request,
    predict: Network,
    init: Network,
    subject: Subject,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Candidate:
    graph = Graph((*subject.names, *subject.outputs))
    blobs: dict[str, ir.Value] = {}
    for operator in init.operators:
        if operator.kind not in FILLS:
            raise ConvertError(f"{operator.kind} computes weights.", where=operator.name)
        if not set(operator.outputs) & set(inputs):
            _write(graph, operator, blobs)
    ports = [input_of(graph, subject, index) for index in range(len(inputs))]
    blobs.update(zip(inputs, ports, strict=True))
    for operator in predict.operators:
        _write(graph, operator, blobs)
    missing = [name for name in outputs if name not in blobs]
    if missing:
        raise ConvertError(f"nothing writes the outputs {', '.join(missing)[:200]}.")
    return finish(request, subject, graph, ports, [blobs[name] for name in outputs])


def _write(graph: Graph, operator: Operator, blobs: dict[str, ir.Value]) -> None:
    missing = [name for name in operator.inputs if name not in blobs]
    if missing:
        raise ConvertError(
            f"it reads {missing[0]!r:.80}, which nothing writes.",
            where=f"{operator.kind} {operator.name}",
        )
    layer = Layer(
        graph,
        operator.kind,
        operator.name,
        [blobs[name] for name in operator.inputs],
        operator.arguments,
        len(operator.outputs),
    )
    made = TABLE.write(layer)
    for name in operator.outputs[len(made) :]:
        blobs.pop(name, None)  # a mask or statistics, that only training reads
    blobs.update(zip(operator.outputs, made, strict=False))
