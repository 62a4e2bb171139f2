"""Models that others write, taken into our graph: in our opset, and with names of their own."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
from onnx import compose, helper

from sardonyx.conversion.sklearn.graph import OPSET, TEXT, Graph, Tensor
from sardonyx.model.load import load
from sardonyx.passes.optimize import Settings, optimize

__all__ = ["inline"]


def inline(graph: Graph, proto: onnx.ModelProto, inputs: list[Tensor]) -> list[Tensor]:
    """Take a model into the graph; the tensors of its outputs."""
    raised = optimize(load(proto), Settings(0, opset=OPSET)).model
    named = compose.add_prefix(ir.to_proto(raised), f"{graph.new_name('borrowed')}_")
    for theirs, ours in zip(named.graph.input, inputs, strict=True):
        graph.nodes.append(helper.make_node("Identity", [ours.name], [theirs.name]))
    graph.constants.extend(named.graph.initializer)
    graph.nodes.extend(named.graph.node)
    return [_tensor(graph, value) for value in named.graph.output]


def _tensor(graph: Graph, value: onnx.ValueInfoProto) -> Tensor:
    kind = value.type.tensor_type
    dtype = (
        TEXT
        if kind.elem_type == onnx.TensorProto.STRING
        else np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    )
    sizes = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim)
    return Tensor(graph, value.name, dtype, (None, *sizes[1:]))
