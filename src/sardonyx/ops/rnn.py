"""Recurrent layers.

X (time, batch, input)    Y (time, directions, batch, hidden)    Y_h (directions, batch, hidden)
with layout=1 the batch comes first:  X (batch, time, input)  Y (batch, time, directions, hidden)
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowerings import recurrent as lowerings
from sardonyx.sizes import Size

__all__ = ["OPERATORS"]

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent(call: Call) -> list[Facts]:
    steps, batch, _ = _input(call)
    hidden, directions = _hidden(call), _directions(call)
    _check_weights(call, hidden, directions)
    everything: Shape
    last: Shape
    if call.int_attr("layout"):
        everything = (batch, steps, directions, hidden)
        last = (batch, directions, hidden)
    else:
        everything = (steps, directions, batch, hidden)
        last = (directions, batch, hidden)
    return [call.out(everything), call.out(last, 1), call.out(last, 2)]


def _input(call: Call) -> tuple[Size, Size, Size]:
    shape = call.need_rank(0, 3)
    if shape is None:
        return call.fresh(0), call.fresh(2), call.fresh(3)
    first, second, features = shape
    return (second, first, features) if call.int_attr("layout") else (first, second, features)


def _directions(call: Call) -> int:
    direction = call.str_attr("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        call.fail(f"direction is {direction!r}; forward, reverse or bidirectional is needed")
    return 2 if direction == "bidirectional" else 1


def _hidden(call: Call) -> Size:
    declared, recurrence = call.attr("hidden_size"), call.shape(2)
    if recurrence is not None and len(recurrence) == 3:
        return (
            recurrence[2]
            if declared is None
            else call.agree(declared, recurrence[2], "hidden_size and R")
        )
    return call.fresh(3) if declared is None else int(declared)


def _check_weights(call: Call, hidden: Size, directions: int) -> None:
    gates = GATES[call.node.op_type]
    for index, name in ((1, "W"), (2, "R")):
        weights = call.need_rank(index, 3)
        if weights is not None:
            call.agree(weights[0], directions, f"the first dimension of {name} and directions")
            call.agree(weights[1], hidden * gates, f"{name} and {gates} gates of the hidden size")
    w, x = call.shape(1), call.shape(0)
    if w is not None and x is not None:
        call.agree(w[2], x[2], "the features of W and X")


def recurrent_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Each step multiplies input and state with the weights of every gate."""
    x, w, r = call.shape(0), call.shape(1), call.shape(2)
    if x is None or w is None or r is None:
        return moved(call.inputs, outputs, macs=None, flops=None)
    gates = GATES[call.node.op_type]
    positions = x[0] * x[1] * w[0]
    macs = positions * w[1] * (w[2] + r[2])
    return moved(call.inputs, outputs, macs=macs, flops=positions * r[2] * (3 * gates + 2))


LOWERINGS = {"RNN": lowerings.RNN, "GRU": lowerings.GRU, "LSTM": lowerings.LSTM}

OPERATORS = tuple(
    Operator(name, "contraction", recurrent, None, recurrent_cost, LOWERINGS[name])
    for name in GATES
)
