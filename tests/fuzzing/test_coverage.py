"""No rule is left out of the fuzzing: each applies somewhere in the graphs of a fixed range of seeds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import onnx
from tests.fuzzing.random_graphs import random_model

from sardonyx.errors import SardonyxError
from sardonyx.model.load import load
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.pipelines import LAST, LEVELS, Pass, Rules, every_rule, names_of
from sardonyx.runtime.folding import fold_node

GRAPHS = 1000


def applied(models: list[onnx.ModelProto], settings: Settings) -> Iterator[set[str]]:
    """Graph by graph, what applied; nothing where a graph itself is refused."""
    for proto in models:
        with warnings.catch_warnings():  # numpy tells of every NaN
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                yield set(optimize(load(proto), settings, evaluate=fold_node).ledger.entries)
            except SardonyxError:
                yield set()


def test_every_rule_is_fuzzed() -> None:
    """With all others, or alone: what another rule always does first, is seen alone."""
    models = [random_model(seed) for seed in range(GRAPHS)]
    seen = set().union(*applied(models, Settings(3)))
    passes = {step.name for step in (*LEVELS[3], *LAST[3]) if isinstance(step, Pass)}
    groups = {step.name for step in (*LEVELS[3], *LAST[3]) if isinstance(step, Rules)}
    for rule in every_rule():
        if rule.name in seen:
            continue
        alone = Settings(3, without=frozenset(names_of(3)) - groups - {rule.name})
        around = [one for one in models if any(node.op_type in rule.ops for node in one.graph.node)]
        if any(applied(around, alone)):
            seen.add(rule.name)
    assert sorted({rule.name for rule in every_rule()} - seen) == []
    assert sorted(passes - seen) == []
