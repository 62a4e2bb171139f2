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
    merged = tuple(min(max(limit, outer[0]), outer[1]) for limit in (low, high))
    dtype = draft.dtype(node.outputs[0])
    if dtype is None or merged[0] > merged[1] or outer[0] > outer[1] or low > high:
        return None
    if dtype in DISCRETE:
        return None
    ends = [None if math.isinf(limit) else limit for limit in merged]
    if draft.opset < 11:
        return draft.call("Clip", inner.inputs[0], min=ends[0], max=ends[1])
    given = [
        None if v is None else draft.tensor(np.array(v, dtype=dtype.numpy()), dtype) for v in ends
    ]
    return draft.call("Clip", inner.inputs[0], *given)


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


RULES = (idempotent, undone, neutral_operand, annihilated, clip_of_clip, cast_of_cast)
