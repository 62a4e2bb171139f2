"""Networks in MXNet's files, with the same networks in torch: MXNet does not install on a Python of today."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.conversions.mxnet_files import Net
from sardonyx.conversion.request import Example, Request

__all__ = [
    "arithmetic",
    "attention",
    "custom",
    "gru",
    "lenet",
    "lstm",
    "old_symbol",
    "residual",
    "views",
    "with_torch",
]

Array = np.ndarray[Any, np.dtype[Any]]


def with_torch(
    path: Path,
    examples: dict[str, Any],
    reference: Callable[..., Any],
    dynamic: dict[str, dict[int, str]] | None = None,
    **options: Any,
) -> Request:
    """A request whose answers are torch's, from the same arrays."""

    def answers(feeds: dict[str, Array]) -> Sequence[Array]:
        with torch.no_grad():
            made = reference(*(torch.from_numpy(np.ascontiguousarray(v)) for v in feeds.values()))
        return [each.numpy() for each in (made if isinstance(made, tuple) else (made,))]

    return Request(
        path,
        (Example(kwargs=examples),),
        dynamic or {},
        options={"answers": answers, **options},
    )


def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="stored-"))


def normal(*shape: int, scale: float = 1.0) -> Array:
    generator = np.random.default_rng(sum(shape) + len(shape))
    return (generator.normal(size=shape) * scale).astype(np.float32)


def tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def lenet() -> Request:
    """The Module API's own example: a loss with its label at the end."""
    net, w = Net(), [normal(4, 1, 5, 5, scale=0.3), normal(4), normal(6, 144), normal(6)]
    x, label = net.variable("data"), net.variable("softmax_label")
    conv = net.op(
        "Convolution",
        x,
        net.variable("conv_weight", w[0]),
        net.variable("conv_bias", w[1]),
        kernel="(5, 5)",
        num_filter=4,
        name="conv",
    )
    act = net.op("Activation", conv, act_type="tanh")
    pool = net.op("Pooling", act, pool_type="max", kernel="(2, 2)", stride="(2, 2)")
    fc = net.op(
        "FullyConnected",
        pool,
        net.variable("fc_weight", w[2]),
        net.variable("fc_bias", w[3]),
        num_hidden=6,
        name="fc",
    )
    out = net.op("SoftmaxOutput", fc, label, name="softmax")

    def reference(x: torch.Tensor) -> torch.Tensor:
        hidden = F.max_pool2d(torch.tanh(F.conv2d(x, tensor(w[0]), tensor(w[1]))), 2)
        return F.linear(hidden.flatten(1), tensor(w[2]), tensor(w[3])).softmax(1)

    path = net.save(folder() / "lenet", out)
    data = normal(2, 1, 16, 16)
    return with_torch(path, {"data": data}, reference, {"data": {0: "batch"}})


def _batch_norm(
    net: Net, x: list[int], name: str, module: nn.BatchNorm2d, fixed: bool
) -> list[int]:
    parts = {"gamma": module.weight, "beta": module.bias}
    states = {"moving_mean": module.running_mean, "moving_var": module.running_var}
    operands = [net.variable(f"{name}_{k}", v.detach().numpy()) for k, v in parts.items()]
    for key, value in states.items():
        assert value is not None
        operands.append(net.variable(f"{name}_{key}", value.numpy(), aux=True))
    return net.op("BatchNorm", x, *operands, name=name, fix_gamma=fixed, eps=module.eps)


