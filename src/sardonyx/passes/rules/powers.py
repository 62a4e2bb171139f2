"""Powers that have an operator of their own.

x² is left as it is: runtimes compute Pow(x, 2) as x · x, and look for it when they fuse normalisations.
"""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule

__all__ = ["RULES"]

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)
_POSITIVE = ("Exp", "Sigmoid", "Softmax")  # never below zero, and no zero that is negative
_KEEP = ("ReduceMean", "ReduceSum", "ReduceMax", "Identity", "Reshape", "Transpose", "Unsqueeze")
_DEEPEST = 8


def is_positive(value: ir.Value | None, draft: Draft, depth: int = _DEEPEST) -> bool:
    """Whether every element is above zero, a zero that is not negative, or NaN."""
    number = draft.number(value)
    if number is not None:
        return number > 0
    if depth == 0 or draft.made_by(value, "Abs", *_POSITIVE) is not None:
        return depth > 0
    kept = draft.made_by(value, *_KEEP)
    if kept is not None:
        return is_positive(kept.inputs[0], draft, depth - 1)
    square = draft.made_by(value, "Mul")
    if square is not None and square.inputs[0] is square.inputs[1]:
        return True
    power = draft.made_by(value, "Pow")
    if power is not None and draft.number(power.inputs[1]) == 2:
        return True
    both = draft.made_by(value, "Add", "Mul")
    return both is not None and all(is_positive(part, draft, depth - 1) for part in both.inputs)


@rule("Pow", bound=ROUNDED)
def power_as_operator(node: ir.Node, draft: Draft) -> Outcome:
    """Pow(x, 1/2) is Sqrt(x), and Pow(x, -1) is Reciprocal(x)."""
    value, exponent = node.inputs[0], draft.number(node.inputs[1])
    if exponent not in (0.5, -1) or draft.dtype(value) not in _FLOATS:
        return None
    if draft.shape(value) is None or draft.shape(value) != draft.shape(node.outputs[0]):
        return None
    if exponent == -1:
        return draft.call("Reciprocal", value)
    if not is_positive(value, draft):
        return Refusal("Pow(-inf, 1/2) is inf and Pow(-0, 1/2) is 0; Sqrt gives NaN and -0")
    return draft.call("Sqrt", value)


RULES = (power_as_operator,)
