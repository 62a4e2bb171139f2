"""Whether a converted model answers as the framework does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.backends.reference import Value
from sardonyx.comparison.difference import Difference, differences
from sardonyx.comparison.engines import open_engine
from sardonyx.comparison.tolerance import Tolerance
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
    results = []
    if candidate.pieces is not None:
        pieces = verify(candidate.pieces, engine=engine)
        results = [_worst(trial) for trial in pieces.trials]
        if not pieces.ok:
            return Verification(tuple(results))
    return Verification((*results, *_run(candidate, engine)))


def _worst(trial: TrialResult) -> TrialResult:
    """What differs, or the one output of many that is furthest off."""
    wrong = tuple(output for output in trial.outputs if not output.ok)
    furthest = sorted(trial.outputs, key=lambda output: output.of_largest)[-1:]
    return TrialResult(trial.what, wrong or tuple(furthest))


def _run(candidate: Candidate, engine: str) -> list[TrialResult]:
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
        found = [answers[name] for name in names]
        results.append(_judge(trial, names, found, expected, candidate.tolerances))
        if not results[-1].ok:
            break
    return results


def _judge(
    trial: Trial,
    names: Sequence[str],
    answers: Sequence[Value],
    expected: Sequence[Value],
    tolerances: Mapping[str, Tolerance],
) -> TrialResult:
    rows = zip(names, answers, expected, strict=True)
    with np.errstate(all="ignore"):
        found = [
            difference
            for name, ours, theirs in rows
            for difference in differences(name, ours, theirs, tolerance=tolerances.get(name))
        ]
    return TrialResult(trial.what, tuple(found))
