"""Attention."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.common.slicing import padded
from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.attention import attention

__all__ = ["ENTRIES"]


def _attention(step: Step) -> str:
    step.returns = 4
    heads = tuple(step.call.int_attr(name) for name in ("q_num_heads", "kv_num_heads"))
    split = heads if step.rank(0) == 3 else None
    scale = "None" if step.call.attr("scale") is None else step.number("scale", 1.0)
    window = tuple(
        step.call.int_attr(name, -1) for name in ("left_window_size", "right_window_size")
    )
    inputs = (*step.tensors()[:3], _mask(step), *(step[index] for index in (4, 5, 6)))
    return (
        f"{step.use(attention)}({', '.join(inputs)}, heads={split}, scale={scale}, "
        f"softcap={step.number('softcap', 0.0)}, causal={step.flag('is_causal')}, window={window}, "
        f"precise={_precision(step)}, mode={step.call.int_attr('qk_matmul_output_mode')})"
    )


def _mask(step: Step) -> str:
    """The mask as wide as there are keys; those that it leaves out are not seen."""
    if not step.has(3):
        return "None"
    rank, keys = step.rank(3), step.shape(1)[-2]
    if step.has(4):
        keys = keys + step.shape(4)[-2]
    unseen = "False" if step.dtype(3) == ir.DataType.BOOL else "-float('inf')"
    return padded(step, step[3], {rank - 1: (0, keys - step.shape(3)[-1])}, rank, unseen)


def _precision(step: Step) -> str:
    """A tensor of the type that the softmax is computed in; None where that is the scores' own."""
    wanted = step.call.int_attr("softmax_precision")
    if not wanted or ir.DataType(wanted) == step.dtype(0):
        return "None"
    return step.say("full", "()", "0", step.type_text(ir.DataType(wanted)), step[0])


ENTRIES: Mapping[str, Entry] = {"Attention": _attention}
