"""Operators whose outputs are as large as data say."""

from __future__ import annotations

from sardonyx.conversion.back.step import Step, number_text

__all__ = ["compress", "non_max_suppression", "unique"]


def compress(step: Step) -> str:
    axis = None if step.call.attr("axis") is None else step.axis()
    return f"{step.help('compress')}({step[0]}, {step[1]}, {axis})"


def unique(step: Step) -> str:
    step.returns = 4
    axis = None if step.call.attr("axis") is None else step.axis()
    return f"{step.help('unique')}({step[0]}, {axis}, {step.flag('sorted', 1)})"


def non_max_suppression(step: Step) -> str:
    most = step.integer_texts(2, "number")[0] if step.has(2) else "0"
    overlap = _number(step, 3) if step.has(3) else "0.0"
    least = _number(step, 4) if step.has(4) else "None"
    centred = step.flag("center_point_box")
    helper = step.help("non_max_suppression")
    return f"{helper}({step[0]}, {step[1]}, {most}, {overlap}, {least}, {centred})"


def _number(step: Step, index: int) -> str:
    known = step.numbers(index)
    return f"float({step[index]})" if known is None else number_text(known.reshape(-1)[0])
