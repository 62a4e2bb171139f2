"""Whether a converted model answers as the framework does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.backends.reference import Value
from sardonyx.comparison.difference import Difference, differences
from sardonyx.comparison.engines import open_engine
from sardonyx.conversion.candidate import Candidate, Trial
from sardonyx.errors import ConvertError

__all__ = ["TrialResult", "Verification", "verify"]


@dataclass(frozen=True)
class TrialResult:
    """One set of inputs: what they were, and how far the answers lie apart."""

    what: str
    outputs: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        return all(output.ok for output in self.outputs)

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": self.what,
            "ok": self.ok,
            "outputs": [output.to_json() for output in self.outputs],
        }


@dataclass(frozen=True)
class Verification:
    """The converted model beside the framework, trial by trial."""

    trials: tuple[TrialResult, ...]

    @property
    def ok(self) -> bool:
        return bool(self.trials) and all(trial.ok for trial in self.trials)

    @property
    def max_abs(self) -> float:
        return max((o.max_abs for t in self.trials for o in t.outputs), default=0.0)

    @property
    def max_rel(self) -> float:
        return max((o.max_rel for t in self.trials for o in t.outputs), default=0.0)

    def __str__(self) -> str:
        lines = []
        for trial in self.trials:
            lines.append(f"{trial.what}: {'agrees' if trial.ok else 'DIFFERS'}")
            for output in trial.outputs:
                verdict = "ok" if output.ok else output.reason
                lines.append(f"  {output.name}: max abs {output.max_abs:.3g} ({verdict})")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "trials": [trial.to_json() for trial in self.trials]}


def verify(candidate: Candidate, *, engine: str = "sardonyx") -> Verification:
    """Run the model and the framework on every trial; stops at the first one that differs."""
    run = open_engine(engine, candidate.model)
    names = [value.name or "" for value in candidate.model.graph.outputs]
    results: list[TrialResult] = []
    for trial in candidate.trials:
        expected = candidate.answer(trial.feeds)
        if len(expected) != len(names):
            raise ConvertError(
                f"the framework gives {len(expected)} outputs and the model has {len(names)}."
            )
        answers = run(trial.feeds)
        results.append(_judge(trial, names, [answers[name] for name in names], expected))
        if not results[-1].ok:
            break
    return Verification(tuple(results))


def _judge(
    trial: Trial, names: Sequence[str], answers: Sequence[Value], expected: Sequence[Value]
) -> TrialResult:
    rows = zip(names, answers, expected, strict=True)
    with np.errstate(all="ignore"):
        found = [d for name, ours, theirs in rows for d in differences(name, ours, theirs)]
    return TrialResult(trial.what, tuple(found))
