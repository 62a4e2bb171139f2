"""Small modules and functions of PyTorch, one for each thing that converters get wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# ---------------------------------------------------------------- decisions by data


class BranchOnSum(nn.Module):
    """A plain if on a tensor's value."""

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y + 1


class EarlyReturn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.small = nn.Linear(4, 3)
        self.large = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        if x.abs().max() > 3.0:
            return self.large(x / 10)
        h = torch.tanh(x)
        return self.small(h)


class Ladder(nn.Module):
    """if, elif, else, with `and` between two tensors."""

    def forward(self, x: Tensor, threshold: Tensor) -> Tensor:
        mean = x.mean()
        if mean > threshold and x.max() > 0:
            x = x - mean
            scale = 2.0
        elif mean < -threshold:
            x = x + mean
            scale = 0.5
        else:
            scale = 1.0
        return x * scale


class Ternary(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.relu() if x.mean() > 0 else x.sigmoid()


class ItemBranch(nn.Module):
    """The value is taken out as a number before it decides."""

    def forward(self, x: Tensor) -> Tensor:
        level = x.norm().item()
        if level > 4.0:
            x = x / level
        return x


class HalveUntilSmall(nn.Module):
    """A while loop whose count depends on the data."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        steps = torch.zeros((), dtype=torch.int64)
        while x.abs().max() > 1.0:
            x = x / 2
            steps = steps + 1
        return x, steps


class CountedLoop(nn.Module):
    """As often as an input says."""

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        for i in range(int(n)):
            x = x * 0.5 + i
        return x


class NewtonWithBreak(nn.Module):
    """At most ten steps, fewer once they become small."""

    def forward(self, x: Tensor) -> Tensor:
        guess = torch.ones_like(x)
        for _ in range(10):
            step = (guess - x / guess) / 2
            guess = guess - step
            if step.abs().max() < 1e-4:
                break
        return guess


class CheckedInput(nn.Module):
    """Data that it will not take is an error, not an answer."""

    def forward(self, x: Tensor) -> Tensor:
        if torch.isnan(x).any():
            raise ValueError("NaN in the input")
        assert (x < 1e6).all(), "too large"
        return x.sqrt()


class GatedBlock(nn.Module):
    """The decision is in a submodule, and in a loop over a list of them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Gate(4) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        if h.mean() > 0:
            h = torch.relu(h)
        return x + h


class InPlaceBranch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        if x[0, 0] > 0:
            y[:, 0] = 0
            y += 1
        return y * 2


class CollectUntil(nn.Module):
    """A list that grows while the data say so: only scripting can say this."""

    def forward(self, x: Tensor) -> Tensor:
        parts = [x]
        while x.sum() > 1.0:
            x = x / 2
            parts.append(x)
        return torch.stack(parts).sum(0)


class WrittenAsCond(nn.Module):
    """The user has written torch.cond and torch.while_loop already."""

    def forward(self, x: Tensor) -> Tensor:
        (x,) = torch.while_loop(lambda v: v.abs().max() > 1.0, lambda v: (v / 2,), (x,))
        return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v * 2, (x,))


class NumpyInside(nn.Module):
    """What no exporter can see: another library computes."""

    def forward(self, x: Tensor) -> Tensor:
        middle = np.median(x.numpy(), axis=0)
        return x - torch.from_numpy(middle)


def clip_by_norm(x: Tensor, limit: float = 1.0) -> Tensor:
    norm = torch.linalg.vector_norm(x)
    if norm > limit:
        x = x * (limit / norm)
    return x


# ---------------------------------------------------------------- structures


@dataclass
class Batch:
    ids: Tensor
    weights: Tensor


class Scores(NamedTuple):
    best: Tensor
    index: Tensor


class DictIn(nn.Module):
    def forward(self, batch: dict[str, Tensor], scale: float = 1.0) -> dict[str, Tensor]:
        return {"sum": batch["a"] + batch["b"], "product": batch["a"] * batch["b"] * scale}


class Keywords(nn.Module):
    def forward(self, x: Tensor, *, bias: Tensor, twice: bool = False) -> Tensor:
        y = x + bias
        return y * 2 if twice else y


class DataclassIn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, batch: Batch) -> Scores:
        pooled = (self.table(batch.ids) * batch.weights[..., None]).sum(1)
        best, index = pooled.max(-1)
        return Scores(best, index)


class Nested(nn.Module):
    def forward(self, pair: tuple[Tensor, list[Tensor]]) -> dict[str, list[Tensor]]:
        x, others = pair
        return {"sums": [x + other for other in others], "all": [torch.stack(others).sum(0)]}


