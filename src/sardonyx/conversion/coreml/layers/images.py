"""Layers over images: (batch, channels, height, width)."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.conversion.coreml.layers.table import CHANNELS, TABLE
from sardonyx.conversion.coreml.weights import border, borders, parameter
from sardonyx.conversion.stored.layer import Layer

__all__: list[str] = []

_IMAGE = 4  # axes
_LINEAR = ("asymmetric", "align_corners", "half_pixel")  # UpsampleLayerParams.LinearUpsampleMode


@TABLE.layer("convolution")
def convolution(layer: Layer) -> ir.Value:
    x, outputs = layer.input(0), layer.integer("outputChannels")
    if len(layer.inputs) > 1:
        raise layer.refuse("its weights are computed.")
    inputs, groups = layer.integer("kernelChannels"), layer.integer("nGroups", 1)
    kernel = layer.integers("kernelSize", (3, 3))
    turned, dilations = layer.flag("isDeconvolution"), layer.integers("dilationFactor", (1, 1))
    _need_image(layer)
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
        dilations=(1, 1) if turned else dilations,
        group=groups,
        **rule,
    )


@TABLE.layer("pooling")
def pooling(layer: Layer) -> ir.Value:
    kind = layer.integer("type", 0)
    _need_image(layer)
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


@TABLE.layer("batchnorm")
def batch_norm(layer: Layer) -> ir.Value:
    _need_image(layer)
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
    _need_image(layer)
    return layer.op(
        "LRN",
        layer.input(0),
        size=layer.integer("localSize"),
        alpha=layer.number("alpha", 0.0),
        beta=layer.number("beta", 0.0),
        bias=layer.number("k", 0.0) or 1.0,
    )


@TABLE.layer("softmax")
def softmax(layer: Layer) -> ir.Value:
    return layer.op("Softmax", layer.input(0), axis=layer.graph.axis(layer.input(0), CHANNELS))


@TABLE.layer("flatten")
def flatten(layer: Layer) -> ir.Value:
    _need_image(layer)
    graph, x = layer.graph, layer.input(0)
    if layer.integer("mode", 0):
        x = graph.transpose(x, (0, 2, 3, 1))
    made = graph.flat(x)
    return graph.reshape(made, (*graph.shape(made), 1, 1))


@TABLE.layer("upsample")
def upsample(layer: Layer) -> ir.Value:
    """The grids of `linearUpsampleMode` are ONNX's: i·old/new, i·(old-1)/(new-1), (i+1/2)·old/new - 1/2."""
    x, graph = layer.input(0), layer.graph
    sides = [float(factor) for factor in layer.integers("scalingFactor", (1, 1))]
    factors = [*[1.0] * (graph.rank(x) - 2), *sides]
    way = layer.integer("linearUpsampleMode", 0)
    if not layer.integer("mode", 0):
        return graph.enlarge(x, factors)
    return layer.op(
        "Resize",
        x,
        None,
        graph.constant(factors),
        mode="linear",
        coordinate_transformation_mode=_LINEAR[way],
    )


@TABLE.layer("padding")
def padding(layer: Layer) -> ir.Value:
    """Around height and width."""
    x, graph = layer.input(0), layer.graph
    constant, reflection = layer.get("constant"), layer.get("reflection")
    mode = "reflect" if reflection is not None else "edge"
    if constant is not None or layer.get("replication") is None:
        mode = "constant" if reflection is None else mode
    (top, bottom), (left, right) = border(layer, layer.get("paddingAmounts"))
    lead = [0] * (graph.rank(x) - 2)
    pads = graph.integers([*lead, top, left, *lead, bottom, right])
    value = layer.scalar(constant.value) if constant is not None else None
    return layer.op("Pad", x, pads, value, mode=mode)


@TABLE.layer("reorganizeData")
def reorganize(layer: Layer) -> ir.Value:
    """Blocks of places from and to channels; to places, channels of one block lie side by side in mode 2 alone."""
    mode, size = layer.integer("mode", 0), layer.integer("blockSize")
    _need_image(layer)
    if mode == 0:
        return layer.op("SpaceToDepth", layer.input(0), blocksize=size)
    order = "DCR" if mode == 1 else "CRD"
    return layer.op("DepthToSpace", layer.input(0), blocksize=size, mode=order)


def _need_image(layer: Layer) -> None:
    if layer.graph.rank(layer.input(0)) != _IMAGE:
        raise layer.refuse("its operand is no image with a batch.")
