"""Recurrent layers: inputs that say what is so anyway."""

from __future__ import annotations

import math

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, rule

__all__ = ["RULES"]

_MOVERS = (
    "Expand",
    "Unsqueeze",
    "Squeeze",
    "Reshape",
    "Transpose",
    "Tile",
    "Slice",
    "Split",
    "Identity",
)
_STATES = (5, 6)  # initial_h of each, initial_c of LSTM; then come peepholes
_MOST_STEPS = 8


@rule("LSTM", "GRU", "RNN")
def zero_state(node: ir.Node, draft: Draft) -> Outcome:
    """A recurrent layer that begins with zeros needs no input for them."""
    states = [index for index in _STATES if index < len(node.inputs)]
    zeros = [index for index in states if _is_zero(node.inputs[index], draft)]
    if not zeros:
        return None
    inputs = [None if index in zeros else value for index, value in enumerate(node.inputs)]
    while inputs and inputs[-1] is None:
        inputs.pop()
    return draft.copy(node, inputs)


def _is_zero(value: ir.Value | None, draft: Draft, depth: int = 0) -> bool:
    """Whether a value is +0 everywhere, however many elements it has."""
    number = draft.number(value)
    if number is not None:
        return number == 0 and math.copysign(1, number) > 0
    node = None if value is None else value.producer()
    if node is None or depth > _MOST_STEPS or normal_domain(node.domain):
        return False
    if node.op_type == "ConstantOfShape":
        tensor = draft.attribute(node, "value")
        return tensor is None or not any(tensor.tobytes())
    if node.op_type == "Concat":
        return all(_is_zero(part, draft, depth + 1) for part in node.inputs)
    return node.op_type in _MOVERS and _is_zero(node.inputs[0], draft, depth + 1)


RULES = (zero_state,)
