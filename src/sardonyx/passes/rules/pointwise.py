"""Pointwise operators that say the same twice, or nothing."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from sardonyx.ops.facts import DISCRETE
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import EQUAL, Outcome, Refusal, rule

__all__ = ["RULES"]

_IDEMPOTENT = ("Relu", "Abs", "Ceil", "Floor", "Round", "Sign")


@rule(*_IDEMPOTENT)
def idempotent(node: ir.Node, draft: Draft) -> Outcome:
    """f(f(x)) is f(x) for Relu, Abs, Ceil, Floor, Round and Sign."""
    inner = draft.made_by(node.inputs[0], node.op_type)
    return None if inner is None else inner.outputs[0]


@rule("Not", "Neg")
def undone(node: ir.Node, draft: Draft) -> Outcome:
    """Not(Not(x)) and Neg(Neg(x)) are x."""
    inner = draft.made_by(node.inputs[0], node.op_type)
    return None if inner is None else inner.inputs[0]


@rule("Add", "Sub", "Mul", "Div", "Pow")
def neutral_operand(node: ir.Node, draft: Draft) -> Outcome:
    """x + 0, x - 0, x * 1, x / 1 and x ** 1 are x."""
    sides = (0, 1) if node.op_type in ("Add", "Mul") else (1,)
    for side in sides:
        other = node.inputs[1 - side]
        number = draft.number(node.inputs[side])
        if number is None or other is None:
            continue
        if number != (0 if node.op_type in ("Add", "Sub") else 1):
            continue
        shape = draft.shape(other)
        if shape is None or shape != draft.shape(node.outputs[0]):
            continue
        if draft.dtype(other) != draft.dtype(node.outputs[0]):
            continue
        if not _keeps_zero(node.op_type, number, draft.dtype(other)):
            return Refusal("x + 0 makes +0 of -0; the constant would have to be -0")
        return other
    return None


def _keeps_zero(op: str, number: float, dtype: ir.DataType | None) -> bool:
    """Whether -0 stays -0: x + (-0) and x - (+0) do."""
    if dtype in DISCRETE or op not in ("Add", "Sub"):
        return True
    negative = math.copysign(1.0, number) < 0
    return negative if op == "Add" else not negative


@rule("Mul", "And", "Or")
def annihilated(node: ir.Node, draft: Draft) -> Outcome:
    """x * 0 of integers, x and false, x or true are constants."""
    for side in (0, 1):
        number = draft.number(node.inputs[side])
        shape = draft.shape(node.outputs[0])
        dtype = draft.dtype(node.outputs[0])
        if number is None or shape is None or dtype is None:
            continue
        wanted = node.op_type == "Or"
        if number != wanted or not all(isinstance(size, int) for size in shape):
            continue
        if dtype not in DISCRETE:
            return Refusal("0 * NaN and 0 * infinity are not 0")
        sizes = [size for size in shape if isinstance(size, int)]
        if math.prod(sizes) > 1 << 16:
            return None
        return draft.tensor(np.full(sizes, wanted, dtype=dtype.numpy()))
    return None


@rule("Relu", "Clip", bound=EQUAL)
def clip_of_clip(node: ir.Node, draft: Draft) -> Outcome:
    """Relu and Clip in a row are one Clip."""
    inner = draft.made_by(node.inputs[0], "Relu", "Clip")
    if inner is None or (inner.op_type == node.op_type == "Relu"):
        return None
    if not draft.is_only_use(inner.outputs[0]):
        return Refusal("another node reads the value between the two")
    outer, first = _limits(node, draft), _limits(inner, draft)
    if outer is None or first is None:
        return Refusal("the limits are not constants")
    low, high = first
    # min(max(x, low), high), then the outer two: limits of the inner one are themselves clipped.
    merged = tuple(_clipped(limit, *outer) for limit in (low, high))
    dtype = draft.dtype(node.outputs[0])
    if dtype is None or merged[0] > merged[1] or outer[0] > outer[1] or low > high:
        return None
    if dtype in DISCRETE or merged[0] == math.inf or merged[1] == -math.inf:
        return None
    ends = [None if math.isinf(limit) else limit for limit in merged]
    if draft.opset < 11:
        return draft.call("Clip", inner.inputs[0], min=ends[0], max=ends[1])
    given = [
        None if v is None else draft.tensor(np.array(v, dtype=dtype.numpy()), dtype) for v in ends
    ]
    return draft.call("Clip", inner.inputs[0], *given)


def _clipped(number: float, low: float, high: float) -> float:
    """As Clip has it: +0 is above -0, which Python's own max and min do not know."""
    return min(max(number, low, key=_order), high, key=_order)


