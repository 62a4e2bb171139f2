"""Products of matrices, normalization, softmax."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.conversion.caffe2.operators.table import TABLE, channels_first
from sardonyx.conversion.stored.layer import Layer
from sardonyx.sizes import product


@TABLE.layer("FC", "FCTransposed")
def fully_connected(layer: Layer) -> ir.Value:
    graph, x, weight = layer.graph, layer.input(0), layer.input(1)
    axis = graph.axis(x, layer.integer("axis", 1))
    if layer.integer("axis_w", 1) != 1:
        raise layer.refuse("its weight is not split after the first axis.")
    shape = graph.shape(x)
    if graph.rank(weight) != 2:
        rows, *rest = (graph.size(weight, a) for a in range(graph.rank(weight)))
        weight = graph.reshape(weight, (rows, product(rest)))
    flat = x
    if graph.rank(x) != 2 or axis != 1:
        flat = layer.op("Flatten", x, axis=axis)
    straight = layer.kind == "FC"
    made = layer.op("Gemm", flat, weight, layer.optional(2), transB=int(straight))
    return graph.reshape(made, (*shape[:axis], graph.size(weight, 0 if straight else 1)))


@TABLE.layer("MatMul", "BatchMatMul")
def matmul(layer: Layer) -> ir.Value:
    a = _flipped(layer, layer.input(0), layer.flag("trans_a"))
    b = _flipped(layer, layer.input(1), layer.flag("trans_b"))
    if layer.integer("axis_a", 1) != 1 or layer.integer("axis_b", 1) != 1:
        raise layer.refuse("its operands are not split after the first axis.")
    ranks = {layer.graph.rank(a), layer.graph.rank(b)}
    if (layer.kind == "MatMul" and ranks != {2}) or (
        layer.kind == "BatchMatMul" and len(ranks) > 1 and not layer.flag("broadcast")
    ):
        raise layer.refuse(f"it multiplies operands of {sorted(ranks)} axes.")
    layer.ignore("broadcast")
    return layer.op("MatMul", a, b)


def _flipped(layer: Layer, value: ir.Value, flip: bool) -> ir.Value:
    rank = layer.graph.rank(value)
    order = [*range(rank - 2), rank - 1, rank - 2]
    return layer.graph.transpose(value, order) if flip else value


@TABLE.layer("SpatialBN")
def spatial_batch_norm(layer: Layer) -> ir.Value:
    layer.ignore("momentum", "num_batches")
    if not layer.flag("is_test"):
        raise layer.refuse(
            "it is written for training, and takes its statistics from the batch.",
            "Save the network for inference: is_test=True.",
        )
    rest = [layer.input(index) for index in range(1, 5)]
    epsilon = layer.number("epsilon", 1e-5)
    return channels_first(
        layer, lambda x: layer.op("BatchNormalization", x, *rest, epsilon=epsilon)
    )


@TABLE.layer("InstanceNorm")
def instance_norm(layer: Layer) -> ir.Value:
    scale, shift, epsilon = layer.input(1), layer.input(2), layer.number("epsilon", 1e-5)
    return channels_first(
        layer, lambda x: layer.op("InstanceNormalization", x, scale, shift, epsilon=epsilon)
    )


@TABLE.layer("LRN")
def local_response(layer: Layer) -> ir.Value:
    attributes = {
        "size": layer.integer("size"),
        "alpha": layer.number("alpha"),
        "beta": layer.number("beta"),
        "bias": layer.number("bias", 1.0),
    }
    return channels_first(layer, lambda x: layer.op("LRN", x, **attributes))


@TABLE.layer("Softmax", "LogSoftmax")
def softmax(layer: Layer) -> ir.Value:
    """Over all axes from `axis` on, as one."""
    graph, x = layer.graph, layer.input(0)
    axis = graph.axis(x, layer.integer("axis", 1))
    if axis == graph.rank(x) - 1:
        return layer.op(layer.kind, x, axis=axis)
    made = layer.op(layer.kind, layer.op("Flatten", x, axis=axis), axis=1)
    return graph.reshape(made, graph.shape(x))


@TABLE.layer("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2")
def reduction(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    named = layer.integers("axes", ()) or range(graph.rank(x))
    axes = graph.integers([graph.axis(x, axis) for axis in named])
    return layer.op(layer.kind, x, axes, keepdims=int(layer.flag("keepdims", True)))


@TABLE.layer("ArgMax", "ArgMin")
def arg_extreme(layer: Layer) -> ir.Value:
    axis = layer.graph.axis(layer.input(0), layer.integer("axis", -1))
    return layer.op(
        layer.kind, layer.input(0), axis=axis, keepdims=int(layer.flag("keepdims", True))
    )
