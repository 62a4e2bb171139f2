"""Files of TensorFlow's own converter, read here without it and held to answers that its interpreter gave.

`python -m benchmarks.conversions.tflite_models tests/unit/conversion/tflite/data` writes both anew.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sardonyx.comparison.difference import differences
from sardonyx.comparison.engines import open_engine
from sardonyx.comparison.tolerance import Tolerance
from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Example, Request
from sardonyx.conversion.tflite.reading import read_model
from sardonyx.conversion.tflite.sparse import Level, Sparsity, write_out
from sardonyx.conversion.tflite.subject import open_subject
from sardonyx.conversion.tflite.variables import find_variables
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
    found = open_engine("sardonyx", model)(feeds)
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


def test_a_state_is_carried_by_the_caller() -> None:
    model = convert_model(Request(DATA / "stream.tflite"), check=False).model
    assert [value.name for value in model.graph.inputs] == ["x", "window", "count"]
    assert [value.name for value in model.graph.outputs] == ["mean", "window.next", "count.next"]
    run = open_engine("sardonyx", model)
    window, count, carried = np.full((1, 3, 2), -1, np.float32), 5, dict[str, np.ndarray]()
    for turn in range(5):
        x = np.full((1, 1, 2), turn, np.float32)
        answers = run({"x": x, **carried})  # the first turn begins with what the file says
        held = np.concatenate([window, x], 1)
        window, count = held[:, 1:], count + 1
        np.testing.assert_allclose(answers["mean"], held.mean(1) * count, rtol=1e-6)
        carried = {name: answers[f"{name}.next"] for name in ("window", "count")}
    np.testing.assert_array_equal(carried["window"], window)
    assert int(carried["count"]) == count


def test_a_state_that_changes_its_shape_is_refused() -> None:
    model = read_model((DATA / "stream.tflite").read_bytes())
    begins = model.subgraphs[1]
    other = tuple(
        replace(t, data=np.zeros((1, 4, 2), np.float32), shape=(1, 4, 2))
        if t.shape == (1, 3, 2)
        else t
        for t in begins.tensors
    )
    changed = replace(model, subgraphs=(model.subgraphs[0], replace(begins, tensors=other)))
    with pytest.raises(ConvertError, match=r"variable 'window': it begins as float32\[1, 4, 2\]"):
        find_variables(changed, 0)
    silent = replace(model, subgraphs=(model.subgraphs[0], replace(begins, operators=())))
    with pytest.raises(ConvertError, match="does not say by constants what it begins with"):
        find_variables(silent, 0)


def test_sparse_weights_are_written_out() -> None:
    """[[0 5 0 0] [0 0 0 0] [7 0 0 9]] by rows, and [[1 2 0 0] [3 4 0 0]] in blocks of 2 by 2."""
    rows = Sparsity(
        (0, 1), (), (Level(3, None, None), Level(0, np.array([0, 1, 1, 3]), np.array([1, 0, 3])))
    )
    found = write_out(rows, np.array([5, 7, 9]), (3, 4))
    assert found is not None
    assert found.tolist() == [[0, 5, 0, 0], [0, 0, 0, 0], [7, 0, 0, 9]]
    dense = Level(2, None, None)
    blocks = Sparsity(
        (0, 1, 2, 3),
        (0, 1),
        (Level(1, None, None), Level(0, np.array([0, 1]), np.array([0])), dense, dense),
    )
    found = write_out(blocks, np.array([1, 2, 3, 4]), (2, 4))
    assert found is not None
    assert found.tolist() == [[1, 2, 0, 0], [3, 4, 0, 0]]
    assert write_out(rows, np.array([5, 7]), (3, 4)) is None  # a number is missing
    assert write_out(rows, np.array([5, 7, 9]), (3, 3)) is None  # one lies outside
