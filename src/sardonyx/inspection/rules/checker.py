"""What onnx's own checker says, without the weights: it judges the graph, and would copy them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.inspection.findings import Finding
from sardonyx.inspection.subject import Subject
from sardonyx.model.carried.sparse import SparseTensor
from sardonyx.model.save import to_proto

__all__ = ["onnx_checker"]

_SMALL = 1024  # bytes; what is smaller stays in, so that the checker sees the data too


def onnx_checker(subject: Subject) -> Iterator[Finding]:
    """The verdict of `onnx.checker` on the graph."""
    proto = to_proto(_without_weights(subject.model))
    try:
        onnx.checker.check_model(proto)
    except onnx.checker.ValidationError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        yield Finding(
            "error",
            "onnx-checker",
            f"onnx.checker refuses the model: {' '.join(lines)[:500]}",
            hint="Other tools may refuse it as well; export the model again.",
        )


def _without_weights(model: ir.Model) -> ir.Model:
    """A copy in which every large tensor is an empty one of its type; the checker looks no closer."""
    light = model.clone()
    for graph in light.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None and _is_large(value.const_value):
                value.const_value = _empty(value.const_value)
    bodies: list[ir.Graph | ir.Function] = [light.graph, *light.functions.values()]
    for body in bodies:
        for node in body.all_nodes():
            for attribute in list(node.attributes.values()):
                if attribute.is_ref() or attribute.type != ir.AttributeType.TENSOR:
                    continue
                if _is_large(attribute.as_tensor()):
                    node.attributes[attribute.name] = ir.AttrTensor(
                        attribute.name, _empty(attribute.as_tensor())
                    )
    return light


def _is_large(tensor: ir.TensorProtocol) -> bool:
    if tensor.dtype == ir.DataType.STRING or isinstance(tensor, SparseTensor):
        return False
    return isinstance(tensor, ir.ExternalTensor) or tensor.nbytes > _SMALL


def _empty(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.Tensor(np.empty((0,), tensor.dtype.numpy()), tensor.dtype, name=tensor.name)