def _order(number: float) -> tuple[float, float]:
    return number, math.copysign(1.0, number)


def _limits(node: ir.Node, draft: Draft) -> tuple[float, float] | None:
    if node.op_type == "Relu":
        return 0.0, math.inf
    if draft.opset < 11:
        return (
            float(draft.attribute(node, "min", -math.inf)),
            float(draft.attribute(node, "max", math.inf)),
        )
    found = []
    for index, default in ((1, -math.inf), (2, math.inf)):
        value = node.inputs[index] if len(node.inputs) > index else None
        number = default if value is None else draft.number(value)
        if number is None or math.isnan(number):
            return None
        found.append(float(number))
    return found[0], found[1]


@rule("Cast")
def cast_of_cast(node: ir.Node, draft: Draft) -> Outcome:
    """Cast(Cast(x)) is one Cast where the first loses nothing."""
    inner = draft.made_by(node.inputs[0], "Cast")
    if inner is None:
        return None
    first, middle, last = (
        draft.dtype(v) for v in (inner.inputs[0], node.inputs[0], node.outputs[0])
    )
    if first is None or middle is None or last is None:
        return None
    if not _holds(middle, first):
        return Refusal(f"{middle.name.lower()} does not hold every {first.name.lower()}")
    if first == last:
        return inner.inputs[0]
    return draft.call("Cast", inner.inputs[0], to=int(last))


_WIDTHS = {  # (kind, bits of magnitude, smallest exponent is wide enough)
    ir.DataType.BOOL: ("u", 1),
    ir.DataType.UINT8: ("u", 8),
    ir.DataType.UINT16: ("u", 16),
    ir.DataType.UINT32: ("u", 32),
    ir.DataType.UINT64: ("u", 64),
    ir.DataType.INT8: ("i", 7),
    ir.DataType.INT16: ("i", 15),
    ir.DataType.INT32: ("i", 31),
    ir.DataType.INT64: ("i", 63),
    ir.DataType.FLOAT16: ("f", 11),
    ir.DataType.FLOAT: ("f", 24),
    ir.DataType.DOUBLE: ("f", 53),
}


def _holds(wide: ir.DataType, narrow: ir.DataType) -> bool:
    """Whether every number of one type is a number of the other."""
    if wide == narrow:
        return True
    if wide == ir.DataType.BOOL or wide not in _WIDTHS or narrow not in _WIDTHS:
        return narrow == ir.DataType.BFLOAT16 and wide in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
    (kind, bits), (other, least) = _WIDTHS[wide], _WIDTHS[narrow]
    if other == "f":
        return kind == "f" and bits >= least
    if kind == "u":
        return other == "u" and bits >= least
    if kind == "f" and wide == ir.DataType.FLOAT16 and least > 11:
        return False
    return bits >= least


_NONNEGATIVE = ("Abs", "Exp", "Sigmoid", "Relu", "Softmax", "Softplus")


@rule("Relu", "Abs")
def already_nonnegative(node: ir.Node, draft: Draft) -> Outcome:
    """Relu or Abs of what is never negative is that."""
    inner = draft.made_by(node.inputs[0], *_NONNEGATIVE)
    if inner is None:
        return None
    if inner.op_type == "Abs" and draft.dtype(node.outputs[0]) in DISCRETE:
        return Refusal("Abs of the smallest integer is negative")
    if inner.op_type == "Relu" and node.op_type == "Abs":
        return Refusal("Relu may give -0")
    return inner.outputs[0]


@rule("Abs")
def abs_of_neg(node: ir.Node, draft: Draft) -> Outcome:
    """Abs(Neg(x)) is Abs(x)."""
    inner = draft.made_by(node.inputs[0], "Neg")
    return None if inner is None else draft.call("Abs", inner.inputs[0])


