"""Sequences, optionals and maps, and the operators of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from tests.unit.ops.build import facts, infer, text

from sardonyx.errors import ShapeError
from sardonyx.ops import Facts, sequence_of
from sardonyx.sizes import symbol

B = symbol("b")


def tensors(*shapes: Any) -> Facts:
    return sequence_of([facts(shape) for shape in shapes])  # type: ignore[misc]


def test_a_sequence_knows_each_element() -> None:
    made = infer("SequenceConstruct", 11, [(2, 3), (4, 3), "float[b, 3]"])[0]
    assert str(made) == "sequence(float['*', 3])"
    assert made.shape == (3,)
    assert str(infer("SequenceAt", 11, [made, 1])[0]) == "float[4, 3]"
    assert str(infer("SequenceAt", 11, [made, -1])[0]) == "float[b, 3]"
    assert str(infer("SequenceAt", 11, [made, "int64[]"])[0]) == "float[y.0, 3]"
    assert str(infer("ConcatFromSequence", 11, [made], {"axis": 0})[0]) == "float[b + 6, 3]"
    assert infer("SequenceLength", 11, [made])[0].value == np.array(3, dtype=object)


def test_elements_come_and_go() -> None:
    empty = infer("SequenceEmpty", 11, [], {"dtype": 7})[0]
    assert str(empty) == "sequence(int64[...])"
    one = infer("SequenceInsert", 11, [empty, "int64[5]"])[0]
    two = infer("SequenceInsert", 11, [one, "int64[6]", 0])[0]
    assert str(infer("SequenceAt", 11, [two, 0])[0]) == "int64[6]"
    assert infer("SequenceErase", 11, [two])[0].shape == (1,)
    assert str(infer("SequenceErase", 11, [two, 0])[0]) == "sequence(int64[5])"
    assert str(infer("SequenceErase", 11, [one])[0]) == "sequence(int64[5])"


def test_a_sequence_of_unknown_length() -> None:
    some = Facts("sequence", element=facts("float[n, 3]"))
    assert str(infer("SequenceInsert", 11, [some, (2, 3)])[0]) == "sequence(float['*', 3])"
    assert str(infer("ConcatFromSequence", 11, [some], {"axis": 0})[0]) == "float[y.0, 3]"
    assert (
        str(infer("ConcatFromSequence", 11, [some], {"axis": -1, "new_axis": 1})[0])
        == "float[n, 3, y.2]"
    )
    assert infer("SequenceLength", 11, [some])[0].value is None


def test_splitting_into_a_sequence() -> None:
    assert infer("SplitToSequence", 11, [(5, 2), 2])[0] == tensors((2, 2), (2, 2), (1, 2))
    assert infer("SplitToSequence", 11, [(5, 2), [1, 4]])[0] == tensors((1, 2), (4, 2))
    whole = infer("SplitToSequence", 11, ["float[b, 2]"], {"keepdims": 0})[0]
    assert str(whole) == "sequence(float[2])"
    assert whole.shape == (B,)
    assert str(infer("SplitToSequence", 11, ["float[b, 2]", 2])[0]) == "sequence(float['*', 2])"


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("SequenceAt", [tensors((1,)), 1], "position 1 is outside a sequence of 1"),
        ("SequenceErase", [tensors()], "the sequence is empty"),
        ("SequenceInsert", [tensors((1,)), "int64[1]"], "all elements have one type"),
        ("SequenceAt", [(2, 3), 0], "is of type float, but opset 11 takes no tensor here"),
        ("SplitToSequence", [(5,), [1, 1]], "the sum of split"),
        ("SplitToSequence", [(5,), 0], "at least 1 is needed"),
        ("ConcatFromSequence", [tensors((1, 2), (1,))], r"elements have the ranks \[2, 1\]"),
        ("ConcatFromSequence", [tensors((1, 2), (1, 3))], "dimension 1 of the elements"),
    ],
)
def test_refusals(op: str, inputs: list[Any], message: str) -> None:
    attributes = {"axis": 0} if op == "ConcatFromSequence" else {}
    with pytest.raises(ShapeError, match=message):
        infer(op, 11, inputs, attributes)


def test_optionals() -> None:
    made = infer("Optional", 15, [(2, 3)])[0]
    assert str(made) == "optional(float[2, 3])"
    assert str(infer("OptionalGetElement", 18, [made])[0]) == "float[2, 3]"
    assert str(infer("OptionalGetElement", 18, [(2,)])[0]) == "float[2]"
    assert infer("OptionalHasElement", 18, [])[0].value == np.array(False, dtype=object)
    assert infer("OptionalHasElement", 18, [(2,)])[0].value == np.array(True, dtype=object)
    assert infer("OptionalHasElement", 18, [made])[0].value is None
    kind = onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(1, [2]))
    declared = infer("Optional", 15, [], {"type": kind})[0]
    assert str(declared) == "optional(sequence(float[2]))"


ML: list[tuple[str, int, list[Any], dict[str, Any], str]] = [
    ("ArrayFeatureExtractor", 1, ["float[b, 5]", "int64[2]"], {}, "float[b, 2]"),
    ("ArrayFeatureExtractor", 1, [(5,), "int64[1, 2]"], {}, "float[1, 2]"),
    ("Binarizer", 1, ["float[b, 5]"], {}, "float[b, 5]"),
    ("CategoryMapper", 1, ["string[b]"], {}, "int64[b]"),
    ("FeatureVectorizer", 1, ["float[b, 2]", "float[b, 3]"], {"inputdimensions": [2, 3]}, "float[b, 5]"),
    ("Imputer", 1, ["float[b, 2]"], {}, "float[b, 2]"),
    ("LabelEncoder", 1, ["string[b]"], {}, "int64[b]"),
    ("LabelEncoder", 2, ["int64[b]"], {"values_floats": [1.0]}, "float[b]"),
    ("LabelEncoder", 4, ["int64[b]"], {"values_tensor": onnx.numpy_helper.from_array(np.zeros(2, np.int16))}, "int16[b]"),
    ("LinearClassifier", 1, ["float[b, 4]"], {"coefficients": [0.0] * 12, "classlabels_ints": [0, 1, 2]}, "int64[b]; float[b, 3]"),
    ("LinearClassifier", 1, [(4,)], {"coefficients": [0.0] * 8, "classlabels_strings": ["a", "b"]}, "string[1]; float[1, 2]"),
    ("LinearRegressor", 1, ["float[b, 4]"], {"targets": 3}, "float[b, 3]"),
    ("Normalizer", 1, ["int64[b, 4]"], {}, "float[b, 4]"),
    ("OneHotEncoder", 1, ["int64[b, 4]"], {"cats_int64s": [1, 2, 3]}, "float[b, 4, 3]"),
    ("SVMClassifier", 1, ["float[b, 4]"], {"classlabels_ints": [0, 1, 2], "vectors_per_class": [1, 1, 1]}, "int64[b]; float[b, 3]"),
    ("SVMClassifier", 1, ["float[b, 4]"], {"classlabels_ints": [0, 1, 2, 3], "vectors_per_class": [1] * 4}, "int64[b]; float[b, 6]"),
    ("SVMRegressor", 1, ["float[b, 4]"], {}, "float[b, 1]"),
    ("Scaler", 1, ["int32[b, 4]"], {}, "float[b, 4]"),
    ("TreeEnsemble", 5, ["double[b, 4]"], {"n_targets": 2}, "double[b, 2]"),
    ("TreeEnsembleClassifier", 3, ["float[b, 4]"], {"classlabels_int64s": [0, 1]}, "int64[b]; float[b, 2]"),
    ("TreeEnsembleRegressor", 3, ["float[b, 4]"], {"n_targets": 2}, "float[b, 2]"),
    ("ZipMap", 1, ["float[b, 2]"], {"classlabels_strings": ["a", "b"]}, "sequence(map(string, float[]))"),
    ("DictVectorizer", 1, [Facts("map", ir.DataType.STRING, element=facts("float[]"))], {"string_vocabulary": ["a", "b"]}, "float[2]"),
    ("CastMap", 1, [Facts("map", ir.DataType.INT64, element=facts("float[]"))], {"map_form": "SPARSE", "max_map": 9}, "float[1, 9]"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "version", "inputs", "attributes", "expected"), ML)
def test_machine_learning_operators(
    op: str, version: int, inputs: list[Any], attributes: dict[str, Any], expected: str
) -> None:
    found = infer(op, version, inputs, attributes, expected.count(";") + 1, "ai.onnx.ml")
    assert text(found) == expected


def test_facts_compare_by_what_they_know() -> None:
    assert facts((2,)) == facts((2,))
    assert facts([1, 2]) == facts([1, 2])
    assert facts([1, 2]) != facts([1, 3])
    assert facts([1, 2]) != facts("int64[2]")
    assert facts((2,)) != "float[2]"
    assert hash(facts([1, 2])) == hash(facts([1, 3]))
    assert str(Facts("sparse", ir.DataType.FLOAT, (2,))) == "sparse float[2]"