def residual() -> Request:
    """A block of a ResNet as the model zoo has it: no biases, one fixed scale, a pool that rounds up."""
    torch.manual_seed(0)
    first, second = nn.BatchNorm2d(3, eps=2e-5), nn.BatchNorm2d(6, eps=1e-3)
    for module in (first, second):
        nn.init.uniform_(module.running_mean, -0.5, 0.5)
        nn.init.uniform_(module.running_var, 0.5, 2)
        nn.init.uniform_(module.weight, 0.5, 2)
        module.eval()
    w = [normal(6, 3, 3, 3, scale=0.3), normal(6, 1, 3, 3, scale=0.3), normal(6, 3, 1, 1)]
    net = Net()
    x = _batch_norm(net, net.variable("data"), "bn0", first, fixed=True)
    a = net.op(
        "Convolution",
        x,
        net.variable("conv0_weight", w[0]),
        kernel=(3, 3),
        pad=(1, 1),
        stride=(2, 2),
        num_filter=6,
        no_bias=True,
        workspace=1024,
        layout="NCHW",
    )
    a = net.op("LeakyReLU", _batch_norm(net, a, "bn1", second, fixed=False), act_type="elu")
    a = net.op(
        "Convolution",
        a,
        net.variable("conv1_weight", w[1]),
        kernel=(3, 3),
        pad=(2, 2),
        dilate=(2, 2),
        num_group=6,
        num_filter=6,
        no_bias=True,
    )
    short = net.op(
        "Convolution",
        x,
        net.variable("conv2_weight", w[2]),
        kernel=(1, 1),
        stride=(2, 2),
        num_filter=6,
        no_bias=True,
    )
    total = net.op("elemwise_add", a, short)
    pool = net.op(
        "Pooling",
        total,
        kernel=(3, 3),
        stride=(2, 2),
        pool_type="avg",
        pooling_convention="full",
        count_include_pad=False,
    )
    out = net.op(
        "Flatten", net.op("Pooling", pool, kernel=(1, 1), global_pool=True, pool_type="avg")
    )

    def reference(x: torch.Tensor) -> torch.Tensor:
        fixed = F.batch_norm(
            x, first.running_mean, first.running_var, torch.ones(3), first.bias, eps=2e-5
        )
        a = F.elu(second(F.conv2d(fixed, tensor(w[0]), stride=2, padding=1)), 0.25)
        a = F.conv2d(a, tensor(w[1]), padding=2, dilation=2, groups=6)
        a = a + F.conv2d(fixed, tensor(w[2]), stride=2)
        return F.avg_pool2d(a, 3, 2, ceil_mode=True, count_include_pad=False).mean((2, 3))

    return with_torch(net.save(folder() / "block", out), {"data": normal(1, 3, 15, 15)}, reference)


def _vector(module: nn.RNNBase) -> Array:
    """All weights, then all biases: what cuDNN, MXNet and torch agree on."""
    names = [n for n, _ in module.named_parameters()]
    parts = [n for n in names if n.startswith("weight")] + [
        n for n in names if n.startswith("bias")
    ]
    return np.concatenate([module.get_parameter(n).detach().numpy().reshape(-1) for n in parts])


