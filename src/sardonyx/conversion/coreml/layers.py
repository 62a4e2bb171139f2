"""What CoreML's layers are in ONNX.

Images are (batch, channels, height, width). An attribute of 0 is one that was not set, and has the specification's default.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.weights import borders, numbers, parameter
from sardonyx.conversion.stored.layer import Layer, Table

__all__ = ["TABLE"]

TABLE = Table("CoreML", {"isUpdatable"})

_CHANNELS = -3
_SUMS = {"add": "Add", "multiply": "Mul"}
_PLAIN = {"max": "Max", "min": "Min", "average": "Mean"}
_BROADCAST = {
    "addBroadcastable": "Add",
    "subtractBroadcastable": "Sub",
    "multiplyBroadcastable": "Mul",
    "divideBroadcastable": "Div",
    "maxBroadcastable": "Max",
    "minBroadcastable": "Min",
    "powBroadcastable": "Pow",
}
_ACTIVATIONS = {"ReLU": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "softsign": "Softsign"}
_UNARY = ("Sqrt", "", "Reciprocal", "", "Exp", "Log", "Abs")


@TABLE.layer("convolution")
def convolution(layer: Layer) -> ir.Value:
    x, outputs = layer.input(0), layer.integer("outputChannels")
    if len(layer.inputs) > 1:
        raise layer.refuse("its weights are computed.")
    inputs, groups = layer.integer("kernelChannels"), layer.integer("nGroups", 1)
    kernel = layer.integers("kernelSize", (3, 3))
    turned = layer.flag("isDeconvolution")
    if turned and layer.integers("outputShape", ()):
        raise layer.refuse("its outputShape decides the padding.")
    shape = [inputs, outputs // groups] if turned else [outputs, inputs]
    weight = parameter(layer, "weights", [*shape, *kernel])
    bias = parameter(layer, "bias", [outputs]) if layer.flag("hasBias") else None
    rule = borders(layer)
    if turned and "pads" not in rule:
        raise layer.refuse("a deconvolution that is padded by a rule cannot be written.")
    return layer.op(
        "ConvTranspose" if turned else "Conv",
        x,
        weight,
        bias,
        kernel_shape=kernel,
        strides=layer.integers("stride", (1, 1)),
        dilations=layer.integers("dilationFactor", (1, 1)),
        group=groups,
        **rule,
    )


@TABLE.layer("pooling")
def pooling(layer: Layer) -> ir.Value:
    kind = layer.integer("type", 0)
    if kind > 1:
        raise layer.refuse("pooling by the square of its elements cannot be written.")
    if layer.flag("globalPooling"):
        layer.ignore(
            "kernelSize", "stride", "valid", "same", "includeLastPixel", "avgPoolExcludePadding"
        )
        return layer.op("GlobalAveragePool" if kind else "GlobalMaxPool", layer.input(0))
    shared = {
        "kernel_shape": layer.integers("kernelSize", (3, 3)),
        "strides": layer.integers("stride", (1, 1)),
        **borders(layer),
    }
    apart = layer.flag("avgPoolExcludePadding")
    if not kind:
        return layer.op("MaxPool", layer.input(0), **shared)
    return layer.op("AveragePool", layer.input(0), count_include_pad=int(not apart), **shared)


@TABLE.layer("innerProduct")
def inner_product(layer: Layer) -> ir.Value:
    """Along the channels of images, or the last axis of all else."""
    graph, x = layer.graph, layer.input(0)
    inputs, outputs = layer.integer("inputChannels"), layer.integer("outputChannels")
    if layer.flag("int8DynamicQuantize"):
        raise layer.refuse("it rounds its operand to 8 bits.")
    weight = numbers(layer, "weights", [outputs, inputs])
    bias = numbers(layer, "bias", [outputs]) if layer.flag("hasBias") else None
    image = graph.rank(x) == 4
    if image and graph.shape(x)[2:] != (1, 1):
        raise layer.refuse("its operand has a height and a width.")
    flat = graph.flat(x) if image else x
    made = layer.op("MatMul", flat, graph.parameter(f"{layer.name}.weights", weight.T))
    if bias is not None:
        made = layer.op("Add", made, graph.parameter(f"{layer.name}.bias", bias))
    return graph.reshape(made, (graph.shape(x)[0], outputs, 1, 1)) if image else made


@TABLE.layer("batchnorm")
def batch_norm(layer: Layer) -> ir.Value:
    channels = layer.integer("channels")
    epsilon = layer.number("epsilon", 0.0) or 1e-5
    scale, shift = parameter(layer, "gamma", [channels]), parameter(layer, "beta", [channels])
    if layer.flag("computeMeanVar"):
        if not layer.flag("instanceNormalization"):
            raise layer.refuse("it takes its statistics from the batch.")
        layer.ignore("mean", "variance")
        return layer.op("InstanceNormalization", layer.input(0), scale, shift, epsilon=epsilon)
    layer.ignore("instanceNormalization")
    mean, spread = parameter(layer, "mean", [channels]), parameter(layer, "variance", [channels])
    return layer.op(
        "BatchNormalization", layer.input(0), scale, shift, mean, spread, epsilon=epsilon
    )


@TABLE.layer("lrn")
def local_response(layer: Layer) -> ir.Value:
    return layer.op(
        "LRN",
        layer.input(0),
        size=layer.integer("localSize"),
        alpha=layer.number("alpha", 0.0),
        beta=layer.number("beta", 0.0),
        bias=layer.number("k", 0.0) or 1.0,
    )


@TABLE.layer("activation")
def activation(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    kind = layer.choice(
        "kind",
        None,
        (*_ACTIVATIONS, "linear", "leakyReLU", "PReLU", "ELU", "softplus", "sigmoidHard"),
    )
    if kind in _ACTIVATIONS:
        return layer.op(_ACTIVATIONS[kind], x)
    if kind == "softplus":
        return layer.op("Softplus", x)
    if kind == "PReLU":
        count = graph.size(x, _CHANNELS)
        slope = parameter(layer, "alpha", [count])
        return layer.op("PRelu", x, graph.reshape(slope, (count, 1, 1)))
    slope_, shift = layer.number("alpha", 0.0), layer.number("beta", 0.0)
    if kind == "leakyReLU":
        return layer.op("LeakyRelu", x, alpha=slope_)
    if kind == "ELU":
        return layer.op("Elu", x, alpha=slope_)
    if kind == "sigmoidHard":
        return layer.op("HardSigmoid", x, alpha=slope_, beta=shift)
    scaled = layer.op("Mul", x, layer.scalar(slope_))
    return layer.op("Add", scaled, layer.scalar(shift))


@TABLE.layer("softmax")
def softmax(layer: Layer) -> ir.Value:
    return layer.op("Softmax", layer.input(0), axis=layer.graph.axis(layer.input(0), _CHANNELS))


@TABLE.layer("softmaxND")
def softmax_along(layer: Layer) -> ir.Value:
    axis = layer.graph.axis(layer.input(0), layer.integer("axis", 0))
    return layer.op("Softmax", layer.input(0), axis=axis)


@TABLE.layer(*_SUMS)
def sum_or_product(layer: Layer) -> ir.Value:
    """Of several operands, or of one and a number."""
    operator, number = _SUMS[layer.kind], layer.number("alpha", 0.0)
    made = layer.input(0)
    for index in range(1, len(layer.inputs)):
        made = layer.op(operator, made, layer.input(index))
    if len(layer.inputs) > 1:
        if number:
            raise layer.refuse("it has several operands and a number.")
        return made
    return layer.op(operator, made, layer.scalar(number))


@TABLE.layer(*_PLAIN)
def of_all(layer: Layer) -> ir.Value:
    operands = [layer.input(index) for index in range(len(layer.inputs))]
    return layer.op(_PLAIN[layer.kind], *operands)


@TABLE.layer(*_BROADCAST)
def broadcast(layer: Layer) -> ir.Value:
    return layer.op(_BROADCAST[layer.kind], layer.input(0), layer.input(1))


@TABLE.layer("scale", "bias")
def scale(layer: Layer) -> ir.Value:
    """Numbers for every channel, or for every element."""
    x, factor = layer.input(0), layer.kind == "scale"
    first = "shapeScale" if factor else "shape"
    made = layer.op(
        "Mul" if factor else "Add", x, parameter(layer, layer.kind, layer.integers(first, (1,)))
    )
    if factor and layer.flag("hasBias"):
        made = layer.op("Add", made, parameter(layer, "bias", layer.integers("shapeBias", (1,))))
    return made


@TABLE.layer("unary")
def unary(layer: Layer) -> ir.Value:
    kind, epsilon = layer.integer("type", 0), layer.number("epsilon", 0.0)
    factor, shift = layer.number("scale", 0.0) or 1.0, layer.number("shift", 0.0)
    power = layer.number("alpha", 0.0)
    x = layer.input(0)
    if factor != 1:
        x = layer.op("Mul", x, layer.scalar(factor))
    if shift:
        x = layer.op("Add", x, layer.scalar(shift))
    if kind == 3:
        return layer.op("Pow", x, layer.scalar(power))
    if kind == 7:
        return layer.op("Max", x, layer.scalar(power))
    if kind == 1:
        x = layer.op("Add", x, layer.scalar(epsilon or 1e-6))
        return layer.op("Reciprocal", layer.op("Sqrt", x))
    if kind == 2:
        x = layer.op("Add", x, layer.scalar(epsilon or 1e-6))
    return layer.op(_UNARY[kind], x)


@TABLE.layer("concat", "concatND")
def concat(layer: Layer) -> ir.Value:
    parts = [layer.input(index) for index in range(len(layer.inputs))]
    if layer.flag("sequenceConcat") or layer.flag("interleave"):
        raise layer.refuse("it joins sequences, or in turns.")
    axis = layer.integer("axis", 0) if layer.kind == "concatND" else _CHANNELS
    return layer.op("Concat", *parts, axis=layer.graph.axis(parts[0], axis))


@TABLE.layer("flatten")
def flatten(layer: Layer) -> ir.Value:
    graph, x = layer.graph, layer.input(0)
    if layer.integer("mode", 0):
        x = graph.transpose(x, (0, 2, 3, 1))
    made = graph.flat(x)
    return graph.reshape(made, (*graph.shape(made), 1, 1))


@TABLE.layer("reshapeStatic")
def reshape(layer: Layer) -> ir.Value:
    wanted = layer.graph.integers(layer.integers("targetShape"))
    return layer.op("Reshape", layer.input(0), wanted)


@TABLE.layer("transpose")
def transpose(layer: Layer) -> ir.Value:
    return layer.graph.transpose(layer.input(0), layer.integers("axes"))


@TABLE.layer("upsample")
def upsample(layer: Layer) -> ir.Value:
    if layer.integer("mode", 0):
        raise layer.refuse("linear up-sampling cannot be written.")
    factors = [float(factor) for factor in layer.integers("scalingFactor", (1, 1))]
    return layer.op(
        "Resize",
        layer.input(0),
        None,
        layer.graph.constant([1.0, 1.0, *factors], np.float32),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
