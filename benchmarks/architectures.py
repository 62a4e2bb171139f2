"""Networks of many kinds, small, with seeded weights: what the standard nine have none of.

Channel shuffles, dense and branching blocks, dilations, upsampling, detection heads, dilated and depthwise convolutions in
time, recurrence over features of images, points, graphs, filters that are computed, experts that a router chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["ARCHITECTURES", "Architecture"]


@dataclass(frozen=True)
class Architecture:
    """A network, the shapes of its inputs (whole numbers below `below` where it is given), and their axes of any size."""

    make: Callable[[], nn.Module]
    shapes: Sequence[Sequence[int]]
    open: Sequence[Sequence[int]]
    below: Sequence[int] = (0, 0)


def unit(
    inputs: int,
    outputs: int,
    kernel: int | tuple[int, int] = 3,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    act: Callable[[], nn.Module] = nn.ReLU,
) -> nn.Sequential:
    """Convolution that keeps the size, normalisation, activation."""
    sizes = (kernel, kernel) if isinstance(kernel, int) else kernel
    pads = [size // 2 * dilation for size in sizes]
    conv = nn.Conv2d(inputs, outputs, sizes, stride, pads, dilation, groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), act())


def resized(x: Tensor, scale: float = 2.0, mode: str = "nearest") -> Tensor:
    return functional.interpolate(x, scale_factor=scale, mode=mode)


class DenseNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(unit(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        self.blocks, self.between, channels = nn.ModuleList(), nn.ModuleList(), 64
        for count in (4, 6, 6):
            layers = nn.ModuleList()
            for _ in range(count):
                first = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), unit(channels, 128, 1))
                layers.append(nn.Sequential(first, nn.Conv2d(128, 32, 3, 1, 1, bias=False)))
                channels += 32
            self.blocks.append(layers)
            self.between.append(nn.Sequential(unit(channels, channels // 2, 1), nn.AvgPool2d(2)))
            channels //= 2
        self.head = nn.Linear(channels, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for layers, between in zip(self.blocks, self.between, strict=True):
            for layer in layers:
                x = torch.cat([x, layer(x)], 1)
            x = between(x)
        return self.head(x.mean((2, 3)))


def shuffled(x: Tensor) -> Tensor:
    batch, channels, height, width = x.shape
    parted = x.view(batch, 2, channels // 2, height, width)
    return parted.transpose(1, 2).reshape(batch, channels, height, width)


class ShuffleNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(unit(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1))
        self.left, self.right, self.rest = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        inputs = 24
        for outputs, count in ((116, 4), (232, 8), (464, 4)):
            half = outputs // 2
            self.left.append(nn.Sequential(self.down(inputs), unit(inputs, half, 1)))
            down = (unit(inputs, half, 1), self.down(half), unit(half, half, 1))
            self.right.append(nn.Sequential(*down))
            same = [(unit(half, half, 1), self.down(half, 1), unit(half, half, 1))] * (count - 1)
            self.rest.append(nn.ModuleList(nn.Sequential(*layers) for layers in same))
            inputs = outputs
        self.last, self.head = unit(464, 1024, 1), nn.Linear(1024, 100)

    @staticmethod
    def down(channels: int, stride: int = 2) -> nn.Module:
        return unit(channels, channels, 3, stride, groups=channels, act=nn.Identity)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for left, right, rest in zip(self.left, self.right, self.rest, strict=True):
            x = shuffled(torch.cat([left(x), right(x)], 1))
            for layer in rest:
                kept, changed = x.chunk(2, 1)
                x = shuffled(torch.cat([kept, layer(changed)], 1))
        return self.head(self.last(x).mean((2, 3)))


class Inception(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(unit(3, 32, 3, 2), unit(32, 64), nn.MaxPool2d(3, 2, 1))
        self.blocks, channels = nn.ModuleList(), 64
        for _ in range(4):
            far = nn.Sequential(unit(channels, 48, 1), unit(48, 64, (1, 7)), unit(64, 64, (7, 1)))
            near = nn.Sequential(unit(channels, 64, 1), unit(64, 96, 5))
            mean = nn.Sequential(nn.AvgPool2d(3, 1, 1), unit(channels, 32, 1))
            self.blocks.append(nn.ModuleList([unit(channels, 64, 1), far, near, mean]))
            channels = 256
        self.head = nn.Linear(channels, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = torch.cat([branch(x) for branch in block], 1)
        return self.head(x.mean((2, 3)))


class DeepLab(nn.Module):
    """Dilated convolutions side by side, and a large bilinear step at the end."""

    def __init__(self) -> None:
        super().__init__()
        steps = (unit(3, 32, 3, 2), unit(32, 64, 3, 2), unit(64, 128, 3, 2), unit(128, 256))
        self.features = nn.Sequential(*steps)
        dilated = (unit(256, 64, 3, dilation=number) for number in (6, 12, 18))
        self.around = nn.ModuleList([unit(256, 64, 1), *dilated])
        self.head = nn.Sequential(unit(256, 128, 1), nn.Conv2d(128, 21, 1))

    def forward(self, x: Tensor) -> Tensor:
        features = self.features(x)
        y = self.head(torch.cat([branch(features) for branch in self.around], 1))
        return functional.interpolate(y, x.shape[2:], mode="bilinear")


class SuperResolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 64, 9, 1, 4), nn.PReLU(64))
        both = (nn.Conv2d(64, 64, 3, 1, 1), nn.PReLU(64), nn.Conv2d(64, 64, 3, 1, 1))
        self.blocks = nn.ModuleList(nn.Sequential(*both) for _ in range(3))
        step = (nn.Conv2d(64, 256, 3, 1, 1), nn.PixelShuffle(2), nn.PReLU(64))
        self.last = nn.Sequential(*step, nn.Conv2d(64, 3, 9, 1, 4))

    def forward(self, x: Tensor) -> Tensor:
        x = y = self.first(x)
        for block in self.blocks:
            y = y + block(y)
        return self.last(x + y)


class Crossing(nn.Module):
    """Half of the channels through bottlenecks, half past them, as in YOLOv5."""

    def __init__(self, inputs: int, outputs: int, count: int) -> None:
        super().__init__()
        half = outputs // 2
        self.through, self.past = (
            unit(inputs, half, 1, act=nn.SiLU),
            unit(inputs, half, 1, act=nn.SiLU),
        )
        both = (unit(half, half, 1, act=nn.SiLU), unit(half, half, act=nn.SiLU))
        self.blocks = nn.ModuleList(nn.Sequential(*both) for _ in range(count))
        self.last = unit(outputs, outputs, 1, act=nn.SiLU)

    def forward(self, x: Tensor) -> Tensor:
        y = self.through(x)
        for block in self.blocks:
            y = y + block(y)
        return self.last(torch.cat([y, self.past(x)], 1))


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = (16, 32, 64, 128, 256)
        self.stem = unit(3, 16, 3, 2, act=nn.SiLU)
        pairs = list(pairwise(sizes))
        self.steps = nn.ModuleList(unit(a, b, 3, 2, act=nn.SiLU) for a, b in pairs)
        self.blocks = nn.ModuleList(Crossing(size, size, 1) for size in sizes[1:])
        self.pooled = unit(1024, 128, 1, act=nn.SiLU)
        self.near = Crossing(256, 128, 1)
        self.heads = nn.ModuleList(nn.Conv2d(128, 255, 1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x, features = self.stem(x), []
        for step, block in zip(self.steps, self.blocks, strict=True):
            features.append(x := block(step(x)))
        pools = [x]
        for _ in range(3):
            pools.append(functional.max_pool2d(pools[-1], 5, 1, 2))
        far = self.pooled(torch.cat(pools, 1))
        near = self.near(torch.cat([resized(far), features[2]], 1))
        found = [self.boxes(h(y)) for h, y in zip(self.heads, (near, far), strict=True)]
        return torch.cat(found, 1)

    @staticmethod
    def boxes(x: Tensor) -> Tensor:
        batch, _, height, width = x.shape
        x = x.view(batch, 3, 85, height, width).permute(0, 1, 3, 4, 2).sigmoid()
        parts = [x[..., :2] * 2 - 0.5, (x[..., 2:4] * 2) ** 2, x[..., 4:]]
        return torch.cat(parts, -1).reshape(batch, -1, 85)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(4, 64, 3, 1, 1), nn.Conv2d(64, 128, 3, 2, 1)
        self.here, self.below = self.block(64, 64), self.block(128, 128)
        self.above, self.last = self.block(192, 64), nn.Conv2d(64, 4, 3, 1, 1)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Module:
        first = (nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, 1, 1))
        second = (nn.GroupNorm(8, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, 1, 1))
        return nn.Sequential(*first, *second)

    def forward(self, x: Tensor) -> Tensor:
        here = self.here(self.first(x))
        below = self.below(self.down(here))
        return self.last(self.above(torch.cat([resized(below), here], 1)))


class WaveNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 64, 1)
        self.gates = nn.ModuleList(nn.Conv1d(64, 128, 2, dilation=2**i) for i in range(6))
        self.same, self.skip = (
            nn.ModuleList(nn.Conv1d(64, 64, 1) for _ in range(6)) for _ in range(2)
        )
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(64, 256, 1))

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.first(x), 0
        for number, (gate, same, skip) in enumerate(
            zip(self.gates, self.same, self.skip, strict=True)
        ):
            a, b = gate(functional.pad(x, (2**number, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            x, total = x + same(y), total + skip(y)
        return self.last(total)


class Speech(nn.Module):
    """wav2vec2's first layers: one channel to many, each normalised over time."""

    def __init__(self) -> None:
        super().__init__()
        first = (nn.Conv1d(1, 256, 10, 5), nn.GroupNorm(256, 256), nn.GELU())
        then = (nn.Conv1d(256, 256, 3, 2), nn.GELU(), nn.Conv1d(256, 256, 3, 2), nn.GELU())
        self.layers = nn.Sequential(*first, *then)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).transpose(1, 2)


