"""Activation functions that exporters write out, as the one operator that they are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from sardonyx.passes.opset.needed import needs_opset
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule

__all__ = ["RULES"]

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def _near(number: float, wanted: float, dtype: ir.DataType | None) -> bool:
    """Whether a constant is this number, as far as its type can say it."""
    small = dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    return math.isclose(number, wanted, rel_tol=8e-3 if small else 1e-6)


def _is(number: float | None, wanted: float) -> bool:
    """Whether a constant is this number, rounded to float32 at most."""
    return number is not None and math.isclose(number, wanted, rel_tol=2e-7)


def split(node: ir.Node | None, draft: Draft) -> tuple[ir.Value, float] | None:
    """The value and the number of a node that has one of each."""
    if node is None or len(node.inputs) != 2:
        return None
    for side in (1, 0):
        number = draft.number(node.inputs[side])
        other = node.inputs[1 - side]
        if number is not None and other is not None and not isinstance(number, bool):
            return other, float(number)
    return None


@dataclass
class _Factors:
    """A product: the values and the number that are multiplied, and the nodes below the last that do it."""

    values: list[ir.Value]
    number: float
    inner: list[ir.Node]


def _factors(node: ir.Node, draft: Draft) -> _Factors:
    """Take products, and divisions by numbers, apart, as far as nothing else reads what is between."""
    found = _Factors([], 1.0, [])
    waiting = [node]
    while waiting:
        one = waiting.pop()
        for side, value in enumerate(one.inputs):
            number = draft.number(value)
            below = draft.made_by(value, "Mul", "Div")
            if number is not None and number and one.op_type == "Div" and side == 1:
                found.number /= float(number)
            elif number is not None and one.op_type == "Mul":
                found.number *= float(number)
            elif value is None or (one.op_type == "Div" and side == 1):
                return _Factors([], 1.0, [])
            elif below is not None and len(found.inner) < 3 and _is_inner(below, draft):
                found.inner.append(below)
                waiting.append(below)
            else:
                found.values.append(value)
    return found


def _is_inner(node: ir.Node, draft: Draft) -> bool:
    by_number = node.op_type == "Mul" or draft.number(node.inputs[1]) is not None
    return by_number and draft.is_only_use(node.outputs[0])


def _keeps_shape(value: ir.Value | None, node: ir.Node, draft: Draft) -> bool:
    """Whether a node gives what it reads in the same shape: a number may be written as an array that grows it."""
    shape = draft.shape(value)
    return shape is not None and shape == draft.shape(node.outputs[0])


@rule("Mul", bound=ROUNDED)
def hard_swish(node: ir.Node, draft: Draft) -> Outcome:
    """x * HardSigmoid(x, 1/6, 1/2) is HardSwish(x)."""
    for side in (0, 1):
        gate = draft.made_by(node.inputs[side], "HardSigmoid")
        value = node.inputs[1 - side]
        if gate is None or gate.inputs[0] is not value:
            continue
        alpha, beta = draft.attribute(gate, "alpha", 0.2), draft.attribute(gate, "beta", 0.5)
        if not (_is(alpha, 1 / 6) and _is(beta, 0.5)):
            return None
        if not draft.is_only_use(gate.outputs[0]):
            return Refusal("another node reads the gate")
        return needs_opset("HardSwish", 14, draft) or draft.call("HardSwish", value)
    return None


@rule("Div", "Mul", bound=ROUNDED)
def hard_sigmoid(node: ir.Node, draft: Draft) -> Outcome:
    """Clip(x + 3, 0, 6) / 6 is HardSigmoid(x, 1/6, 1/2)."""
    scaled = split(node, draft)
    if scaled is None or draft.dtype(node.outputs[0]) not in _FLOATS:
        return None
    value, number = scaled
    if node.op_type == "Div" and node.inputs[0] is not value:
        return None
    if not (_is(number, 6.0) if node.op_type == "Div" else _is(number, 1 / 6)):
        return None
    clip = draft.made_by(value, "Clip")
    if clip is None or _clip_limits(clip, draft) != (0.0, 6.0):
        return None
    shifted = split(draft.made_by(clip.inputs[0], "Add"), draft)
    if shifted is None or shifted[1] != 3.0:
        return None
    inner = draft.made_by(clip.inputs[0], "Add")
    if inner is None or not (
        draft.is_only_use(clip.outputs[0]) and draft.is_only_use(inner.outputs[0])
    ):
        return Refusal("another node reads a value inside of it")
    if not _keeps_shape(shifted[0], node, draft):
        return Refusal("a constant broadcasts x")
    return draft.call("HardSigmoid", shifted[0], alpha=1 / 6, beta=0.5)


@rule("Div", "Mul", bound=ROUNDED)
def hard_swish_written_out(node: ir.Node, draft: Draft) -> Outcome:
    """x * Clip(x + 3, 0, 6) / 6 is HardSwish(x)."""
    if draft.dtype(node.outputs[0]) not in _FLOATS:
        return None
    found = _factors(node, draft)
    if len(found.values) != 2 or not _is(found.number, 1 / 6):
        return None
    for gate, value in (found.values, found.values[::-1]):
        clip = draft.made_by(gate, "Clip")
        shifted = None if clip is None else split(draft.made_by(clip.inputs[0], "Add"), draft)
        if clip is None or shifted is None or shifted[0] is not value or shifted[1] != 3.0:
            continue
        if not _keeps_shape(value, node, draft):
            return Refusal("a constant broadcasts x")
        if _clip_limits(clip, draft) == (0.0, 6.0):
            if not draft.is_only_use(clip.outputs[0]):
                return Refusal("another node reads the gate")
            return needs_opset("HardSwish", 14, draft) or draft.call("HardSwish", value)
    return None


def _clip_limits(node: ir.Node, draft: Draft) -> tuple[float, float] | None:
    if draft.opset < 11:
        low, high = draft.attribute(node, "min"), draft.attribute(node, "max")
    else:
        low, high = (draft.number(node.inputs[i]) if len(node.inputs) > i else None for i in (1, 2))
    return None if low is None or high is None else (float(low), float(high))


@rule("Mul", "Div", bound=ROUNDED)
def gelu(node: ir.Node, draft: Draft) -> Outcome:
    """x * (1 + erf(x / sqrt 2)) / 2 is Gelu(x); with tanh(sqrt(2 / pi) * (x + 0.044715 * x³)), its approximation."""
    dtype = draft.dtype(node.outputs[0])
    if dtype not in _FLOATS:
        return None
    found = _factors(node, draft)
    if len(found.values) != 2:
        return None
    for gate, value in (found.values, found.values[::-1]):
        linear = _gate(gate, draft)
        if linear is None:
            continue
        bent, slope, offset, nodes = linear
        if not (_is(slope * found.number, 0.5) and _is(offset * found.number, 0.5)):
            continue
        inside = _polynomial(bent.inputs[0], value, draft)
        exact = {1: math.sqrt(0.5)}
        cubic = {1: math.sqrt(2 / math.pi), 3: 0.044715 * math.sqrt(2 / math.pi)}
        wanted = exact if bent.op_type == "Erf" else cubic
        if inside is None or inside.keys() != wanted.keys():
            continue
        if not all(_near(inside[degree], wanted[degree], dtype) for degree in wanted):
            continue
        if not all(draft.is_only_use(one.outputs[0]) for one in nodes):
            return Refusal("another node reads a value inside of it")
        if not _keeps_shape(value, node, draft):
            return Refusal("a constant broadcasts x")
        form = None if bent.op_type == "Erf" else "tanh"
        return needs_opset("Gelu", 20, draft) or draft.call("Gelu", value, approximate=form)
    return None


def _gate(value: ir.Value, draft: Draft) -> tuple[ir.Node, float, float, list[ir.Node]] | None:
    """From slope * g + offset: the Erf or Tanh that makes g, both numbers, and the nodes on the way."""
    add = draft.made_by(value, "Add")
    shifted = split(add, draft)
    if add is None or shifted is None:
        return None
    inner, slope, nodes = shifted[0], 1.0, [add]
    scale = draft.made_by(inner, "Mul")
    scaled = split(scale, draft)
    if scale is not None and scaled is not None:
        inner, slope, nodes = scaled[0], scaled[1], [add, scale]
    bent = draft.made_by(inner, "Erf", "Tanh")
    return None if bent is None else (bent, slope, shifted[1], [*nodes, bent])


def _polynomial(
    value: ir.Value | None, x: ir.Value, draft: Draft, depth: int = 6
) -> dict[int, float] | None:
    """The coefficients of a value by powers of x; None where it is no polynomial of degree 3 at most."""
    if value is x:
        return {1: 1.0}
    number = draft.number(value)
    if number is not None:
        return {0: float(number)}
    node = draft.made_by(value, "Add", "Mul", "Div", "Pow") if depth else None
    if node is None:
        return None
    first, second = (_polynomial(one, x, draft, depth - 1) for one in node.inputs)
    if first is None or second is None:
        return None
    if node.op_type == "Add":
        return {n: first.get(n, 0.0) + second.get(n, 0.0) for n in sorted({*first, *second})}
    if node.op_type == "Mul":
        return _times(first, second)
    if second.keys() != {0} or not second[0]:
        return None
    if node.op_type == "Div":
        return _times(first, {0: 1 / second[0]})
    square = _times(first, first)
    if second[0] == 2 or square is None:
        return square
    return _times(square, first) if second[0] == 3 else None


def _times(first: dict[int, float], second: dict[int, float]) -> dict[int, float] | None:
    product: dict[int, float] = {}
    for a, left in first.items():
        for b, right in second.items():
            product[a + b] = product.get(a + b, 0.0) + left * right
    return product if max(product) <= 3 else None


@rule("Mul", bound=ROUNDED)
def swish(node: ir.Node, draft: Draft) -> Outcome:
    """x * Sigmoid(x) is Swish(x)."""
    for side in (0, 1):
        gate = draft.made_by(node.inputs[side], "Sigmoid")
        value = node.inputs[1 - side]
        if gate is None or value is None or not draft.is_only_use(gate.outputs[0]):
            continue
        scaled = split(draft.made_by(gate.inputs[0], "Mul"), draft)
        if gate.inputs[0] is value:
            return needs_opset("Swish", 24, draft) or draft.call("Swish", value)
        if scaled is not None and scaled[0] is value and _keeps_shape(value, node, draft):
            alpha = float(np.float32(scaled[1]))
            return needs_opset("Swish", 24, draft) or draft.call("Swish", value, alpha=alpha)
    return None


@rule("Mul", bound=ROUNDED)
def mish(node: ir.Node, draft: Draft) -> Outcome:
    """x * Tanh(Softplus(x)) is Mish(x)."""
    for side in (0, 1):
        tanh = draft.made_by(node.inputs[side], "Tanh")
        plus = None if tanh is None else draft.made_by(tanh.inputs[0], "Softplus")
        value = node.inputs[1 - side]
        if tanh is None or plus is None or plus.inputs[0] is not value:
            continue
        if not (draft.is_only_use(tanh.outputs[0]) and draft.is_only_use(plus.outputs[0])):
            return Refusal("another node reads a value inside of it")
        return needs_opset("Mish", 18, draft) or draft.call("Mish", value)
    return None


_NEVER_LARGE = ("Tanh", "Sigmoid", "HardSigmoid", "Softmax", "LogSoftmax", "Softsign", "Erf")


@rule("Log", bound=ROUNDED)
def softplus(node: ir.Node, draft: Draft) -> Outcome:
    """Log(1 + Exp(x)) is Softplus(x)."""
    add = draft.made_by(node.inputs[0], "Add")
    shifted = split(add, draft)
    if add is None or shifted is None or shifted[1] != 1.0:
        return None
    exp = draft.made_by(shifted[0], "Exp")
    if exp is None:
        return None
    if not (draft.is_only_use(add.outputs[0]) and draft.is_only_use(exp.outputs[0])):
        return Refusal("another node reads a value inside of it")
    if draft.made_by(exp.inputs[0], *_NEVER_LARGE) is None:
        return Refusal(
            "Exp(x) overflows where Softplus(x) does not: the answer would be another one"
        )
    return draft.call("Softplus", exp.inputs[0])


RULES = (
    hard_swish_written_out,
    hard_swish,
    hard_sigmoid,
    gelu,
    swish,
    mish,
    softplus,
)
