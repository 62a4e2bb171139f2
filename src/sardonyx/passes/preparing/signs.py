"""Bytes between a QuantizeLinear and products of integers, of the sign that the processor multiplies.

    QuantizeLinear(x, scale, 131) ─ uint8 ─ ConvInteger     →     QuantizeLinear(x, scale, 3) ─ int8 ─ ConvInteger

The same numbers, each less 128, their zero point too: what stands for 0, and where they are clipped, moves with them. Kernels
would turn the highest bit of every byte over else, each time that they read it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.preparing.moves import MOVERS

__all__ = ["turn_signs"]

# Where an operator takes bytes, and where their zero point.
_PLACES = {
    ("DequantizeLinear", 0): 2,
    ("ConvInteger", 0): 2,
    ("MatMulInteger", 0): 2,
    ("MatMulInteger", 1): 3,
}
_PRODUCTS = ("ConvInteger", "MatMulInteger")


def turn_signs(graph: ir.Graph, *, unsigned: bool) -> list[tuple[ir.Node, ir.Node]]:
    """Change the graph in place: constants that it has got, each with the node that it was made for.

    Args:
        unsigned: whether the processor multiplies bytes without a sign.
    """
    unwanted = ir.DataType.INT8 if unsigned else ir.DataType.UINT8
    made: list[tuple[ir.Node, ir.Node]] = []
    for node in list(graph):
        if _quantizes(node) and _can_turn(node, unwanted):
            readers, moved = _readers(node.outputs[0])
            for user, at in [(node, 2), *readers]:
                made.append((_move_zero(graph, user, at, unsigned), node))
            node.attributes.pop("output_dtype", None)
            for value in moved:
                value.type = None
    return made


def _quantizes(node: ir.Node) -> bool:
    return node.op_type == "QuantizeLinear" and not normal_domain(node.domain)


def _can_turn(node: ir.Node, unwanted: ir.DataType) -> bool:
    """Whether a QuantizeLinear makes bytes of the other sign, and all that read them know what to do."""
    readers, moved = _readers(node.outputs[0])
    if any(value.is_graph_output() for value in moved):
        return False
    if any(at < 0 or user.graph is not node.graph for user, at in readers):
        return False
    if not any(user.op_type in _PRODUCTS for user, _ in readers):
        return False
    if _type_of(node) != unwanted or node.attributes.get("precision") is not None:
        return False
    users = [(node, 2), *readers]
    return all(_input(user, at) is None or _zero(user, at) is not None for user, at in users)


def _type_of(node: ir.Node) -> ir.DataType:
    """What a QuantizeLinear makes: its zero point says so, or an attribute."""
    zero, asked = _zero(node, 2), node.attributes.get("output_dtype")
    if zero is not None:
        return ir.DataType.from_numpy(zero.dtype)
    if asked is not None and asked.as_int():
        return ir.DataType(asked.as_int())
    return ir.DataType.UINT8


def _readers(value: ir.Value) -> tuple[list[tuple[ir.Node, int]], list[ir.Value]]:
    """Who reads bytes, each with where it has their zero point, or -1; and all values that hold the same bytes, moved or not."""
    readers: list[tuple[ir.Node, int]] = []
    moved = [value]
    for held in moved:
        for use in held.uses():
            plain = not normal_domain(use.node.domain)
            if plain and use.node.op_type in MOVERS and use.idx == 0:
                moved.append(use.node.outputs[0])
            else:
                at = _PLACES.get((use.node.op_type, use.idx), -1) if plain else -1
                readers.append((use.node, at))
    return readers, moved


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _zero(node: ir.Node, index: int) -> npt.NDArray[Any] | None:
    value = _input(node, index)
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def _move_zero(graph: ir.Graph, node: ir.Node, index: int, unsigned: bool) -> ir.Node:
    """Give a node the zero point of the moved bytes, as a constant of its own."""
    zero = _zero(node, index)
    if zero is None:
        # Scales have the shape of zero points; the integer operators have one for all.
        scale = _input(node, 1) if node.op_type not in _PRODUCTS else None
        known = None if scale is None or scale.const_value is None else scale.const_value.numpy()
        zero = np.zeros(() if known is None else known.shape, np.uint8)
    by, dtype = (128, np.uint8) if unsigned else (-128, np.int8)
    moved = ir.tensor((zero.astype(np.int16) + by).astype(dtype))
    constant = ir.Node("", "Constant", [], [ir.AttrTensor("value", moved)])
    result = constant.outputs[0]
    result.name = f"{node.outputs[0].name}.zero"
    result.const_value, result.dtype = moved, ir.DataType.UINT8 if unsigned else ir.DataType.INT8
    result.shape = ir.Shape(zero.shape)
    graph.insert_before(node, [constant])
    if len(node.inputs) <= index:
        node.resize_inputs(index + 1)
    node.replace_input_with(index, result)
    return constant
