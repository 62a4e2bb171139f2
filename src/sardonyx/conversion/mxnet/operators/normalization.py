"""Normalization, softmax, and the losses, which are their forward pass alone here."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.mxnet.operators.table import TABLE
from sardonyx.conversion.stored.layer import Layer


@TABLE.layer("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "SyncBatchNorm")
def batch_norm(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    layer.ignore("momentum", "use_global_stats", "key", "ndev")
    if layer.flag("output_mean_var"):
        raise layer.refuse("it gives the mean and the variance too.")
    scale, shift = layer.input(1), layer.input(2)
    if layer.flag("fix_gamma", True):
        scale = graph.constant(np.ones(graph.size(scale, 0)), graph.dtype(scale))
    axis, rank = graph.axis(x, layer.integer("axis", 1)), graph.rank(x)
    order = [0, axis, *(a for a in range(1, rank) if a != axis)]
    moved = graph.transpose(x, order)
    made = layer.op(
        "BatchNormalization",
        moved,
        scale,
        shift,
        layer.input(3),
        layer.input(4),
        epsilon=layer.number("eps", 1e-3),
    )
    return graph.transpose(made, [int(a) for a in np.argsort(order)])


@TABLE.layer("LayerNorm")
def layer_norm(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    if layer.flag("output_mean_var"):
        raise layer.refuse("it gives the mean and the deviation too.")
    axis, last = graph.axis(x, layer.integer("axis", -1)), graph.rank(x) - 1
    order = [*(a for a in range(last + 1) if a != axis), axis]
    made = layer.op(
        "LayerNormalization",
        graph.transpose(x, order),
        layer.input(1),
        layer.input(2),
        axis=-1,
        epsilon=layer.number("eps", 1e-5),
    )
    return graph.transpose(made, [int(a) for a in np.argsort(order)])


@TABLE.layer("InstanceNorm")
def instance_norm(layer: Layer) -> ir.Value:
    operands = [layer.input(index) for index in range(3)]
    return layer.op("InstanceNormalization", *operands, epsilon=layer.number("eps", 1e-3))


@TABLE.layer("L2Normalization")
def l2_normalization(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    mode = layer.choice("mode", "instance", ("instance", "channel", "spatial"))
    rank = graph.rank(x)
    axes = {"instance": range(1, rank), "channel": range(1, 2), "spatial": range(2, rank)}[mode]
    total = layer.op("ReduceSumSquare", x, graph.integers(axes), keepdims=1)
    safe = layer.op("Add", total, layer.scalar(layer.number("eps", 1e-10)))
    return layer.op("Div", x, layer.op("Sqrt", safe))


@TABLE.layer("LRN")
def local_response(layer: Layer) -> ir.Value:
    return layer.op(
        "LRN",
        layer.input(0),
        size=layer.integer("nsize"),
        alpha=layer.number("alpha", 1e-4),
        beta=layer.number("beta", 0.75),
        bias=layer.number("knorm", 2.0),
    )


@TABLE.layer("softmax", "log_softmax", "softmin")
def softmax(layer: Layer) -> ir.Value:
    x = layer.input(0)
    if layer.flag("use_length") or len(layer.inputs) > 1:
        raise layer.refuse("it has lengths of its own for every row.")
    if layer.has("temperature"):
        x = layer.op("Div", x, layer.scalar(layer.number("temperature")))
    if layer.get("dtype") is not None:
        raise layer.refuse("it computes in another type.")
    if layer.kind == "softmin":
        x = layer.op("Neg", x)
    operator = "LogSoftmax" if layer.kind == "log_softmax" else "Softmax"
    return layer.op(operator, x, axis=layer.graph.axis(x, layer.integer("axis", -1)))


@TABLE.layer("SoftmaxOutput", "Softmax")
def softmax_output(layer: Layer) -> ir.Value:
    layer.ignore("grad_scale", "ignore_label", "use_ignore", "normalization", "out_grad")
    layer.ignore("smooth_alpha")
    channels, kept = layer.flag("multi_output"), layer.flag("preserve_shape")
    if channels:
        return layer.op("Softmax", layer.input(0), axis=1)
    return layer.op("Softmax", layer.input(0), axis=-1) if kept else _over_all(layer)


@TABLE.layer("SoftmaxActivation")
def softmax_activation(layer: Layer) -> ir.Value:
    if layer.choice("mode", "instance", ("instance", "channel")) == "channel":
        return layer.op("Softmax", layer.input(0), axis=1)
    return _over_all(layer)


def _over_all(layer: Layer) -> ir.Value:
    """All axes but the first count as one."""
    graph, x = layer.graph, layer.input(0)
    made = layer.op("Softmax", graph.flat(x), axis=1)
    return graph.reshape(made, graph.shape(x))


@TABLE.layer("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput")
def plain_output(layer: Layer) -> ir.Value:
    layer.ignore("grad_scale", "margin", "regularization_coefficient", "use_linear")
    return layer.input(0)


@TABLE.layer("LogisticRegressionOutput")
def logistic_output(layer: Layer) -> ir.Value:
    layer.ignore("grad_scale")
    return layer.op("Sigmoid", layer.input(0))
