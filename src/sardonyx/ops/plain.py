"""The plainest rules, which operators of several families share."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, bytes_of, moved
from sardonyx.ops.entry import CostRule
from sardonyx.ops.facts import Facts

__all__ = [
    "data_decides",
    "flops_per_input",
    "flops_per_output",
    "free",
    "move_all",
    "move_first",
    "move_taken",
    "same_shape",
]


def same_shape(call: Call) -> list[Facts]:
    """The output has the first input's shape."""
    return [call.same()]


def free(call: Call, outputs: Sequence[Facts]) -> Cost:
    """A view or a reference: nothing moves."""
    return Cost()


def move_all(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Every input is read, every output written."""
    return moved(call.inputs, outputs)


def move_first(call: Call, outputs: Sequence[Facts]) -> Cost:
    """The first input is read; the others only say how."""
    return moved(call.inputs[:1], outputs)


def move_taken(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Only what comes out is read."""
    taken = bytes_of(outputs[0])
    return Cost(0, 0, taken, taken)


def data_decides(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Bytes are known, but how much work they are is in the data."""
    return moved(call.inputs, outputs, flops=None)


def flops_per_output(flops: int) -> CostRule:
    """So many operations for each element of the first output."""

    def rule(call: Call, outputs: Sequence[Facts]) -> Cost:
        count = outputs[0].elements
        return moved(call.inputs, outputs, flops=None if count is None else count * flops)

    return rule


def flops_per_input(flops: int) -> CostRule:
    """So many operations for each element of the first input."""

    def rule(call: Call, outputs: Sequence[Facts]) -> Cost:
        count = call.input(0).elements
        return moved(call.inputs, outputs, flops=None if count is None else count * flops)

    return rule
