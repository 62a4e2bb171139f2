"""Constants become initializers, and what nothing reads goes."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.passes.cleanup.functions import drop_uncalled
from sardonyx.passes.rewriting.bill import NOTHING
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.engine import Engine
from sardonyx.passes.rewriting.rule import Outcome, rule

__all__ = ["constant_to_initializer", "drop_unread", "free_initializers"]


@rule("Constant")
def constant_to_initializer(node: ir.Node, draft: Draft) -> Outcome:
    """A Constant node becomes an initializer."""
    tensor = draft.work.tensor_of(node.outputs[0])
    if tensor is None or node.outputs[0].is_graph_output():
        return None
    return draft.initializer(tensor)


def drop_unread(engine: Engine) -> None:
    """Nodes whose answers nothing reads, initializers that nothing reads, and functions that nothing calls."""
    for graph in reversed(engine.work.graphs()):
        for node in reversed(list(graph)):
            if node.graph is graph and not any(
                v.uses() or v.is_graph_output() for v in node.outputs
            ):
                engine.drop("unread-nodes", "A node whose answer nothing reads goes.", [node])
    if engine.is_spent:
        return
    for graph in engine.work.graphs():
        for name, value in list(graph.initializers.items()):
            if not (value.uses() or value.is_graph_output() or value.is_graph_input()):
                del graph.initializers[name]
    drop_uncalled(engine.work.model)


def free_initializers(engine: Engine) -> None:
    """Before IR version 4 every initializer was an input too, which no caller could replace: now it is none."""
    model = engine.work.model
    if (model.ir_version or 4) >= 4 or engine.is_spent:
        return
    graph = model.graph
    graph.inputs[:] = [v for v in graph.inputs if (v.name or "") not in graph.initializers]
    model.ir_version = 4
    about = "Weights that had to be listed as inputs of the model are none any more."
    engine.ledger.record("free-initializers", about, NOTHING, NOTHING)
    engine.ledger.notes.append(
        "IR version 4: before it, every weight had to be listed as an input of the model too."
    )
    engine.work.refresh()
