"""Shape arithmetic: one value in the place of several that are known to hold the same numbers.

Two parts of a graph that both compute [batch, seq, 768] from some input's shape need not agree in how they do it.
"""

from __future__ import annotations

from collections.abc import Hashable

import onnx_ir as ir

from sardonyx.ops.facts import Facts, is_concrete
from sardonyx.passes.rewriting.engine import Engine

__all__ = ["merge_known_values"]

_ABOUT = "Shape arithmetic that gives what was computed before is not done again."


def merge_known_values(engine: Engine) -> None:
    """Values of one graph whose elements are known, over symbols, and equal to an earlier one's."""
    for graph in engine.work.graphs():
        first_of: dict[Hashable, ir.Value] = {}
        for node in list(graph):
            if node.graph is not graph or len(node.outputs) != 1:
                continue
            value = node.outputs[0]
            key = _key(engine.work.facts.get(value))
            if key is None:
                continue
            first = first_of.setdefault(key, value)
            maker = first.producer()
            if maker is None or maker.graph is not graph:  # a merge after it took it away
                first = first_of[key] = value
            if first is not value and not value.is_graph_output():
                engine.replace("known-value", _ABOUT, node, [first])


def _key(facts: Facts | None) -> Hashable | None:
    if facts is None or facts.kind != "tensor" or facts.value is None or is_concrete(facts.value):
        return None
    return (facts.dtype, facts.shape, tuple(facts.value.reshape(-1)))
