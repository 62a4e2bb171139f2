"""A jaxpr as a model, with the names and the opset that were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.jax.graph import Graph
from sardonyx.conversion.jax.trace import Traced
from sardonyx.conversion.jax.walk import Walker
from sardonyx.passes.opset.convert import ir_version_for
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.runtime.folding import MAX_FOLDED_BYTES, fold_node

__all__ = ["assemble"]


def assemble(
    traced: Traced,
    inputs: Sequence[str],
    outputs: Sequence[str],
    weights: Mapping[str, Any],
    opset: int | None,
) -> ir.Model:
    """Write the jaxpr, and clean up what is known before a run."""
    graph = Graph()
    for name in (*inputs, *outputs):
        graph.reserve(name)
    ports = []
    for name, shape, aval in zip(inputs, traced.shapes, traced.jaxpr.in_avals, strict=True):
        port = graph.value("port", aval.dtype, shape)
        port.name = name
        ports.append(port)
    _read_symbols(graph, ports, traced)
    walker = Walker(graph, {id(array): name for name, array in weights.items()})
    results = walker.inline(traced.jaxpr, ports)
    given = [_named(graph, value, name) for value, name in zip(results, outputs, strict=True)]
    _rename_symbols(graph, ports, given, traced.symbols)
    initializers = _kept(graph)
    made = ir.Graph(
        ports,
        given,
        nodes=graph.nodes,
        initializers=initializers,
        opset_imports={"": graph.opset},
        name="jax",
    )
    model = ir.Model(made, ir_version=ir_version_for(graph.opset))
    fold = partial(fold_node, most=MAX_FOLDED_BYTES)
    return optimize(model, Settings(2, opset=opset), evaluate=fold).model


def _read_symbols(graph: Graph, ports: Sequence[ir.Value], traced: Traced) -> None:
    """Every open size, read from the first input that has it."""
    for port, shape in zip(ports, traced.shapes, strict=True):
        for axis, dim in enumerate(shape):
            name = str(dim)
            if name in traced.symbols and name not in graph.symbols:
                graph.symbols[name] = graph.op(
                    "Shape", port, dtype=np.int64, start=axis, end=axis + 1
                )


def _named(graph: Graph, value: ir.Value, name: str) -> ir.Value:
    """A value of its own for every output: one given twice, or an input given back, is copied."""
    copy = graph.op("Identity", value)
    copy.name, copy.shape = name, value.shape
    return copy


def _kept(graph: Graph) -> list[ir.Value]:
    """The constants that somebody reads; weights of the user's go by his names for them, as far as they are free."""
    kept = [value for value in graph.initializers.values() if value.uses()]
    for value in graph.initializers.values():
        if value in graph.names or not value.uses():
            graph.release(value)
    for value in kept:
        if value in graph.names:
            value.name = graph.reserve(graph.names[value])
    return kept


def _rename_symbols(
    graph: Graph,
    ports: Sequence[ir.Value],
    results: Sequence[ir.Value],
    names: Mapping[str, str],
) -> None:
    """Sizes are declared by the user's own names for them."""
    inner = [output for node in graph.nodes for output in node.outputs]
    for value in (*ports, *results, *inner):
        if value.shape is not None:
            dims = [
                names.get(d.value or "", d.value) if isinstance(d, ir.SymbolicDim) else d
                for d in value.shape.dims
            ]
            value.shape = ir.Shape(dims)
