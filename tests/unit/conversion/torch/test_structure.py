"""Calls of any structure become named tensors, and the same call again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from sardonyx.conversion.quiet import quiet
from sardonyx.conversion.request import Example
from sardonyx.conversion.torch.structure import answers_of, layout_of, signature_of
from sardonyx.errors import InputError


@dataclass
class Batch:
    ids: torch.Tensor
    scale: float = 1.0


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class Takes(nn.Module):
    def forward(self, x, batch, *rest, mode="a", extra=None, **more):
        return x


X = torch.ones(2)


def test_names_follow_the_signature_and_the_structure() -> None:
    example = Example(
        (X, {"k": [X, X], "b": Batch(X)}, X), {"z": X, "extra": Pair(X, X), "mode": "b"}
    )
    layout = layout_of(signature_of(Takes()), example)
    assert layout.names == (
        *("x", "batch.k_0", "batch.k_1", "batch.b.ids", "rest_0"),
        *("extra.left", "extra.right", "z"),
    )
    assert layout.constants == {"batch.b.scale": 1.0, "mode": "b"}


def test_the_call_is_put_together_with_other_tensors() -> None:
    example = Example((X, {"p": Pair(X, X)}), {"extra": Batch(X, 3.0)})
    layout = layout_of(signature_of(Takes()), example)
    new = [torch.full((2,), float(i)) for i in range(4)]
    args, kwargs = layout.call(new)
    assert args[0] is new[0]
    assert isinstance(args[1]["p"], Pair)
    assert args[1]["p"].right is new[2]
    assert kwargs["extra"] == Batch(new[3], 3.0)


def test_numpy_arrays_are_tensors() -> None:
    layout = layout_of(signature_of(Takes()), Example((np.ones((2, 3), np.float32), X)))
    assert layout.tensors[0].shape == (2, 3)


def test_a_call_that_does_not_fit_says_so() -> None:
    with pytest.raises(InputError, match="does not fit forward"):
        layout_of(signature_of(nn.ReLU()), Example((X, X)))
    with pytest.raises(InputError, match="no tensor"):
        layout_of(signature_of(Takes()), Example((1, 2)))


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (X, ("output_0",)),
        ((X, (X, X)), ("output_0", "output_1", "output_2")),
        ({"a": X, "b": (X, None, X)}, ("a", "b_0", "b_2")),
        (Pair(X, X), ("left", "right")),
        (Batch(X, 2.0), ("ids", "scale")),
        ((X, 3), ("output_0", "output_1")),
    ],
)
def test_names_of_outputs(result: object, names: tuple[str, ...]) -> None:
    found, tensors = answers_of(result)
    assert found == names
    assert all(isinstance(tensor, torch.Tensor) for tensor in tensors)


def test_a_function_written_in_c_has_numbered_inputs() -> None:
    assert layout_of(signature_of(torch.add), Example((X, X))).names == ("input_0", "input_1")


def test_a_script_has_the_names_of_its_schema() -> None:
    class Two(nn.Module):
        def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
            return first + second

    with quiet():  # torch says that it is deprecated
        script = torch.jit.trace(Two(), (X, X))
    assert layout_of(signature_of(script), Example((X, X))).names == ("first", "second")
