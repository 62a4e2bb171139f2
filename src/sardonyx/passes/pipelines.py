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
from sardonyx.passes.cleanup.functions import inline_functions
from sardonyx.passes.cleanup.known_values import merge_known_values
from sardonyx.passes.cleanup.loops import known_loop
from sardonyx.passes.rewriting.engine import Engine
from sardonyx.passes.rewriting.rule import Rule
from sardonyx.passes.rules import (
    activations,
    attention,
    chains,
    concats,
    conditions,
    convolutions,
    einsum,
    flat_products,
    gathers,
    groups,
    no_ops,
    norms,
    pointwise,
    powers,
    products,
    qdq,
    recurrent,
    reshapes,
    rotary,
    rows,
    scaled_products,
    slices,
    softmax,
    transposes,
    unrolled,
)
from sardonyx.passes.rules.layout import turn_regions
from sardonyx.passes.rules.side_by_side import put_side_by_side

__all__ = ["LAST", "LEVELS", "Pass", "Rules", "Step", "every_rule", "names_of"]

Whole: TypeAlias = Callable[[Engine], None]


@dataclass(frozen=True)
class Rules:
    """Rules that are offered every node together.

    What some wait for, a newer opset, comes at once where later steps would hide the pattern.
    """

    name: str
    rules: tuple[Rule, ...]
    is_urgent: bool = False

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

_CONSTANT: tuple[Step, ...] = (
    Pass("free-initializers", free_initializers),
    Pass("inline-functions", inline_functions),
    Pass("known-branch", take_known_branches),
    Rules("constants", (constant_to_initializer, known_loop, fold_constants)),
    Rules("no-ops", no_ops.RULES),
)
_ONCE: tuple[Step, ...] = (
    Pass("equal-constants", merge_equal_constants),
    Pass("equal-nodes", merge_equal_nodes),
    Pass("known-value", merge_known_values),
    Pass("unread-nodes", drop_unread),
)
# Activations come first, because a weight would take up their last factor and hide them from us and from runtimes.
# Both before equal nodes are merged: a convolution that two normalisations read is part of neither.
_WEIGHTS: tuple[Step, ...] = (
    Rules("activations", activations.RULES, is_urgent=True),
    Rules("convolutions", convolutions.RULES),
)
_MERGE: tuple[Step, ...] = (
    Rules("pointwise", pointwise.RULES),
    Rules("views", reshapes.RULES),
    Rules("transposes", transposes.RULES),
    Pass("turned-region", turn_regions),
    Rules("products", products.RULES),
    Rules("recurrent", (*unrolled.RULES, *recurrent.RULES)),
    Rules("normalisations", (*groups.RULES, *norms.RULES)),
    Rules("written-out", (*softmax.RULES, *powers.RULES, *einsum.RULES)),
    Rules("conditions", conditions.RULES),
    Rules("quantized", qdq.RULES),
    Rules("parts", (*slices.RULES, *concats.RULES, *rows.RULES, *gathers.RULES)),
    Rules("chains", (*chains.RULES, *scaled_products.RULES)),
)

_NEWER: tuple[Step, ...] = (
    # Not in level 2, which knows no runtime: onnxruntime runs an RNN up to five times slower than its steps.
    Rules("plain-recurrent", unrolled.PLAIN),
    Rules("rotary", rotary.RULES),
    Rules("attention", attention.RULES),
    Pass("side-by-side", put_side_by_side),
)

LEVELS: Mapping[int, tuple[Step, ...]] = {
    0: (),
    1: (*_CONSTANT, *_ONCE),
    2: (*_CONSTANT, *_WEIGHTS, *_ONCE, *_MERGE),
    3: (*_CONSTANT, *_WEIGHTS, *_ONCE, *_MERGE, *_NEWER),
}

# What follows when nothing of the level applies any more: patterns of other rules are not recognised after it.
_FLAT: tuple[Step, ...] = (Rules("flat-products", flat_products.RULES),)
LAST: Mapping[int, tuple[Step, ...]] = {0: (), 1: (), 2: _FLAT, 3: _FLAT}


def every_rule() -> tuple[Rule, ...]:
    """All rules of all levels, each once."""
    lists = (*LEVELS.values(), *LAST.values())
    steps = (step for level in lists for step in level if isinstance(step, Rules))
    return tuple(dict.fromkeys(one for step in steps for one in step.rules))


def names_of(level: int) -> tuple[str, ...]:
    """What can be switched off by name."""
    found: dict[str, None] = {}
    for step in (*LEVELS[level], *LAST[level]):
        found[step.name] = None
        for one in step.rules if isinstance(step, Rules) else ():
            found[one.name] = None
    return tuple(found)
