"""An If whose condition is known becomes the branch that is taken."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.rewriting.engine import Engine

__all__ = ["take_known_branches"]

_ABOUT = "An If whose condition is known becomes the branch that is taken."


def take_known_branches(engine: Engine) -> None:
    """Every If of the graph and its subgraphs, from the outside in."""
    changed = True
    while changed and not engine.is_spent:
        changed = False
        for graph in engine.work.graphs():
            for node in list(graph):
                if node.graph is graph and node.op_type == "If" and not normal_domain(node.domain):
                    changed |= _take(engine, node)


def _take(engine: Engine, node: ir.Node) -> bool:
    facts = engine.work.facts.get(node.inputs[0]) if node.inputs[0] is not None else None
    if facts is None or facts.value is None or facts.value.size != 1 or engine.is_spent:
        return False
    taken = facts.value.reshape(-1)[0]
    if not isinstance(taken, bool):
        return False
    attribute = node.attributes["then_branch" if taken else "else_branch"]
    return engine.splice("known-branch", _ABOUT, node, attribute.as_graph())
