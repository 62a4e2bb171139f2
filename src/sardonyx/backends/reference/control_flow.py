"""If, Loop, Scan and SequenceMap, over compiled subgraphs.

Every iteration polls the guard, and what iterations pile up counts against the byte budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference.operator import Call, Operator
from sardonyx.backends.reference.program import Block, Kernel
from sardonyx.backends.reference.values import Array, Value, byte_count
from sardonyx.errors import RunError

__all__ = ["CONTROL_FLOW", "Subgraph"]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A compiled body.

    Attributes:
        captures: where its outer values stand among the inputs of the step.
        outputs: the body's own outputs, for the types they declare.
    """

    block: Block
    captures: slice
    outputs: tuple[ir.Value, ...]

    def run(self, arguments: Sequence[Value], inputs: Sequence[Value], guard: Guard) -> list[Value]:
        return self.block.run(arguments, inputs[self.captures], guard)


def make_if(operator: Operator, subgraphs: Mapping[str, Subgraph]) -> Kernel:
    def run_if(inputs: Sequence[Value], guard: Guard) -> Sequence[Value]:
        branch = "then_branch" if _truth(inputs[0]) else "else_branch"
        return subgraphs[branch].run((), inputs, guard)

    return run_if


def make_loop(operator: Operator, subgraphs: Mapping[str, Subgraph]) -> Kernel:
    body = subgraphs["body"]
    states = len(body.block.inputs) - 2
    node_inputs = len(operator.node.inputs)

    def run_loop(inputs: Sequence[Value], guard: Guard) -> Sequence[Value]:
        own = [*inputs[:node_inputs], *[None] * (2 + states - node_inputs)]
        trips = None if own[0] is None else _integer(own[0])
        condition = own[1] is None or _truth(own[1])
        counted = own[1] is None and trips is not None  # then what the body says of it is ignored
        carried = list(own[2:])
        rows = _Rows(body.outputs[1 + states :], operator, guard)
        try:
            trip = 0
            while condition and (trips is None or trip < trips):
                guard.check(operator.label)
                arguments = [np.array(trip, dtype=np.int64), np.array(condition), *carried]
                results = body.run(arguments, inputs, guard)
                condition = counted or _truth(results[0])
                carried = results[1 : 1 + states]
                rows.add(results[1 + states :])
                trip += 1
            return [*carried, *(rows.stacked(index, 0, False) for index in range(rows.count))]
        finally:
            rows.release()

    return run_loop


def make_scan(operator: Operator, subgraphs: Mapping[str, Subgraph]) -> Kernel:
    body = subgraphs["body"]
    call_scan = _scan_with_batches if operator.since < 9 else _scan

    def run_scan(inputs: Sequence[Value], guard: Guard) -> Sequence[Value]:
        own = inputs[: len(operator.node.inputs)]
        return call_scan(Call(operator, guard), body, own, inputs)

    return run_scan


def _scan(call: Call, body: Subgraph, own: Sequence[Value], inputs: Sequence[Value]) -> list[Value]:
    scans = int(call.attr("num_scan_inputs"))
    states = len(own) - scans
    outputs = len(body.outputs) - states
    carried = list(own[:states])
    axes = call.attr("scan_input_axes", (0,) * scans)
    backward = call.attr("scan_input_directions", (0,) * scans)
    rows_in = [
        np.flip(moved, 0) if direction else moved
        for value, axis, direction in zip(own[states:], axes, backward, strict=True)
        for moved in (np.moveaxis(_array(value), axis, 0),)
    ]
    lengths = {len(rows) for rows in rows_in}
    if len(lengths) != 1:
        raise RunError(f"the scan inputs have different lengths: {sorted(lengths)}", value=lengths)
    rows_out = _Rows(body.outputs[states:], call.operator, call.guard)
    try:
        for trip in range(lengths.pop()):
            call.check()
            results = body.run([*carried, *(rows[trip] for rows in rows_in)], inputs, call.guard)
            carried = results[:states]
            rows_out.add(results[states:])
        return [
            *carried,
            *(
                rows_out.stacked(index, axis, bool(direction))
                for index, axis, direction in zip(
                    range(outputs),
                    call.attr("scan_output_axes", (0,) * outputs),
                    call.attr("scan_output_directions", (0,) * outputs),
                    strict=True,
                )
            ),
        ]
    finally:
        rows_out.release()


