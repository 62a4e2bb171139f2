"""Losses."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.losses import cross_entropy

__all__ = ["ENTRIES"]


def _cross_entropy(step: Step) -> str:
    step.returns = 2
    how = step.word("reduction", "mean", "sum", "none")
    ignored = step.call.attr("ignore_index")
    return (
        f"{step.use(cross_entropy)}({step[0]}, {step[1]}, {step[2]}, "
        f"{None if ignored is None else int(ignored)}, {how!r})"
    )


ENTRIES: Mapping[str, Entry] = {"SoftmaxCrossEntropyLoss": _cross_entropy}
