"""The levels of optimization, each a list that is read from top to bottom and repeated until nothing changes.

O0 nothing
O1 what is not there any more, or the same in every run
O2 and operators merged into standard ones (`simplify`: in the model's own opset)
O3 and what needs a newer opset, or rounds at other places
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sardonyx.passes.cleanup.branches import take_known_branches
from sardonyx.passes.cleanup.constants import (
    constant_to_initializer,
    drop_unread,
    free_initializers,
)
from sardonyx.passes.cleanup.equal_nodes import merge_equal_constants, merge_equal_nodes
from sardonyx.passes.cleanup.fold import fold_constants
from sardonyx.passes.cleanup.known_values import merge_known_values
from sardonyx.passes.rewriting.engine import Engine
from sardonyx.passes.rewriting.rule import Rule
from sardonyx.passes.rules import (
    activations,
    chains,
    concats,
    conditions,
    convolutions,
    gathers,
    no_ops,
    norms,
    pointwise,
    products,
    recurrent,
    reshapes,
    scaled_products,
    slices,
    transposes,
)

__all__ = ["LEVELS", "SLOWER", "Pass", "Rules", "every_rule", "names_of"]

Whole: TypeAlias = Callable[[Engine], None]


@dataclass(frozen=True)
class Rules:
    """Rules that are offered every node together."""

    name: str
    rules: tuple[Rule, ...]

    def by_operator(self, without: frozenset[str]) -> Mapping[str, Sequence[Rule]]:
        found: dict[str, list[Rule]] = {}
        for one in self.rules:
            for op in one.ops if one.name not in without else ():
                found.setdefault(op, []).append(one)
        return found


@dataclass(frozen=True)
class Pass:
    """A change that looks at the whole graph."""

    name: str
    run: Whole


Step: TypeAlias = "Rules | Pass"

_CLEAN: tuple[Step, ...] = (
    Pass("free-initializers", free_initializers),
    Pass("known-branch", take_known_branches),
    Rules("constants", (constant_to_initializer, fold_constants)),
    Rules("no-ops", no_ops.RULES),
    Pass("equal-constants", merge_equal_constants),
    Pass("equal-nodes", merge_equal_nodes),
    Pass("known-value", merge_known_values),
    Pass("unread", drop_unread),
)
_MERGE: tuple[Step, ...] = (
    Rules("pointwise", pointwise.RULES),
    Rules("views", reshapes.RULES),
    Rules("transposes", transposes.RULES),
    Rules("convolutions", convolutions.RULES),
    Rules("products", products.RULES),
    Rules("recurrent", recurrent.RULES),
    Rules("activations", activations.RULES),
    Rules("normalisations", norms.RULES),
    Rules("conditions", conditions.RULES),
    Rules("parts", (*slices.RULES, *concats.RULES, *gathers.RULES)),
    Rules("chains", (*chains.RULES, *scaled_products.RULES)),
)

LEVELS: Mapping[int, tuple[Step, ...]] = {
    0: (),
    1: _CLEAN,
    2: (*_CLEAN, *_MERGE),
    3: (*_CLEAN, *_MERGE),
}


# Rules whose result a runtime runs slower than what it had: measured on CPU, release 1.31.
SLOWER: Mapping[str, frozenset[str]] = {"onnxruntime": frozenset({"swish"})}


def every_rule() -> tuple[Rule, ...]:
    """All rules of all levels, each once."""
    steps = (step for level in LEVELS.values() for step in level if isinstance(step, Rules))
    return tuple(dict.fromkeys(one for step in steps for one in step.rules))


def names_of(level: int) -> tuple[str, ...]:
    """What can be switched off by name."""
    found: dict[str, None] = {}
    for step in LEVELS[level]:
        found[step.name] = None
        for one in step.rules if isinstance(step, Rules) else ():
            found[one.name] = None
    return tuple(found)