class UnusedInput(nn.Module):
    def forward(self, x: Tensor, unused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = x.exp()
        return y, x, y


# ---------------------------------------------------------------- layers


class BiLstm(nn.Module):
    def __init__(self, kind: type[nn.RNNBase] = nn.LSTM, layers: int = 2) -> None:
        super().__init__()
        self.rnn = kind(6, 5, num_layers=layers, bidirectional=True, batch_first=True)
        self.head = nn.Linear(10, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.rnn(x)
        return self.head(states[:, -1]), states


class PackedLstm(nn.Module):
    """Sequences of different lengths, packed."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(6, 5, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        states, _ = self.rnn(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        return padded


class PaddedEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        return self.encoder(x, src_key_padding_mask=padding)


class CausalDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 1)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.decoder(x, memory, tgt_mask=mask, tgt_is_causal=True)


class CrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, kdim=8, vdim=8, batch_first=True)

    def forward(self, query: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        out, weights = self.attention(query, memory, memory)
        return out, weights


class ScaledDotProduct(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class SmallConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.SiLU()
        )
        self.head = nn.Linear(8, 4)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.body(image).mean((2, 3)))


class UNet(nn.Module):
    """Sizes come together again only where they are even."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(6, 3, 2, stride=2)
        self.out = nn.Conv2d(6, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.out(torch.cat([self.up(self.down(image).relu()), image], 1))


class Upsampler(nn.Module):
    def forward(self, image: Tensor) -> Tensor:
        double = F.interpolate(image, scale_factor=2, mode="bilinear", align_corners=False)
        return F.interpolate(double, size=image.shape[-2:], mode="bicubic", align_corners=True)


class Warp(nn.Module):
    def forward(self, image: Tensor, theta: Tensor) -> Tensor:
        grid = F.affine_grid(theta, list(image.shape), align_corners=False)
        return F.grid_sample(
            image, grid, mode="bilinear", padding_mode="border", align_corners=False
        )


class AdaptivePools(nn.Module):
    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        return F.adaptive_avg_pool2d(image, (2, 3)), F.adaptive_max_pool2d(image, 1)


class Spectrum(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        spectrum = torch.fft.rfft(x)
        return spectrum.abs(), torch.fft.irfft(spectrum * 2, n=x.shape[-1])


class LogMel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("bank", torch.rand(33, 10))

    def forward(self, wave: Tensor) -> Tensor:
        spectrum = torch.stft(wave, 64, 16, window=self.window, return_complex=True)
        return torch.log(spectrum.abs().pow(2).transpose(1, 2) @ self.bank + 1e-6)


class ComplexRotation(nn.Module):
    """Rotary positions with complex numbers inside."""

    def forward(self, x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        angles = torch.arange(x.shape[-2], dtype=torch.float32)[:, None] * 0.1
        turned = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(-2)


class ComplexIn(nn.Module):
    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return z * (1 + 2j), z.abs()


class Indexing(nn.Module):
    def forward(self, x: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        picked = x[index]
        return picked, x[:, ::2].flip(0), x[x > 0].sum()


class TopK(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values, index = x.topk(3, dim=-1)
        return values, index, x.argsort(-1, descending=True)


class Einsum(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.einsum("bij,bjk->bik", a, b) + torch.baddbmm(torch.zeros(1), a, b)


# ---------------------------------------------------------------- state


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[:, 1] = y[:, 0] * 2
        y[y < 0] = 0.5
        y.mul_(3).clamp_(max=4)
        view = y[:, :2]
        view += 1
        return y


class Counter(nn.Module):
    """A buffer that every call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x * self.calls + self.mean


class NoisyDropout(nn.Module):
    """Random also in inference."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.randn_like(x)


class TiedWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(12, 6)
        self.head = nn.Linear(6, 12, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.table(ids))


# ---------------------------------------------------------------- autograd functions and operators of one's own


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.sign() * x.abs().sqrt()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return gradient


class UsesAutograd(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return StraightThrough.apply(x) + 1


@torch.library.custom_op("sardonyx_cases::softcap", mutates_args=())
def softcap(x: Tensor, cap: float) -> Tensor:
    return cap * torch.tanh(x / cap)


@softcap.register_fake
def _(x: Tensor, cap: float) -> Tensor:
    return torch.empty_like(x)


class UsesSoftcap(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.sardonyx_cases.softcap(x, 3.0) * 2


class QuantTarget(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Linear(4, 5)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.conv(image).relu().mean((2, 3)))
