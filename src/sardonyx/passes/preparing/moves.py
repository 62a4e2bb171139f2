"""What is quantized after it was moved is quantized first: bytes are moved, a quarter as many.

    x ─ Transpose ─ Mul(c) ─ QuantizeLinear ─      →     x ─ Mul(c) ─ QuantizeLinear ─ Transpose ─
    DequantizeLinear(x) ─ QuantizeLinear ─      →     x            where both have one grid

Elements stay what they are. Products read bytes as they lie, transposed or not, and what made x may quantize it at once; a
kernel that quantizes as it transposes does neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.preparing.expand import Expanded, copy_of, inferred
from sardonyx.passes.shapes import Shapes

__all__ = ["MOVERS", "move_bytes"]

# The largest of some elements is one of them, and the largest when they are quantized.
MOVERS = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "MaxPool"})
_LINEAR = frozenset({"QuantizeLinear", "DequantizeLinear"})
_POINTWISE = frozenset({"Mul", "Div", "Add", "Sub"})
_PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})
_OPSET = 12  # of MaxPool for bytes
_LEAST = float(np.finfo(np.float32).tiny) * 1024  # of scales, whose steps are ordinary numbers too
_BYTES = (ir.DataType.INT8, ir.DataType.UINT8)


@dataclass(frozen=True)
class _Found:
    """A QuantizeLinear behind movers, and the nodes in front of it, in their order."""

    last: ir.Node
    chain: tuple[ir.Node, ...]


def move_bytes(expanded: Expanded) -> Expanded:
    """The model with bytes moved; the same one where there are none to move."""
    shapes = expanded.shapes
    versions = {normal_domain(name): v for name, v in expanded.model.opset_imports.items()}
    if versions.get("", 0) < _OPSET:
        return expanded
    found = [one for node in expanded.model.graph if (one := _find(node, shapes)) is not None]
    if not found:
        return expanded
    copied = copy_of(expanded)
    graph, origins = copied.expanded.model.graph, dict(copied.expanded.origins)
    taken: set[ir.Node] = set()
    for one in reversed(found):  # the longest of those that end in each other
        if taken.isdisjoint((one.last, *one.chain)):
            taken.update((one.last, *one.chain))
            _move(copied.nodes[one.last], [copied.nodes[node] for node in one.chain])
    graph.sort()
    for node in list(graph):
        _drop_undone(node, origins)
    origins = {node: of for node, of in origins.items() if node.graph is not None}
    return inferred(copied, origins) or expanded


def _find(node: ir.Node, shapes: Shapes) -> _Found | None:
    if not _is(node, {"QuantizeLinear"}) or not _has_one_grid(node) or not _is_multiplied(node):
        return None
    if shapes.of(node.outputs[0]).dtype not in _BYTES:
        return None
    chain: list[ir.Node] = []
    value = node.inputs[0]
    while value is not None and _passes(maker := value.producer(), value, node, shapes):
        assert maker is not None
        if maker.op_type == "MaxPool" and any(_is(one, _POINTWISE) for one in chain):
            break  # times a negative number, the largest is the least
        chain.append(maker)
        value = maker.inputs[0]
    while chain and not _is(chain[-1], MOVERS):
        chain.pop()
    if not chain:
        return None
    return _Found(node, tuple(reversed(chain)))


def _passes(maker: ir.Node | None, value: ir.Value, last: ir.Node, shapes: Shapes) -> bool:
    """Whether a node is one of those that may stand on either side of another, and nobody else reads what it makes."""
    if maker is None or maker.graph is not last.graph or value.is_graph_output():
        return False
    if len(value.uses()) != 1 or maker.inputs[0] is None or _constant(maker.inputs[0]) is not None:
        return False
    if any(one.uses() or one.is_graph_output() for one in maker.outputs[1:]):
        return False  # the places of MaxPool
    if _is(maker, MOVERS):
        return True
    if _is(maker, _LINEAR):
        return _has_one_grid(maker)
    other = maker.inputs[1] if _is(maker, _POINTWISE) else None
    return other is not None and shapes.of(other).shape == ()


def _is_multiplied(node: ir.Node) -> bool:
    readers = [use.node for use in node.outputs[0].uses() if _is(use.node, _LINEAR)]
    users = [use.node for reader in readers for use in reader.outputs[0].uses()]
    return any(_is(user, _PRODUCTS) for user in users) and not node.outputs[0].is_graph_output()


def _undoes(first: ir.Node, last: ir.Node) -> bool:
    """Whether QuantizeLinear makes the very bytes that were dequantized."""
    if not _is(first, {"DequantizeLinear"}) or not _has_one_grid(first):
        return False
    pairs = [(_input(first, n), _input(last, n)) for n in (1, 2)]
    if any((a is None) != (b is None) for a, b in pairs):
        return False
    arrays = [(_constant(a), _constant(b)) for a, b in pairs if a is not None]
    return all(
        a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a, b)
        for a, b in arrays
    )


def _move(last: ir.Node, chain: Sequence[ir.Node]) -> None:
    """Put the movers behind the last node; the graph is out of order then."""
    movers = [node for node in chain if _is(node, MOVERS)]
    users = [(use.node, use.idx) for use in last.outputs[0].uses()]
    source = chain[0].inputs[0]
    for node in (*(node for node in chain if node not in movers), last, *movers):
        node.replace_input_with(0, source)
        source = node.outputs[0]
        source.type = source.shape = None
    for user, index in users:
        user.replace_input_with(index, source)


def _drop_undone(node: ir.Node, origins: dict[ir.Node, tuple[ir.Node, ...]]) -> None:
    """Take out a QuantizeLinear of what was dequantized by the same grid."""
    source = node.inputs[0] if _is(node, {"QuantizeLinear"}) and _has_one_grid(node) else None
    first = None if source is None else source.producer()
    if first is None or not _undoes(first, node) or node.outputs[0].is_graph_output():
        return
    bytes_of, graph = first.inputs[0], node.graph
    users = [use.node for use in node.outputs[0].uses()]
    assert bytes_of is not None
    assert graph is not None
    ir.convenience.replace_all_uses_with(node.outputs[0], bytes_of)
    gone = [node, first] if len(first.outputs[0].uses()) == 1 else [node]
    for one in gone:
        if users:
            origins[users[0]] = (*origins[users[0]], *origins[one])
        if not one.outputs[0].is_graph_output():
            graph.remove(one, safe=True)


def _is(node: ir.Node, kinds: frozenset[str] | set[str]) -> bool:
    return node.op_type in kinds and not normal_domain(node.domain)


def _has_one_grid(node: ir.Node) -> bool:
    """Whether scale and zero point are known, one number each, and the scale an ordinary one."""
    if node.attributes.get("block_size") or node.attributes.get("precision"):
        return False
    known = [_constant(value) for value in node.inputs[1:] if value is not None]
    if not known or any(one is None or one.ndim > 0 for one in known):
        return False
    scale = known[0]
    # Coarser types do not tell the steps of a byte apart.
    return scale is not None and scale.dtype == np.float32 and _LEAST < float(scale) < np.inf


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _constant(value: ir.Value | None) -> np.ndarray | None:
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()
