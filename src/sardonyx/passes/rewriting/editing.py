"""Changing a graph by hand: a value in another's place, and removing what nothing reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import onnx_ir as ir

from sardonyx.passes.rewriting.workspace import Workspace

__all__ = ["detach", "give_place", "remove_unused"]

Seen = TypeVar("Seen")


def give_place(work: Workspace, old: ir.Value, new: ir.Value) -> list[ir.Node]:
    """Let `new` stand wherever `old` stands; nodes that had to be made for it.

    An output of a graph keeps its name: the new value takes it over, or an Identity does where it cannot.
    """
    for node, index in list(old.uses()):
        node.replace_input_with(index, new)
    if not old.is_graph_output():
        return []
    graph = old.graph
    assert graph is not None, "an output belongs to a graph"
    made: list[ir.Node] = []
    final = new
    if _may_be_renamed(graph, new):
        name, old.name = old.name, work.fresh_name("replaced")
        new.name = name
        if new.type is None or new.shape is None:
            new.type, new.shape = old.type, old.shape
    else:
        node = ir.Node("", "Identity", [new], num_outputs=1, name=work.fresh_name("Identity"))
        final = node.outputs[0]
        name, old.name = old.name, work.fresh_name("replaced")
        final.name, final.type, final.shape = name, old.type, old.shape
        work.facts[final] = work.facts[new]
        graph.append(node)
        made = [node]
    for index, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[index] = final
    return made


def _may_be_renamed(graph: ir.Graph, value: ir.Value) -> bool:
    """Whether a value may take an output's name: it is made in this graph, and has no name to keep."""
    node = value.producer()
    return node is not None and node.graph is graph and not value.is_graph_output()


def remove_unused(nodes: Sequence[ir.Node], look: Callable[[ir.Node], Seen]) -> Iterator[Seen]:
    """Remove those of the nodes that nothing reads, and what only they read; a look at each before it goes."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        graph = node.graph
        if graph is None or any(v.uses() or v.is_graph_output() for v in node.outputs):
            continue
        seen = look(node)
        waiting += detach(node)
        graph.remove(node)
        yield seen


def detach(node: ir.Node) -> list[ir.Node]:
    """Make a node, and all inside of it, read nothing any more; the nodes that it read from."""
    read: dict[ir.Node, None] = {}
    inner = [
        each
        for attribute in node.attributes.values()
        if attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
        for graph in (
            [attribute.value] if attribute.type == ir.AttributeType.GRAPH else attribute.value
        )
        for each in graph.all_nodes()
    ]
    for one in (node, *inner):
        for index, value in enumerate(one.inputs):
            producer = None if value is None else value.producer()
            if producer is not None:
                read[producer] = None
            one.replace_input_with(index, None)
    return list(read)
