"""A model through a level of optimization, until nothing changes any more.

result = optimize(model, level=2, evaluate=fold)
result.model, result.ledger
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from sardonyx.errors import InputError, UnsupportedError
from sardonyx.passes.opset.convert import convert
from sardonyx.passes.opset.needed import NeedsOpset
from sardonyx.passes.pipelines import LAST, LEVELS, Pass, Step, names_of
from sardonyx.passes.rewriting.bill import NOTHING
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.engine import Engine, Listener
from sardonyx.passes.rewriting.ledger import Ledger, total_bill
from sardonyx.passes.rewriting.rule import Outcome, Rule
from sardonyx.passes.rewriting.workspace import Evaluate, Workspace

__all__ = ["Optimized", "Settings", "optimize"]

_RAISED = "raise-opset"  # its name in the account, and to leave it out
_WORTH_TELLING = 1 << 20
MOST_ROUNDS = 16  # of the whole list; each but the last has changed something


@dataclass(frozen=True)
class Settings:
    """How to optimize.

    Attributes:
        level: 0 to 3.
        without: names of rules and passes to leave out.
        dims: sizes of dynamic dimensions, for the account only.
        limit: stop after so many rewrites.
        opset: write the model in this version first.
        fold_budget: bytes that the model may grow by, where constants are stored that every run would compute.
        highest: raise the version where a rule needs it, to at most this one; None leaves it.
    """

    level: int = 2
    without: frozenset[str] = frozenset()
    dims: Mapping[str, int] = field(default_factory=dict)
    limit: int | None = None
    opset: int | None = None
    highest: int | None = None
    fold_budget: int = 1 << 30


@dataclass(frozen=True)
class Optimized:
    """A rewritten model and the account of it."""

    model: ir.Model
    ledger: Ledger


def optimize(
    model: ir.Model,
    settings: Settings,
    *,
    evaluate: Evaluate | None = None,
    progress: Callable[[int, int], None] | None = None,
    listener: Listener | None = None,
) -> Optimized:
    """A rewritten copy of the model; its tensors are shared, the given model is as it was.

    Args:
        evaluate: computes a node on constants; None folds only what inference knows.
        progress: hears (rounds done, rounds at most).
        listener: hears of every rewrite before it is done.

    Raises:
        InputError: there is no such level, or nothing of that name to leave out.
        UnsupportedError: the model cannot be written in the opset that is asked for.
    """
    if settings.level not in LEVELS:
        raise InputError(
            f"there is no level {settings.level}.", value=settings.level, hint="Levels are 0 to 3."
        )
    for name in sorted(settings.without):
        if name not in (*names_of(3), _RAISED):
            raise InputError(
                f"there is no rule or pass {name[:80]!r}.",
                value=name,
                hint=f"There are: {', '.join((*names_of(3), _RAISED))}.",
            )
    copy = model.clone()
    copy.meta.update(model.meta)
    work = Workspace(copy, evaluate, settings.dims, settings.fold_budget)
    ledger = Ledger(before=total_bill(work))
    engine = Engine(work, ledger, limit=settings.limit, listener=listener)
    if settings.opset is not None:
        _must_convert(engine, settings.opset)
    wanted: set[int] = set()
    for done in range(MOST_ROUNDS):
        if progress is not None:
            progress(done, MOST_ROUNDS)
        changed = _round(engine, LEVELS[settings.level], settings, wanted)
        if not changed and not _raise_opset(engine, settings, wanted):
            break
    _round(engine, LAST[settings.level], settings, set())
    ledger.after = total_bill(work)
    if work.grown > _WORTH_TELLING:
        ledger.notes.append(
            f"{work.grown:,} bytes of constants are stored now that every run would have computed; "
            "--fold-budget 0 keeps the model small."
        )
    return Optimized(copy, ledger)


def _round(engine: Engine, steps: Sequence[Step], settings: Settings, wanted: set[int]) -> bool:
    """Once through the list; whether anything has changed. Versions that rules would need are added."""
    begin = engine.ledger.rewrites
    wanted.clear()
    for step in steps:
        if step.name in settings.without:
            continue
        if isinstance(step, Pass):
            step.run(engine)
        else:
            rules = _heard(step.by_operator(settings.without), wanted)
            engine.sweep(rules)
            if step.is_urgent and _raise_opset(engine, settings, wanted):
                engine.sweep(rules)
        if engine.is_spent:
            return False
    return engine.ledger.rewrites > begin


def _heard(rules: Mapping[str, Sequence[Rule]], wanted: set[int]) -> Mapping[str, Sequence[Rule]]:
    """The same rules; what they need of an opset is noted."""

    def noting(rule: Rule) -> Rule:
        def body(node: ir.Node, draft: Draft) -> Outcome:
            outcome = rule.body(node, draft)
            if isinstance(outcome, NeedsOpset):
                wanted.add(outcome.version)
            return outcome

        return replace(rule, body=body)

    return {op: [noting(rule) for rule in listed] for op, listed in rules.items()}


def _must_convert(engine: Engine, version: int) -> None:
    if engine.is_spent or engine.work.versions.get("") in (None, version):
        return
    begin = engine.work.versions[""]
    reason = convert(engine.work, version)
    if reason is not None:
        raise UnsupportedError(
            f"the model cannot be written in opset {version}: {reason}.",
            value=version,
            hint=f"It is in opset {begin}; leave --opset out to keep it.",
        )
    engine.ledger.record(
        "convert-opset", "Operators as another opset writes them.", NOTHING, NOTHING
    )
    engine.ledger.notes.append(f"Opset {begin} became {version}.")


def _raise_opset(engine: Engine, settings: Settings, wanted: set[int]) -> bool:
    """Raise the model's opset, if a rule is waiting for it and the model can be written so."""
    if settings.highest is None or _RAISED in settings.without or engine.is_spent:
        return False
    begin = engine.work.versions.get("", 1)
    reasons: dict[str, None] = {}
    for version in sorted(wanted, reverse=True):
        if not begin < version <= settings.highest:
            continue
        reason = convert(engine.work, version)
        if reason is None:
            engine.ledger.record(
                _RAISED, "Operators as a newer opset writes them.", NOTHING, NOTHING
            )
            engine.ledger.notes.append(f"The opset was raised from {begin} to {version}.")
            return True
        reasons[f"The opset was not raised to {version}: {reason}."] = None
    for text in reasons:
        if text not in engine.ledger.notes:
            engine.ledger.notes.append(text)
    return False
