"""GridSample."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.sampling import grid_sample

__all__ = ["ENTRIES"]

_OLD = {"bilinear": "linear", "bicubic": "cubic"}  # names before opset 20


def _grid_sample(step: Step) -> str:
    mode = step.word("mode", "linear", "nearest", "cubic", *_OLD)
    mode = _OLD.get(mode, mode)
    outside = step.word("padding_mode", "zeros", "border", "reflection")
    align = step.flag("align_corners")
    # Of nearest and cubic the standard and torch have other ideas at the border.
    if mode == "linear" and step.rank(0) < 6 and "grid_sample" in step.writer.language.phrases:
        return step.say("grid_sample", step[0], step[1], repr(outside), align)
    return f"{step.use(grid_sample)}({step[0]}, {step[1]}, {mode!r}, {outside!r}, {align})"


ENTRIES: Mapping[str, Entry] = {"GridSample": _grid_sample}