class Reader(nn.Module):
    """Text lines: convolutions, then recurrence both ways over the columns."""

    def __init__(self) -> None:
        super().__init__()
        steps = [unit(1, 64), nn.MaxPool2d(2), unit(64, 128), nn.MaxPool2d(2), unit(128, 256)]
        self.columns = nn.Sequential(*steps, nn.MaxPool2d((8, 1)))
        self.memory = nn.LSTM(256, 128, bidirectional=True, batch_first=True)
        self.head = nn.Linear(256, 37)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.memory(self.columns(x).squeeze(2).permute(0, 2, 1))[0])


class Points(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        steps = (
            nn.Conv1d(3, 64, 1),
            nn.ReLU(),
            nn.Conv1d(64, 128, 1),
            nn.ReLU(),
            nn.Conv1d(128, 1024, 1),
        )
        self.each, self.all = nn.Sequential(*steps), nn.Linear(1024, 40)

    def forward(self, x: Tensor) -> Tensor:
        return self.all(self.each(x).amax(2))


class Styled(nn.Module):
    """StyleGAN's convolutions, whose filters a style scales."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.ParameterList(torch.randn(64, 64, 3, 3) * 0.05 for _ in range(3))
        self.styles = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        for filters, layer in zip(self.filters, self.styles, strict=True):
            scaled = filters * (layer(style)[0] + 1).view(1, -1, 1, 1)
            scaled = scaled * torch.rsqrt((scaled * scaled).sum((1, 2, 3), keepdim=True) + 1e-8)
            x = functional.leaky_relu(functional.conv2d(x, scaled, padding=1), 0.2)
        return x


class Experts(nn.Module):
    """Two of eight experts for each token, whose weights are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(256, 8)
        self.up, self.down = (
            nn.Parameter(torch.randn(8, 512, 256) / 16),
            nn.Parameter(torch.randn(8, 256, 512) / 22),
        )

    def forward(self, x: Tensor) -> Tensor:
        weight, chosen = self.router(x).softmax(-1).topk(2)
        hidden = functional.silu(self.up[chosen.view(-1)] @ x.repeat_interleave(2, 0).unsqueeze(-1))
        y = (self.down[chosen.view(-1)] @ hidden).view(-1, 2, 256)
        return (y * weight.unsqueeze(-1)).sum(1)


class Messages(nn.Module):
    """A graph's nodes add up what their neighbours send."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        for layer in self.layers:
            sent = layer(x)[edges[0]]
            x = torch.relu(x + torch.zeros_like(x).index_add(0, edges[1], sent))
        return x


IMAGE, SIZE = (1, 3, 224, 224), (0, 2, 3)
ARCHITECTURES: Mapping[str, Architecture] = {
    "densenet": Architecture(DenseNet, [IMAGE], [SIZE]),
    "shufflenet": Architecture(ShuffleNet, [IMAGE], [SIZE]),
    "inception": Architecture(Inception, [IMAGE], [SIZE]),
    "deeplab": Architecture(DeepLab, [(1, 3, 256, 256)], [SIZE]),
    "super_resolution": Architecture(SuperResolution, [(1, 3, 64, 64)], [SIZE]),
    "detector": Architecture(Detector, [(1, 3, 320, 320)], [SIZE]),
    "unet": Architecture(UNet, [(1, 4, 64, 64)], [SIZE]),
    "wavenet": Architecture(WaveNet, [(1, 1, 4000)], [(0, 2)]),
    "speech": Architecture(Speech, [(1, 1, 16000)], [(0, 2)]),
    "reader": Architecture(Reader, [(1, 1, 32, 160)], [(3,)]),
    "points": Architecture(Points, [(1, 3, 2048)], [(0, 2)]),
    "styled": Architecture(Styled, [(1, 64, 32, 32), (1, 64)], [(2, 3), ()]),
    "experts": Architecture(Experts, [(64, 256)], [(0,)]),
    "messages": Architecture(Messages, [(2000, 64), (2, 10000)], [(0,), (1,)], (0, 2000)),
}
