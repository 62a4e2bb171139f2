"""MXNet: the symbol's operators one by one, with the arrays of the parameter file as weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir

from sardonyx.conversion.candidate import Candidate, Route
from sardonyx.conversion.mxnet.arrays import read_arrays
from sardonyx.conversion.mxnet.operators import TABLE
from sardonyx.conversion.mxnet.symbol import Node, Symbol, read_symbol
from sardonyx.conversion.request import Request
from sardonyx.conversion.stored.graph import Array, Graph
from sardonyx.conversion.stored.layer import Layer
from sardonyx.conversion.stored.subject import Subject, finish, input_of, open_subject
from sardonyx.errors import ConvertError, InputError

__all__ = ["routes"]

_SYMBOL = "-symbol.json"
_EPOCH = re.compile(r"-(\d{4,})\.params$")
# The label is read by the backward pass alone.
_LOSSES = {
    "SoftmaxOutput",
    "Softmax",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "SVMOutput",
}


def routes(request: Request) -> Sequence[Route]:
    """The one way: the stored symbol.

    Raises:
        InputError: a file is missing or damaged, or the examples do not fit.
        ConvertError: it has operators without a translation.
    """
    if request.path is None:
        raise InputError(
            "MXNet models are converted from their files.",
            hint="Save it with export or save_checkpoint, and give the -symbol.json file.",
        )
    symbol = read_symbol(request.path)
    TABLE.check_known({node.kind for node in _used(symbol).values() if not node.is_variable})
    params, notes = _params(request)
    inputs = [
        node.name for node in _used(symbol).values() if node.is_variable and node.name not in params
    ]
    if not inputs:
        raise InputError("it has no inputs: every variable has a value.", where=str(request.path))
    outputs = [_output_name(symbol, entry) for entry in symbol.heads]
    subject = open_subject(request, "MXNet", inputs, outputs)
    return [Route("its symbol", lambda: _candidate(request, symbol, params, subject, notes))]


def _used(symbol: Symbol) -> dict[int, Node]:
    """The nodes that the answers hang on, in order; labels are not among them."""
    wanted = {source for source, _ in symbol.heads}
    for index in range(len(symbol.nodes) - 1, -1, -1):
        if index in wanted:
            node = symbol.nodes[index]
            read = node.inputs[:1] if node.kind in _LOSSES else node.inputs
            wanted.update(source for source, _ in read)
    return {index: symbol.nodes[index] for index in sorted(wanted)}


def _params(request: Request) -> tuple[dict[str, Array], list[str]]:
    """The arrays by the variables' names, and which file they are from."""
    assert request.path is not None
    given = request.option("params")
    notes = []
    if given is not None:
        path = Path(given)
    else:
        prefix = request.path.name.removesuffix(_SYMBOL)
        found = sorted(
            (int(match[1]), each)
            for each in request.path.parent.glob("*.params")
            if (match := _EPOCH.search(each.name))
            and each.name.startswith(prefix)
            and each.name[: match.start()] == prefix
        )
        if not found:
            raise InputError(
                f"there is no {prefix}-0000.params beside it.",
                where=str(request.path),
                hint="Put the parameter file there, or name it: options={'params': 'net-0010.params'}.",
            )
        path = found[-1][1]
        if len(found) > 1:
            notes.append(f"weights are those of {path.name}, the last of {len(found)} epochs")
    arrays = read_arrays(path)
    return {name.removeprefix("arg:").removeprefix("aux:"): a for name, a in arrays.items()}, notes


def _output_name(symbol: Symbol, entry: tuple[int, int]) -> str:
    """As MXNet's list_outputs calls it."""
    node = symbol.nodes[entry[0]]
    several = any(e[0] == entry[0] and e[1] != entry[1] for e in symbol.heads)
    if node.is_variable:
        return node.name
    return f"{node.name}_output{entry[1] if several else ''}"


def _candidate(
    request: Request,
    symbol: Symbol,
    params: Mapping[str, Array],
    subject: Subject,
    notes: Sequence[str],
) -> Candidate:
    graph = Graph((*subject.names, *subject.outputs))
    values: dict[tuple[int, int], ir.Value] = {}
    ports: list[ir.Value] = []
    for index, node in _used(symbol).items():
        if node.is_variable:
            if node.name in params:
                values[index, 0] = graph.parameter(node.name, params[node.name])
            else:
                values[index, 0] = input_of(graph, subject, len(ports))
                ports.append(values[index, 0])
            continue
        layer = Layer(
            graph,
            node.kind,
            node.name,
            [*(values.get(entry) for entry in node.inputs), *_states(graph, node, params)],
            node.attributes,
        )
        for output, value in enumerate(TABLE.write(layer)):
            values[index, output] = value
    missing = [entry for entry in symbol.heads if entry not in values]
    if missing:
        raise ConvertError(
            f"output {missing[0][1]} of {symbol.nodes[missing[0][0]].name} cannot be written."
        )
    return finish(request, subject, graph, ports, [values[e] for e in symbol.heads], notes)


def _states(graph: Graph, node: Node, params: Mapping[str, Array]) -> list[ir.Value]:
    """Moving statistics, that symbols before 0.9 do not name."""
    names = [f"{node.name}_moving_mean", f"{node.name}_moving_var"]
    if not node.kind.startswith("BatchNorm") or len(node.inputs) != 3:
        return []
    return [graph.parameter(name, params[name]) for name in names if name in params]
