"""Variables of a file: what a run writes and the next one reads. ONNX keeps nothing, so that the caller carries them.

    VAR_HANDLE "stream/states"          the input  stream/states        what it begins with is its default
    READ_VARIABLE, ASSIGN_VARIABLE      the output stream/states.next   to be fed as stream/states in the next run
    CALL_ONCE                           what every variable begins with

A variable that no run writes is a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sardonyx.conversion.tflite.schema import Array, Model, Operator, Subgraph, Tensor
from sardonyx.errors import ConvertError

__all__ = ["KINDS", "Variable", "find_variables"]

KINDS = frozenset({"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})


@dataclass(frozen=True, eq=False)
class Variable:
    """One variable of a subgraph.

    Attributes:
        name: as the file has it, or one that is free.
        handles: numbers of the tensors that lead to it.
        begin: its value before the first run.
        tensor: what is said of its value.
        last: the number of the tensor that a run leaves in it; None where no run writes it.
    """

    name: str
    handles: frozenset[int]
    begin: Array
    tensor: Tensor
    last: int | None


def find_variables(model: Model, number: int) -> tuple[Variable, ...]:
    """The variables that a subgraph reads.

    Raises:
        ConvertError: nobody knows what one begins with, or it changes its shape or its steps.
    """
    graph = model.subgraphs[number]
    begins = dict(_begins(model, graph))
    found: list[Variable] = []
    for key, handles in _handles(graph).items():
        read = [o.outputs[0] for o in _on(graph, "READ_VARIABLE", handles)]
        written = [o.inputs[1] for o in _on(graph, "ASSIGN_VARIABLE", handles)]
        if not read:
            continue
        name = key[1] or key[0] or "state"
        if key not in begins:
            raise ConvertError(
                "it is read, and the file does not say by constants what it begins with.",
                where=f"variable {name[:80]!r}",
            )
        begin = begins[key]
        for index in (*read, *written):
            _check(name, begin, graph.tensors[index])
        assert begin.data is not None
        last = written[-1] if written else None
        found.append(Variable(name, handles, begin.data, graph.tensors[read[0]], last))
    return tuple(found)


def _begins(model: Model, graph: Subgraph) -> Iterator[tuple[tuple[str, str], Tensor]]:
    for operator in graph.operators:
        if operator.kind != "CALL_ONCE":
            continue
        called = model.subgraphs[int(operator.options["init"])]
        for key, handles in _handles(called).items():
            for assigned in _on(called, "ASSIGN_VARIABLE", handles):
                tensor = called.tensors[assigned.inputs[1]]
                if tensor.data is not None:
                    yield key, tensor


def _handles(graph: Subgraph) -> Mapping[tuple[str, str], frozenset[int]]:
    found: dict[tuple[str, str], frozenset[int]] = {}
    for operator in graph.operators:
        if operator.kind == "VAR_HANDLE":
            key = (str(operator.options["container"]), str(operator.options["shared_name"]))
            found[key] = found.get(key, frozenset()) | {*operator.outputs}
    return found


def _on(graph: Subgraph, kind: str, handles: frozenset[int]) -> list[Operator]:
    count = {"READ_VARIABLE": (1, 1), "ASSIGN_VARIABLE": (2, 0)}[kind]
    found = [o for o in graph.operators if o.kind == kind and handles & {*o.inputs[:1]}]
    for operator in found:
        if (len(operator.inputs), len(operator.outputs)) != count or -1 in operator.inputs:
            raise ConvertError(
                f"it has {len(operator.inputs)} inputs and {len(operator.outputs)} outputs.",
                where=kind,
            )
    return found


def _check(name: str, begin: Tensor, tensor: Tensor) -> None:
    """What is read and written must mean what it began with."""
    found = begin.quantization
    same = tensor.quantization is None if found is None else found.same_as(tensor.quantization)
    if tensor.dtype != begin.dtype or tensor.shape not in (None, begin.shape) or not same:
        raise ConvertError(
            f"it begins as {_text(begin)}, and is {_text(tensor)} as tensor {tensor.name[:80]!r}.",
            where=f"variable {name[:80]!r}",
            hint="A state that changes its shape or its steps from run to run is not converted.",
        )


def _text(tensor: Tensor) -> str:
    shape = "[…]" if tensor.shape is None else str(list(tensor.shape))
    if tensor.quantization is None:
        return f"{tensor.dtype}{shape}"
    return f"{tensor.dtype}{shape} in steps of {float(tensor.quantization.scale.flat[0]):g}"
