"""Activation functions that exporters write out, as the one operator that they are."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from sardonyx.passes.opset.needed import needs_opset
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Refusal, rule

__all__ = ["RULES"]

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def _near(number: float | None, wanted: float) -> bool:
    """Whether a constant is this number, as far as its type can say it."""
    return number is not None and math.isclose(
        number, wanted, rel_tol=2e-3 if abs(number) < 1e-2 else 1e-3
    )


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
    return draft.call("HardSigmoid", shifted[0], alpha=1 / 6, beta=0.5)


@rule("Div", "Mul", bound=ROUNDED)
def hard_swish_written_out(node: ir.Node, draft: Draft) -> Outcome:
    """x * Clip(x + 3, 0, 6) / 6 is HardSwish(x)."""
    scaled = split(node, draft)
    if scaled is None or draft.dtype(node.outputs[0]) not in _FLOATS:
        return None
    value, number = scaled
    if node.op_type == "Div" and node.inputs[0] is not value:
        return None
    if not (_is(number, 6.0) if node.op_type == "Div" else _is(number, 1 / 6)):
        return None
    product = draft.made_by(value, "Mul")
    if product is None or not draft.is_only_use(product.outputs[0]):
        return None
    for side in (0, 1):
        clip = draft.made_by(product.inputs[side], "Clip")
        shifted = None if clip is None else split(draft.made_by(clip.inputs[0], "Add"), draft)
        if clip is None or shifted is None or shifted[0] is not product.inputs[1 - side]:
            continue
        if shifted[1] == 3.0 and _clip_limits(clip, draft) == (0.0, 6.0):
            if not draft.is_only_use(clip.outputs[0]):
                return Refusal("another node reads the gate")
            return needs_opset("HardSwish", 14, draft) or draft.call("HardSwish", shifted[0])
    return None


def _clip_limits(node: ir.Node, draft: Draft) -> tuple[float, float] | None:
    if draft.opset < 11:
        low, high = draft.attribute(node, "min"), draft.attribute(node, "max")
    else:
        low, high = (draft.number(node.inputs[i]) if len(node.inputs) > i else None for i in (1, 2))
    return None if low is None or high is None else (float(low), float(high))


@rule("Mul", bound=ROUNDED)
def gelu(node: ir.Node, draft: Draft) -> Outcome:
    """x * (1 + erf(x / sqrt 2)) / 2 is Gelu(x)."""
    if draft.dtype(node.outputs[0]) not in _FLOATS:
        return None
    found = _gelu_factors(node, draft)
    if found is None:
        return None
    value, gate, inner = found
    if not all(draft.is_only_use(one.outputs[0]) for one in inner):
        return Refusal("another node reads a value inside of it")
    erf = draft.made_by(gate, "Erf")
    if erf is not None and _is_erf_of(erf, value, draft):
        return needs_opset("Gelu", 20, draft) or draft.call("Gelu", value)
    tanh = draft.made_by(gate, "Tanh")
    if tanh is not None and _is_tanh_of(tanh, value, draft):
        return needs_opset("Gelu", 20, draft) or draft.call("Gelu", value, approximate="tanh")
    return None


def _gelu_factors(node: ir.Node, draft: Draft) -> tuple[ir.Value, ir.Value, list[ir.Node]] | None:
    """From x * (1 + g) * 0.5 in any order: x, g, and the nodes on the way."""
    parts: list[ir.Value] = []
    numbers: list[float] = []
    inner: list[ir.Node] = []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        for value in one.inputs:
            number = draft.number(value)
            below = draft.made_by(value, "Mul")
            if number is not None:
                numbers.append(float(number))
            elif below is not None and len(inner) < 2 and draft.is_only_use(below.outputs[0]):
                inner.append(below)
                waiting.append(below)
            elif value is not None:
                parts.append(value)
    if len(parts) != 2 or len(numbers) != 1 or numbers[0] != 0.5:
        return None
    for side in (0, 1):
        add = draft.made_by(parts[side], "Add")
        shifted = split(add, draft)
        if add is not None and shifted is not None and shifted[1] == 1.0:
            gate = shifted[0].producer()
            middle = [add] if gate is None else [add, gate]
            return parts[1 - side], shifted[0], [*inner, *middle]
    return None


def _is_erf_of(erf: ir.Node, value: ir.Value, draft: Draft) -> bool:
    inner = draft.made_by(erf.inputs[0], "Div", "Mul")
    scaled = split(inner, draft)
    if inner is None or scaled is None or scaled[0] is not value:
        return False
    if inner.op_type == "Div":
        return inner.inputs[0] is value and _near(scaled[1], math.sqrt(2))
    return _near(scaled[1], math.sqrt(0.5))


def _is_tanh_of(tanh: ir.Node, value: ir.Value, draft: Draft) -> bool:
    """tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))."""
    outer = split(draft.made_by(tanh.inputs[0], "Mul"), draft)
    if outer is None or not _near(outer[1], math.sqrt(2 / math.pi)):
        return False
    total = draft.made_by(outer[0], "Add")
    if total is None or value not in total.inputs:
        return False
    other = total.inputs[1 - list(total.inputs).index(value)]
    cubed = split(draft.made_by(other, "Mul"), draft)
    if cubed is None or not _near(cubed[1], 0.044715):
        return False
    power = draft.made_by(cubed[0], "Pow")
    if power is not None:
        return power.inputs[0] is value and draft.number(power.inputs[1]) == 3
    product = draft.made_by(cubed[0], "Mul")
    if product is None:
        return False
    squares = [draft.made_by(v, "Mul") for v in product.inputs]
    return any(
        square is not None
        and list(square.inputs) == [value, value]
        and product.inputs[1 - side] is value
        for side, square in enumerate(squares)
    )


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
        if scaled is not None and scaled[0] is value:
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
