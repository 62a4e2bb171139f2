"""Quantization-aware training on scikit-learn's digits: accuracy, and the same integers when deployed."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

import sardonyx as sx
from sardonyx.conversion.torch.qat.layers import QuantizedLayer
from sardonyx.conversion.torch.qat.quantizers import ActivationQuantizer, round_to_grid
from sardonyx.errors import ConvertError, InputError
from sardonyx.model.save import to_proto


class Block(nn.Module):
    """A residual, so that one value has two readers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        Block(12),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(192, 10),
    )


class Rows(nn.Module):
    """The rows of an image as words of a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.place = nn.Parameter(torch.randn(8, 32) * 0.1)
        self.encoder = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        words = self.embed(x.squeeze(1)) + self.place
        return self.head(self.encoder(words).mean(1))


@pytest.fixture(scope="module")
def digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    found: Any = load_digits()
    x = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(found.target)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    return x[order[:1400]], y[order[:1400]], x[order[1400:]], y[order[1400:]]


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int, rate: float) -> None:
    optimizer = torch.optim.Adam(model.parameters(), rate)
    model.train()
    for epoch in range(epochs):
        if epoch == epochs - 1:
            sx.freeze_qat(model)
        for chosen in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
            optimizer.step()
    model.eval()


def right(answers: Any, y: torch.Tensor) -> float:
    return float((np.asarray(answers).argmax(1) == y.numpy()).mean())


@pytest.mark.parametrize(("make", "epochs"), [(images, 4), (Rows, 10)])
def test_accuracy_holds_and_integers_are_those_of_training(
    make: Any, epochs: int, digits: tuple[torch.Tensor, ...]
) -> None:
    torch.manual_seed(0)
    x, y, test_x, test_y = digits
    model = make()
    train(model, x, y, epochs, 4e-3)
    trained = sx.prepare_qat(model)
    train(trained, x, y, 3, 5e-4)
    with torch.no_grad():
        expected = trained(test_x).numpy()
        assert right(expected, test_y) >= right(model(test_x), test_y) - 0.003

    name = "input" if make is images else "x"
    converted = sx.convert(trained, (test_x[:4],), dynamic={name: {0: "n"}})
    session = sx.Session(converted.model, fallback="refuse")
    (answers,) = session.run(None, {name: test_x.numpy()})
    if (
        make is images
    ):  # integers to the last layer, whose scale and bias are one rounding here, and two in torch
        np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-5)
    else:  # attention and normalisation between them are floats: one that lies at a tie may take the next integer, a step of it
        np.testing.assert_allclose(answers, expected, rtol=1e-3, atol=0.05)
    peer = onnxruntime.InferenceSession(to_proto(converted.model).SerializeToString())
    (others,) = peer.run(None, {name: test_x.numpy()})
    assert right(others, test_y) >= right(expected, test_y) - 0.003


def test_weights_and_biases_are_integers_in_the_file(
    digits: tuple[torch.Tensor, ...],
) -> None:
    model = sx.prepare_qat(images())
    model(digits[0][:8])
    graph = sx.convert(model, (digits[0][:2],)).model.graph
    kinds = {
        initializer.dtype.name if initializer.dtype else None
        for initializer in graph.initializers.values()
        if initializer.const_value is not None and initializer.const_value.size > 12
    }
    assert kinds == {"INT8"}
    convolution = next(node for node in graph if node.op_type == "Conv")
    assert [v.producer().op_type for v in convolution.inputs] == ["DequantizeLinear"] * 3


def test_one_value_has_one_grid() -> None:
    model = sx.prepare_qat(images())
    layers = [m for m in model.modules() if isinstance(m, QuantizedLayer)]
    assert [layer.norm is not None for layer in layers] == [True, True, False, False]
    # The input, what the block reads and adds, what is between its layers, and the block's result before pooling.
    assert sum(isinstance(m, ActivationQuantizer) for m in model.modules()) == 4


def test_gradients_pass_where_nothing_is_cut_off() -> None:
    x = torch.tensor([-3.0, -0.26, 0.0, 0.24, 9.0], requires_grad=True)
    y = round_to_grid(x, torch.tensor(0.5), torch.tensor(4.0), (0, 7))
    torch.testing.assert_close(y, torch.tensor([-2.0, -0.5, 0.0, 0.0, 1.5]))
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0]))


def test_excluded_layers_stay() -> None:
    model = sx.prepare_qat(images(), exclude=["3"])
    assert sum(isinstance(m, QuantizedLayer) for m in model.modules()) == 2


def test_code_that_differs_in_training_has_its_layers_replaced_one_by_one() -> None:
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.dropout(self.layer(x), 0.5, training=self.training)

    model = sx.prepare_qat(Dropping())
    x = torch.randn(64, 4)
    assert (model.train()(x) == 0).any()
    assert not (model.eval()(x) == 0).any()


def test_what_cannot_be_prepared() -> None:
    with pytest.raises(InputError, match="no convolution and no linear layer"):
        sx.prepare_qat(nn.ReLU())
    with pytest.raises(InputError, match="no submodule 'head'"):
        sx.prepare_qat(images(), exclude=["head"])
    with pytest.raises(InputError, match="activations of 'int3'"):
        sx.prepare_qat(images(), activations="int3")
    with pytest.raises(ConvertError, match="seen no data"):
        sx.convert(sx.prepare_qat(images()), (torch.zeros(1, 1, 8, 8),))
    model = sx.prepare_qat(images()).train()
    with pytest.raises(ConvertError, match="to inf"):
        model(torch.full((1, 1, 8, 8), torch.inf))
