"""The answers that a conversion is held to, and the user's model left as it was."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from torch import nn

from sardonyx.conversion.quiet import quiet
from sardonyx.conversion.request import Example
from sardonyx.conversion.torch.arrays import to_array, to_tensor
from sardonyx.conversion.torch.reference import Reference, inference
from sardonyx.conversion.torch.structure import layout_of, signature_of


def _reference(model: object, *tensors: torch.Tensor) -> tuple[Reference, dict[str, np.ndarray]]:
    layout = layout_of(signature_of(model), Example(tensors))
    feeds = {n: to_array(t) for n, t in zip(layout.names, layout.tensors, strict=True)}
    return Reference(model, layout, layout.names), feeds


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.last = None
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.last = x
        self.seen.append(len(self.seen))
        return x * self.calls + len(self.seen)


def test_every_call_begins_from_the_state_of_the_user() -> None:
    model = Remembers()
    reference, feeds = _reference(model, torch.ones(2))
    assert [reference.answer(feeds)[0].tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    assert model.calls == 0
    assert model.last is None
    assert model.seen == []


def test_eval_mode_and_back() -> None:
    model = nn.Sequential(nn.Dropout(0.9), nn.Sequential(nn.BatchNorm1d(3))).train()
    model[1].eval()
    reference, feeds = _reference(model, torch.ones(4, 3))
    np.testing.assert_allclose(reference.answer(feeds)[0], 1, atol=1e-4)
    assert model.training
    assert model[0].training
    assert not model[1].training
    assert model[1][0].num_batches_tracked == 0


def test_the_fast_path_is_off_and_comes_back() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1).eval()
    padding = torch.tensor([[False, False, True], [False, False, True]])
    x = torch.randn(2, 3, 8)
    with torch.no_grad(), quiet():  # nested tensors are a prototype, torch says
        fast = model(x, src_key_padding_mask=padding)
    with inference(model):
        slow = model(x, src_key_padding_mask=padding)
    assert fast.shape[1] < slow.shape[1] or not fast[:, 2].any()  # what the fast path does there
    assert slow.shape == x.shape
    assert slow[:, 2].abs().sum() > 0
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_function_that_closes_over_a_module() -> None:
    module = nn.Dropout(0.5).train()
    reference, feeds = _reference(lambda x: module(x), torch.ones(50))
    assert reference.answer(feeds)[0].tolist() == [1.0] * 50
    assert module.training


GLOBAL = nn.Dropout(0.5).train()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: GLOBAL(x),
        functools.partial(lambda scale, x: GLOBAL(x) * scale, 1.0),
        functools.partial(lambda x, module: module(x), module=GLOBAL),
        GLOBAL.forward,
    ],
    ids=["global", "partial", "keyword", "method"],
)
def test_modules_that_a_function_holds_are_in_eval_mode(function: object) -> None:
    reference, feeds = _reference(function, torch.ones(50))
    assert reference.answer(feeds)[0].tolist() == [1.0] * 50
    assert GLOBAL.training


def test_conditions_of_torch_are_run_as_they_are() -> None:
    def both(x: torch.Tensor) -> torch.Tensor:
        (y,) = torch.while_loop(lambda y: y.sum() < 10, lambda y: (y * 2,), (x,))
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (y,))

    cond = torch.cond
    reference, feeds = _reference(both, torch.ones(2))
    assert reference.answer(feeds)[0].tolist() == [9.0, 9.0]
    assert torch.cond is cond


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(3, 2),
        torch.randn(3, 2).to(torch.bfloat16),
        torch.tensor([1, 2], dtype=torch.uint8),
        torch.randn(2, 3, dtype=torch.complex64),
        torch.randn(4, 5).T,
    ],
    ids=lambda tensor: str(tensor.dtype),
)
def test_arrays_and_back(tensor: torch.Tensor) -> None:
    again = to_tensor(to_array(tensor), tensor)
    assert again.dtype == tensor.dtype
    assert torch.equal(again, tensor)