def lstm() -> Request:
    torch.manual_seed(0)
    module = nn.LSTM(5, 4, 2, bidirectional=True)
    net = Net()
    x, h, c = net.variable("data"), net.variable("h"), net.variable("c")
    vector = net.variable("lstm_parameters", _vector(module))
    out = net.op(
        "RNN",
        x,
        vector,
        h,
        c,
        mode="lstm",
        state_size=4,
        num_layers=2,
        bidirectional=True,
        state_outputs=True,
        name="rnn",
    )
    heads = [out, [out[0], 1, 0], [out[0], 2, 0]]
    feeds = {"data": normal(6, 3, 5), "h": normal(4, 3, 4), "c": normal(4, 3, 4, scale=0.5)}

    def reference(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, (last, cell) = module(x, (h, c))
        return y, last, cell

    return with_torch(net.save(folder() / "lstm", *heads), feeds, reference, {"data": {0: "time"}})


def gru() -> Request:
    """As gluon exports it: the vector is put together in the graph, and the state begins at zero."""
    torch.manual_seed(0)
    module = nn.GRU(3, 4)
    net = Net()
    x = net.variable("data")
    parts = []
    for name, value in module.named_parameters():
        part = net.variable(f"gru0_l0_{name}", value.detach().numpy())
        parts.append(net.op("Reshape", part, shape="(-1,)"))
    vector = net.op("_rnn_param_concat", *parts, dim=0, num_args=4)
    begin = net.op("_zeros", shape="(1, 0, 4)", ctx="cpu(0)", dtype="float32")
    out = net.op("RNN", x, vector, begin, mode="gru", state_size=4, num_layers=1, p=0.0, name="gru")
    path = net.save(folder() / "gru", out)
    axes = {"data": {0: "time", 1: "batch"}}
    return with_torch(path, {"data": normal(5, 2, 3)}, lambda x: module(x)[0], axes)


def attention() -> Request:
    """Tokens, heads by Reshape's codes, LayerNorm and a product of batches."""
    width, heads = 8, 2
    table, w = normal(11, width), [normal(3 * width, width, scale=0.3), normal(3 * width)]
    gamma, beta = normal(width), normal(1, width)[0]
    net = Net()
    x = net.op(
        "Embedding",
        net.variable("tokens"),
        net.variable("embedding_weight", table),
        input_dim=11,
        output_dim=width,
        dtype="float32",
    )
    norm = net.op(
        "LayerNorm", x, net.variable("gamma", gamma), net.variable("beta", beta), axis=-1, eps=1e-5
    )
    all_three = net.op(
        "FullyConnected",
        norm,
        net.variable("qkv_weight", w[0]),
        net.variable("qkv_bias", w[1]),
        num_hidden=3 * width,
        flatten=False,
    )
    parts = net.op("SliceChannel", all_three, num_outputs=3, axis=2)
    split = []
    for index in range(3):
        by_head = net.op("Reshape", [parts[0], index, 0], shape=f"(0, 0, -4, {heads}, -1)")
        turned = net.op("transpose", by_head, axes="(0, 2, 1, 3)")
        split.append(net.op("Reshape", turned, shape="(-3, -2)"))
    scores = net.op(
        "batch_dot", net.op("_contrib_div_sqrt_dim", split[0]), split[1], transpose_b=True
    )
    mixed = net.op("batch_dot", net.op("softmax", scores, axis=-1), split[2])
    back = net.op("Reshape", mixed, shape=f"(-4, -1, {heads}, -2)")
    joined = net.op("Reshape", net.op("transpose", back, axes="(0, 2, 1, 3)"), shape="(0, 0, -3)")
    out = net.op("broadcast_add", joined, net.op("LeakyReLU", x, act_type="gelu"))

    def reference(tokens: torch.Tensor) -> torch.Tensor:
        x = tensor(table)[tokens.long().clamp(0, 10)]
        normed = F.layer_norm(x, (width,), tensor(gamma), tensor(beta))
        made = F.linear(normed, tensor(w[0]), tensor(w[1])).chunk(3, 2)
        q, k, v = (t.unflatten(2, (heads, -1)).transpose(1, 2) for t in made)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return mixed + F.gelu(x)

    tokens = np.array([[3, 1, 4, 10, 5], [9, 2, 6, 99, 3]], np.float32)
    path = net.save(folder() / "attention", out)
    return with_torch(path, {"tokens": tokens}, reference, {"tokens": {0: "batch"}})


def arithmetic() -> Request:
    """Numbers on either side, comparisons that are numbers, slopes of channels, sums of everything."""
    slope = normal(3)
    net = Net()
    x = net.variable("data")
    a = net.op("_rminus_scalar", net.op("_mul_scalar", x, scalar=2.0), scalar=1.5)
    b = net.op("LeakyReLU", x, net.variable("slope", slope), act_type="prelu")
    c = net.op("broadcast_mul", a, net.op("_greater_scalar", b, scalar=0.25))
    d = net.op("clip", net.op("round", net.op("_plus_scalar", c, scalar=0.0)), a_min=-2, a_max=2)
    e = net.op("Activation", net.op("add_n", b, c, d), act_type="softrelu")
    f = net.op("L2Normalization", e, mode="channel")
    out = net.op("sum", f, axis="(1,)", exclude=True)
    whole = net.op("mean", net.op("square", f))
    pooled = net.op("Pooling", x, kernel=(3, 3), pad=(1, 1), pool_type="sum")

    def reference(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        b = F.prelu(x, tensor(slope))
        c = (1.5 - 2 * x) * (b > 0.25).float()
        d = (torch.sign(c) * torch.floor(c.abs() + 0.5)).clamp(-2, 2)
        e = F.softplus(b + c + d, threshold=1000)
        f = e / (e.square().sum(1, keepdim=True) + 1e-10).sqrt()
        return f.sum((0, 2, 3)), f.square().mean().reshape(1), F.avg_pool2d(x, 3, 1, 1) * 9

    path = net.save(folder() / "arithmetic", out, whole, pooled)
    return with_torch(path, {"data": normal(2, 3, 4, 5)}, reference)


def views() -> Request:
    """Slices from behind, codes of Reshape from behind, tiles, pads, and an up-sampled transposed convolution."""
    weight, bias = normal(2, 3, 3, 3, scale=0.5), normal(3)
    net = Net()
    x = net.variable("data")
    up = net.op("UpSampling", x, scale=2, sample_type="nearest", num_args=1)
    y = net.op(
        "Deconvolution",
        up,
        net.variable("weight", weight),
        net.variable("bias", bias),
        kernel=(3, 3),
        stride=(2, 2),
        pad=(1, 1),
        adj=(1, 1),
        num_filter=3,
        no_bias=False,
    )
    cut = net.op("slice", y, begin="(None, 0, 1)", end="(None, 2, None)", step="(None, 1, 2)")
    cut = net.op("slice_axis", cut, axis=-1, begin=-5, end="None")
    padded = net.op("Pad", cut, mode="constant", pad_width="(0,0,0,0,1,2,0,1)", constant_value=0.5)
    swapped = net.op("SwapAxis", padded, dim1=1, dim2=3)
    flat = net.op("Reshape", swapped, shape="(0, -3, 0)", reverse=True)
    tiled = net.op("tile", net.op("expand_dims", flat, axis=1), reps="(2, 1, 1)")
    out = net.op("Concat", tiled, net.op("zeros_like", tiled), dim=1, num_args=2)

    def reference(x: torch.Tensor) -> torch.Tensor:
        y = F.conv_transpose2d(
            F.interpolate(x, scale_factor=2), tensor(weight), tensor(bias), 2, 1, 1
        )
        cut = F.pad(y[:, 0:2, 1::2][..., -5:], (0, 1, 1, 2), value=0.5).transpose(1, 3)
        tiled = cut.flatten(1, 2).unsqueeze(1).tile(2, 1, 1)
        return torch.cat([tiled, torch.zeros_like(tiled)], 1)

    return with_torch(net.save(folder() / "views", out), {"data": normal(1, 2, 3, 4)}, reference)


def old_symbol() -> Request:
    """As MXNet 0.8 wrote it: attributes under "param", no versions of arrays, statistics that no operand names."""
    weight, bias = normal(4, 6), normal(4)
    mean, variance, beta = normal(4), np.abs(normal(4)) + 0.5, normal(1, 4)[0]
    net = Net()
    fc = net.op(
        "FullyConnected",
        net.variable("data"),
        net.variable("fc_weight", weight),
        net.variable("fc_bias", bias),
        num_hidden=4,
    )
    gamma = net.variable("bn_gamma", normal(2, 4)[0])
    norm = net.op("BatchNorm", fc, gamma, net.variable("bn_beta", beta), name="bn", momentum=0.9)
    net.arrays.update({"aux:bn_moving_mean": mean, "aux:bn_moving_var": variance})
    out = net.op("LogisticRegressionOutput", norm, net.variable("label"), name="lro")
    for node in net.nodes:
        node["inputs"] = [entry[:2] for entry in node["inputs"]]

    def reference(x: torch.Tensor) -> torch.Tensor:
        y = F.linear(x, tensor(weight), tensor(bias))
        y = F.batch_norm(y, tensor(mean), tensor(variance), None, tensor(beta), eps=1e-3)
        return y.sigmoid()

    path = net.save(folder() / "old", out[:2], place="param", version=0)
    return with_torch(path, {"data": normal(3, 6)}, reference, {"data": {0: "rows"}})


def custom() -> Request:
    net = Net()
    out = net.op("Custom", net.variable("data"), op_type="my_layer")
    return with_torch(net.save(folder() / "custom", out), {"data": normal(1, 2)}, lambda x: x)
