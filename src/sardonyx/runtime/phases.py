"""A plan's steps in the pieces that run without a stop, and what each piece writes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sardonyx.plan.plan import HostStep, Plan, Step

__all__ = ["Phase", "phases_of"]


class Phase(NamedTuple):
    """Steps that run without a stop in between: native ones, or a single one that Python does."""

    first: int
    end: int
    slots: tuple[int, ...]  # tensors whose bytes are first written here
    outputs: tuple[int, ...]  # tensors of the caller's that are first written here
    host: HostStep | None = None


def phases_of(plan: Plan) -> tuple[Phase, ...]:
    """The phases of a plan, in order."""
    found: list[Phase] = []
    first = 0
    seen: set[int] = set()

    def close(end: int) -> None:
        if first == end:
            return
        touched = dict.fromkeys(
            number
            for step in plan.steps[first:end]
            if isinstance(step, Step)
            for number in step.tensors
            if number not in seen
        )
        seen.update(touched)
        slots = tuple(n for n in touched if plan.tensors[n].place.kind == "slot")
        outputs = tuple(n for n in touched if plan.tensors[n].place.kind == "output")
        found.append(Phase(first, end, slots, outputs))

    for number, step in enumerate(plan.steps):
        if isinstance(step, HostStep):
            close(number)
            found.append(Phase(number, number + 1, (), (), step))
            first = number + 1
    close(len(plan.steps))
    return tuple(_with_empty_outputs(plan, found, seen))


def _with_empty_outputs(plan: Plan, phases: list[Phase], seen: set[int]) -> Iterator[Phase]:
    """Answers that can have no elements are written by no kernel, and must be there all the same."""
    missing = tuple(
        n
        for n in dict.fromkeys(plan.outputs)
        if plan.tensors[n].place.kind == "output" and n not in seen
    )
    last = max((n for n, phase in enumerate(phases) if phase.host is None), default=-1)
    for number, phase in enumerate(phases):
        yield phase._replace(outputs=phase.outputs + missing) if number == last else phase
