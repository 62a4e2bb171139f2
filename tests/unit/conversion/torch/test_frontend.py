"""What is asked of a conversion is what comes out, and what cannot be is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

from sardonyx.conversion.convert import Converted, convert_model
from sardonyx.conversion.request import Example, Request
from sardonyx.errors import ConvertError, InputError, SardonyxError

X = torch.randn(2, 4)


def _convert(model: Any, *tensors: Any, **wanted: Any) -> Converted:
    request = Request(model, (Example(tensors),) if tensors else (), **wanted)
    return convert_model(request, framework="torch", engine="reference")


@pytest.mark.parametrize("opset", [16, 18, 21])
def test_the_opset_is_the_one_asked_for(opset: int) -> None:
    assert _convert(nn.Linear(4, 2), X, opset=opset).model.graph.opset_imports[""] == opset


def test_training_on_changes_nothing_in_the_result() -> None:
    model = nn.Linear(4, 2)
    converted = _convert(model, X)
    before = converted.model.graph.initializers["weight"].const_value.numpy().copy()
    with torch.no_grad():
        model.weight.zero_()
    after = converted.model.graph.initializers["weight"].const_value.numpy()
    np.testing.assert_array_equal(before, after)
    assert before.any()


def test_notes_say_what_was_decided_for_the_user() -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
            return x * scale

    notes = " ".join(_convert(Scaled(), X, 2.5, dynamic={"x": {0: "batch"}}).notes)
    assert "training mode" in notes
    assert "scale=2.5" in notes
    assert "dynamic axes of x: 0 (batch)" in notes


def test_a_user_name_that_the_graph_has_already() -> None:
    class Two(nn.Module):
        def forward(self, relu: torch.Tensor) -> torch.Tensor:
            return relu.relu().exp()

    graph = _convert(Two(), X, output_names=("relu_out",)).model.graph
    names = [value.name for node in graph for value in node.outputs] + [graph.inputs[0].name]
    assert len(names) == len(set(names))
    assert graph.inputs[0].name == "relu"


def test_sizes_that_are_related_keep_their_names() -> None:
    class Pads(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, x], 1)

    graph = _convert(Pads(), X, dynamic={"x": {1: "width"}}).model.graph
    dim = graph.outputs[0].shape[1]
    assert isinstance(dim, ir.SymbolicDim)
    assert "width" in str(dim.value)


def test_an_axis_that_the_code_fixes_is_refused() -> None:
    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(2, 4) * 2

    with pytest.raises(ConvertError, match="takes no other batch than 2"):
        _convert(Fixed(), X, dynamic={"x": {0: "batch"}})


def test_a_python_loop_over_an_open_axis_stays_one() -> None:
    class Unrolled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total = torch.zeros(4)
            for row in x:
                total = total * 0.5 + row
            return total

    converted = _convert(Unrolled(), torch.randn(3, 4), dynamic={"x": {0: "time"}})
    assert converted.route == "torch.jit.script"
    assert "Loop" in {node.op_type for node in converted.model.graph}


def test_notes_say_what_a_call_writes_into() -> None:
    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x.mul_(2)

    notes = " ".join(_convert(Writes(), X).notes)
    assert "writes into x;" in notes
    assert "changes the module's calls;" in notes


@pytest.mark.parametrize(
    ("wanted", "match"),
    [
        ({"input_names": ("a", "b")}, "2 names for 1 inputs"),
        ({"output_names": ("a", "a")}, "2 names for 1 outputs"),
        ({"dynamic": {"y": {0: "batch"}}}, "no input 'y'"),
        ({"options": {"translations": {"no::such": print}}}, "no operator 'no::such'"),
    ],
)
def test_what_does_not_fit_is_refused(wanted: dict[str, Any], match: str) -> None:
    with pytest.raises(SardonyxError, match=match):
        _convert(nn.ReLU(), X, **wanted)


def test_no_example_and_a_failing_one() -> None:
    with pytest.raises(InputError, match="no example inputs"):
        _convert(nn.ReLU())
    with pytest.raises(InputError, match="fails on the example"):
        _convert(nn.Linear(3, 2), X)


def test_files_that_are_none(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.pt"
    damaged.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(SardonyxError, match=r"damaged\.pt"):
        _convert(damaged, X)
    weights = tmp_path / "weights.pt"
    torch.save(nn.Linear(4, 2).state_dict(), weights)
    with pytest.raises(InputError, match="weights alone"):
        _convert(weights, X)
    with pytest.raises(InputError, match="do not fit"):
        _convert(
            weights,
            X,
            options={"class": nn.Linear, "arguments": {"in_features": 5, "out_features": 2}},
        )
    with pytest.raises(InputError, match=r"no class 'torch\.nn:Nothing'"):
        _convert(weights, X, options={"class": "torch.nn:Nothing"})
    fits = {"class": "torch.nn:Linear", "arguments": {"in_features": 4, "out_features": 2}}
    assert _convert(weights, X, options=fits).verification.ok
