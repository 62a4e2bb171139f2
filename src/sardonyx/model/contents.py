"""Every graph and function body of a model, as protobuf and as `onnx_ir`, in one and the same order.

    model.graph, the subgraphs inside it, then each function with the subgraphs inside it

Without recursion, and each body before those inside it, so the two walks can go side by side.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from sardonyx.model.names import name_of, quote

__all__ = [
    "Body",
    "attributes_of",
    "bodies_below",
    "bodies_in",
    "bodies_of",
    "graphs_of",
    "pairs",
    "tensors_of",
]

Body = onnx.GraphProto | onnx.FunctionProto

_A = onnx.AttributeProto
_WITH_TENSORS = frozenset({_A.TENSOR, _A.TENSORS, _A.SPARSE_TENSOR, _A.SPARSE_TENSORS})


def bodies_of(model: onnx.ModelProto) -> Iterator[Body]:
    yield from bodies_below(model.graph)
    for function in model.functions:
        yield from bodies_below(function)


def bodies_below(body: Body) -> Iterator[Body]:
    """A graph or function, and every subgraph inside it."""
    todo: list[Body] = [body]
    while todo:
        current = todo.pop()
        yield current
        inner: list[Body] = []
        for node in current.node:
            for attribute in node.attribute:
                if attribute.type == _A.GRAPH:
                    inner.append(attribute.g)
                elif attribute.type == _A.GRAPHS:
                    inner.extend(attribute.graphs)
        todo.extend(reversed(inner))


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph and every subgraph, those inside functions too."""
    return (body for body in bodies_of(model) if isinstance(body, onnx.GraphProto))


def attributes_of(model: onnx.ModelProto) -> Iterator[onnx.AttributeProto]:
    """The attributes of every node."""
    return (a for body in bodies_of(model) for node in body.node for a in node.attribute)


def tensors_of(body: Body) -> Iterator[tuple[onnx.TensorProto, str]]:
    """Every tensor that a body itself stores, wherever it hides, and what to call it."""
    if isinstance(body, onnx.GraphProto):
        for tensor in body.initializer:
            yield tensor, f"tensor {quote(tensor.name)}"
        for sparse in body.sparse_initializer:
            yield from _parts(sparse, f"sparse tensor {quote(sparse.values.name)}")
    else:
        for attribute in body.attribute_proto:
            if attribute.type in _WITH_TENSORS:
                yield from _attribute_tensors(attribute, f"function {quote(body.name)}")
    for node in body.node:
        for attribute in node.attribute:
            if attribute.type in _WITH_TENSORS:
                yield from _attribute_tensors(attribute, name_of(node))


def _attribute_tensors(
    attribute: onnx.AttributeProto, owner: str
) -> Iterator[tuple[onnx.TensorProto, str]]:
    where = f"attribute {quote(attribute.name)} of {owner}"
    if attribute.HasField("t"):
        yield attribute.t, where
    for tensor in attribute.tensors:
        yield tensor, where
    if attribute.HasField("sparse_tensor"):
        yield from _parts(attribute.sparse_tensor, where)
    for sparse in attribute.sparse_tensors:
        yield from _parts(sparse, where)


def _parts(sparse: onnx.SparseTensorProto, where: str) -> Iterator[tuple[onnx.TensorProto, str]]:
    yield sparse.values, f"values of {where}"
    yield sparse.indices, f"indices of {where}"


def bodies_in(model: ir.Model) -> Iterator[ir.Graph | ir.Function]:
    """The same walk over the model that onnx_ir built; `Model.graphs` leaves out those inside functions."""
    todo: list[ir.Graph | ir.Function] = [*reversed(model.functions.values()), model.graph]
    while todo:
        current = todo.pop()
        yield current
        inner: list[ir.Graph | ir.Function] = []
        for node in current:
            for attribute in node.attributes.values():
                if attribute.is_ref():
                    continue
                if attribute.type == ir.AttributeType.GRAPH:
                    inner.append(attribute.as_graph())
                elif attribute.type == ir.AttributeType.GRAPHS:
                    inner.extend(attribute.as_graphs())
        todo.extend(reversed(inner))


def pairs(proto: onnx.ModelProto, model: ir.Model) -> Iterator[tuple[Body, ir.Graph | ir.Function]]:
    """Each body as it is stored, beside the one that was built from it or that it was written from."""
    return zip(bodies_of(proto), bodies_in(model), strict=True)
