"""Neural networks in CoreML's files, with the same networks in torch: CoreML runs on Apple's machines alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.conversions.mxnet_models import folder, normal, tensor, with_torch
from sardonyx.conversion.coreml.specification import message_class
from sardonyx.conversion.request import Request

__all__ = ["Spec", "classifier", "exact", "images"]

_FLOAT32 = 65568  # of ArrayFeatureType.ArrayDataType


class Spec:
    """A specification under construction: `spec.layer("softmax", "x", "y")`."""

    def __init__(self, kind: str = "neuralNetwork") -> None:
        self.model: Any = message_class("Model_pb2", "Model")()
        self.model.specificationVersion = 4
        self.network = getattr(self.model, kind)
        self.network.SetInParent()

    def port(self, which: str, name: str, shape: tuple[int, ...]) -> None:
        feature = getattr(self.model.description, which).add()
        feature.name = name
        feature.type.multiArrayType.shape.extend(shape)
        feature.type.multiArrayType.dataType = _FLOAT32

    def layer(self, kind: str, inputs: str, output: str, **fields: Any) -> Any:
        """Names have spaces between them; arrays become weights, lists are repeated."""
        made = self.network.layers.add()
        made.name = output
        made.input.extend(inputs.split())
        made.output.append(output)
        params = getattr(made, kind)
        params.SetInParent()
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                getattr(params, name).floatValue.extend(value.reshape(-1).tolist())
            elif isinstance(value, list):
                getattr(params, name).extend(value)
            else:
                setattr(params, name, value)
        return params

    def save(self) -> Any:
        path = folder() / "net.mlmodel"
        path.write_bytes(self.model.SerializeToString())
        return path


def _pad(params: Any, begin: int, end: int) -> None:
    for _ in range(2):
        edge = params.valid.paddingAmounts.borderAmounts.add()
        edge.startEdgeSize, edge.endEdgeSize = begin, end


def images() -> Request:
    """As the first converters wrote them: arrays of channels, height and width, without a batch."""
    w = [
        normal(4, 3, 3, 3, scale=0.3),
        normal(4),
        normal(4, 1, 2, 2),
        normal(5, 72, scale=0.2),
        normal(5),
    ]
    stats = [normal(4), normal(1, 4)[0], normal(2, 4)[0], np.abs(normal(3, 4)[0]) + 0.5]
    slope = normal(4, 1)[:, 0]
    spec = Spec()
    spec.port("input", "image", (3, 12, 12))
    spec.port("output", "scores", (5,))
    conv = spec.layer(
        "convolution",
        "image",
        "c",
        outputChannels=4,
        kernelChannels=3,
        nGroups=1,
        kernelSize=[3, 3],
        stride=[2, 2],
        hasBias=True,
        weights=w[0],
        bias=w[1],
    )
    conv.same.SetInParent()
    names = ("gamma", "beta", "mean", "variance")
    spec.layer(
        "batchnorm", "c", "b", channels=4, epsilon=1e-3, **dict(zip(names, stats, strict=True))
    )
    act = spec.layer("activation", "b", "a")
    act.PReLU.alpha.floatValue.extend(slope.tolist())
    up = spec.layer(
        "convolution",
        "a",
        "u",
        outputChannels=4,
        kernelChannels=4,
        nGroups=4,
        kernelSize=[2, 2],
        stride=[2, 2],
        isDeconvolution=True,
        weights=w[2],
    )
    up.valid.SetInParent()
    pool = spec.layer(
        "pooling", "u", "p", type=1, kernelSize=[3, 3], stride=[2, 2], avgPoolExcludePadding=True
    )
    _pad(pool, 1, 0)
    spec.layer("upsample", "p", "big", scalingFactor=[2, 2])
    peak = spec.layer("pooling", "big", "m", kernelSize=[4, 4], stride=[4, 4])
    peak.valid.SetInParent()
    spec.layer("concat", "m m", "two")
    spec.layer("flatten", "two", "f")
    spec.layer(
        "innerProduct",
        "f",
        "i",
        inputChannels=72,
        outputChannels=5,
        hasBias=True,
        weights=w[3],
        bias=w[4],
    )
    spec.layer("softmax", "i", "scores")

    def reference(x: torch.Tensor) -> torch.Tensor:
        y = F.conv2d(F.pad(x[None], (0, 1, 0, 1)), tensor(w[0]), tensor(w[1]), 2)
        gamma, beta, mean, variance = map(tensor, stats)
        y = F.prelu(F.batch_norm(y, mean, variance, gamma, beta, eps=1e-3), tensor(slope))
        y = F.conv_transpose2d(y, tensor(w[2]), None, 2, groups=4)
        inside = F.avg_pool2d(F.pad(torch.ones_like(y), (1, 0, 1, 0)), 3, 2)
        y = F.avg_pool2d(F.pad(y, (1, 0, 1, 0)), 3, 2) / inside
        y = F.max_pool2d(F.interpolate(y, scale_factor=2), 4)
        y = torch.cat([y, y], 1).flatten(1)
        return F.linear(y, tensor(w[3]), tensor(w[4])).softmax(1)[0]

    return with_torch(spec.save(), {"image": normal(3, 12, 12)}, reference)


def exact() -> Request:
    """Arrays as they are (version 4): a batch that stays open, sums that broadcast, functions of elements."""
    w, bias = normal(6, 8), normal(6)
    spec = Spec()
    spec.network.arrayInputShapeMapping = 1
    spec.port("input", "x", (1, 8))
    spec.port("output", "y", (1, 6))
    spec.layer(
        "innerProduct",
        "x",
        "i",
        inputChannels=8,
        outputChannels=6,
        hasBias=True,
        weights=w,
        bias=bias,
    )
    spec.layer("activation", "i", "e").ELU.alpha = 0.5
    spec.layer("unary", "i", "sq", type=3, alpha=2.0, scale=0.5, shift=1.0)
    spec.layer("addBroadcastable", "e sq", "s")
    spec.layer("multiply", "s", "half", alpha=0.5)
    spec.layer("softmaxND", "half", "soft", axis=-1)
    spec.layer("max", "soft half", "y")

    def reference(x: torch.Tensor) -> torch.Tensor:
        i = F.linear(x, tensor(w), tensor(bias))
        half = 0.5 * (F.elu(i, 0.5) + (0.5 * i + 1) ** 2)
        return torch.maximum(half.softmax(-1), half)

    return with_torch(spec.save(), {"x": normal(3, 8)}, reference, {"x": {0: "batch"}})


def classifier() -> Request:
    """Probabilities in the order of the labels, and weights of float16."""
    w = normal(3, 4).astype(np.float16)
    spec = Spec("neuralNetworkClassifier")
    spec.port("input", "features", (4,))
    params = spec.layer("innerProduct", "features", "i", inputChannels=4, outputChannels=3)
    params.weights.float16Value = w.tobytes()
    spec.layer("softmax", "i", "probabilities")
    spec.network.stringClassLabels.vector.extend(["cat", "dog", "fish"])
    spec.network.labelProbabilityLayerName = "probabilities"

    def reference(x: torch.Tensor) -> torch.Tensor:
        return (tensor(w.astype(np.float32)) @ x).softmax(0)

    return with_torch(spec.save(), {"features": normal(4)}, reference)
