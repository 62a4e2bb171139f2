"""cond, while and scan: If, Loop and Scan. Bodies read what they need from outside by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import Graph, dtype_of, tensor_of
from sardonyx.conversion.jax.primitives.calls import closed
from sardonyx.conversion.jax.primitives.indices import lifted
from sardonyx.conversion.jax.primitives.views import slice_axes
from sardonyx.conversion.jax.table import Site, primitive

__all__: list[str] = []


def _ports(graph: Graph, avals: Sequence[Any], name: str) -> list[ir.Value]:
    return [graph.value(name, *tensor_of(aval)) for aval in avals]


@primitive("cond")
def cond(site: Site, index: ir.Value, *operands: ir.Value) -> list[ir.Value]:
    return _choose(site, index, list(site.params["branches"]), operands, 0)


def _choose(
    site: Site, index: ir.Value, branches: list[Any], operands: Sequence[ir.Value], first: int
) -> list[ir.Value]:
    """The branch of the index; of more than two, one after the other is asked for."""
    graph = site.graph
    if len(branches) == 1:
        return site.inline(closed(branches[0]), operands)
    if dtype_of(index) == np.bool_:
        later = index
    else:
        later = graph.op("Greater", index, graph.constant(first, like=index))
    with graph.block() as nodes:
        results = site.inline(closed(branches[0]), operands)
        now = graph.body([], results, nodes)
    with graph.block() as nodes:
        results = _choose(site, index, branches[1:], operands, first + 1)
        then = graph.body([], results, nodes)
    dtypes = [tensor_of(aval)[0] for aval in site.outs]
    return list(graph.node("If", [later], dtypes, then_branch=then, else_branch=now))


@primitive("while")
def while_(site: Site, *operands: ir.Value) -> list[ir.Value]:
    graph, params = site.graph, site.params
    tests, bodies = params["cond_nconsts"], params["body_nconsts"]
    test_own, body_own = operands[:tests], operands[tests : tests + bodies]
    begin = operands[tests + bodies :]

    test_jaxpr = closed(params["cond_jaxpr"])
    rows = len(
        test_jaxpr.out_avals[0].shape
    )  # of loops mapped side by side, each with a test of its own

    def tests_of(state: Sequence[ir.Value]) -> ir.Value:
        return site.inline(test_jaxpr, (*test_own, *state))[0]

    def test(state: Sequence[ir.Value]) -> ir.Value:
        found = tests_of(state)
        if not rows:
            return found
        any_left = graph.op("ReduceMax", graph.cast(found, np.int32), keepdims=0)
        return graph.cast(any_left, np.bool_)

    state = _ports(graph, site.outs, "state")
    turn, go = (
        graph.value("turn", np.dtype(np.int64), ()),
        graph.value("go", np.dtype(np.bool_), ()),
    )
    with graph.block() as nodes:
        results = site.inline(closed(params["body_jaxpr"]), (*body_own, *state))
        if rows:
            going = tests_of(state)
            results = [
                graph.op("Where", lifted(graph, going, rows, len(aval.shape)), new, old)
                for new, old, aval in zip(results, state, site.outs, strict=True)
            ]
        body = graph.body([turn, go, *state], [test(results), *results], nodes)
    dtypes = [tensor_of(aval)[0] for aval in site.outs]
    return list(graph.node("Loop", [None, test(begin), *begin], dtypes, body=body))


@primitive("scan")
def scan(site: Site, *operands: ir.Value) -> list[ir.Value]:
    graph, params = site.graph, site.params
    own, carried = params["num_consts"], params["num_carry"]
    constants, begin = operands[:own], operands[own : own + carried]
    rows = operands[own + carried :]
    jaxpr = closed(params["jaxpr"])
    avals = [variable.aval for variable in jaxpr.jaxpr.invars]
    state = _ports(graph, avals[own : own + carried], "state")
    row = _ports(graph, avals[own + carried :], "row")
    dtypes = [tensor_of(aval)[0] for aval in site.outs]
    if not rows:
        return _counted(site, jaxpr, constants, begin, state)
    with graph.block() as nodes:
        results = site.inline(jaxpr, (*constants, *state, *row))
        body = graph.body([*state, *row], results, nodes)
    backward = int(params["reverse"])
    attributes: dict[str, Any] = {"scan_input_directions": [backward] * len(rows)}
    if len(results) > carried:
        attributes["scan_output_directions"] = [backward] * (len(results) - carried)
    made = graph.node(
        "Scan", [*begin, *rows], dtypes, body=body, num_scan_inputs=len(rows), **attributes
    )
    return list(made)


def _counted(
    site: Site,
    jaxpr: Any,
    constants: Sequence[ir.Value],
    begin: Sequence[ir.Value],
    state: list[ir.Value],
) -> list[ir.Value]:
    """Without rows to read, a loop of so many turns (fori_loop)."""
    graph, params = site.graph, site.params
    turn, go = (
        graph.value("turn", np.dtype(np.int64), ()),
        graph.value("go", np.dtype(np.bool_), ()),
    )
    with graph.block() as nodes:
        results = site.inline(jaxpr, (*constants, *state))
        body = graph.body([turn, go, *state], [go, *results], nodes)
    dtypes = [tensor_of(aval)[0] for aval in site.outs]
    turns = graph.scalar_size(params["length"])
    always = graph.constant(True, np.bool_)
    made = list(graph.node("Loop", [turns, always, *begin], dtypes, body=body))
    if not params["reverse"]:
        return made
    lowest = int(np.iinfo(np.int64).min)
    turned = [slice_axes(graph, y, [0], [-1], [lowest], [-1]) for y in made[len(begin) :]]
    return [*made[: len(begin)], *turned]
