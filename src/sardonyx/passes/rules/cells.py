"""One step of a recurrent layer, as it is written out when a layer is unrolled.

LSTM    c' = σ(f) c + σ(i) tanh(g)      h' = σ(o) tanh(c')
GRU     n = tanh(x Wn + r (h Rn + b))   h' = (1 - z) n + z h, or (h - n) z + n
RNN     h' = tanh(…), relu(…) or σ(…)

Every gate is a sum of a product with the step's input, a product with the state before, and a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rules.linear_sums import Array, LinearSum, Matrix, linear_sum

__all__ = ["Cell", "gru_cell", "lstm_cell", "rnn_cell"]

Gates = tuple[Matrix, ...]


@dataclass(frozen=True, eq=False)
class Cell:
    """A step.

    Attributes:
        hidden: the state that it makes.
        factors: what is multiplied with which matrices, one for each gate in the order of the operator.
        offsets: of each gate; one more for a GRU: what is added to the product with the state in the last gate.
        nodes: that compute it.
        before: the state before, where the step itself tells it; else it is one of `factors`.
        carried: an LSTM's other state that it makes, and the one before.
        attributes: of the operator.
    """

    hidden: ir.Value
    factors: tuple[tuple[ir.Value, Gates], ...]
    offsets: tuple[Array, ...]
    nodes: frozenset[ir.Node]
    before: ir.Value | None = None
    carried: tuple[ir.Value, ir.Value] | None = None
    attributes: tuple[tuple[str, object], ...] = ()

    def gates_of(self, value: ir.Value) -> Gates | None:
        return next((gates for source, gates in self.factors if source is value), None)

    def source_of(self, gates: Gates) -> ir.Value | None:
        return next((source for source, other in self.factors if other == gates), None)

    def adds_as(self, other: Cell) -> bool:
        """Whether both add the same to every gate."""
        return all(map(np.array_equal, self.offsets, other.offsets))


def _factors(gates: Sequence[LinearSum]) -> tuple[tuple[ir.Value, Gates], ...] | None:
    """By what is multiplied; None unless every gate multiplies the same one or two values, once each."""
    found: dict[ir.Value, list[Matrix]] = {}
    for gate in gates:
        for source, matrix in gate.products:
            found.setdefault(source, []).append(matrix)
    if not 1 <= len(found) <= 2 or any(len(one) != len(gates) for one in found.values()):
        return None
    if any(len({source for source, _ in gate.products}) != len(found) for gate in gates):
        return None
    return tuple((source, tuple(matrices)) for source, matrices in found.items())


class _Factor(NamedTuple):
    """What an activation is of, and the node."""

    inside: ir.Value | None
    node: ir.Node


def _of(value: ir.Value | None, op: str, draft: Draft) -> _Factor | None:
    node = draft.made_by(value, op)
    return None if node is None else _Factor(node.inputs[0], node)


def _both_ways(node: ir.Node) -> Iterator[tuple[ir.Value | None, ir.Value | None]]:
    yield node.inputs[0], node.inputs[1]
    yield node.inputs[1], node.inputs[0]


def lstm_cell(node: ir.Node, draft: Draft) -> Cell | None:
    """The step whose state this Mul makes."""
    for first, second in _both_ways(node):
        output, squashed = _of(first, "Sigmoid", draft), _of(second, "Tanh", draft)
        total = None if squashed is None else draft.made_by(squashed.inside, "Add")
        if output is None or squashed is None or total is None:
            continue
        for one, other in _both_ways(total):
            kept, new = draft.made_by(one, "Mul"), draft.made_by(other, "Mul")
            if kept is None or new is None:
                continue
            found = _lstm(node, output, squashed.node, total, kept, new, draft)
            if found is not None:
                return found
    return None


def _lstm(
    node: ir.Node,
    output: _Factor,
    squashed: ir.Node,
    total: ir.Node,
    kept: ir.Node,
    new: ir.Node,
    draft: Draft,
) -> Cell | None:
    for first, second in _both_ways(new):
        entry, candidate = _of(first, "Sigmoid", draft), _of(second, "Tanh", draft)
        for third, before in _both_ways(kept):
            forget = _of(third, "Sigmoid", draft)
            if entry is None or candidate is None or forget is None or before is None:
                continue
            activations = (entry, output, forget, candidate)  # as the operator has them
            gates = [linear_sum(one.inside, draft) for one in activations]
            sums = [gate for gate in gates if gate is not None]
            factors = _factors(sums) if len(sums) == 4 else None
            if factors is None:
                continue
            inside = {node, squashed, total, kept, new}
            return Cell(
                node.outputs[0],
                factors,
                tuple(gate.offset for gate in sums),
                frozenset(inside.union((a.node for a in activations), *(g.nodes for g in sums))),
                carried=(total.outputs[0], before),
            )
    return None


class _Blend(NamedTuple):
    """(1 - z) n + z h: the nodes of n, z and what they are of, and h."""

    new: _Factor
    update: _Factor
    before: ir.Value
    nodes: tuple[ir.Node, ...]


def _blends(node: ir.Node, draft: Draft) -> Iterator[_Blend]:
    """The ways in which an Add may be one."""
    for first, second in _both_ways(node):
        new, scaled = _of(second, "Tanh", draft), draft.made_by(first, "Mul")
        if scaled is not None and new is not None:
            for left, right in _both_ways(scaled):  # (h - n) z + n
                less, update = draft.made_by(left, "Sub"), _of(right, "Sigmoid", draft)
                if less is None or update is None or less.inputs[1] is not new.node.outputs[0]:
                    continue
                if less.inputs[0] is not None:
                    yield _Blend(new, update, less.inputs[0], (node, scaled, less))
        other = draft.made_by(second, "Mul")
        if scaled is None or other is None:
            continue
        for left, right in _both_ways(scaled):  # z h + (1 - z) n
            update = _of(left, "Sigmoid", draft)
            for one, last in _both_ways(other):
                less, new = draft.made_by(one, "Sub"), _of(last, "Tanh", draft)
                if less is None or update is None or new is None or right is None:
                    continue
                if draft.number(less.inputs[0]) != 1 or less.inputs[1] is not left:
                    continue
                yield _Blend(new, update, right, (node, scaled, other, less))


def gru_cell(node: ir.Node, draft: Draft) -> Cell | None:
    """The step whose state this Add makes."""
    for blend in _blends(node, draft):
        update = linear_sum(blend.update.inside, draft)
        found = None
        if update is not None:
            found = _reset_after(blend, update, draft) or _reset_before(blend, update, draft)
        if found is not None:
            return found
    return None


def _reset_after(blend: _Blend, update: LinearSum, draft: Draft) -> Cell | None:
    """n = tanh(x Wn + r (h Rn + b)), as torch has it, and Keras by default."""
    total = draft.made_by(blend.new.inside, "Add")
    for first, second in () if total is None else _both_ways(total):
        scaled = draft.made_by(second, "Mul")
        of_input = None if scaled is None else linear_sum(first, draft)
        for part, factor in () if scaled is None else _both_ways(scaled):
            reset = _of(factor, "Sigmoid", draft)
            of_state = None if reset is None else linear_sum(part, draft)
            gate = None if reset is None else linear_sum(reset.inside, draft)
            if of_input is None or of_state is None or gate is None or reset is None:
                continue
            assert total is not None, "its inputs were looked at"
            assert scaled is not None, "its inputs were looked at"
            sums = (update, gate, of_input, of_state)
            new = LinearSum((*of_input.products, *of_state.products), of_input.offset, ())
            inside = {*blend.nodes, total, scaled, blend.new.node, blend.update.node}
            if any(source is not blend.before for source, _ in of_state.products):
                continue
            if any(source is blend.before for source, _ in of_input.products):
                continue
            return _gru(blend, (update, gate, new), sums, inside | {reset.node}, of_state.offset)
    return None


def _reset_before(blend: _Blend, update: LinearSum, draft: Draft) -> Cell | None:
    """n = tanh(x Wn + (r h) Rn + b)."""
    new = linear_sum(blend.new.inside, draft)
    for (first, one), (second, two) in permutations(() if new is None else new.products, 2):
        scaled = draft.made_by(second, "Mul")
        for factor, state in () if scaled is None else _both_ways(scaled):
            reset = _of(factor, "Sigmoid", draft)
            gate = None if reset is None else linear_sum(reset.inside, draft)
            if state is not blend.before or gate is None or reset is None or scaled is None:
                continue
            assert new is not None, "its products were looked at"
            last = LinearSum(((first, one), (blend.before, two)), new.offset, ())
            inside = {*blend.nodes, scaled, blend.new.node, blend.update.node}
            if len(new.products) != 2:
                continue
            return _gru(blend, (update, gate, last), (update, gate, new), inside | {reset.node})
    return None


def _gru(
    blend: _Blend,
    gates: tuple[LinearSum, ...],
    sums: tuple[LinearSum, ...],
    inside: set[ir.Node],
    offset: Array | None = None,
) -> Cell | None:
    factors = _factors(gates)
    if factors is None:
        return None
    offsets = [gate.offset for gate in gates]
    return Cell(
        blend.nodes[0].outputs[0],
        factors,
        tuple(offsets if offset is None else [*offsets, offset]),
        frozenset(inside.union(*(one.nodes for one in sums))),
        before=blend.before,
        attributes=(("linear_before_reset", int(offset is not None)),),
    )


def rnn_cell(node: ir.Node, draft: Draft) -> Cell | None:
    """The step whose state this Tanh, Relu or Sigmoid makes."""
    total = linear_sum(node.inputs[0], draft)
    factors = None if total is None else _factors((total,))
    if total is None or factors is None:
        return None
    given = () if node.op_type == "Tanh" else (("activations", [node.op_type]),)
    inside = frozenset((node, *total.nodes))
    return Cell(node.outputs[0], factors, (total.offset,), inside, attributes=given)
