"""Recurrent layers that were unrolled step by step, as the one operator that they are.

    h1, c1 = cell(x[:, 0], h0, c0)              X = Transpose(x)
    h2, c2 = cell(x[:, 1], h1, c1)      →       Y, _, Y_c = LSTM(X, W, R, B, h0, c0)
    …                                           h1, h2, … = rows of Y

All steps have the same weights. Sums are rounded at other places: the operator adds up the products first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule
from sardonyx.passes.rules.cells import Cell, Gates, gru_cell, lstm_cell, rnn_cell
from sardonyx.passes.rules.linear_sums import Array
from sardonyx.passes.rules.rows import row_of, squeezed, stacked, unsqueezed

__all__ = ["PLAIN", "RULES"]

Match: TypeAlias = Callable[[ir.Node, Draft], "Cell | None"]

_MOST_READERS = 256  # nodes that are looked at in search of the next step
_LARGEST_OFFSET = 1e30  # adding less to a finite float32 never overflows, in whatever order
_BETWEEN = frozenset(  # two states
    {"Gemm", "MatMul", "Concat", "Add", "Split", "Sigmoid", "Tanh", "Relu", "Mul", "Sub"}
)


@rule("Mul", bound=ROUNDED)
def unrolled_lstm(node: ir.Node, draft: Draft) -> Outcome:
    """Steps of an LSTM one after the other, with the same weights, are one LSTM."""
    return _layer("LSTM", node, lstm_cell, draft)


@rule("Add", bound=ROUNDED)
def unrolled_gru(node: ir.Node, draft: Draft) -> Outcome:
    """Steps of a GRU one after the other, with the same weights, are one GRU."""
    return _layer("GRU", node, gru_cell, draft)


@rule("Tanh", "Relu", "Sigmoid", bound=ROUNDED)
def unrolled_rnn(node: ir.Node, draft: Draft) -> Outcome:
    """Steps of a plain recurrent layer one after the other, with the same weights, are one RNN."""
    return _layer("RNN", node, rnn_cell, draft)


def _layer(op: str, node: ir.Node, match: Match, draft: Draft) -> Outcome:
    """The operator in the place of the steps that end with this node."""
    last = match(node, draft)
    if last is None or len(last.factors) != 2 or _goes_on(last, node, match, draft):
        return None
    cells = [last]
    while (before := _before(cells[0], node, match, draft)) is not None:
        cells.insert(0, before)
    if len(cells) < 2:
        return None
    recurrent = last.gates_of(cells[-2].hidden)
    entering = next(gates for _, gates in last.factors if gates != recurrent)
    assert recurrent is not None, "the last step follows the one before it"
    return _Unrolled(op, cells, recurrent, entering, draft).layer(node)


def _before(cell: Cell, node: ir.Node, match: Match, draft: Draft) -> Cell | None:
    """The step before a step."""
    for source, _ in cell.factors if len(cell.factors) == 2 else ():
        maker = source.producer()
        if maker is None or maker.op_type != node.op_type or maker.graph is not node.graph:
            continue
        found = match(maker, draft) if draft.made_by(source, node.op_type) else None
        if found is not None and _follows(found, cell, draft):
            return found
    return None


def _goes_on(cell: Cell, node: ir.Node, match: Match, draft: Draft) -> bool:
    """Whether another step follows."""
    waiting = [use.node for use in cell.hidden.uses()]
    seen = dict.fromkeys(waiting)
    while waiting and len(seen) < _MOST_READERS:
        reader = waiting.pop(0)
        if reader.graph is not node.graph or reader.op_type not in _BETWEEN:
            continue
        if reader.op_type == node.op_type:
            found = match(reader, draft)
            if found is not None and _follows(cell, found, draft):
                return True
        for value in reader.outputs:
            new = [use.node for use in value.uses() if use.node not in seen]
            seen.update(dict.fromkeys(new))
            waiting += dict.fromkeys(new)
    return False


def _follows(cell: Cell, after: Cell, draft: Draft) -> bool:
    """Whether a step goes on from another one, with the same weights."""
    recurrent = after.gates_of(cell.hidden)
    if recurrent is None or len(after.factors) != 2 or cell.attributes != after.attributes:
        return False
    if after.before is not None and after.before is not cell.hidden:
        return False
    entering = next((gates for _, gates in after.factors if gates != recurrent), None)
    if entering is None or cell.source_of(entering) is None or not cell.adds_as(after):
        return False
    if len(cell.factors) == 2:
        state = cell.source_of(recurrent)
        if state is None or (cell.before is not None and cell.before is not state):
            return False
    elif cell.before is not None and not _is_zero(cell.before, draft):
        return False  # else its state before is 0: the product with it was folded into the offset
    if cell.carried is None or after.carried is None:
        return True
    kept = cell.carried[0]
    return after.carried[1] is kept and len(kept.uses()) == 2 and not kept.is_graph_output()


def _is_zero(value: ir.Value | None, draft: Draft) -> bool:
    number = draft.number(value)
    return number == 0 and not np.signbit(float(number))


class _Unrolled:
    """Steps that follow each other, about to become one operator."""

    def __init__(
        self, op: str, cells: Sequence[Cell], recurrent: Gates, entering: Gates, draft: Draft
    ) -> None:
        self.op = op
        self.cells = cells
        self.recurrent, self.entering = recurrent, entering
        self.draft = draft
        self.nodes = frozenset().union(*(cell.nodes for cell in cells))

    def layer(self, node: ir.Node) -> Outcome:
        draft = self.draft
        states = [self.cells[0].source_of(self.recurrent)]
        if self.op == "LSTM":
            states.append((self.cells[0].carried or (None, None))[1])
        states = [None if _is_zero(state, draft) else state for state in states]
        reason = self._objection(node, states)
        if reason is not None:
            return Refusal(reason)
        weights = [_packed(gates, draft) for gates in (self.entering, self.recurrent)]
        if None in weights:
            return Refusal("the weights are too large to be put together")
        sequence = self._sequence()
        if self._depends_on_steps(sequence):
            return Refusal("an input of a later step is computed from the state of an earlier one")
        inputs: list[ir.Value | None] = [sequence, *weights, self._offsets(), None]
        inputs += [None if state is None else unsqueezed(state, 0, draft) for state in states]
        while inputs[-1] is None:
            inputs.pop()
        found = self._outputs(inputs)
        if len(draft.nodes) >= len(self.nodes):
            return Refusal(f"{len(draft.nodes)} nodes would take the place of {len(self.nodes)}")
        return found

    def _objection(self, node: ir.Node, states: Sequence[ir.Value | None]) -> str | None:
        """Why the operator cannot stand for the steps."""
        draft = self.draft
        if draft.opset < 7:
            return f"before opset 7, {self.op} was another operator"
        shapes = [draft.shape(cell.hidden) for cell in self.cells]
        inputs = [draft.shape(value) for value in self._inputs()]
        shape, entering = shapes[0], inputs[0]
        if shape is None or entering is None or len(shape) != 2 or len(entering) != 2:
            return "the shape of a step is not known"
        if any(draft.dtype(cell.hidden) != ir.DataType.FLOAT for cell in self.cells):
            return "runtimes have the operator for float32 alone"
        if any(one != shape for one in shapes) or any(one != entering for one in inputs):
            return "the steps are of different shapes"
        if any(state is not None and draft.shape(state) != shape for state in states):
            return "the state before the first step is broadcast"
        if entering[0] != shape[0]:
            return "the input of a step is broadcast"
        offsets = np.concatenate([one for cell in self.cells[-1:] for one in cell.offsets])
        if (np.abs(offsets[np.isfinite(offsets)]) > _LARGEST_OFFSET).any():
            return "an offset is so large that the order of the sum decides whether it overflows"
        if any(one.graph is not node.graph for one in self.nodes):
            return "a part of a step is computed outside of this graph"
        given = {cell.hidden for cell in self.cells} | {(self.cells[-1].carried or (None,))[0]}
        for value in (value for one in self.nodes for value in one.outputs):
            if value not in given and self._is_read(value):
                return f"another node reads {value.name!r}, which is inside of a step"
        return None

    def _inputs(self) -> list[ir.Value]:
        found = [cell.source_of(self.entering) for cell in self.cells]
        return [value for value in found if value is not None]

    def _is_read(self, value: ir.Value) -> bool:
        """Whether a value is read by what is not part of the steps."""
        return value.is_graph_output() or any(use.node not in self.nodes for use in value.uses())

    def _sequence(self) -> ir.Value:
        """The inputs of all steps, one after the other along the first axis."""
        draft, values = self.draft, self._inputs()
        rows = [row for value in values if (row := row_of(value, draft)) is not None]
        whole = stacked(rows, 0, draft) if len(rows) == len(values) else None
        if whole is not None:
            return whole
        wider = {value: unsqueezed(value, 0, draft) for value in dict.fromkeys(values)}
        return draft.call("Concat", *(wider[value] for value in values), axis=0)

    def _depends_on_steps(self, value: ir.Value) -> bool:
        """Whether a value is computed from what a step makes."""
        first = value.producer()
        waiting = [] if first is None else [first]
        seen = dict.fromkeys(waiting)
        while waiting:
            node = waiting.pop()
            if node in self.nodes:
                return True
            for read in _read_by(node):
                maker = read.producer()
                if maker is not None and maker not in seen:
                    seen[maker] = None
                    waiting.append(maker)
        return False

    def _offsets(self) -> ir.Value | None:
        """Of both products, gate by gate; all is in the first half but where a GRU needs it apart."""
        offsets = self.cells[-1].offsets
        first, apart = offsets[: len(self.entering)], offsets[len(self.entering) :]
        second = [np.zeros_like(one) for one in first]
        second[len(first) - len(apart) :] = apart
        if not np.any(offsets):
            return None
        both = np.concatenate([*first, *second]).astype(np.float32)
        return self.draft.tensor(both[None])

    def _outputs(self, inputs: Sequence[ir.Value | None]) -> Mapping[ir.Value, ir.Value]:
        """The operator, and what stands for the states that are read."""
        draft, last = self.draft, self.cells[-1]
        read = [index for index, cell in enumerate(self.cells) if self._is_read(cell.hidden)]
        kept = (
            None if last.carried is None or not self._is_read(last.carried[0]) else last.carried[0]
        )
        ends_only = read in ([], [len(self.cells) - 1])
        count = 3 if kept is not None else 2 if ends_only else 1
        attributes = {"hidden_size": self.recurrent[0].columns[1] - self.recurrent[0].columns[0]}
        made = draft.calls(self.op, inputs, count, {**attributes, **dict(last.attributes)})
        found: dict[ir.Value, ir.Value] = {}
        if ends_only:
            made[0].name = ""
            if read:
                found[last.hidden] = squeezed(made[1], 0, draft)
            elif count > 1:
                made[1].name = ""
        else:
            steps = squeezed(made[0], 1, draft)
            if count > 1:
                made[1].name = ""
            for index in read:
                number = draft.tensor(np.array(index, dtype=np.int64))
                found[self.cells[index].hidden] = draft.call("Gather", steps, number, axis=0)
        if kept is not None:
            found[kept] = squeezed(made[2], 0, draft)
        return found


def _packed(gates: Gates, draft: Draft) -> ir.Value | None:
    """The matrices of all gates below each other, for one direction."""
    arrays = [gate.array(draft) for gate in gates]
    known: list[Array] = [array for array in arrays if array is not None]
    return draft.tensor(np.concatenate(known)[None]) if len(known) == len(arrays) else None


def _read_by(node: ir.Node) -> Iterable[ir.Value]:
    """What a node and the graphs inside of it read."""
    for value in node.inputs:
        if value is not None:
            yield value
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
            for one in attribute.as_graph().all_nodes():
                yield from (value for value in one.inputs if value is not None)


RULES = (unrolled_lstm, unrolled_gru)
PLAIN = (unrolled_rnn,)
