"""Sums of dequantized bytes that are rounded to bytes at once, counted in steps of those bytes.

    DequantizeLinear(x, a) ─┐                              DequantizeLinear(x, a/s) ─┐
    DequantizeLinear(y, b) ─┴ Add ─ QuantizeLinear(s)  →   DequantizeLinear(y, b/s) ─┴ Add ─ QuantizeLinear(1)

As with products (`steps`): constants are rounded once, and no quotient is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.preparing.steps import LARGEST, SMALLEST, count_in_steps, find_steps, number_of

__all__ = ["count_sums"]


def count_sums(graph: ir.Graph) -> Iterator[tuple[ir.Node, ir.Node]]:
    """Change the graph in place: nodes that it has got, each with the one that it was made for."""
    for node in list(graph):
        sources = _addends(node)
        steps = find_steps(node.outputs[0]) if sources is not None else None
        if sources is None or steps is None:
            continue
        scales = [scale / steps.size for _, scale in sources]
        if not all(SMALLEST < scale < LARGEST for scale in scales):
            continue
        for at, ((source, _), scale) in enumerate(zip(sources, scales, strict=True)):
            for made in _scaled(source, scale, f"{node.outputs[0].name}.{at}"):
                graph.insert_before(node, [made])
                yield made, source
            node.replace_input_with(at, made.outputs[0])
            if not source.outputs[0].uses() and not source.outputs[0].is_graph_output():
                graph.remove(source, safe=True)
        followers = (*steps.limits, steps.last)
        yield from count_in_steps(steps, dict(zip(followers, followers, strict=True)))


def _addends(node: ir.Node) -> list[tuple[ir.Node, float]] | None:
    """Both addends of a sum as they are dequantized, with their scales; None where it is of anything else."""
    if node.op_type != "Add" or normal_domain(node.domain):
        return None
    found = []
    for value in node.inputs:
        source = None if value is None else value.producer()
        if source is None or source.op_type != "DequantizeLinear" or source.graph is not node.graph:
            return None
        scale = number_of(source, 1)
        if scale is None or normal_domain(source.domain) or source.attributes.get("block_size"):
            return None
        found.append((source, scale))
    return found


def _scaled(source: ir.Node, scale: float, name: str) -> tuple[ir.Node, ir.Node]:
    """A constant, and a DequantizeLinear by it of the same bytes."""
    held = source.inputs[1]
    assert held is not None
    assert held.const_value is not None
    array = np.full(held.const_value.numpy().shape, scale, np.float32)
    constant = ir.Node("", "Constant", [], [ir.AttrTensor("value", ir.tensor(array))])
    result = constant.outputs[0]
    result.name, result.dtype = f"{name}.scale", ir.DataType.FLOAT
    result.const_value = ir.tensor(array)
    result.shape = ir.Shape(array.shape)
    inputs = [source.inputs[0], result, *source.inputs[2:]]
    scaled = ir.Node("", "DequantizeLinear", inputs, list(source.attributes.values()))
    scaled.name, scaled.outputs[0].name = source.name, f"{name}.dequantized"
    return constant, scaled
