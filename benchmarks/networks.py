"""The torch side of the standard set: nine networks at their true sizes, and the weights they get.

The convolutional ones are written out here, the transformers come from their configs. The weights are
random, but behave like trained ones: activations keep their scale through the depth, BatchNorm has the
statistics of the activations it meets, attention is neither flat nor saturated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import transformers
from torch import Tensor, nn
from transformers.initialization import no_init_weights
from transformers.models.vit.modeling_vit import ViTEmbeddings
from transformers.models.whisper.modeling_whisper import WhisperEncoder
from transformers.pytorch_utils import Conv1D

# ---------------------------------------------------------------- convolutional networks


def conv_norm(
    inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    padding = kernel // 2
    conv = nn.Conv2d(inner, outer, kernel, stride, padding, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outer)]


class Bottleneck(nn.Module):
    """1×1 → 3×3 (strided) → 1×1, plus a shortcut that is projected where the shape changes."""

    def __init__(self, inner: int, width: int, stride: int) -> None:
        super().__init__()
        outer = 4 * width
        self.body = nn.Sequential(
            *conv_norm(inner, width, 1),
            nn.ReLU(),
            *conv_norm(width, width, 3, stride),
            nn.ReLU(),
            *conv_norm(width, outer, 1),
        )
        changes = stride != 1 or inner != outer
        self.shortcut = nn.Sequential(*conv_norm(inner, outer, 1, stride) if changes else ())
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.body(x) + self.shortcut(x))


class SqueezeExcite(nn.Module):
    """Each channel is scaled by a gate computed from the means of all channels."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.Conv2d(channels, squeezed, 1),
            nn.SiLU(),
            nn.Conv2d(squeezed, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x.mean((2, 3), keepdim=True))


@dataclass(frozen=True)
class InvertedStyle:
    """What tells EfficientNet's blocks from MobileNetV2's."""

    activation: type[nn.Module]
    excite: bool


class InvertedResidual(nn.Module):
    """Widen 1×1 → depthwise k×k → (squeeze-excite) → narrow 1×1, with a shortcut where the shape stays."""

    def __init__(
        self, inner: int, outer: int, expand: int, kernel: int, stride: int, style: InvertedStyle
    ) -> None:
        super().__init__()
        wide = inner * expand
        widen = [*conv_norm(inner, wide, 1), style.activation()] if expand != 1 else []
        depthwise = [*conv_norm(wide, wide, kernel, stride, groups=wide), style.activation()]
        gate = [SqueezeExcite(wide, inner // 4)] if style.excite else []
        self.body = nn.Sequential(*widen, *depthwise, *gate, *conv_norm(wide, outer, 1))
        self.residual = stride == 1 and inner == outer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.residual else self.body(x)


class Classifier(nn.Module):
    """Feature maps, their mean over the image (of any size), 1000 classes."""

    def __init__(self, features: Sequence[nn.Module], channels: int) -> None:
        super().__init__()
        self.features = nn.Sequential(*features)
        self.head = nn.Linear(channels, 1000)

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.head(self.features(pixel_values).mean((2, 3)))


def resnet50() -> nn.Module:
    features = [*conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]
    channels = 64
    for width, repeats, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for index in range(repeats):
            features.append(Bottleneck(channels, width, stride if index == 0 else 1))
            channels = 4 * width
    return Classifier(features, channels)


# fmt: off
#                  expand, kernel, stride, channels, repeats
MOBILENET_V2    = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 3, 2, 32, 3), (6, 3, 2, 64, 4),
                   (6, 3, 1, 96, 3), (6, 3, 2, 160, 3), (6, 3, 1, 320, 1)]
EFFICIENTNET_B0 = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
                   (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)]
# fmt: on


def inverted_residuals(stages: Sequence[tuple[int, ...]], style: InvertedStyle) -> nn.Module:
    features = [*conv_norm(3, 32, 3, 2), style.activation()]
    channels = 32
    for expand, kernel, stride, outer, repeats in stages:
        for index in range(repeats):
            step = stride if index == 0 else 1
            features.append(InvertedResidual(channels, outer, expand, kernel, step, style))
            channels = outer
    return Classifier([*features, *conv_norm(channels, 1280, 1), style.activation()], 1280)


