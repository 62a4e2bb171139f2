"""Files of TensorFlow's own converter, read here without it and held to answers that its interpreter gave.

`python -m benchmarks.conversions.tflite_models tests/unit/conversion/tflite/data` writes both anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sardonyx.comparison.difference import differences
from sardonyx.comparison.engines import open_engine
from sardonyx.comparison.tolerance import Tolerance
from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Example, Request
from sardonyx.conversion.tflite.reading import read_model
from sardonyx.conversion.tflite.subject import open_subject
from sardonyx.errors import ConvertError, InputError

DATA = Path(__file__).parent / "data"
# Integers may be rounded to the next step, and such steps add up.
STEPS = {
    "cnn_int8": Tolerance(atol=1),
    "unet_int8": Tolerance(atol=3),
    "cnn_16x8": Tolerance(atol=1e-4),
}


@pytest.mark.parametrize("path", sorted(DATA.glob("*.npz")), ids=lambda path: path.stem)
def test_answers(path: Path) -> None:
    source = path.with_suffix(".tflite")
    feeds = open_subject(read_model(source.read_bytes()), Request(source)).examples[0]
    model = convert_model(Request(source), check=False).model
    found = open_engine("onnxruntime", model)(feeds)
    recorded = np.load(path)
    names = [value.name or "" for value in model.graph.outputs]
    assert len(names) == len(recorded.files)
    for name, key in zip(names, recorded.files, strict=True):
        for difference in differences(
            name, found[name], recorded[key], tolerance=STEPS.get(path.stem)
        ):
            assert difference.ok, difference


def test_names_and_open_axes_are_those_of_the_file() -> None:
    model = convert_model(Request(DATA / "cnn.tflite"), check=False).model
    (image,) = model.graph.inputs
    assert image.name == "image"
    assert str(image.shape) == "[batch,16,16,3]"
    assert [value.name for value in model.graph.outputs] == ["output_0"]
    kinds = [node.op_type for node in model.graph]
    assert kinds.count("Transpose") == 1  # where the image comes in
    assert kinds.count("Conv") == 3


def test_quantized_files_are_qdq_with_weights_of_integers() -> None:
    model = convert_model(Request(DATA / "cnn_int8.tflite"), check=False).model
    weights = [
        value.const_value
        for node in model.graph
        if node.op_type == "DequantizeLinear"
        for value in node.inputs[:1]
        if value is not None and value.const_value is not None
    ]
    assert {tensor.dtype.name for tensor in weights} == {"INT8", "INT32"}
    assert {value.dtype.name for value in model.graph.inputs if value.dtype} == {"INT8"}
    assert sum(node.op_type == "Transpose" for node in model.graph) == 1


def test_names_and_batch_as_asked() -> None:
    request = Request(
        DATA / "while.tflite",
        (Example((np.ones((2, 3), np.float32),)),),
        dynamic={"a": {0: "rows"}},
        input_names=("a",),
        output_names=("b",),
        opset=19,
    )
    model = convert_model(request, check=False).model
    assert [value.name for value in model.graph.inputs] == ["a"]
    assert [value.name for value in model.graph.outputs] == ["b"]
    assert str(model.graph.inputs[0].shape) == "[rows,3]"
    assert model.graph.opset_imports[""] == 19


def test_a_signature_is_chosen() -> None:
    path = DATA / "two_signatures.tflite"
    keys = [signature.key for signature in read_model(path.read_bytes()).signatures]
    assert len(keys) == 2
    with pytest.raises(InputError, match="2 signatures"):
        convert_model(Request(path), check=False)
    with pytest.raises(InputError, match="no signature 'other'"):
        convert_model(Request(path, options={"signature": "other"}), check=False)
    moved = next(key for key in keys if "moved" in key)
    model = convert_model(Request(path, options={"signature": moved}), check=False).model
    found = open_engine("reference", model)({"y": np.arange(3, dtype=np.float32)})
    assert found["more"].tolist() == [1.0, 2.0, 3.0]


def test_unknown_operators_are_named_all_at_once() -> None:
    with pytest.raises(ConvertError, match=r"no translation to ONNX for CUSTOM Erfc \(1 times\)"):
        convert_model(Request(DATA / "custom.tflite"), check=False)


@pytest.mark.parametrize(
    ("example", "said"),
    [
        (Example((np.ones((2, 3), np.int32),)), "takes float32"),
        (Example((np.ones(3, np.float32),)), r"takes \[2, 3\]"),
        (Example((), {"z": np.ones((2, 3), np.float32)}), "inputs are: x"),
    ],
)
def test_examples_that_do_not_fit(example: Example, said: str) -> None:
    with pytest.raises(InputError, match=said):
        convert_model(Request(DATA / "if.tflite", (example,)), check=False)
