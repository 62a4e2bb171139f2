"""An estimator's graph as a model, with the names and the opset that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from sardonyx.conversion.request import Request, chosen_names
from sardonyx.conversion.sklearn import estimators  # noqa: F401  (registers them)
from sardonyx.conversion.sklearn.answers import Output
from sardonyx.conversion.sklearn.graph import ML, ML_OPSET, OPSET, TEXT, Graph, Tensor, concat
from sardonyx.conversion.sklearn.inputs import Rows
from sardonyx.conversion.sklearn.table import Part, Table
from sardonyx.conversion.sklearn.writers import refuse, title, write
from sardonyx.errors import InputError
from sardonyx.model.load import load
from sardonyx.passes.opset.convert import ir_version_for
from sardonyx.passes.optimize import Settings, optimize

__all__ = ["Assembled", "assemble"]


@dataclass(frozen=True)
class Assembled:
    """The model, its inputs' names in the order of the rows' ports, and its outputs' types."""

    model: ir.Model
    input_names: tuple[str, ...]
    dtypes: tuple[np.dtype[Any], ...]
    notes: tuple[str, ...]


def assemble(
    request: Request,
    model: Any,
    rows: Rows,
    outputs: Sequence[Output],
    types: tuple[np.dtype[Any], np.dtype[Any]],
) -> Assembled:
    """Write the estimator's graph.

    Args:
        types: what real numbers are computed in, and what they are given out as.
    """
    number, result = types
    names = chosen_names(
        request.input_names, tuple(port.name for port in rows.ports), "inputs", "model"
    )
    given = chosen_names(
        request.output_names, tuple(output.name for output in outputs), "outputs", "model"
    )
    if set(names) & set(given):
        clash = sorted(set(names) & set(given))[0]
        given = tuple(f"{name}_out" if name in names else name for name in given)
        if request.output_names:
            raise InputError(f"{clash!r} is an input and an output.", hint="Give another name.")
    graph = Graph(number)
    table = Table(tuple(_part(graph, rows, place, names) for place in range(len(names))))
    answers = [_answer(model, output, table, result) for output in outputs]
    for name, answer in zip(given, answers, strict=True):
        graph.nodes.append(helper.make_node("Identity", [answer.name], [name], name=name))
    proto = helper.make_model(
        helper.make_graph(
            graph.nodes,
            title(model),
            [_declared(part.tensor) for part in table.parts],
            [
                _declared(Tensor(graph, name, answer.dtype, answer.shape))
                for name, answer in zip(given, answers, strict=True)
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
        ir_version=ir_version_for(OPSET),
    )
    # Level 1 drops what nobody reads and the copies behind the outputs' names.
    made = optimize(load(proto), Settings(1, opset=request.opset)).model
    return Assembled(made, names, tuple(answer.dtype for answer in answers), _notes(rows, outputs))


def _part(graph: Graph, rows: Rows, place: int, names: tuple[str, ...]) -> Part:
    port = rows.ports[place]
    shape = (None,) if port.width is None else (None, port.width)
    tensor = Tensor(graph, names[place], port.dtype, shape)
    column = (port.name,) if rows.columns is not None else ()
    return Part(tensor, column)


def _answer(model: Any, output: Output, table: Table, result: np.dtype[Any]) -> Tensor:
    answer = write(output.method, model, table)
    if output.place is not None:
        answer = answer[output.place]
    if isinstance(answer, Table):
        answer = _one_type(model, answer)
    if not isinstance(answer, Tensor):
        raise refuse(model, f"{output.method} gives several answers")
    # What a library answers in float32 stays so.
    wide = answer.dtype.kind == "f" and answer.dtype.itemsize > result.itemsize
    return answer.cast(result) if wide else answer


def _one_type(model: Any, table: Table) -> Tensor:
    kinds = {part.tensor.dtype for part in table.parts}
    if TEXT not in kinds:
        whole = all(kind.kind in "biu" for kind in kinds)
        if whole and len(kinds) == 1:
            return concat([part.tensor for part in table.parts])
        return table.matrix
    if len(kinds) > 1:
        raise refuse(model, "its result mixes texts and numbers, which no tensor holds")
    return concat([part.tensor for part in table.parts])


def _declared(tensor: Tensor) -> onnx.ValueInfoProto:
    kind = (
        onnx.TensorProto.STRING
        if tensor.dtype == TEXT
        else helper.np_dtype_to_tensor_dtype(tensor.dtype)
    )
    shape = ["batch" if size is None else size for size in tensor.shape]
    return helper.make_tensor_value_info(tensor.name, kind, shape)


def _notes(rows: Rows, outputs: Sequence[Output]) -> tuple[str, ...]:
    notes = [
        f"the output {output.name} is {output.method} of the estimator."
        for output in outputs
        if output.method == "decision_function"
    ]
    gone = [port.name for port in rows.ports if port.dtype == TEXT and port.missing != ""]
    if gone:
        notes.append(f"an empty text is a missing one: {', '.join(gone)}.")
    return tuple(notes)
