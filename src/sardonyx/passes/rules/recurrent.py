"""Recurrent layers: inputs that say what is so anyway."""

from __future__ import annotations

import math

import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, rule

__all__ = ["RULES"]

_MOVERS = ("Expand", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Tile", "Slice", "Identity")
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


def _is_zero(value: ir.Value | None, draft: Draft) -> bool:
    """Whether a value is +0 everywhere, however many elements it has."""
    for _ in range(_MOST_STEPS):
        number = draft.number(value)
        if number is not None:
            return number == 0 and math.copysign(1, number) > 0
        filled = draft.made_by(value, "ConstantOfShape")
        if filled is not None:
            tensor = draft.attribute(filled, "value")
            return tensor is None or not tensor.numpy().any()
        mover = draft.made_by(value, *_MOVERS)
        if mover is None:
            return False
        value = mover.inputs[0]
    return False


RULES = (zero_state,)
