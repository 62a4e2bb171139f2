"""DFT and STFT, by the framework's own transforms of complex numbers."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.signals import short_time

__all__ = ["ENTRIES"]


def _transform(step: Step) -> str:
    """The function that transforms an axis."""
    if "fourier" not in step.writer.language.support:
        step.refuse("it has no transforms of complex numbers along any axis")
    if step.dtype(0) not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        step.refuse(f"it transforms no {step.dtype(0)}")
    return step.help("fourier")


def _dft(step: Step) -> str:
    helper, rank = _transform(step), step.rank(0)
    length = step.integer_texts(1, "length")[0] if step.has(1) else "None"
    axis = step.need_integers(2, "axis")[0] if step.has(2) else -2
    inverse, half = step.flag("inverse"), step.flag("onesided")
    return f"{helper}({step[0]}, {length}, {step.call.axis(axis, rank)}, {inverse}, {half})"


def _stft(step: Step) -> str:
    helper = _transform(step)
    every = step.integer_texts(1, "step")[0]
    window = step[2] if step.has(2) else "None"
    if step.has(3):
        length = step.integer_texts(3, "length")[0]
    else:
        length = step.size(step.shape(2)[0])
    half = step.flag("onesided", 1)
    return f"{step.use(short_time)}({helper}, {step[0]}, {every}, {window}, {length}, {half})"


ENTRIES: Mapping[str, Entry] = {"DFT": _dft, "STFT": _stft}
