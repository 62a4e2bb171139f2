"""Model -> Plan.

Nodes are grouped and written as kernels. Whoever turns out to have no native code is set aside, and
the rest is grouped anew; a value that turns out to need bytes gets them likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.model.source import describe, source_line
from sardonyx.ops.lowering import NotNative
from sardonyx.passes.shapes import Shapes
from sardonyx.plan.assemble import assemble
from sardonyx.plan.graph import Array, Fold, Graph, Opaque, find_constants, read_graph
from sardonyx.plan.group import Group, group_nodes
from sardonyx.plan.plan import Order, Plan, PlannedNode
from sardonyx.plan.pull import blaming
from sardonyx.plan.write import NeedsBytes, Scratch, Written, write_group

__all__ = ["Planned", "make_plan"]

MAX_ROUNDS = (
    64  # each sets at least one node aside; a model that needs more runs on the reference backend
)


@dataclass(frozen=True)
class Planned:
    """A plan, with the arrays of its constants in its order."""

    plan: Plan
    constants: tuple[Array, ...]


def make_plan(model: ir.Model, shapes: Shapes, fold: Fold | None = None) -> Planned:
    """Plan a model. Every node is in the plan's `nodes`, with the reason for where it runs.

    Args:
        fold: computes a node whose inputs are all constants; None from it leaves the node to the run.
    """
    constants = find_constants(model, shapes, fold)
    refused: dict[ir.Node, str] = {}
    required: set[ir.Value] = set()
    for _ in range(MAX_ROUNDS):
        graph = read_graph(model, shapes, constants, refused, required)
        before = len(refused), len(required)
        written = _write(graph, refused, required)
        if (len(refused), len(required)) == before:
            plan, arrays = assemble(graph, written, _nodes(model, graph, refused))
            return Planned(plan, arrays)
    raise NotNative("too many nodes of the model have no native code")


def _write(
    graph: Graph, refused: dict[ir.Node, str], required: set[ir.Value]
) -> list[tuple[Group, Written | None]]:
    """Kernels for all that something asks for, from the outputs backwards."""
    grouping = group_nodes(graph, required)
    orders: dict[ir.Value, Order] = {}
    asked: set[ir.Value] = set(graph.outputs) | required
    found: list[tuple[Group, Written | None]] = []
    for group in reversed(grouping.groups):
        results = {*group.root.node.outputs, *group.last.node.outputs}
        if not results & asked:
            continue
        if isinstance(group.root.lowering, Opaque):
            asked.update(group.root.reads)
            found.append((group, None))
            continue
        try:
            with blaming(group.root.node):
                written = write_group(graph, group, grouping.stored, orders)
        except NotNative as refusal:
            refused[refusal.node or group.root.node] = str(refusal)
            continue
        except NeedsBytes as need:
            required.add(need.value)
            continue
        asked.update(a for a in written.arguments if not isinstance(a, Scratch))
        found.append((group, written))
    found.reverse()
    return found


def _nodes(model: ir.Model, graph: Graph, refused: dict[ir.Node, str]) -> tuple[PlannedNode, ...]:
    works = {work.node: work for work in graph.works}
    found = []
    for node in model.graph:
        work = works.get(node)
        native, reason = True, "compiled"
        if work is None:
            reason = "known before the model runs"
        elif isinstance(work.lowering, Opaque):
            native, reason = False, work.lowering.reason
        found.append(PlannedNode(describe(node), node.op_type, native, reason, source_line(node)))
    return tuple(found)