def _scan_with_batches(
    call: Call, body: Subgraph, own: Sequence[Value], inputs: Sequence[Value]
) -> list[Value]:
    """Scan of opset 8: a batch of sequences, each with its own length, padded with zeros."""
    lengths, values = own[0], [_array(value) for value in own[1:]]
    scans = int(call.attr("num_scan_inputs"))
    states = len(values) - scans
    backward = call.attr("directions", (0,) * scans)
    longest = values[states].shape[1]
    batches = []
    for batch in range(values[states].shape[0]):
        length = longest if lengths is None else int(_array(lengths)[batch])
        if not 0 <= length <= longest:
            raise RunError(
                f"sequence_lens[{batch}] is {length}, outside 0..{longest}",
                value=length,
                limit=longest,
            )
        carried: list[Value] = [value[batch] for value in values[:states]]
        rows_in = [
            np.flip(value[batch, :length], 0) if direction else value[batch, :length]
            for value, direction in zip(values[states:], backward, strict=True)
        ]
        rows_out = _Rows(body.outputs[states:], call.operator, call.guard)
        try:
            for trip in range(length):
                call.check()
                arguments = [*carried, *(rows[trip] for rows in rows_in)]
                results = body.run(arguments, inputs, call.guard)
                carried = results[:states]
                rows_out.add(results[states:])
            padded = [
                _pad_rows(rows_out.stacked(index, 0, False), longest)
                for index in range(rows_out.count)
            ]
        finally:
            rows_out.release()
        batches.append([*carried, *padded])
    return [np.stack([_array(item) for item in column]) for column in zip(*batches, strict=True)]


def _pad_rows(rows: Array, length: int) -> Array:
    return np.pad(rows, [(0, length - len(rows)), *[(0, 0)] * (rows.ndim - 1)])


def make_sequence_map(operator: Operator, subgraphs: Mapping[str, Subgraph]) -> Kernel:
    body = subgraphs["body"]
    node_inputs = len(operator.node.inputs)

    def run_sequence_map(inputs: Sequence[Value], guard: Guard) -> Sequence[Value]:
        own = inputs[:node_inputs]
        lengths = {len(value) for value in own if isinstance(value, list)}
        if len(lengths) != 1:
            raise RunError(
                f"the sequences have different lengths: {sorted(lengths)}", value=lengths
            )
        columns: list[list[Value]] = [[] for _ in body.outputs]
        held = 0
        try:
            for index in range(lengths.pop()):
                guard.check(operator.label)
                arguments = [value[index] if isinstance(value, list) else value for value in own]
                results = body.run(arguments, inputs, guard)
                nbytes = byte_count(results)
                guard.reserve(nbytes, operator.label)
                held += nbytes
                for column, result in zip(columns, results, strict=True):
                    column.append(result)
        finally:
            guard.release(held)
        return columns

    return run_sequence_map


CONTROL_FLOW: dict[str, Callable[[Operator, Mapping[str, Subgraph]], Kernel]] = {
    "If": make_if,
    "Loop": make_loop,
    "Scan": make_scan,
    "SequenceMap": make_sequence_map,
}


class _Rows:
    """Piles up what each iteration puts out, counted against the budget."""

    def __init__(self, outputs: Sequence[ir.Value], operator: Operator, guard: Guard) -> None:
        self.outputs = outputs
        self.operator = operator
        self.guard = guard
        self.rows: list[list[Array]] = [[] for _ in outputs]
        self.held = 0

    @property
    def count(self) -> int:
        return len(self.outputs)

    def add(self, results: Sequence[Value]) -> None:
        for pile, result in zip(self.rows, results, strict=True):
            row = _array(result)
            if pile and pile[0].shape != row.shape:
                raise RunError(
                    f"an output of the body has shape {list(row.shape)} in trip {len(pile)} "
                    f"after {list(pile[0].shape)}",
                    value=row.shape,
                )
            self.guard.reserve(row.nbytes + 64, self.operator.label)
            self.held += row.nbytes + 64
            pile.append(row)

    def stacked(self, index: int, axis: int, backward: bool) -> Array:
        pile = self.rows[index]
        if not pile:
            return self._empty(index, axis)
        nbytes = sum(row.nbytes for row in pile)
        self.guard.reserve(nbytes, self.operator.label)
        self.held += nbytes
        return np.moveaxis(np.stack(pile[::-1] if backward else pile), 0, axis)

    def _empty(self, index: int, axis: int) -> Array:
        """No trips: the type and shape that the body or the node declares, unknown sizes as 0."""
        output = self.outputs[index]
        if output.dtype is None:
            raise RunError(f"no trips, and output {output.name!r} of the body declares no type")
        row = [size if isinstance(size, int) else 0 for size in output.shape or ()]
        axis = axis + len(row) + 1 if axis < 0 else axis
        shape = [*row[:axis], 0, *row[axis:]]
        around = self.operator.node.outputs[index - self.count].shape
        if around is not None and len(around) == len(shape):
            known = [size if isinstance(size, int) else 0 for size in around]
            shape = [
                0 if i == axis else a or b
                for i, (a, b) in enumerate(zip(shape, known, strict=True))
            ]
        dtype = object if output.dtype == ir.DataType.STRING else output.dtype.numpy()
        return np.empty(shape, dtype=dtype)

    def release(self) -> None:
        self.guard.release(self.held)
        self.held = 0


def _array(value: Value) -> Array:
    if not isinstance(value, np.ndarray):
        raise RunError(f"a tensor is needed, not {type(value).__name__}")
    return value


def _truth(value: Value) -> bool:
    condition = _array(value)
    if condition.size != 1:
        raise RunError(f"the condition has {condition.size} elements, not 1", value=condition.shape)
    return bool(condition.item())


def _integer(value: Value) -> int:
    count = _array(value)
    if count.size != 1:
        raise RunError(f"the trip count has {count.size} elements, not 1", value=count.shape)
    return int(count.item())