@rule("Add", "Sub", "Mul", "Div")
def negated_operands(node: ir.Node, draft: Draft) -> Outcome:
    """x + (-y), x - (-y), (-x) * (-y) and (-x) / (-y) need no Neg."""
    first, second = (draft.made_by(value, "Neg") for value in node.inputs[:2])
    if draft.opset < 7:
        return None  # operators before it broadcast by an attribute
    if node.op_type in ("Mul", "Div"):
        if first is None or second is None:
            return None
        if node.op_type == "Div" and draft.dtype(node.outputs[0]) in DISCRETE:
            return Refusal("the smallest integer has no negative")
        return draft.call(node.op_type, first.inputs[0], second.inputs[0])
    if second is not None:
        other = "Sub" if node.op_type == "Add" else "Add"
        return draft.call(other, node.inputs[0], second.inputs[0])
    if first is not None and node.op_type == "Add":
        return draft.call("Sub", node.inputs[1], first.inputs[0])
    return None


@rule("Neg")
def neg_of_sub(node: ir.Node, draft: Draft) -> Outcome:
    """Neg(a - b) of integers is b - a."""
    inner = draft.made_by(node.inputs[0], "Sub")
    if inner is None or draft.opset < 7:
        return None
    if draft.dtype(node.outputs[0]) not in DISCRETE:
        return Refusal("-(a - a) is -0, and a - a is +0")
    if not draft.is_only_use(inner.outputs[0]):
        return Refusal("another node reads the difference")
    return draft.call("Sub", inner.inputs[1], inner.inputs[0])


@rule("Max", "Min", bound=EQUAL)
def limit_by_constant(node: ir.Node, draft: Draft) -> Outcome:
    """Max and Min with one number each are a Clip, and Max with 0 alone is a Relu."""
    found = _limit(node, draft)
    dtype = draft.dtype(node.outputs[0])
    if found is None or dtype is None or dtype in DISCRETE or draft.opset < 11:
        return None
    value, number = found
    inner = draft.made_by(value, "Max", "Min", "Relu", "Clip")
    first = None if inner is None else _between(inner, draft)
    if inner is None or first is None or inner.op_type == node.op_type:
        if node.op_type == "Min" or number != 0:
            return None
        if math.copysign(1.0, number) < 0:
            return Refusal("Max(-0, -0) is -0, and Relu(-0) is +0")
        return draft.call("Relu", value)
    if not draft.is_only_use(inner.outputs[0]):
        return Refusal("another node reads the value between the two")
    source, low, high = first
    own = (number, math.inf) if node.op_type == "Max" else (-math.inf, number)
    low, high = (_clipped(limit, *own) for limit in (low, high))
    if low > high or draft.shape(source) != draft.shape(node.outputs[0]):
        return None
    ends = [
        None if math.isinf(v) else draft.tensor(np.array(v, dtype=dtype.numpy()), dtype)
        for v in (low, high)
    ]
    if (math.isinf(low) and low > 0) or (math.isinf(high) and high < 0):
        return None
    return draft.call("Clip", source, *ends)


def _limit(node: ir.Node, draft: Draft) -> tuple[ir.Value, float] | None:
    """What a Max or Min of two compares, and the number that it is compared with."""
    if len(node.inputs) != 2:
        return None
    for side in (0, 1):
        value, number = node.inputs[side], draft.number(node.inputs[1 - side])
        if value is None or number is None or math.isnan(number):
            continue
        if draft.shape(value) is not None and draft.shape(value) == draft.shape(node.outputs[0]):
            return value, float(number)
    return None


def _between(node: ir.Node, draft: Draft) -> tuple[ir.Value, float, float] | None:
    """What a node limits, from where, and to where."""
    if node.op_type in ("Max", "Min"):
        found = _limit(node, draft)
        if found is None:
            return None
        value, number = found
        return (value, number, math.inf) if node.op_type == "Max" else (value, -math.inf, number)
    limits = _limits(node, draft)
    if limits is None or limits[0] > limits[1] or node.inputs[0] is None:
        return None
    return node.inputs[0], *limits


RULES = (
    already_nonnegative,
    abs_of_neg,
    negated_operands,
    neg_of_sub,
    limit_by_constant,
    idempotent,
    undone,
    neutral_operand,
    annihilated,
    clip_of_clip,
    cast_of_cast,
)
