"""A rule that could be applied, were the model in a newer opset."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Refusal

__all__ = ["NeedsOpset", "needs_opset"]


@dataclass(frozen=True)
class NeedsOpset(Refusal):
    """The operator that would be written came with a later version."""

    version: int = 0


def needs_opset(op: str, version: int, draft: Draft) -> NeedsOpset | None:
    """The refusal of a rule whose result is this operator; None where the model's opset has it."""
    if draft.opset >= version:
        return None
    return NeedsOpset(f"{op} came with opset {version}; the model has {draft.opset}", version)
