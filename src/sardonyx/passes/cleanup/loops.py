"""A Loop whose number of turns is known becomes its turns, where that leaves no more nodes than it has.

No turn leaves the states as they are given, one turn is the body itself. More turns are written out as far as folding
takes their nodes away again: what is the same in every run, the number of the turn among it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.ops.facts import as_array
from sardonyx.passes.cleanup.fold import NEVER
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule

__all__ = ["known_loop"]

MOST_COPIES = 1024  # of nodes that are made before folding takes them away


@rule("Loop")
def known_loop(node: ir.Node, draft: Draft) -> Outcome:
    """A Loop whose number of turns is known becomes these turns, where they are no more nodes."""
    turns = _turns(node, draft)
    body = node.attributes["body"].as_graph()
    if turns is None:
        return Refusal("how many turns it takes is not known before it runs")
    if any(value.graph is not one for one in body.subgraphs() for value in one.outputs):
        return Refusal("a graph inside of its body gives out a value from outside")
    size = _size(list(body))
    if turns > 1:
        if turns * size > MOST_COPIES:
            return Refusal(f"{turns:,} turns of {size} nodes are more than {MOST_COPIES:,} nodes")
        left = _left(node, body, turns, draft)
        if left > 1 + size:
            return Refusal(f"{left} nodes would be left of its turns, instead of {1 + size}")
    return _written_out(node, body, turns, draft)


def _turns(node: ir.Node, draft: Draft) -> int | None:
    """How often the body runs; a condition that is left out never ends a Loop."""
    limit, condition = (*node.inputs[:2], None, None)[:2]
    most = None if limit is None else draft.number(limit)
    if most is not None and most <= 0:
        return 0
    if condition is not None:
        goes_on = draft.number(condition)
        if goes_on is None:
            return None
        if not goes_on:
            return 0
        again = draft.number(node.attributes["body"].as_graph().outputs[0])
        if most == 1 or again is False:
            return 1 if limit is None or most is not None else None
        if again is None:
            return None
    return None if most is None else int(most)


def _size(nodes: list[ir.Node]) -> int:
    """Nodes with those of their subgraphs."""
    return sum(
        1 + sum(_size(list(a.as_graph())) for a in node.attributes.values() if _is_graph(a))
        for node in nodes
    )


def _is_graph(attribute: ir.Attr) -> bool:
    return attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref()


def _left(node: ir.Node, body: ir.Graph, turns: int, draft: Draft) -> int:
    """Nodes that are left of so many turns when everything that is the same in every run is folded."""
    states = [_is_known(value, draft) for value in node.inputs[2:]]
    carried = len(states)
    left = 0
    for _ in range(turns):
        known = dict(zip(body.inputs, (True, True, *states), strict=True))
        for one in body:
            is_known = one.op_type not in NEVER and all(
                value is None or known.get(value, _is_known(value, draft)) for value in one.inputs
            )
            is_known &= not any(_is_graph(attribute) for attribute in one.attributes.values())
            known.update(dict.fromkeys(one.outputs, is_known))
            left += 0 if is_known else _size([one])
        after = [known.get(value, _is_known(value, draft)) for value in body.outputs[1:]]
        states = after[:carried]
        left += sum(not is_known for is_known in after[carried:])  # each needs an Unsqueeze
    return left + len(body.outputs) - 1 - carried


def _is_known(value: ir.Value | None, draft: Draft) -> bool:
    return draft.is_constant(value) or as_array(draft.facts(value)) is not None


def _written_out(node: ir.Node, body: ir.Graph, turns: int, draft: Draft) -> Outcome:
    states = list(node.inputs[2:])
    carried = len(states)
    stacked: list[list[ir.Value | None]] = [[] for _ in body.outputs[1 + carried :]]
    constants = {
        value: draft.initializer(value.const_value)
        for value in body.initializers.values()
        if value.const_value is not None
    }
    condition = node.inputs[1] if len(node.inputs) > 1 else None
    if condition is None:
        condition = draft.tensor(np.array(True))
    for turn in range(turns):
        known: dict[ir.Value, ir.Value] = dict(constants)
        number = draft.tensor(np.array(turn, dtype=np.int64))
        for value, now in zip(body.inputs, (number, condition, *states), strict=True):
            if now is None:
                return Refusal("a state is left out")
            known[value] = now
        for one in body:
            inputs = [_now(value, known) for value in one.inputs]
            known.update(zip(one.outputs, draft.copy(one, inputs, known), strict=True))
        outputs = [_now(value, known) for value in body.outputs]
        condition, states = outputs[0], outputs[1 : 1 + carried]
        for parts, row in zip(stacked, outputs[1 + carried :], strict=True):
            parts.append(_unsqueezed(row, draft))
    rows = [
        draft.call("Concat", *parts, axis=0) if turns > 1 else parts[0]
        for parts in stacked
        if parts
    ]
    if turns:
        return [*states, *rows]
    for old, given in zip(node.outputs[carried:], body.outputs[1 + carried :], strict=True):
        is_read = old.uses() or old.is_graph_output()
        empty = _no_rows(given) if is_read else None
        if is_read and empty is None:
            return Refusal("the body does not declare the shape of what no turn gives")
        states.append(None if empty is None else draft.tensor(empty, given.dtype))
    return states


def _now(value: ir.Value | None, known: Mapping[ir.Value, ir.Value]) -> ir.Value | None:
    return None if value is None else known.get(value, value)


def _unsqueezed(value: ir.Value | None, draft: Draft) -> ir.Value:
    if draft.opset >= 13:
        return draft.call("Unsqueeze", value, draft.ints([0]))
    return draft.call("Unsqueeze", value, axes=[0])


def _no_rows(row: ir.Value) -> npt.NDArray[Any] | None:
    """What is stacked without any turn: of the type and shape that the body declares, as nothing else says it."""
    if row.shape is None or row.dtype in (None, ir.DataType.STRING):
        return None
    sizes = [size for size in row.shape if isinstance(size, int)]
    if len(sizes) < len(row.shape):
        return None
    return np.zeros((0, *sizes), dtype=row.dtype.numpy())
