"""Conditions: Where, Not, And, Or, Xor and comparisons that say less than they seem to."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from sardonyx.ops.facts import DISCRETE
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule

__all__ = ["RULES"]

_MOST_ELEMENTS = 1 << 12  # of a constant that stands for a comparison


def _in_place_of(node: ir.Node, value: ir.Value | None, draft: Draft) -> ir.Value | None:
    """The value, where nothing is broadcast: it has the shape and type of the node's answer."""
    shape, target = draft.shape(value), draft.shape(node.outputs[0])
    if value is None or shape is None or shape != target:
        return None
    return value if draft.dtype(value) == draft.dtype(node.outputs[0]) else None


def _all(number: bool, node: ir.Node, draft: Draft) -> ir.Value | None:
    """A constant of the node's shape, where that is known and small."""
    shape = draft.shape(node.outputs[0])
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    sizes = [int(size) for size in shape if isinstance(size, int)]
    return None if math.prod(sizes) > _MOST_ELEMENTS else draft.tensor(np.full(sizes, number))


@rule("Where")
def where_known(node: ir.Node, draft: Draft) -> Outcome:
    """Where with a constant condition, or the same on both sides, is that side."""
    condition, yes, no = node.inputs
    if yes is no:
        return _in_place_of(node, yes, draft)
    number = draft.number(condition)
    if number is None:
        return None
    side = _in_place_of(node, yes if number else no, draft)
    return Refusal("the side that is taken is broadcast") if side is None else side


@rule("Where")
def where_of_not(node: ir.Node, draft: Draft) -> Outcome:
    """Where(Not(c), x, y) is Where(c, y, x)."""
    inner = draft.made_by(node.inputs[0], "Not")
    if inner is None:
        return None
    return draft.call("Where", inner.inputs[0], node.inputs[2], node.inputs[1])


@rule("Where")
def where_of_truths(node: ir.Node, draft: Draft) -> Outcome:
    """Where(c, true, false) is c, and Where(c, false, true) is Not(c)."""
    if draft.dtype(node.outputs[0]) != ir.DataType.BOOL:
        return None
    sides = draft.number(node.inputs[1]), draft.number(node.inputs[2])
    condition = _in_place_of(node, node.inputs[0], draft)
    if condition is None or sides not in ((True, False), (False, True)):
        return None
    return condition if sides[0] else draft.call("Not", condition)


_OPPOSITE = {
    "Less": "GreaterOrEqual",
    "Greater": "LessOrEqual",
    "LessOrEqual": "Greater",
    "GreaterOrEqual": "Less",
}


@rule("Not")
def not_of_comparison(node: ir.Node, draft: Draft) -> Outcome:
    """Not of a comparison of integers is the opposite comparison."""
    inner = draft.made_by(node.inputs[0], *_OPPOSITE)
    if inner is None or draft.opset < 12:
        return None
    if draft.dtype(inner.inputs[0]) not in DISCRETE:
        return Refusal("a comparison with NaN is false, and so is its opposite")
    if not draft.is_only_use(inner.outputs[0]):
        return Refusal("another node reads the comparison")
    return draft.call(_OPPOSITE[inner.op_type], *inner.inputs)


@rule("And", "Or", "Xor", "Equal")
def truth_with_constant(node: ir.Node, draft: Draft) -> Outcome:
    """And, Or, Xor or Equal with a constant truth value is the other side, or its Not."""
    if draft.dtype(node.inputs[0]) != ir.DataType.BOOL:
        return None
    for side in (0, 1):
        number = draft.number(node.inputs[side])
        other = _in_place_of(node, node.inputs[1 - side], draft)
        if number is None or other is None:
            continue
        match node.op_type, bool(number):
            case ("And" | "Equal", True) | ("Or" | "Xor", False):
                return other
            case ("Equal", False) | ("Xor", True):
                return draft.call("Not", other)
    return None


@rule("And", "Or", "Xor", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def compared_with_itself(node: ir.Node, draft: Draft) -> Outcome:
    """A value compared or joined with itself is known, or is itself."""
    if node.inputs[0] is not node.inputs[1]:
        return None
    match node.op_type:
        case "And" | "Or":
            return node.inputs[0]
        case "Xor" | "Less" | "Greater":  # nothing is less than itself, NaN is not either
            return _all(False, node, draft)
    if draft.dtype(node.inputs[0]) not in DISCRETE:
        return Refusal("NaN does not equal itself")
    return _all(True, node, draft)


@rule("And", "Or")
def both_negated(node: ir.Node, draft: Draft) -> Outcome:
    """And(Not(a), Not(b)) is Not(Or(a, b)), and the other way round."""
    first, second = (draft.made_by(value, "Not") for value in node.inputs)
    if first is None or second is None or first is second:
        return None
    if not all(draft.is_only_use(one.outputs[0]) for one in (first, second)):
        return Refusal("another node reads one of the two")
    joined = draft.call("Or" if node.op_type == "And" else "And", first.inputs[0], second.inputs[0])
    return draft.call("Not", joined)


RULES = (
    where_known,
    where_of_truths,
    where_of_not,
    not_of_comparison,
    truth_with_constant,
    compared_with_itself,
    both_negated,
)
