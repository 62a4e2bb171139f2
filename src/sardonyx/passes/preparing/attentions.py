"""Attention without a mask as the products and the Softmax that it stands for.

    y = Attention<scale>(q, k, v)       →   y = MatMul(Softmax(MatMul(q, Transpose(k)) * scale), v)

So the plan finds it, however it was exported, and its kernel never stores the scores. A mask stays with the operator:
a row that is masked fully is 0 there, and NaN when it is written out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.preparing.expand import Expanded, copy_of, inferred, put_in_place
from sardonyx.passes.shapes import Shapes

__all__ = ["write_out_attention"]

_HEADS = [0, 2, 1, 3]  # (batch, row, head, column) ↔ (batch, head, row, column)
_PLAIN = ("scale", "q_num_heads", "kv_num_heads")  # other attributes change what it computes


def write_out_attention(expanded: Expanded) -> Expanded:
    """The model with plain attention written out; the same one where there is none."""
    found = [node for node in expanded.model.graph if _is_plain(node, expanded.shapes)]
    if not found:
        return expanded
    copied = copy_of(expanded)
    graph, origins = copied.expanded.model.graph, dict(copied.expanded.origins)
    for node in found:
        twin = copied.nodes[node]
        made = _Writer(twin).write(_last_sizes(node, expanded.shapes))
        graph.insert_before(twin, made)
        origins.update(dict.fromkeys(made, origins[twin]))
        put_in_place(made[-1].outputs[0], twin.outputs[0])
        graph.remove(twin, safe=True)
        del origins[twin]
    return inferred(copied, origins) or expanded


def _is_plain(node: ir.Node, shapes: Shapes) -> bool:
    """Whether it is softmax(q k) v for every head by itself, and nothing else."""
    if node.op_type != "Attention" or normal_domain(node.domain) or len(node.inputs) < 3:
        return False
    if any(value is not None for value in node.inputs[3:]) or len(node.outputs) > 1:
        return False
    if any(name not in _PLAIN and attr.value for name, attr in node.attributes.items()):
        return False
    facts = [shapes.of(value) for value in node.inputs[:3] if value is not None]
    if len(facts) < 3 or any(one.dtype != ir.DataType.FLOAT or one.shape is None for one in facts):
        return False
    query, key, value = (one.shape or () for one in facts)
    heads = _number(node, "q_num_heads"), _number(node, "kv_num_heads")
    if not all(isinstance(shape[-1], int) and shape[-1] for shape in (query, key, value)):
        return False
    if len(query) == 3:
        return bool(heads[0]) and heads[0] == heads[1]
    return query[1] == key[1] == value[1] and not any(heads)


def _last_sizes(node: ir.Node, shapes: Shapes) -> list[int]:
    """How many columns queries, keys and values have, where that is known."""
    found = [() if value is None else shapes.of(value).shape or () for value in node.inputs[:3]]
    return [shape[-1] if shape and isinstance(shape[-1], int) else 0 for shape in found]


def _number(node: ir.Node, name: str) -> int:
    found = node.attributes.get(name)
    return 0 if found is None or found.is_ref() else found.as_int()


class _Writer:
    def __init__(self, node: ir.Node) -> None:
        self.node = node
        self.made: list[ir.Node] = []

    def write(self, columns: list[int]) -> list[ir.Node]:
        """The nodes that take its place; the last one makes its output."""
        heads = _number(self.node, "q_num_heads")  # 0: they are parted already
        q, k, v = (
            self._heads(value, heads, size) if heads else value
            for value, size in zip(self.node.inputs[:3], columns, strict=True)
        )
        given = self.node.attributes.get("scale")
        size = columns[0] // heads if heads else columns[0]
        scale = 1 / math.sqrt(size) if given is None else given.as_float()
        turned = self._call("Transpose", k, perm=[0, 1, 3, 2])
        scores = self._call("MatMul", q, turned)
        if scale != 1:
            scores = self._call("Mul", scores, self._constant(np.array(scale, np.float32)))
        result = self._call("MatMul", self._call("Softmax", scores, axis=-1), v)
        if heads:
            shape = self._constant(np.array([0, 0, columns[2]], np.int64))
            self._call("Reshape", self._call("Transpose", result, perm=_HEADS), shape)
        return self.made

    def _heads(self, value: ir.Value | None, heads: int, columns: int) -> ir.Value:
        shape = self._constant(np.array([0, 0, heads, columns // heads], np.int64))
        return self._call("Transpose", self._call("Reshape", value, shape), perm=_HEADS)

    def _constant(self, array: np.ndarray[Any, Any]) -> ir.Value:
        return self._call("Constant", value=ir.tensor(array))

    def _call(self, op: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        node = ir.Node("", op, inputs, ir.convenience.convert_attributes(attributes))
        number = len(self.made)
        node.outputs[0].name = f"{self.node.outputs[0].name}.{number}"
        self.made.append(node)
        return node.outputs[0]
