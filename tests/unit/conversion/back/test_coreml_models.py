"""Whole models as CoreML's: what is described, what is refused, and what the proof sees."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from typer.testing import CliRunner

pytest.importorskip("onnxruntime")
if importlib.util.find_spec("coremltools") is None:  # importing it takes seconds
    pytest.skip("coremltools is not installed", allow_module_level=True)

import sardonyx as sx
from sardonyx.cli import build_app
from sardonyx.conversion.back.coreml import operators
from sardonyx.conversion.back.coreml.model import Written, write_coreml
from sardonyx.conversion.coreml.specification import read_specification
from sardonyx.errors import ConvertError, InputError, UnsupportedError

_HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
_FLOAT32, _INT32 = 65568, 131104


def _model(text: str) -> Any:
    return sx.load(onnx.parser.parse_model(f"{_HEAD} {text}"))


def _written(text: str, **how: Any) -> Written:
    return write_coreml(_model(text), engine="onnxruntime", **how)


def test_open_axes_are_ranges_and_the_default_lies_in_them() -> None:
    written = _written("g (float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }")
    (port,) = written.specification.description.input
    array = port.type.multiArrayType
    assert (list(array.shape), array.dataType) == ([1, 3], _FLOAT32)
    bounds = [(one.lowerBound, one.upperBound) for one in array.shapeRange.sizeRanges]
    assert bounds == [(1, -1), (3, 3)]
    (result,) = written.specification.description.output
    assert list(result.type.multiArrayType.shape) == []
    assert written.verification is not None
    assert len({trial.what for trial in written.verification.trials}) == 4
    assert "not run" in written.notes[0]


def test_a_size_that_is_given_is_fixed() -> None:
    text = "g (float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }"
    written = _written(text, dims={"batch": 2})
    (port,) = written.specification.description.input
    assert list(port.type.multiArrayType.shape) == [2, 3]
    assert not port.type.multiArrayType.HasField("shapeRange")
    with pytest.raises(InputError, match="The dimensions are: batch"):
        _written(text, dims={"bach": 2})


def test_integers_and_truths_are_arrays_of_int32() -> None:
    written = _written(
        "g (int64[2, 4] i) => (int64[2, 4] j, bool[2, 4] k)"
        "{ j = Add(i, i) zero = Constant<value_int = 3>() k = Greater(j, zero) }"
    )
    ports = [*written.specification.description.input, *written.specification.description.output]
    assert [port.type.multiArrayType.dataType for port in ports] == [_INT32] * 3
    assert any("exact up to 16,777,216" in note for note in written.notes)


def test_outputs_that_are_inputs_or_twice_the_same_are_copied() -> None:
    written = _written(
        "g (float[3] x) => (float[3] a, float[3] b, float[3] c)"
        "{ a = Identity(x) b = Relu(x) c = Relu(x) }"
    )
    names = [port.name for port in written.specification.description.output]
    made = [name for layer in written.specification.neuralNetwork.layers for name in layer.output]
    assert names == ["a", "b", "c"]
    assert set(names) <= set(made)
    assert len(made) == len(set(made))


def test_scalars_are_arrays_of_one() -> None:
    written = _written("g (float[2, 3] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }")
    (port,) = written.specification.description.output
    assert list(port.type.multiArrayType.shape) == [1]


def test_names_become_identifiers_and_that_is_told() -> None:
    model = _model("g (float[3] x) => (float[3] y) { y = Relu(x) }")
    model.graph.inputs[0].name = "serving/x:0"
    written = write_coreml(model, engine="onnxruntime")
    assert written.specification.description.input[0].name == "serving_x_0"
    assert any("is called serving_x_0" in note for note in written.notes)


def test_all_that_cannot_be_written_is_told_at_once() -> None:
    with pytest.raises(UnsupportedError) as refused:
        _written(
            "g (float[3, 3] x) => (float a, int64[2, n] b, float[1, 1, 1, 1, 3, 3] c) {"
            " a = Det(x) b = NonZero(x)"
            " axes = Constant<value_ints = [0, 1, 2, 3]>() d = Unsqueeze(x, axes) c = Relu(d) }"
        )
    text = str(refused.value)
    assert "'Det'" in text
    assert "'NonZero'" in text
    assert "has 6 axes" in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("g (double[3] x) => (double[3] y) { y = Relu(x) }", "compute in float32"),
        (
            "g (float[n, m, 4] x, float[n, m, 4] z) => (float[k, 4] y)"
            "{ s = Constant<value_ints = [-1, 2, 2]>() a = Reshape(x, s) t = Shape(x) b = ConstantOfShape(t)"
            " c = Add(b, z) d = ReduceSum(c) y = Add(a, d) }",
            "--dim",
        ),
        (
            "g (float[3] x) => (float[3] y)"
            "{ big = Constant<value_int = 16777217>() f = Cast<to = 1>(big) y = Mul(x, f) }",
            "",
        ),
        (
            "g (int64[3] x) => (int64[3] y)"
            "{ big = Constant<value_ints = [16777217, 1, 2]>() y = Mul(x, big) }",
            "integers above 16,777,216",
        ),
        (
            "g (float[1, 2, 9, 9] x) => (float[1, 2, 5, 5] y)"
            "{ y = MaxPool<kernel_shape = [3, 3], dilations = [2, 2]>(x) }",
            "windows are dilated",
        ),
        (
            "g (float[1, 2, 4, 4] x, float[3, 2, 1, 1] w) => (float[1, 3, 4, 4] y) { y = Conv(x, w) }",
            "weights must be known",
        ),
    ],
)
def test_refusals_say_why(text: str, why: str) -> None:
    if not why:
        _written(text)
        return
    with pytest.raises(UnsupportedError, match=why):
        _written(text)


def test_the_proof_sees_a_wrong_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        operators.TABLE,  # type: ignore[arg-type]
        "Relu",
        lambda step: step.layer("activation", step[0], leakyReLU={"alpha": 0.01}),
    )
    with pytest.raises(ConvertError, match="answer otherwise"):
        _written("g (float[3] x) => (float[3] y) { y = Relu(x) }")


def test_the_command_writes_a_file_and_says_that_it_was_not_run(tmp_path: Path) -> None:
    source, target = tmp_path / "net.onnx", tmp_path / "net.mlmodel"
    sx.save(_model("g (float[n, 3] x) => (float[n, 3] y) { y = Relu(x) }"), source)
    arguments = ["back", str(source), "--to", "coreml", "-o", str(target)]
    done = CliRunner().invoke(build_app(), [*arguments, "--dim", "n=2", "--no-verify"])
    assert done.exit_code == 0, done.output
    assert "written, not run" in done.output
    assert "specification version 4" in done.output
    kept = read_specification(target)
    assert list(kept.description.input[0].type.multiArrayType.shape) == [2, 3]
    (layer,) = kept.neuralNetwork.layers
    assert layer.activation.WhichOneof("NonlinearityType") == "ReLU"


def test_what_is_refused_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "net.mlmodel"
    target.write_bytes(b"old")
    with pytest.raises(UnsupportedError):
        sx.to_coreml(_model("g (float[3, 3] x) => (float y) { y = Det(x) }"), file=target)
    assert target.read_bytes() == b"old"


def test_other_frameworks_do_not_take_its_options(tmp_path: Path) -> None:
    source = tmp_path / "net.onnx"
    sx.save(_model("g (float[n, 3] x) => (float[n, 3] y) { y = Relu(x) }"), source)
    arguments = ["back", str(source), "--to", "torch", "-o", str(tmp_path / "out"), "--dim", "n=2"]
    assert CliRunner().invoke(build_app(), arguments).exit_code != 0


def test_layers_of_a_whole_network_are_few() -> None:
    """Constants are folded and merged before the walk: a normalisation is part of its convolution."""
    weight = np.ones((4, 3, 1, 1), np.float32)
    graph = onnx.parser.parse_model(
        f"{_HEAD} g (float[1, 3, 4, 4] x) => (float[1, 4, 4, 4] y)"
        "<float[4] s = {1, 2, 3, 4}, float[4] b = {0, 0, 1, 1}>"
        "{ c = Conv(x, w) n = BatchNormalization(c, s, b, b, s) y = Relu(n) }"
    )
    graph.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    written = write_coreml(sx.load(graph), engine="onnxruntime")
    kinds = [layer.WhichOneof("layer") for layer in written.specification.neuralNetwork.layers]
    assert kinds == ["convolution", "activation"]
