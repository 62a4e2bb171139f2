"""The same model in float64: what its float32 answers are measured against.

    model = in_double(onnx.load(path))        every float32 tensor, constant, cast and port is float64
    left = still_single(model)                values that are float32 all the same: none, for a truth

A few inputs may only ever be float32 (the scales of Resize): these are cast back, and are exact.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnx_ir as ir
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from sardonyx.model.load import load
from sardonyx.passes.shapes import infer_shapes

__all__ = ["in_double", "still_single"]

SINGLE, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
TYPE_NAMES = {"to", "dtype", "stash_type", "softmax_precision", "output_dtype"}

# (operator, input): the standard has no other type for it.
ONLY_SINGLE = {("Resize", 2), ("Upsample", 1)}
STASHING = {"LayerNormalization", "RMSNormalization"}
MARK = "float32 only: "


def in_double(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that computes in float64 what the model computes in float32."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for graph in _graphs(copy.graph):
        _convert_graph(graph)
    for function in copy.functions:
        del function.value_info[:]
        for node in function.node:
            for graph in _subgraphs(node):
                _convert_graph(graph)
            _convert_node(node)
    return copy


def still_single(model: onnx.ModelProto) -> list[str]:
    """Names of float32 values, but for those that have to be."""
    loaded = load(model)
    shapes = infer_shapes(loaded)
    return [
        value.name or "?"
        for node in loaded.graph.all_nodes()
        for value in node.outputs
        if shapes.of(value).dtype == ir.DataType.FLOAT and not (value.name or "").startswith(MARK)
    ]


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for inner in _subgraphs(node):
            yield from _graphs(inner)


def _subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _convert_graph(graph: GraphProto) -> None:
    del graph.value_info[:]  # inferred anew
    for tensor in graph.initializer:
        _convert_tensor(tensor)
    for port in (*graph.input, *graph.output):
        if port.type.tensor_type.elem_type == SINGLE:
            port.type.tensor_type.elem_type = DOUBLE
    nodes: list[NodeProto] = []
    for node in graph.node:
        _convert_node(node)
        for place, name in enumerate(node.input):
            if (node.op_type, place) in ONLY_SINGLE and name:
                single = f"{MARK}{name} of {node.name or node.output[0]}"
                nodes.append(helper.make_node("Cast", [name], [single], to=SINGLE))
                node.input[place] = single
        nodes.append(node)
    kept = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)


def _convert_node(node: NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            _convert_tensor(attribute.t)
        elif attribute.name in TYPE_NAMES and attribute.i == SINGLE:
            attribute.i = DOUBLE
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            number = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            value = numpy_helper.from_array(np.array(number, np.float32).astype(np.float64))
            attribute.CopyFrom(helper.make_attribute("value", value))
    said = {attribute.name for attribute in node.attribute}
    if node.op_type in STASHING and "stash_type" not in said:  # float32, if nothing is said
        node.attribute.append(helper.make_attribute("stash_type", DOUBLE))


def _convert_tensor(tensor: TensorProto) -> None:
    if tensor.data_type == SINGLE:
        wide = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))
