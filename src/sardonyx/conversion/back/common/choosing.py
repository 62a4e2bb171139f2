"""Sorting and what comes of it: TopK, Hardmax."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step

__all__ = ["ENTRIES"]


def _top_k(step: Step) -> str:
    axis = step.axis(default=-1)
    count = step.integer_texts(1, "number")[0]
    return f"{step.help('top_k')}({step[0]}, {count}, {axis}, {step.flag('largest', 1)})"


def _hardmax(step: Step) -> str:
    axis = step.axis(default=-1)
    shape = step.shape(0)
    places = step.say(
        "arange", f"0, {step.size(shape[axis])}, 1", step.type_text(ir.DataType.INT64), step[0]
    )
    after = len(shape) - 1 - axis
    along = f"{places}[{', '.join([':', *['None'] * after])}]" if after else places
    first = step.say("argmax", step[0], axis, True)
    return step.say("cast", f"({first} == {along})", step.output_type())


ENTRIES: Mapping[str, Entry] = {"TopK": _top_k, "Hardmax": _hardmax}
