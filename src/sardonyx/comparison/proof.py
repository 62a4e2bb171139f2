"""Is an optimized model still the same function, and if it is not, which rewrite is to blame?

Every rewrite of the optimizer has a number, and a run that is stopped after n of them is the beginning of the whole
run. So the first wrong one is found by halving; then the nodes that it changed are cut out of the model, with the
values that they were given, until the smallest model is left on which the rule is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.backends import reference
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import Value
from sardonyx.comparison.compare import Comparison, compare
from sardonyx.errors import SardonyxError
from sardonyx.model.source import describe, source_line
from sardonyx.passes.optimize import Optimized, Settings, optimize
from sardonyx.passes.preparing.expand import nodes_of_model
from sardonyx.passes.rewriting.workspace import Evaluate

__all__ = ["Culprit", "find_culprit", "prove"]

MOST_BYTES = 1 << 33  # of values that are kept while a culprit is made small


@dataclass(frozen=True)
class Culprit:
    """The first rewrite after which the answers differ.

    Attributes:
        rule: its name.
        number: the rewrites before it, which are right.
        node: where, for a person; `source` is the line that it was exported from.
        comparison: the answers before and after.
        model: the smallest model that was found on which the rule is wrong.
        feeds: the inputs on which it is.
    """

    rule: str
    number: int
    node: str
    source: str | None
    comparison: Comparison
    model: ir.Model
    feeds: Mapping[str, Value]

    def __str__(self) -> str:
        where = f"{self.node} ({self.source})" if self.source else self.node
        nodes = sum(1 for _ in self.model.graph.all_nodes())
        return f"the rule {self.rule!r} at {where}, rewrite {self.number + 1}; smallest model: {nodes} nodes"


def prove(
    model: ir.Model,
    result: Optimized,
    feeds: Mapping[str, Value],
    *,
    engine: str = "sardonyx",
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run the model as it was and as it is now on the same inputs."""
    return compare(model, result.model, feeds, engines=[engine], progress=progress)


def find_culprit(
    model: ir.Model,
    settings: Settings,
    feeds: Mapping[str, Value],
    *,
    evaluate: Evaluate | None = None,
    engine: str = "sardonyx",
    tell: Callable[[str], None] | None = None,
) -> Culprit | None:
    """The first rewrite that makes a difference; None where the whole run makes none.

    Args:
        settings: of the run whose answers differ.
        tell: hears what is being done.
    """

    def run(limit: int) -> tuple[Optimized, Comparison]:
        found = optimize(model, replace(settings, limit=limit), evaluate=evaluate)
        return found, prove(model, found, feeds, engine=engine)

    whole = optimize(model, settings, evaluate=evaluate)
    right, wrong = 0, whole.ledger.rewrites
    comparison = prove(model, whole, feeds, engine=engine)
    if comparison.ok:
        return None
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if tell is not None:
            tell(f"rewrites {right + 1} to {wrong}")
        _, found = run(middle)
        if found.ok:
            right = middle
        else:
            wrong, comparison = middle, found
    return _named(model, settings, right, comparison, feeds, evaluate, engine)


def _named(
    model: ir.Model,
    settings: Settings,
    number: int,
    comparison: Comparison,
    feeds: Mapping[str, Value],
    evaluate: Evaluate | None,
    engine: str,
) -> Culprit:
    heard: list[tuple[str, str, str | None]] = []

    def listen(count: int, rule: str, node: ir.Node) -> None:
        if count == number:
            heard.append((rule, describe(node), source_line(node)))

    before = optimize(model, replace(settings, limit=number), evaluate=evaluate)
    limited = replace(settings, limit=number + 1)
    after = optimize(model, limited, evaluate=evaluate, listener=listen)
    rule, node, source = heard[0] if heard else (_newest(before, after), "the model", None)
    small, given = before.model, dict(feeds)
    found = _cut_out(before.model, after.model, feeds)
    if found is not None:
        alone = Settings(settings.level, settings.without, settings.dims, 64)
        try:
            again = optimize(found[0], alone, evaluate=evaluate)
            if not prove(found[0], again, found[1], engine=engine).ok:
                small, given = found
        except SardonyxError:
            pass  # the part alone is not a model that runs: the whole one is kept
    return Culprit(rule, number, node, source, comparison, small, given)


def _newest(before: Optimized, after: Optimized) -> str:
    for name, entry in after.ledger.entries.items():
        known = before.ledger.entries.get(name)
        if known is None or known.matches < entry.matches:
            return name
    return "?"


def _cut_out(
    before: ir.Model, after: ir.Model, feeds: Mapping[str, Value]
) -> tuple[ir.Model, dict[str, Value]] | None:
    """The nodes that a rewrite has changed as a model of their own, and what they were given."""
    left = {value.name for node in nodes_of_model(after) for value in node.outputs}
    graph = before.graph
    changed = {node for node in graph if not all(v.name in left for v in node.outputs if v.name)}
    if not changed or len(changed) == len(list(graph)):
        return None
    values = _all_values(before, feeds)
    if values is None:
        return None
    inputs = _read_from_outside(changed, graph)
    outputs = [
        value
        for node in graph
        if node in changed
        for value in node.outputs
        if value.name
        and (value.is_graph_output() or any(u not in changed for u, _ in value.uses()))
    ]
    if not outputs or not all(isinstance(values.get(v.name or ""), np.ndarray) for v in inputs):
        return None
    for value in inputs:
        array: Any = values[value.name or ""]
        value.shape = ir.Shape(array.shape)
        value.type = ir.TensorType(ir.DataType.from_numpy(array.dtype))
    part = ir.convenience.extract(graph, inputs, outputs)
    small = ir.Model(
        part, ir_version=before.ir_version or 10, functions=list(before.functions.values())
    )
    small.opset_imports.update(before.opset_imports)
    return small, {value.name or "": values[value.name or ""] for value in inputs}


def _read_from_outside(changed: set[ir.Node], graph: ir.Graph) -> list[ir.Value]:
    found: dict[ir.Value, None] = {}
    for node in graph:
        for value in node.inputs if node in changed else ():
            if value is None or value.is_initializer() or value.producer() in changed:
                continue
            found[value] = None
    return list(found)


def _all_values(model: ir.Model, feeds: Mapping[str, Value]) -> Mapping[str, Value] | None:
    try:
        program = reference.compile_model(model)
        return program.run_all(feeds, Guard(MOST_BYTES))
    except SardonyxError:
        return None
