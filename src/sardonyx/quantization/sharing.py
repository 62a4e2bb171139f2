"""Values that have one grid, because an operator only passes elements on between them.

Relu ─ MaxPool ─┬─ Concat ─ Conv        the results of Relu, MaxPool, Sigmoid and Concat have one grid:
       Sigmoid ─┘                       quantized once each, they stay integers up to the Conv
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.passes.shapes import Shapes
from sardonyx.quantization.targets import Target, is_passing

__all__ = ["Sharing", "share_grids"]


@dataclass(frozen=True)
class Group:
    """Values of one grid.

    Attributes:
        values: all of them, in the graph's order.
        roots: those that are not made by passing others on: their numbers decide the range.
    """

    values: tuple[ir.Value, ...]
    roots: tuple[ir.Value, ...]


@dataclass(frozen=True)
class Sharing:
    """Which values are quantized, and which nodes pass them on.

    Attributes:
        groups: each has one grid.
        carriers: nodes between quantized values; they read what is quantized too.
    """

    groups: tuple[Group, ...]
    carriers: frozenset[ir.Node]


def share_grids(graph: ir.Graph, targets: Sequence[Target], shapes: Shapes) -> Sharing:
    """What has to be quantized for these nodes, back to where the elements come from."""
    asked = {(t.node, number): None for t in targets for number in t.activations}
    values = {value: None for node, number in asked if (value := node.inputs[number]) is not None}
    carriers: set[ir.Node] = set()
    leader: dict[ir.Value, ir.Value] = {}

    def find(value: ir.Value) -> ir.Value:
        while leader.get(value, value) is not value:
            value = leader[value]
        return value

    for node in reversed(list(graph)):
        if not any(output in values for output in node.outputs):
            continue
        sources = is_passing(node, shapes)
        # A float operator that reads the result would get rounded numbers: then it is rounded behind, not before.
        if not sources or not all(_only_read(o, asked, carriers) for o in node.outputs):
            continue
        carriers.add(node)
        for value in (*sources, *node.outputs):
            if value.uses():
                values[value] = None
                leader[find(value)] = find(sources[0])
    order = {value: place for place, value in enumerate(_in_order(graph))}
    members: dict[ir.Value, list[ir.Value]] = {}
    for value in sorted(values, key=lambda v: order[v]):
        members.setdefault(find(value), []).append(value)
    groups = [
        Group(tuple(group), tuple(v for v in group if v.producer() not in carriers))
        for group in members.values()
    ]
    return Sharing(tuple(groups), frozenset(carriers))


def _only_read(
    value: ir.Value, asked: dict[tuple[ir.Node, int], None], carriers: set[ir.Node]
) -> bool:
    """Whether all who read a value read it quantized."""
    if value.is_graph_output():
        return False
    return all(use.node in carriers or (use.node, use.idx) in asked for use in value.uses())


def _in_order(graph: ir.Graph) -> list[ir.Value]:
    return [*graph.inputs, *(output for node in graph for output in node.outputs)]
