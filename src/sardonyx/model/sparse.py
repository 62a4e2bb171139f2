"""Sparse tensors in a model: dense to whoever reads them, sparse again when the model is saved.

`onnx_ir` has no sparse tensors, so each travels through it as a small stand-in with a number in its
metadata: `hide` puts the stand-ins into the protobuf on the way in, `show` takes them out on the way out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.model.functions import nodes_below

__all__ = [
    "SparseTensor",
    "attributes_of",
    "graphs_of",
    "has_sparse",
    "hide",
    "show",
    "stand_in_index",
]

_MARK = "sardonyx.sparse"


class SparseTensor(ir.serde.TensorProtoTensor):
    """A tensor stored as values and indices; `numpy` writes the zeros out."""

    __slots__ = ("indices", "sparse", "values")

    def __init__(
        self,
        stand_in: onnx.TensorProto,
        sparse: onnx.SparseTensorProto,
        values: ir.TensorProtocol,
        indices: ir.TensorProtocol,
    ) -> None:
        super().__init__(stand_in)
        self.sparse = sparse
        self.values = values
        self.indices = indices

    def numpy(self) -> np.ndarray:
        dense = np.zeros(self.shape.numpy(), self.dtype.numpy())
        indices = self.indices.numpy()
        where = tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, dense.shape)
        dense[where] = self.values.numpy()
        return dense

    def tobytes(self) -> bytes:
        return self.numpy().tobytes()


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph and every subgraph, those inside functions too."""
    yield model.graph
    bodies = [model.graph.node, *(f.node for f in model.functions)]
    for body in bodies:
        for node in nodes_below(body):
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield attribute.g
                yield from attribute.graphs


def attributes_of(model: onnx.ModelProto) -> Iterator[onnx.AttributeProto]:
    for body in [model.graph.node, *(f.node for f in model.functions)]:
        for node in nodes_below(body):
            yield from node.attribute


def has_sparse(model: onnx.ModelProto) -> bool:
    return any(g.sparse_initializer for g in graphs_of(model)) or any(
        a.HasField("sparse_tensor") for a in attributes_of(model)
    )


def hide(model: onnx.ModelProto) -> list[onnx.SparseTensorProto]:
    """Replace each sparse tensor by a numbered stand-in; the list has them by number."""
    found: list[onnx.SparseTensorProto] = []
    for graph in graphs_of(model):
        for sparse in graph.sparse_initializer:
            graph.initializer.append(_stand_in(sparse, found))
        graph.ClearField("sparse_initializer")
    for attribute in attributes_of(model):
        if attribute.HasField("sparse_tensor"):
            attribute.t.CopyFrom(_stand_in(attribute.sparse_tensor, found))
            attribute.ClearField("sparse_tensor")
            attribute.type = onnx.AttributeProto.TENSOR
            if attribute.name == "sparse_value":
                attribute.name = "value"
    return found


def _stand_in(
    sparse: onnx.SparseTensorProto, found: list[onnx.SparseTensorProto]
) -> onnx.TensorProto:
    stand_in = onnx.TensorProto(
        name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims
    )
    stand_in.metadata_props.add(key=_MARK, value=str(len(found)))
    kept = onnx.SparseTensorProto()
    kept.CopyFrom(sparse)
    found.append(kept)
    return stand_in


def stand_in_index(tensor: object) -> int | None:
    """The number of a stand-in, or None for an ordinary tensor."""
    if not isinstance(tensor, ir.serde.TensorProtoTensor):
        return None
    for entry in tensor.raw.metadata_props:
        if entry.key == _MARK:
            return int(entry.value)
    return None


def show(model: onnx.ModelProto, tensors: Sequence[SparseTensor]) -> None:
    """Put the sparse tensors back where their stand-ins stand."""
    by_mark = {t.raw.metadata_props[0].value: t.sparse for t in tensors}
    for graph in graphs_of(model):
        for i in reversed(range(len(graph.initializer))):
            mark = _mark(graph.initializer[i])
            if mark is not None:
                graph.sparse_initializer.insert(0, by_mark[mark])
                del graph.initializer[i]
    for attribute in attributes_of(model):
        mark = _mark(attribute.t) if attribute.HasField("t") else None
        if mark is not None:
            attribute.ClearField("t")
            attribute.sparse_tensor.CopyFrom(by_mark[mark])
            attribute.type = onnx.AttributeProto.SPARSE_TENSOR
            if attribute.name == "value":
                attribute.name = "sparse_value"


def _mark(tensor: onnx.TensorProto) -> str | None:
    return next((e.value for e in tensor.metadata_props if e.key == _MARK), None)