def mobilenet_v2() -> nn.Module:
    return inverted_residuals(MOBILENET_V2, InvertedStyle(nn.ReLU6, excite=False))


def efficientnet_b0() -> nn.Module:
    return inverted_residuals(EFFICIENTNET_B0, InvertedStyle(nn.SiLU, excite=True))


# ---------------------------------------------------------------- transformers and the rest


class Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with no_init_weights():  # seconds of drawing weights that `seed_weights` replaces
            self.model = transformers.BertModel(transformers.BertConfig())

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor
    ) -> tuple[Tensor, Tensor]:
        found = self.model(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return found.last_hidden_state, found.pooler_output


class Gpt2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with no_init_weights():
            self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
        self.model.tie_weights()  # left out above as well: one table embeds tokens and scores them

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model(input_ids, attention_mask=attention_mask).logits


class ResizedPositions(ViTEmbeddings):
    """ViT's embeddings for an image of any size: the learned positions, resized to the image's own grid.

    The grid is read from the patches themselves. The base class computes it a second time from the image,
    and no exporter can prove that both are the same number.
    """

    def forward(self, pixel_values: Tensor, **_: object) -> Tensor:
        patches = self.patch_embeddings.projection(pixel_values)  # [batch, 768, rows, columns]
        side = int(self.patch_embeddings.num_patches**0.5)
        learned = self.position_embeddings[:, 1:].transpose(1, 2).reshape(1, -1, side, side)
        positions = nn.functional.interpolate(learned, size=patches.shape[2:], mode="bicubic")
        tokens = (patches + positions).flatten(2).transpose(1, 2)
        first = self.cls_token + self.position_embeddings[:, :1]
        return torch.cat((first.expand(pixel_values.shape[0], -1, -1), tokens), dim=1)


class Vit(nn.Module):
    def __init__(self, *, any_size: bool = False) -> None:
        super().__init__()
        config = transformers.ViTConfig(num_labels=1000)
        with no_init_weights():
            self.model = transformers.ViTForImageClassification(config)
        if any_size:
            self.model.vit.embeddings = ResizedPositions(config)

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.model(pixel_values).logits


class Whisper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = WhisperEncoder(transformers.WhisperConfig())

    def forward(self, input_features: Tensor) -> Tensor:
        return self.model(input_features).last_hidden_state


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(128, 256, num_layers=2, batch_first=True)
        self.head = nn.Linear(256, 10)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.lstm(features)
        return self.head(states[:, -1]), states


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


# ---------------------------------------------------------------- seeded weights


def seed_weights(net: nn.Module, seed: int) -> nn.Module:
    """Fill every learned parameter so that activations keep their scale; returns `net` in eval mode."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        for module in net.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.requires_grad:  # Whisper's sinusoidal positions are not learned
                    fill(module, name, parameter)
        for module in net.modules():
            if isinstance(module, Bottleneck | InvertedResidual):
                # a trained block corrects its shortcut; one that replaces it makes rounding errors grow
                module.body[-1].weight.mul_(0.25)
        net.eval()
        calibrate_batch_norm(net)
    return net


def fill(module: nn.Module, name: str, parameter: nn.Parameter) -> None:
    if isinstance(module, nn.LayerNorm | nn.BatchNorm2d) and name == "weight":
        parameter.uniform_(0.5, 1.5)
    elif parameter.dim() == 1:
        parameter.normal_(0, 0.1)
    else:
        if isinstance(module, Conv1D):  # transformers keeps this one as [in, out]
            fan_in = parameter.shape[0]
        elif isinstance(module, ViTEmbeddings):  # tables, not matrices: [1, positions, hidden]
            fan_in = parameter.shape[-1]
        else:
            fan_in = parameter[0].numel()
        scale = fan_in**-0.5
        parameter.normal_(0, scale).clamp_(-3 * scale, 3 * scale)


def calibrate_batch_norm(net: nn.Module) -> None:
    """Give each BatchNorm the mean and variance that its input really has, as training would."""
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    if not norms:
        return
    for norm in norms:
        norm.train()
        norm.reset_running_stats()
        norm.momentum = None  # the statistics of this one batch, not a moving average from zero
    net(torch.randn(4, 3, 224, 224))  # smaller ones would be mostly padding in the last layers
    net.eval()
