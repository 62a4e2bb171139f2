"""torch.compile with our backend: the same answers, or torch's own with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomllib
import torch
from torch import nn

from sardonyx.conversion.torch import compile_backend
from sardonyx.errors import InputError


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        # Of torch itself, while it compiles.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        yield
    torch._dynamo.reset()


def _model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.GELU()).eval()


def test_other_shapes_and_changed_weights() -> None:
    model = _model()
    compiled = torch.compile(model, backend="sardonyx")
    for rows in (2, 3, 2):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), model(x))
    first = compiled(x)
    kept = first.clone()
    compiled(x + 1)
    assert torch.equal(first, kept)  # answers are not written over by the next call
    model[0].weight.mul_(2)
    torch.testing.assert_close(compiled(x), model(x))
    model[0].weight.data.mul_(2)  # past the version counter
    torch.testing.assert_close(compiled(x), model(x))


def test_gradients_are_left_to_torch() -> None:
    model = _model()
    with torch.enable_grad(), pytest.warns(RuntimeWarning, match="gradients would be lost"):
        found = torch.compile(model, backend="sardonyx")(torch.randn(2, 4))
    assert found.grad_fn is not None


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * 2


def test_a_graph_that_writes_runs_in_torch() -> None:
    model = Counts()
    compiled = torch.compile(model, backend="sardonyx")
    with pytest.warns(RuntimeWarning, match="This graph runs in torch"):
        compiled(torch.ones(2))
    compiled(torch.ones(2))
    assert model.calls == 2


def test_random_numbers_run_in_torch() -> None:
    compiled = torch.compile(nn.Dropout(0.5).train(), backend="sardonyx")
    with pytest.warns(RuntimeWarning, match="This graph runs in torch"):
        compiled(torch.ones(1000))
    assert 100 < compiled(torch.ones(1000)).count_nonzero() < 900


def test_unknown_options_are_refused() -> None:
    compiled = torch.compile(_model(), backend="sardonyx", options={"speed": 9})
    with pytest.raises(Exception, match="no option 'speed'") as refused:
        compiled(torch.randn(2, 4))
    assert isinstance(refused.value, InputError) or "InputError" in repr(refused.value)


def test_the_entry_point_names_the_backend() -> None:
    text = (Path(__file__).parents[4] / "pyproject.toml").read_text()
    named = tomllib.loads(text)["project"]["entry-points"]["torch_dynamo_backends"]["sardonyx"]
    module, _, function = named.partition(":")
    assert module == compile_backend.__name__
    assert callable(getattr(compile_backend, function))
