"""A model through a level of optimization, until nothing changes any more.

result = optimize(model, level=2, evaluate=fold)
result.model, result.ledger
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from sardonyx.errors import InputError
from sardonyx.passes.pipelines import LEVELS, Rules, names_of
from sardonyx.passes.rewriting.engine import Engine, Listener
from sardonyx.passes.rewriting.ledger import Ledger, total_bill
from sardonyx.passes.rewriting.workspace import Evaluate, Workspace

__all__ = ["Optimized", "Settings", "optimize"]

MOST_ROUNDS = 16  # of the whole list; each but the last has changed something


@dataclass(frozen=True)
class Settings:
    """How to optimize.

    Attributes:
        level: 0 to 3.
        without: names of rules and passes to leave out.
        dims: sizes of dynamic dimensions, for the account only.
        limit: stop after so many rewrites.
    """

    level: int = 2
    without: frozenset[str] = frozenset()
    dims: Mapping[str, int] = field(default_factory=dict)
    limit: int | None = None


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
    """
    if settings.level not in LEVELS:
        raise InputError(
            f"there is no level {settings.level}.", value=settings.level, hint="Levels are 0 to 3."
        )
    for name in sorted(settings.without):
        if name not in names_of(3):
            raise InputError(
                f"there is no rule or pass {name[:80]!r}.",
                value=name,
                hint=f"There are: {', '.join(names_of(3))}.",
            )
    copy = model.clone()
    copy.meta.update(model.meta)
    work = Workspace(copy, evaluate, settings.dims)
    ledger = Ledger(before=total_bill(work))
    engine = Engine(work, ledger, limit=settings.limit, listener=listener)
    for done in range(MOST_ROUNDS):
        if progress is not None:
            progress(done, MOST_ROUNDS)
        if not _round(engine, settings):
            break
    ledger.after = total_bill(work)
    return Optimized(copy, ledger)


def _round(engine: Engine, settings: Settings) -> bool:
    """Once through the list; whether anything has changed."""
    begin = engine.ledger.rewrites
    for step in LEVELS[settings.level]:
        if step.name in settings.without:
            continue
        if isinstance(step, Rules):
            engine.sweep(step.by_operator(settings.without))
        else:
            step.run(engine)
        if engine.is_spent:
            return False
    return engine.ledger.rewrites > begin
