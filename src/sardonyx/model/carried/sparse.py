"""Sparse tensors in a model: dense to whoever reads them, sparse again when the model is saved.

`onnx_ir` has no sparse tensors, so each travels through it as a small stand-in with a mark in its
metadata: `hide` puts the stand-ins into the protobuf on the way in, `show` takes them out on the way out.

    sparse_initializer { values, indices, dims }   ⇄   initializer { dims, metadata_props { sardonyx.sparse: mark } }
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.model.contents import Body, attributes_of, bodies_of, graphs_of

__all__ = ["SparseTensor", "attributes_of", "graphs_of", "has_sparse", "hide", "mark_of", "show"]

_KEY = "sardonyx.sparse"
_SPARSE = (onnx.AttributeProto.SPARSE_TENSOR, onnx.AttributeProto.SPARSE_TENSORS)


class SparseTensor(ir.serde.TensorProtoTensor):
    """A tensor stored as values and indices; `numpy` writes the zeros out."""

    __slots__ = ("indices", "values")

    def __init__(
        self,
        stand_in: onnx.TensorProto,
        values: ir.TensorProtocol,
        indices: ir.TensorProtocol,
    ) -> None:
        super().__init__(stand_in)
        self.values = values
        self.indices = indices

    def numpy(self) -> np.ndarray[Any, Any]:
        dense = np.zeros(self.shape.numpy(), self.dtype.numpy())
        indices = self.indices.numpy()
        where = tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, dense.shape)
        dense[where] = self.values.numpy()
        return dense

    def tobytes(self) -> bytes:
        return ir.Tensor(self.numpy(), self.dtype).tobytes()

    def with_parts(self, values: ir.TensorProtocol, indices: ir.TensorProtocol) -> SparseTensor:
        return SparseTensor(self.raw, values, indices)

    def to_proto(self) -> onnx.SparseTensorProto:
        """The tensor as it is stored; a sparse initializer's name is that of its values."""
        values = ir.serde.serialize_tensor(self.values)
        if self.name:
            values.name = self.name
        indices = ir.serde.serialize_tensor(self.indices)
        return onnx.SparseTensorProto(values=values, indices=indices, dims=self.raw.dims)


def has_sparse(bodies: Iterable[Body]) -> bool:
    return any(
        (isinstance(body, onnx.GraphProto) and body.sparse_initializer)
        or any(attribute.type in _SPARSE for _, attribute in _attributes(body))
        for body in bodies
    )


def hide(model: onnx.ModelProto) -> dict[str, onnx.SparseTensorProto]:
    """Replace each sparse tensor by a marked stand-in; the result has them by mark."""
    hidden: dict[str, onnx.SparseTensorProto] = {}
    for body in bodies_of(model):
        if isinstance(body, onnx.GraphProto):
            body.initializer.extend(_stand_in(s, hidden) for s in body.sparse_initializer)
            body.ClearField("sparse_initializer")
        for node, attribute in _attributes(body):
            if attribute.HasField("sparse_tensor"):
                attribute.t.CopyFrom(_stand_in(attribute.sparse_tensor, hidden))
                attribute.ClearField("sparse_tensor")
                attribute.type = onnx.AttributeProto.TENSOR
                if _is_constant(node):
                    attribute.name = "value"
            elif attribute.sparse_tensors:
                attribute.tensors.extend(_stand_in(s, hidden) for s in attribute.sparse_tensors)
                attribute.ClearField("sparse_tensors")
                attribute.type = onnx.AttributeProto.TENSORS
    return hidden


def show(model: onnx.ModelProto, tensors: Mapping[str, SparseTensor]) -> None:
    """Put the sparse tensors back where their stand-ins stand."""
    for body in bodies_of(model):
        if isinstance(body, onnx.GraphProto):
            found = [tensors.get(mark_of(tensor)) for tensor in body.initializer]
            body.sparse_initializer.extend(s.to_proto() for s in found if s is not None)
            for i in reversed(range(len(found))):
                if found[i] is not None:
                    del body.initializer[i]
        for node, attribute in _attributes(body):
            if attribute.HasField("t") and mark_of(attribute.t) in tensors:
                attribute.sparse_tensor.CopyFrom(tensors[mark_of(attribute.t)].to_proto())
                attribute.ClearField("t")
                attribute.type = onnx.AttributeProto.SPARSE_TENSOR
                if _is_constant(node):
                    attribute.name = "sparse_value"
            elif attribute.tensors and all(mark_of(t) in tensors for t in attribute.tensors):
                attribute.sparse_tensors.extend(
                    tensors[mark_of(t)].to_proto() for t in attribute.tensors
                )
                attribute.ClearField("tensors")
                attribute.type = onnx.AttributeProto.SPARSE_TENSORS


def mark_of(tensor: onnx.TensorProto) -> str:
    """The mark of a stand-in; empty for an ordinary tensor."""
    return next((e.value for e in tensor.metadata_props if e.key == _KEY), "")


def _attributes(body: Body) -> Iterator[tuple[onnx.NodeProto | None, onnx.AttributeProto]]:
    for node in body.node:
        for attribute in node.attribute:
            yield node, attribute
    if isinstance(body, onnx.FunctionProto):
        for attribute in body.attribute_proto:
            yield None, attribute


def _is_constant(node: onnx.NodeProto | None) -> bool:
    """Constant has one attribute for each kind of value, and readers look for `value`."""
    return node is not None and node.op_type == "Constant" and node.domain in ("", "ai.onnx")


def _stand_in(
    sparse: onnx.SparseTensorProto, hidden: dict[str, onnx.SparseTensorProto]
) -> onnx.TensorProto:
    mark = secrets.token_hex(
        16
    )  # no file can guess it, and parts of two models can be put together
    hidden[mark] = onnx.SparseTensorProto()
    hidden[mark].CopyFrom(sparse)
    stand_in = onnx.TensorProto(data_type=sparse.values.data_type, dims=sparse.dims)
    if sparse.values.HasField("name"):
        stand_in.name = sparse.values.name
    stand_in.metadata_props.add(key=_KEY, value=mark)
    return stand_in
