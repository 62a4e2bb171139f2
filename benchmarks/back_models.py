"""25 ordinary networks, small, to be exported by torch and brought back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

__all__ = ["NETWORKS", "Network"]


@dataclass(frozen=True)
class Network:
    """A network and a call of it; `quantize` has its ONNX rounded to 8 bits first."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[torch.Tensor, ...]]
    dynamic: bool = True
    quantize: bool = False


def _image(*shape: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: (torch.randn(*shape),)


def _tokens(*shape: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: (torch.randint(0, 50, shape),)


def _block(cin: int, cout: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, groups=groups, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU6() if groups > 1 else nn.ReLU(),
    )


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.a, self.b = _block(8, 16, 2), nn.Conv2d(16, 16, 3, 1, 1)
        self.short, self.head = nn.Conv2d(8, 16, 1, 2), nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = F.relu(self.b(self.a(x)) + self.short(x))
        return self.head(x.mean((2, 3)))


class Unet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.mid = _block(3, 8), _block(8, 16, 2)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down(x)
        y = self.out(torch.cat([self.up(self.mid(a)), a], 1))
        return F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.Sequential(nn.BatchNorm2d(4 * k), nn.ReLU(), nn.Conv2d(4 * k, 4, 3, 1, 1))
                for k in (1, 2, 3)
            ]
        )
        self.stem, self.pool = nn.Conv2d(3, 4, 3, 1, 1), nn.AvgPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.pool(x)


class Encoder(nn.Module):
    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(50, 32), nn.Linear(32, 50)
        self.place = nn.Parameter(torch.randn(64, 32))
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
        self.causal = causal

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids) + self.place[: ids.shape[1]]
        mask = None
        if self.causal:
            n = ids.shape[1]
            mask = torch.full((n, n), float("-inf")).triu(1)
        return self.head(self.layer(x, mask))


class Recurrent(nn.Module):
    def __init__(self, kind: Any, both: bool = False) -> None:
        super().__init__()
        self.layer = kind(12, 16, batch_first=True, bidirectional=both)
        self.head = nn.Linear(32 if both else 16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0])


class Vit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, 32, 4, 4), nn.Parameter(torch.randn(1, 1, 32))
        self.place = nn.Parameter(torch.randn(1, 17, 32))
        self.norm, self.qkv, self.proj = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.place
        q, k, v = self.qkv(self.norm(x)).reshape(x.shape[0], -1, 3, 4, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return self.head((x + self.proj(y))[:, 0])


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.boxes, self.scores = _block(3, 8, 2), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 3, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.body(x)
        boxes = self.boxes(x).flatten(2).transpose(1, 2)
        scores, _ = self.scores(x).sigmoid().flatten(2).max(1)
        best, places = scores.topk(5, 1)
        return boxes.gather(1, places[..., None].expand(-1, -1, 4)), best


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(50, 8), nn.Linear(8, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        kept = (ids != 0).unsqueeze(-1).float()
        return self.head((self.embed(ids) * kept).sum(1) / kept.sum(1).clamp(min=1))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(32, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, _ = x.shape
        q = self.q(x).view(n, t, 4, 8).transpose(1, 2)
        k, v = self.kv(x).view(n, t, 2, 1, 8).expand(n, t, 2, 4, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(n, t, 32)


class Bilinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 5, 4))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bi,ijk,bj->bk", a, self.w, b)


def _separable() -> nn.Module:
    return nn.Sequential(
        _block(8, 8, groups=8), nn.Conv2d(8, 16, 1), nn.Hardswish(), _block(16, 16, 2, 16)
    )


def _mobile() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.SiLU(),
        _block(8, 8, 1, 8),
        nn.Conv2d(8, 16, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


def _vgg() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, 1, 1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 16, 32),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(32, 10),
    )


def _autoencoder() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(8, 4, 3, 2, 1),
        nn.ELU(),
        nn.ConvTranspose2d(4, 8, 3, 2, 1, 1),
        nn.PReLU(8),
        nn.ConvTranspose2d(8, 3, 4, 2, 1),
        nn.Tanh(),
    )


def _speech() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(8, 16, 5, 2, 2),
        nn.GELU(),
        nn.Conv1d(16, 16, 3, 1, 2, dilation=2),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.AvgPool1d(2),
        nn.Conv1d(16, 4, 1),
        nn.LogSoftmax(1),
    )


def _plain(*layers: nn.Module) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(*layers)


NETWORKS = (
    Network("ResNet", Residual, _image(2, 3, 32, 32)),
    Network("MobileNet", _mobile, _image(2, 3, 16, 16)),
    Network("VGG", _vgg, _image(2, 3, 16, 16)),
    Network("U-Net", Unet, _image(2, 3, 16, 16)),
    Network("DenseNet", Dense, _image(2, 3, 8, 8)),
    Network("transformer encoder", Encoder, _tokens(2, 7)),
    Network("decoder, causal mask", lambda: Encoder(True), _tokens(2, 7), dynamic=False),
    Network("LSTM", lambda: Recurrent(nn.LSTM), _image(2, 6, 12)),
    Network("GRU", lambda: Recurrent(nn.GRU), _image(2, 6, 12)),
    Network("bidirectional LSTM", lambda: Recurrent(nn.LSTM, True), _image(2, 6, 12)),
    Network("ViT", Vit, _image(2, 3, 16, 16)),
    Network("detection head", Detector, _image(2, 3, 16, 16)),
    Network("quantized CNN", _vgg, _image(2, 3, 16, 16), dynamic=False, quantize=True),
    Network(
        "MLP", _plain(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(-1)), _image(2, 8)
    ),
    Network("autoencoder", _autoencoder, _image(2, 3, 16, 16)),
    Network("speech, Conv1d", _speech, _image(2, 8, 40)),
    Network("bag of embeddings", Bag, _tokens(2, 9)),
    Network("attention, grouped and causal", Attention, _image(2, 5, 32)),
    Network(
        "GroupNorm", _plain(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.SiLU()), _image(2, 3, 8, 8)
    ),
    Network(
        "LayerNorm, RMSNorm",
        _plain(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU("tanh"), nn.RMSNorm(16)),
        _image(2, 3, 8),
    ),
    Network("depthwise separable", _separable, _image(2, 8, 8, 8)),
    Network(
        "PixelShuffle",
        _plain(nn.Conv2d(3, 12, 3, 1, 1), nn.PixelShuffle(2), nn.Sigmoid()),
        _image(2, 3, 8, 8),
    ),
    Network(
        "adaptive and padded pools",
        _plain(nn.ReflectionPad2d(1), nn.AvgPool2d(3, 2, 1), nn.AdaptiveMaxPool2d(1), nn.Flatten()),
        _image(2, 3, 9, 9),
        dynamic=False,
    ),
    Network("einsum", Bilinear, lambda: (torch.randn(2, 6), torch.randn(2, 5))),
    Network(
        "InstanceNorm, Upsample",
        _plain(
            nn.Conv2d(3, 4, 3, 1, 1),
            nn.InstanceNorm2d(4, affine=True),
            nn.Upsample(scale_factor=2),
            nn.Softplus(),
        ),
        _image(2, 3, 8, 8),
    ),
)
