"""A product that is rounded to bytes at once, counted in steps of those bytes.

    product · scale + bias ─ Clip(0, 6) ─ QuantizeLinear(by s)
    product · scale/s + bias/s ─ Clip(0, 6/s) ─ QuantizeLinear(by 1)

One rounding of a constant takes the place of a rounding of every quotient. Limits stay where they are: what is rounded
keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from sardonyx.model.opset import normal_domain

__all__ = ["LARGEST", "SMALLEST", "Steps", "count_in_steps", "find_steps", "number_of"]

SMALLEST, LARGEST = 2.0**-60, 2.0**60  # steps: quotients by them stay ordinary numbers


@dataclass(frozen=True)
class Steps:
    """What follows a product.

    Attributes:
        size: of a step: the scale of the QuantizeLinear.
        limits: Relu and Clip before it, whose limits are constants.
        last: the QuantizeLinear.
    """

    size: float
    limits: tuple[ir.Node, ...]
    last: ir.Node


def find_steps(value: ir.Value) -> Steps | None:
    """What a product is rounded to; None where somebody reads it as it is, or the scale is not one known number."""
    limits: list[ir.Node] = []
    while True:
        uses = list(value.uses())
        if len(uses) != 1 or value.is_graph_output() or uses[0].idx:
            return None
        node, producer = uses[0].node, value.producer()
        if producer is None or normal_domain(node.domain) or node.graph is not producer.graph:
            return None
        if node.op_type == "QuantizeLinear":
            size = number_of(node, 1)
            plain = size is not None and SMALLEST < size < LARGEST
            if size is None or not plain or node.attributes.get("precision") is not None:
                return None
            return Steps(size, tuple(limits), node)
        if node.op_type == "Clip":
            given = [at for at in (1, 2) if _input(node, at) is not None]
            if node.attributes or any(number_of(node, at) is None for at in given):
                return None
        elif node.op_type != "Relu":
            return None
        limits.append(node)
        value = node.outputs[0]


def count_in_steps(
    steps: Steps, twins: Mapping[ir.Node, ir.Node]
) -> Iterator[tuple[ir.Node, ir.Node]]:
    """Change what follows, in a copy: the constants that it has got, each with the node that it was made for."""
    for node in steps.limits:
        for at in (1, 2):
            limit = number_of(node, at) if node.op_type == "Clip" else None
            if limit is not None:
                yield _replace(twins[node], at, limit / steps.size), twins[node]
    yield _replace(twins[steps.last], 1, 1.0), twins[steps.last]


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def number_of(node: ir.Node, index: int) -> float | None:
    """The one float32 that an input is."""
    value = _input(node, index)
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    array = value.const_value.numpy()
    return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype == np.float32 else None


def _replace(node: ir.Node, index: int, number: float) -> ir.Node:
    """Give a node another number, as a constant of its own."""
    held = node.inputs[index]
    assert held is not None
    assert held.const_value is not None
    with np.errstate(over="ignore"):
        array = np.full(held.const_value.numpy().shape, number, np.float32)
    constant = ir.Node("", "Constant", [], [ir.AttrTensor("value", ir.tensor(array))])
    result = constant.outputs[0]
    result.name = f"{node.outputs[0].name}.{index}"
    result.const_value, result.dtype = ir.tensor(array), ir.DataType.FLOAT
    result.shape = ir.Shape(array.shape)
    assert node.graph is not None
    node.graph.insert_before(node, [constant])
    node.replace_input_with(index, result)
    return constant
