"""The table of corrections: operator and version -> function, with the reason it exists.

    @corrects("Div", "integer quotients truncate, and x / 0 is an error")
    def div(call: Call, a: Array, b: Array) -> Array: ...

A correction takes the call and the node's inputs (None where one is left out) and returns its
output, or a tuple of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference.operator import Call, Operator
from sardonyx.backends.reference.values import Value

__all__ = ["CORRECTIONS", "Correction", "corrects", "find_correction"]

Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Correction:
    """One implementation, for operator versions `since` up to `until` (both within)."""

    implementation: Implementation
    reason: str
    since: int
    until: int


CORRECTIONS: dict[tuple[str, str], list[Correction]] = {}


def corrects(
    *names: str, reason: str, domain: str = "", since: int = 1, until: int = 1000
) -> Callable[[Implementation], Implementation]:
    """Register a function as the implementation of operators."""

    def register(implementation: Implementation) -> Implementation:
        for name in names:
            entries = CORRECTIONS.setdefault((domain, name), [])
            entries.append(Correction(implementation, reason, since, until))
        return implementation

    return register


def find_correction(operator: Operator) -> CorrectionCall | None:
    """The correction for a node, where there is one."""
    for entry in CORRECTIONS.get((operator.domain, operator.name), ()):
        if entry.since <= operator.since <= entry.until:
            return CorrectionCall(operator, entry.implementation)
    return None


class CorrectionCall:
    """Runs one node by a correction."""

    def __init__(self, operator: Operator, implementation: Implementation) -> None:
        self.operator = operator
        self.implementation = implementation

    def __call__(self, inputs: Sequence[Value], guard: Guard) -> Sequence[Any]:
        results = self.implementation(Call(self.operator, guard), *inputs)
        return results if isinstance(results, tuple) else (results,)
