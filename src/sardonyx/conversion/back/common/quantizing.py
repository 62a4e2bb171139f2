"""QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.quantizing import quantize

__all__ = ["ENTRIES", "RANGES"]

RANGES = {
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT16: (-32768, 32767),
    ir.DataType.UINT16: (0, 65535),
    ir.DataType.INT4: (-8, 7),
    ir.DataType.UINT4: (0, 15),
}


def _spread(step: Step, index: int, text: str) -> str:
    """A scale or a zero point, laid over the elements that it is for."""
    shape, rank = step.shape(index), step.rank(0)
    if len(shape) == 0 or shape == (1,):
        return text if len(shape) == 0 else f"{text}[0]"
    axis = step.call.axis(step.call.int_attr("axis", 1), rank)
    block = step.call.int_attr("block_size")
    if not block:
        after = rank - 1 - axis
        return f"{text}[{', '.join([':', *['None'] * after])}]" if after else text
    spread = step.say("repeat", text, block, axis)
    cut = [":"] * axis + [f":{step.size(step.shape(0)[axis])}"]
    return f"{spread}[{', '.join(cut)}]"


def _quantize(step: Step) -> str:
    dtype = step.outputs[0].dtype
    if dtype not in RANGES:
        step.refuse(f"it rounds to {dtype}")
    low, high = RANGES[dtype]
    kind = step.dtype(0)
    scale = _spread(step, 1, step.cast(step[1], kind))
    zero = _spread(step, 2, step.cast(step[2], kind)) if step.has(2) else "0"
    return step.cast(f"{step.use(quantize)}({step[0]}, {scale}, {zero}, {low}, {high})", dtype)


def _dequantize(step: Step) -> str:
    if step.dtype(0) not in (*RANGES, ir.DataType.INT32):
        step.refuse(f"it reads {step.dtype(0)}")
    kind = step.outputs[0].dtype
    text = step.cast(step[0], kind)
    scale = _spread(step, 1, step.cast(step[1], kind) if step.dtype(1) != kind else step[1])
    known = step.numbers(2)
    if step.has(2) and (known is None or known.astype(int).any()):
        text = f"({text} - {_spread(step, 2, step.cast(step[2], kind))})"
    return f"{text} * {scale}"


ENTRIES: Mapping[str, Entry] = {"QuantizeLinear": _quantize, "DequantizeLinear": _dequantize}
