"""IF and WHILE: their subgraphs become bodies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.graph import Graph
from sardonyx.conversion.tflite.table import Site, operator

__all__: list[str] = []


def _own(graph: Graph, values: Sequence[ir.Value], nodes: list[ir.Node]) -> list[ir.Value]:
    """Every output of a body is a node's of its own."""
    inside, seen, found = set(nodes), set[ir.Value](), []
    for value in values:
        own = value.producer() in inside and value not in seen
        found.append(value if own else graph.op("Identity", value))
        seen.add(value)
    return found


@operator("IF", moving=True)
def if_(site: Site) -> list[ir.Value]:
    graph = site.graph
    arguments = [site.raw(index) for index in range(1, site.count)]
    bodies = {}
    for branch in ("then", "else"):
        with graph.block() as nodes:
            results = _own(graph, site.inline(int(site.option(branch)), arguments), nodes)
            bodies[f"{branch}_branch"] = ir.Graph(
                [], results, nodes=nodes, name=graph.reserve(branch)
            )
    chosen = graph.op("Reshape", site.raw(0), graph.constant(np.zeros(0, np.int64)))
    return list(graph.node("If", [chosen], len(site.outputs), **bodies))


@operator("WHILE", moving=True)
def while_(site: Site) -> list[ir.Value]:
    graph, states = site.graph, [site.raw(index) for index in range(site.count)]
    scalar = graph.constant(np.zeros(0, np.int64))

    def goes_on(values: Sequence[ir.Value]) -> ir.Value:
        (answer,) = site.inline(int(site.option("cond")), values)
        return graph.op("Reshape", answer, scalar)

    begin = goes_on(states)
    turn, before = graph.value("turn", np.int64, ()), graph.value("before", np.bool_, ())
    carried = [graph.value("state", site.tensor(i).dtype, None) for i in range(site.count)]
    with graph.block() as nodes:
        results = site.inline(int(site.option("body")), carried)
        outputs = _own(graph, [goes_on(results), *results], nodes)
        body = ir.Graph([turn, before, *carried], outputs, nodes=nodes, name=graph.reserve("body"))
    return list(graph.node("Loop", [None, begin, *states], site.count, body=body))
