"""Networks trained on scikit-learn's digits, quantized: how many answers are still right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

import sardonyx as sx


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


class Transformer(nn.Module):
    """The rows of an image as words of a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.place = nn.Parameter(torch.randn(8, 32) * 0.1)
        self.query, self.key, self.value = (nn.Linear(32, 32) for _ in range(3))
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.wide, self.narrow = nn.Linear(32, 128), nn.Linear(128, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        words = self.embed(x.squeeze(1)) + self.place
        n = self.norm1(words)
        scores = self.query(n) @ self.key(n).transpose(1, 2) / 32**0.5
        words = words + torch.softmax(scores, -1) @ self.value(n)
        words = words + self.narrow(nn.functional.gelu(self.wide(self.norm2(words))))
        return self.head(words.mean(1))


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, Any, Any]:
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], labels[order]
    return images[:1200], labels[:1200], images[1200:], labels[1200:]


def trained(network: nn.Module, images: Any, labels: Any, rounds: int) -> nn.Module:
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    for _ in range(rounds):
        for part in torch.randperm(len(x)).split(100):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[part]), y[part]).backward()
            optimizer.step()
    return network.eval()


def accuracy(model: Any, images: Any, labels: Any) -> float:
    (answer,) = sx.Session(model).run(None, {"x": images})
    return float((answer.argmax(axis=1) == labels).mean())


@pytest.mark.parametrize(("make", "rounds"), [(convolutions, 8), (Transformer, 18)])
def test_accuracy_stays(make: Any, rounds: int, digits: tuple[Any, Any, Any, Any]) -> None:
    images, labels, others, right = digits
    torch.manual_seed(0)
    network = trained(make(), images, labels, rounds)
    example = (torch.from_numpy(others),)
    dynamic = {"x": {0: "batch"}}
    model = sx.convert(network, example, input_names=["x"], dynamic=dynamic, verify=False).model
    plain = accuracy(model, others, right)
    assert plain > 0.92
    batches = [{"x": part} for part in np.split(images[:600], 6)]
    static = sx.quantize(model, batches)
    assert accuracy(static.model, others, right) >= plain - 0.01
    small = sx.quantize(model, method="weight-only", bits=4)
    assert accuracy(small.model, others, right) >= plain - 0.015
