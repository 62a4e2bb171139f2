"""The user's own line is in what is said of a converted model, by every way of converting."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from torch import nn

import sardonyx as sx
from sardonyx.conversion.candidate import Candidate
from sardonyx.conversion.quiet import quiet
from sardonyx.conversion.request import Example, Request
from sardonyx.conversion.torch.frontend import routes
from sardonyx.errors import ConvertError, RunError


class Lookup(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(6, 3))
        self.head = nn.Linear(3, 2)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        rows = self.table[index]
        return self.head(rows).relu()


class Branching(Lookup):
    def forward(self, index: torch.Tensor) -> torch.Tensor:
        rows = self.table[index]
        if rows.sum() > 0:
            rows = rows * 2
        return self.head(rows).relu()


def _line(model: nn.Module, text: str) -> str:
    lines, start = inspect.getsourcelines(type(model).forward)
    number = next(start + i for i, line in enumerate(lines) if text in line)
    return f"test_torch_source_lines.py:{number}"


def _by(name: str, model: nn.Module, example: torch.Tensor | None = None) -> Candidate:
    request = Request(model, (Example((torch.tensor([1, 2]) if example is None else example,)),))
    with quiet():
        return next(route.make() for route in routes(request) if route.name == name)


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("torch.export", Lookup),
        ("torch.export, control flow rewritten", Branching),
        ("torch.jit.script", Branching),
        ("torch.jit.trace", Lookup),
    ],
)
def test_inspect_names_the_line(way: str, kind: type[nn.Module]) -> None:
    model = kind()
    rows = sx.inspect(_by(way, model).model).nodes
    by_op = {row.op: row.source for row in rows}
    assert by_op["Relu"] == _line(model, "relu()")
    assert _line(model, "self.table[index]") in {row.source for row in rows}
    if kind is Branching:
        assert by_op["Mul"] == _line(model, "rows * 2")
        assert by_op["If"] == _line(model, "if rows.sum()")


def test_a_profile_row_names_the_line() -> None:
    model = Lookup()
    session = sx.Session(_by("torch.export", model).model)
    profile = session.profile({"index": np.array([1, 2])}, runs=1, warmup=0)
    sources = {node.source for step in profile.steps for node in step.nodes}
    assert sources == {_line(model, "self.table[index]"), _line(model, "relu()")}


def test_an_error_names_the_line() -> None:
    model = Lookup()
    session = sx.Session(_by("torch.export", model).model)
    with pytest.raises(RunError) as raised:
        session.run_all({"index": np.array([1, 99])})
    assert raised.value.source == _line(model, "self.table[index]")


def test_weights_keep_their_names() -> None:
    names = set(_by("torch.export", Lookup()).model.graph.initializers)
    assert {"head.weight", "head.bias"} <= names


class Unsupported(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svd(x).U


def test_what_has_no_translation_is_refused_with_its_line() -> None:
    model = Unsupported()
    with pytest.raises(ConvertError) as raised:
        _by("torch.export", model, torch.randn(3, 4))
    assert raised.value.source == _line(model, "torch.linalg.svd")
    assert "translations" in str(raised.value)
