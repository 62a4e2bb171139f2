"""Networks in Caffe2's files, with the same networks in torch: Caffe2 is no longer built."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.conversions.caffe2_files import Nets
from benchmarks.conversions.mxnet_models import folder, normal, tensor, with_torch
from sardonyx.conversion.request import Request

__all__ = ["alexnet", "channels_last", "old_broadcast"]


def alexnet() -> Request:
    """As Caffe's models came over: pools that round up, and blobs that are written twice."""
    w = {
        "conv1_w": normal(6, 3, 5, 5, scale=0.2),
        "conv1_b": normal(6),
        "conv2_w": normal(8, 3, 3, 3, scale=0.2),
        "conv2_b": normal(8),
        "fc_w": normal(5, 72, scale=0.2),
        "fc_b": normal(5),
    }
    nets = Nets()
    for name, array in w.items():
        nets.fill(name, array)
    nets.op("Conv", "data conv1_w conv1_b", "conv1", kernel=5, stride=2, pad=1, order="NCHW")
    nets.op("Relu", "conv1", "conv1", order="NCHW", cudnn_exhaustive_search=0)
    nets.op("LRN", "conv1", "norm1 scale1", size=3, alpha=0.5, beta=0.75, bias=2.0)
    nets.op("MaxPool", "norm1", "pool1", kernel=3, stride=2, legacy_pad=3, order="NCHW")
    nets.op("Conv", "pool1 conv2_w conv2_b", "conv2", kernels=[3, 3], pads=[1, 1, 1, 1], group=2)
    nets.op("Relu", "conv2", "conv2")
    nets.op("AveragePool", "conv2", "pool2", kernel=3, stride=2, pad=1, legacy_pad=3)
    nets.op("Dropout", "pool2", "pool2 mask", ratio=0.5, is_test=1)
    nets.op("FC", "pool2 fc_w fc_b", "fc")
    nets.op("Softmax", "fc", "prob")
    path = nets.save(folder(), "data", "prob")

    def reference(x: torch.Tensor) -> torch.Tensor:
        t = {name: tensor(array) for name, array in w.items()}
        y = F.relu(F.conv2d(x, t["conv1_w"], t["conv1_b"], 2, 1))
        y = F.max_pool2d(F.local_response_norm(y, 3, 0.5, 0.75, 2.0), 3, 2, ceil_mode=True)
        y = F.relu(F.conv2d(y, t["conv2_w"], t["conv2_b"], 1, 1, groups=2))
        y = F.avg_pool2d(y, 3, 2, 1, ceil_mode=True, count_include_pad=False)
        return F.linear(y.flatten(1), t["fc_w"], t["fc_b"]).softmax(1)

    data = normal(2, 3, 20, 20)
    return with_torch(path, {"data": data}, reference, {"data": {0: "batch"}})


def channels_last() -> Request:
    """NHWC, as Caffe2 was used on phones: images, weights and statistics."""
    weight, bias = normal(4, 3, 3, 3, scale=0.3), normal(4)
    stats = [normal(4), normal(1, 4)[0], normal(2, 4)[0], np.abs(normal(3, 4)[0]) + 0.5]
    slope = normal(1, 8)[0]
    nets = Nets()
    nets.fill("w", np.ascontiguousarray(weight.transpose(0, 2, 3, 1)))
    nets.fill("b", bias)
    for name, array in zip(("scale", "shift", "mean", "var"), stats, strict=True):
        nets.fill(name, array)
    nets.fill("slope", slope)
    nhwc = {"order": "NHWC"}
    nets.op("Conv", "x w b", "y", kernel=3, stride=2, legacy_pad=2, **nhwc)
    nets.op("SpatialBN", "y scale shift mean var", "y", is_test=1, epsilon=1e-3, **nhwc)
    nets.op("MaxPool", "y", "m", kernel=2, stride=1, pad_t=0, pad_l=0, pad_b=1, pad_r=1, **nhwc)
    nets.op("Concat", "y m", "both sizes", **nhwc)
    nets.op("PRelu", "both slope", "both", **nhwc)
    nets.op("AveragePool", "both", "z", global_pooling=1, **nhwc)
    path = nets.save(folder(), "x", "both z")

    def reference(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = F.conv2d(F.pad(x.permute(0, 3, 1, 2), (0, 1, 0, 1)), tensor(weight), tensor(bias), 2)
        scale, shift, mean, variance = map(tensor, stats)
        y = F.batch_norm(y, mean, variance, scale, shift, eps=1e-3)
        pooled = F.max_pool2d(F.pad(y, (0, 1, 0, 1), value=-torch.inf), 2, 1)
        both = F.prelu(torch.cat([y, pooled], 1), tensor(slope)).permute(0, 2, 3, 1)
        return both, both.mean((1, 2), keepdim=True)

    return with_torch(path, {"x": normal(2, 8, 8, 3)}, reference, {"x": {0: "batch"}})


def old_broadcast() -> Request:
    """Operands that begin at an axis, shuffled channels, parts, and a transposed convolution."""
    scale, weight, table = normal(4), normal(2, 3, 2, 2), normal(6, 5)
    nets = Nets()
    for name, array in {"s": scale, "w": weight, "t": table}.items():
        nets.fill(name, array)
    nets.fill("shape", np.array([0, -1, 6]))
    nets.op("Mul", "x s", "a", broadcast=1, axis=1)
    nets.op("ChannelShuffle", "a", "a", group=2, order="NCHW")
    nets.op("Split", "a", "left right", axis=1)
    nets.op("ConvTranspose", "left w", "up", kernel=2, stride=2, adj=1, order="NCHW")
    nets.op("Add", "right right", "sum")
    nets.op("Slice", "sum", "cut", starts=[0, 0, 1, 0], ends=[-1, -1, -1, -2])
    nets.op("Reshape", "cut shape", "flat old")
    nets.op("Transpose", "flat", "turned", axes=[0, 2, 1])
    nets.op("BatchMatMul", "flat turned", "gram", trans_a=1, trans_b=1)
    nets.op("MatMul", "t t", "tt", trans_b=1)
    nets.op("BatchMatMul", "gram tt", "out", broadcast=1)
    nets.op("Softmax", "up", "soft", axis=1)
    path = nets.save(folder(), "x", "out soft")

    def reference(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = F.channel_shuffle(x * tensor(scale).reshape(1, 4, 1, 1), 2)
        left, right = a.chunk(2, 1)
        up = F.conv_transpose2d(left, tensor(weight), None, 2, 0, 1)
        flat = (right * 2)[:, :, 1:, :-1].reshape(len(x), -1, 6)
        gram = flat.transpose(1, 2) @ flat
        return gram @ (tensor(table) @ tensor(table).T), up.flatten(1).softmax(1).reshape(up.shape)

    return with_torch(path, {"x": normal(2, 4, 5, 4)}, reference, {"x": {0: "batch"}})
