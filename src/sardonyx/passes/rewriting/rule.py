"""A rule: which nodes it looks at, what it puts in their place, and how far the answer may move.

    @rule("Relu")
    def relu_of_relu(node, draft):
        \"\"\"Relu(Relu(x)) is Relu(x).\"\"\"
        inner = draft.made_by(node.inputs[0], "Relu")
        return None if inner is None else inner.outputs[0]

A rule answers None where it does not apply, a `Refusal` where its pattern is there but the rewrite would not be
sound, and else the values that take the place of the node's outputs; or of the outputs of several nodes, by value,
where what they make comes from one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import onnx_ir as ir

if TYPE_CHECKING:
    from sardonyx.passes.rewriting.draft import Draft

__all__ = ["EQUAL", "EXACT", "ROUNDED", "Bound", "Outcome", "Refusal", "Rule", "RuleBody", "rule"]


@dataclass(frozen=True)
class Refusal:
    """The pattern is there, but the rewrite is not sound here.

    Attributes:
        reason: for a person, as `the bias has another shape: [3, 1] instead of [3]`.
    """

    reason: str


@dataclass(frozen=True)
class Bound:
    """How far an answer may move.

    Attributes:
        steps: of rounding, relative to the largest term of what was computed; 0 is the same number.
        zeros: whether a zero may change its sign, where the standard does not say which one it is.
    """

    steps: float = 0.0
    zeros: bool = False

    @property
    def is_exact(self) -> bool:
        return self.steps == 0

    def __str__(self) -> str:
        if self.is_exact:
            return "the same numbers, but for the sign of a zero" if self.zeros else "the same bits"
        return f"{self.steps:g} roundings"


EXACT = Bound()
EQUAL = Bound(zeros=True)
ROUNDED = Bound(8.0)  # the same sums and products, rounded at other places

Outcome: TypeAlias = (
    "ir.Value | Sequence[ir.Value | None] | Mapping[ir.Value, ir.Value] | Refusal | None"
)
RuleBody: TypeAlias = "Callable[[ir.Node, Draft], Outcome]"


@dataclass(frozen=True)
class Rule:
    """One rewrite.

    Attributes:
        name: what a user switches off and a report names, as `relu-of-relu`.
        ops: operators of the node that it begins with.
        body: looks at one such node.
        about: one line for a person.
        bound: how far an answer may move.
    """

    name: str
    ops: tuple[str, ...]
    body: RuleBody
    about: str
    bound: Bound = EXACT


def rule(*ops: str, bound: Bound = EXACT) -> Callable[[RuleBody], Rule]:
    """Make a rule of a function; its name and the first line of its docstring are the rule's."""

    def made(body: RuleBody) -> Rule:
        name = body.__name__.replace("_", "-")
        about = (body.__doc__ or "").strip().splitlines()[0]
        return Rule(name, ops, body, about, bound)

    return made
