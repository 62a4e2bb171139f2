"""One node in the place of several that compute the same, and one constant in the place of equal ones."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any

import onnx_ir as ir

from sardonyx.passes.rewriting.engine import Engine

__all__ = ["merge_equal_constants", "merge_equal_nodes"]

_NEVER = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"}
    | {"RandomUniform", "RandomUniformLike"}
)
_SAMPLE = 4096  # bytes that tell most tensors apart without reading the rest


def merge_equal_nodes(engine: Engine) -> None:
    """Nodes of one graph with the same operator, attributes and inputs become one."""
    for graph in engine.work.graphs():
        seen: dict[Hashable, ir.Node] = {}
        for node in list(graph):
            key = None if node.op_type in _NEVER else _key(node)
            if key is None or node.graph is not graph:
                continue
            first = seen.setdefault(key, node)
            if first.graph is not graph:  # a merge after it took it away
                first = seen[key] = node
            if first is not node and not _both_given_out(first, node):
                about = "Two nodes that compute the same become one."
                engine.replace("equal-nodes", about, node, list(first.outputs))


def _both_given_out(first: ir.Node, second: ir.Node) -> bool:
    """Whether an Identity would be needed to keep both names: nothing is won then."""
    return any(
        b.is_graph_output() and (a.is_graph_output() or a.graph is not b.graph)
        for a, b in zip(first.outputs, second.outputs, strict=True)
    )


def _key(node: ir.Node) -> Hashable | None:
    attributes = []
    for name, attribute in sorted(node.attributes.items()):
        value = _hashable(attribute)
        if value is None:
            return None
        attributes.append((name, str(attribute.type), value))
    named = tuple(bool(value.name) for value in node.outputs)
    inputs = tuple(id(value) for value in node.inputs)
    return (node.op_identifier(), inputs, tuple(attributes), named)


def _hashable(attribute: ir.Attr) -> Hashable | None:
    if attribute.is_ref():
        return ("ref", attribute.ref_attr_name)
    value: Any = attribute.value
    if attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
        return None
    if attribute.type == ir.AttributeType.TENSOR:
        return _fingerprint(value)
    if attribute.type in (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS):
        return repr(value)  # tells -0.0 from 0.0, and NaN is itself
    if isinstance(value, (int, str, bytes)):
        return value
    if attribute.type in (ir.AttributeType.INTS, ir.AttributeType.STRINGS):
        return tuple(value)
    return None


def merge_equal_constants(engine: Engine) -> None:
    """Initializers with the same type, shape and bytes become one (tied weights)."""
    graph = engine.work.model.graph
    alike: dict[Hashable, list[ir.Value]] = {}
    for value in list(graph.initializers.values()):
        tensor = engine.work.tensor_of(value)
        if tensor is None or tensor.dtype == ir.DataType.STRING or value.is_graph_output():
            continue
        key = (tensor.dtype, tuple(tensor.shape.numpy()), _sample(tensor))
        alike.setdefault(key, []).append(value)
    for values in alike.values():
        first_of: dict[Hashable, ir.Value] = {}
        for value in values if len(values) > 1 else ():
            tensor = engine.work.tensor_of(value)
            assert tensor is not None, "it was one just now"
            first = first_of.setdefault(_fingerprint(tensor), value)
            if first is not value and value.uses():
                engine.share(
                    "equal-constants", "Two constants with the same bytes become one.", value, first
                )


def _sample(tensor: ir.TensorProtocol) -> bytes:
    if tensor.nbytes <= _SAMPLE:
        return tensor.tobytes()
    flat = tensor.numpy().reshape(-1)
    count = max(1, _SAMPLE // max(1, tensor.dtype.bitwidth // 8))
    return bytes(flat[:count].tobytes())


def _fingerprint(tensor: ir.TensorProtocol) -> Hashable:
    if tensor.dtype == ir.DataType.STRING:
        return (tensor.dtype, tuple(tensor.shape.numpy()), tuple(tensor.numpy().reshape(-1)))
    digest = hashlib.sha256(tensor.tobytes()).digest()
    return (tensor.dtype, tuple(tensor.shape.numpy()), digest)
