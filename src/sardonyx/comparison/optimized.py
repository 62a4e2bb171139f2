"""A model optimized, and proved to give the answers that it gave before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnx_ir as ir

from sardonyx.comparison.compare import Comparison, Inputs, prepare_inputs
from sardonyx.comparison.proof import Culprit, find_culprit, prove
from sardonyx.errors import RunError, SardonyxError, VerificationError
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.rewriting.bill import DEFAULT_RATES, Rates
from sardonyx.passes.rewriting.ledger import Ledger
from sardonyx.runtime.folding import MAX_FOLDED_BYTES, fold_node
from sardonyx.runtime.machine import read_cpu, usable_cores
from sardonyx.runtime.profiling import limits_of

__all__ = ["ChangedAnswerError", "OptimizedModel", "machine_rates", "optimize_model"]


class ChangedAnswerError(VerificationError):
    """An optimized model gave other answers; `culprit` says which rewrite is to blame."""

    def __init__(self, message: str, culprit: Culprit | None, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.culprit = culprit


@dataclass(frozen=True)
class OptimizedModel:
    """What optimizing gave.

    Attributes:
        model: portable ONNX.
        ledger: what each rule did and saved.
        verification: the answers before and after, on the same inputs; None where that was not asked for,
            or was not possible, as the notes say.
    """

    model: ir.Model
    ledger: Ledger
    verification: Comparison | None

    def to_json(self) -> dict[str, Any]:
        verified = None if self.verification is None else self.verification.to_json()
        return {**self.ledger.to_json(), "verification": verified}


def optimize_model(
    model: ir.Model,
    settings: Settings,
    *,
    verify: bool = True,
    inputs: Inputs = None,
    progress: Callable[[int, int], None] | None = None,
) -> OptimizedModel:
    """Optimize, and check the whole model on its inputs.

    Raises:
        ChangedAnswerError: an answer has changed; it names the rule and carries the smallest model.
    """
    fold = partial(fold_node, most=max(MAX_FOLDED_BYTES, 2 * settings.fold_budget))
    result = optimize(model, settings, evaluate=fold, progress=progress)
    if not verify or not result.ledger.rewrites:
        return OptimizedModel(result.model, result.ledger, None)
    try:
        feeds = prepare_inputs(model, inputs, dims=settings.dims)
    except SardonyxError as error:
        result.ledger.notes.append(f"Not verified: there are no example inputs ({error}).")
        return OptimizedModel(result.model, result.ledger, None)
    try:
        comparison = prove(model, result, feeds, progress=progress)
    except RunError as error:
        if inputs is not None:
            raise
        result.ledger.notes.append(
            f"Not verified: the model does not run on example inputs ({error}). Give it its own."
        )
        return OptimizedModel(result.model, result.ledger, None)
    if not comparison.ok:
        culprit = find_culprit(model, settings, feeds, evaluate=fold)
        wrong = next(output for output in comparison.outputs if not output.ok)
        blamed = (
            "the rewrite to blame was not found" if culprit is None else f"to blame is {culprit}"
        )
        raise ChangedAnswerError(
            f"the optimized model gives another answer: {wrong.name} {wrong.reason}; {blamed}.",
            culprit,
            where=None if culprit is None else culprit.node,
            source=None if culprit is None else culprit.source,
            hint=None
            if culprit is None
            else f"Leave it out with --without {culprit.rule}, and report it.",
        )
    return OptimizedModel(result.model, result.ledger, comparison)


def machine_rates() -> Rates:
    """What this machine does, to price an account by: measured once, then kept in the cache.

    Where nothing can be compiled to find out, the rates are those that are assumed everywhere.
    """
    threads = usable_cores()
    limits = limits_of(threads)
    if limits is None:
        return DEFAULT_RATES
    rates = (limits.flops, limits.bytes, limits.carried, limits.launches)
    return Rates(*rates, origin=f"measured: {threads} threads of {read_cpu().model}")
