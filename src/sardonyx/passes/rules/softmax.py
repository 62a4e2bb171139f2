"""Softmax and LogSoftmax written out, as the one operator that they are.

    s = x - max(x)
    exp(s) / sum(exp(s))            →   Softmax(x)
    s - log(sum(exp(s)))            →   LogSoftmax(x)

Without the maximum taken away, exp overflows where the operator does not: that stays as it is.
"""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule
from sardonyx.passes.rules.norms import axes_of

__all__ = ["RULES"]

_OVERFLOWS = "no maximum is taken away: Exp overflows where Softmax does not"


def _total(value: ir.Value | None, draft: Draft) -> tuple[ir.Value, int] | None:
    """What a value is the sum of the exponentials of, and over which axis."""
    total = draft.made_by(value, "ReduceSum")
    axes = None if total is None else axes_of(total, draft)
    exp = None if total is None else draft.made_by(total.inputs[0], "Exp")
    if axes is None or len(axes) != 1 or exp is None or exp.inputs[0] is None:
        return None
    return exp.inputs[0], axes[0]


def _lowered(value: ir.Value, axis: int, draft: Draft) -> ir.Value | None:
    """What a value is, less its maximum over an axis."""
    sub = draft.made_by(value, "Sub")
    largest = None if sub is None else draft.made_by(sub.inputs[1], "ReduceMax")
    if sub is None or largest is None or largest.inputs[0] is not sub.inputs[0]:
        return None
    return sub.inputs[0] if axes_of(largest, draft) == [axis] else None


def _written(op: str, value: ir.Value, axis: int, draft: Draft) -> Outcome:
    rank = draft.rank(value)
    if draft.opset < 13 and (rank is None or axis != rank - 1):
        return Refusal(f"before opset 13, {op} takes all axes from {axis} on together")
    return draft.call(op, value, axis=axis)


@rule("Div", bound=ROUNDED)
def softmax_written_out(node: ir.Node, draft: Draft) -> Outcome:
    """Exp(x - max) divided by its sum is Softmax(x)."""
    found = _total(node.inputs[1], draft)
    exp = draft.made_by(node.inputs[0], "Exp")
    if found is None or exp is None or exp.inputs[0] is not found[0]:
        return None
    value = _lowered(*found, draft)
    if value is None:
        return Refusal(_OVERFLOWS)
    return _written("Softmax", value, found[1], draft)


@rule("Sub", bound=ROUNDED)
def log_softmax_written_out(node: ir.Node, draft: Draft) -> Outcome:
    """x - max, less the logarithm of the sum of its exponentials, is LogSoftmax(x)."""
    log = draft.made_by(node.inputs[1], "Log")
    found = None if log is None else _total(log.inputs[0], draft)
    if found is None or node.inputs[0] is not found[0]:
        return None
    value = _lowered(*found, draft)
    if value is None:
        return Refusal(_OVERFLOWS)
    return _written("LogSoftmax", value, found[1], draft)


RULES = (softmax_written_out, log_softmax_written_out)
