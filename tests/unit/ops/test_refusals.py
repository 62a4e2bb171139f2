"""Nodes that the specification does not allow: each is refused, and told why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.ops.build import infer

from sardonyx.errors import ShapeError

CASES: list[tuple[str, int, list[Any], dict[str, Any], str]] = [
    ("Add", 14, [(2, 3), (4,)], {}, r"shapes \[2, 3\] and \[4\] do not broadcast"),
    ("Add", 14, [(2,), "double[2]"], {}, "inputs 0 and 1 must have one type, but are float and double"),
    ("Add", 14, [(2,)], {}, r"input 1 \(B\) is missing"),
    ("Relu", 12, ["int32[2]"], {}, r"input 0 \(X\) is of type int32, but opset 12 takes only"),
    ("Relu", 14, [(2,), (2,)], {}, "it takes 1 inputs, but has 2"),
    ("PRelu", 16, [(3,), (2, 3)], {}, "the slope has rank 2, more than the 1"),
    ("SwiGLU", 28, [(2, 3), (2, 4)], {}, "3 and 4 must be equal"),
    ("Cast", 19, [(2,)], {"to": 99}, "'to' is 99, which names no data type"),
    ("Cast", 19, [(2,)], {}, "'to' is missing"),
    ("BitCast", 26, [(2,)], {"to": 7}, "float has 32 bits, but int64 has 64"),
    ("ReduceSum", 13, [(2, 3), [2]], {}, "axis 2 is outside the rank 2"),
    ("ReduceSum", 13, [(2, 3), [0, -2]], {}, "name one dimension twice"),
    ("ArgMax", 13, [(0, 3)], {}, "dimension 0 is empty"),
    ("MatMul", 13, [(2, 3), (4, 5)], {}, "inner dimensions of the factors: 3 and 4"),
    ("MatMul", 13, [(), (4, 5)], {}, "a factor is a scalar"),
    ("MatMul", 13, [(2, 4, 3), (3, 3, 5)], {}, "do not broadcast"),
    ("Gemm", 13, [(2, 3, 1), (3, 4)], {}, "input 0 must have rank 2"),
    ("Gemm", 13, [(2, 3), (3, 4), (3,)], {}, "do not broadcast"),
    ("Gemm", 13, [(1, 3), (3, 4), (5, 4)], {}, "C of shape .* does not broadcast to the result"),
    ("Einsum", 12, [(2, 3)], {"equation": "ij,jk"}, "has 2 terms for 1 inputs"),
    ("Einsum", 12, [(2, 3)], {"equation": "ijk"}, "does not fit an input of rank 2"),
    ("Einsum", 12, [(2, 3), (4, 5)], {"equation": "ij,jk"}, "label 'j' is 3 in one input and 4"),
    ("Einsum", 12, [(2, 3)], {"equation": "ij->ik"}, "puts out k, which no input has"),
    ("Einsum", 12, [(2, 3)], {"equation": "ij->ii"}, "one label twice"),
    ("Einsum", 12, [(2, 3)], {"equation": "i#"}, "labels that are not letters"),
    ("Conv", 11, [(1, 3, 5, 5), (2, 3, 7, 7)], {}, "the window of 7 is larger than the padded input of 5"),
    ("Conv", 11, [(1, 3, 5, 5), (2, 4, 3, 3)], {}, "input channels"),
    ("Conv", 11, [(1, 4, 5, 5), (3, 2, 3, 3)], {"group": 2}, "3 output channels do not divide into 2"),
    ("Conv", 11, [(1, 3, 5, 5), (2, 3, 3, 3)], {"group": 0}, "group is 0"),
    ("Conv", 11, [(1, 3, 5, 5), (2, 3, 3, 3)], {"strides": [0, 1]}, r"strides \[0, 1\] has an entry below 1"),
    ("Conv", 11, [(1, 3, 5, 5), (2, 3, 3, 3)], {"pads": [-1, 0, 0, 0]}, "negative entry"),
    ("Conv", 11, [(1, 3, 5, 5), (2, 3, 3, 3)], {"pads": [1, 1]}, "pads has 2 entries"),
    ("Conv", 11, [(1, 3, 5, 5), (2, 3, 3, 3)], {"auto_pad": "SIDEWAYS"}, "auto_pad is 'SIDEWAYS'"),
    ("Conv", 11, [(1, 3, 5, 5), (2, 3, 3, 3)], {"kernel_shape": [5, 5]}, "kernel_shape and the weights"),
    ("Conv", 11, [(1, 3), (2, 3)], {}, "has no spatial dimension"),
    ("Conv", 11, [(1, 3, 5), (2, 3, 3, 3)], {}, "must have one rank, but have 3 and 4"),
    ("ConvTranspose", 11, [(1, 3, 5), (2, 4, 3)], {}, "weights' first dimension: 3 and 2"),
    ("ConvTranspose", 11, [(1, 2, 1), (2, 4, 1)], {"pads": [2, 2]}, "would be -3"),
    ("MaxPool", 12, [(1, 3, 5, 5)], {}, "kernel_shape is missing"),
    ("MaxPool", 12, [(1, 3, 5, 5)], {"kernel_shape": [3]}, "kernel_shape has 1 entries for 2"),
    ("LayerNormalization", 17, [(2, 3), (3,)], {"axis": 2}, "axis 2 is outside"),
    ("BatchNormalization", 15, [(2, 3), (4,), (4,), (4,), (4,)], {}, "channels and input 1: 3 and 4"),
    ("GroupNormalization", 21, [(2, 6, 4), (6,), (6,)], {"num_groups": 4}, "6 channels do not divide into 4"),
    ("MeanVarianceNormalization", 13, [(2, 3, 4)], {}, "axis 3 is outside the rank 3"),
    ("Softmax", 13, [(2, 3)], {"axis": 2}, "axis 2 is outside"),
    ("Reshape", 14, [(2, 3), [-1, -1]], {}, "two -1"),
    ("Reshape", 14, [(2, 3), [-2, 3]], {}, "the entry -2"),
    ("Reshape", 14, [(2, 3), [4, -1]], {}, "6 elements do not divide into 4"),
    ("Reshape", 14, [(2, 3), [2, 2]], {}, "6 elements of shape"),
    ("Reshape", 14, [(2, 3), [1, 2, 0]], {}, "0 at 2, but the input has only 2"),
    ("Reshape", 14, [(0, 3), [0, -1]], {"allowzero": 1}, "both 0 and -1"),
    ("Reshape", 14, [(), [1] * 65], {}, "65 dimensions, more than the limit 64"),
    ("Squeeze", 13, [(2, 1), [0]], {}, "dimension 0 is 2; only dimensions of 1"),
    ("Unsqueeze", 13, [(2,), [3]], {}, "axis 3 is outside the rank 2"),
    ("Unsqueeze", 11, [(2,)], {}, "axes are missing"),
    ("Transpose", 13, [(2, 3)], {"perm": [0, 0]}, "is not an order of the 2 dimensions"),
    ("Expand", 13, [(2, 3), [4, 3]], {}, "do not broadcast"),
    ("Expand", 13, [(2, 3), [-1, 3]], {}, "the entry -1"),
    ("Tile", 13, [(2, 3), [1]], {}, "repeats has 1 entries for 2"),
    ("Tile", 13, [(2, 3), [1, -1]], {}, "it cannot be negative"),
    ("Tile", 13, [(2**40,), [2**40]], {}, "dimension 0 of output 0 would be"),
    ("Concat", 13, [(2, 3), (3, 3)], {"axis": 1}, "dimension 0 of the inputs: 2 and 3"),
    ("Concat", 13, [(2, 3), (2,)], {"axis": 1}, r"the ranks \[2, 1\]"),
    ("Concat", 13, [(2, 3)], {"axis": 2}, "axis 2 is outside"),
    ("Split", 13, [(5,), [2, 2]], {}, "the sum of split and dimension 0: 4 and 5"),
    ("Split", 13, [(5,), [6, -1]], {}, "negative size"),
    ("Split", 13, [(5,)], {}, "does not split into 2 equal parts"),
    ("Slice", 13, [(5,), [0], [5], [0], [0]], {}, "the step along axis 0 is 0"),
    ("Slice", 13, [(5, 5), [0, 0], [5, 5], [1, -1]], {}, "name one dimension twice"),
    ("Slice", 13, [(5,), [0, 1], [5]], {}, "have 2, 1, 2 and 2 entries"),
    ("Pad", 13, [(2, 3), [0, 0]], {}, "pads has 2 entries, but 2 dimensions need 4"),
    ("Pad", 13, [(2,), [-2, -1]], {}, "take more than dimension 0 of 2"),
    ("Pad", 13, [(0,), [1, 1]], {"mode": "reflect"}, "nothing to pad with"),
    ("Gather", 13, [(3,), [3]], {}, "index 3 is outside dimension 0 of 3"),
    ("Gather", 13, [(3,), [-4]], {}, "index -4 is outside"),
    ("Gather", 13, [(), "int64[1]"], {}, "nothing to index"),
    ("GatherElements", 13, [(3, 3), "int64[3]"], {}, "must have one rank"),
    ("GatherND", 13, [(3, 3), "int64[2, 3]"], {}, "3 coordinates for 2 dimensions"),
    ("ScatterElements", 18, [(3,), "int64[2]", (3,)], {}, "dimension 0 of indices and updates"),
    ("ScatterND", 18, [(3, 3), "int64[2, 1]", (2, 4)], {}, "dimension 1 of updates"),
    ("TopK", 11, [(3,), [4]], {}, "k is 4, but dimension 0 has only 3"),
    ("TopK", 11, [(3,), [-1]], {}, "k is -1"),
    ("OneHot", 11, ["int64[2]", -1, (2,)], {}, "depth is -1"),
    ("ConstantOfShape", 9, [[2, -1]], {}, "the entry -1"),
    ("Range", 11, [0, 5, 0], {}, "delta is 0"),
    ("Range", 11, [0.0, float("inf"), 1.0], {}, "not a finite range"),
    ("Range", 11, [0.0, 1.0, float("nan")], {}, "delta is nan"),
    ("Resize", 13, [(1, 1, 2, 2), None, [1.0, 1.0, 0.0, 1.0]], {}, "the scale of axis 2 is 0.0"),
    ("Resize", 13, [(1, 1, 2, 2), None, [1.0, 1.0, float("nan"), 1.0]], {}, "is nan"),
    ("Resize", 13, [(1, 1, 2, 2), None, [2.0]], {}, "1 scales for 4 axes"),
    ("Resize", 13, [(1, 1, 2, 2), None, None, [1, 1, -2, 2]], {}, "negative entry"),
    ("Resize", 13, [(1, 1, 2, 2)], {}, "neither scales nor sizes"),
    ("DepthToSpace", 13, [(1, 6, 2, 2)], {"blocksize": 2}, "6 channels do not divide by 4"),
    ("QuantizeLinear", 13, [(2, 3), (4,)], {"axis": 1}, "scales and dimension 1 of the input: 3 and 4"),
    ("QuantizeLinear", 21, [(2, 6), (2, 4)], {"axis": 1, "block_size": 2}, "3 and 4 must be equal"),
    ("LSTM", 14, [(5, 2, 3), (1, 16, 7), (1, 16, 4)], {"hidden_size": 4}, "the features of W and X"),
    ("LSTM", 14, [(5, 2, 3), (1, 12, 3), (1, 12, 4)], {"hidden_size": 4}, "4 gates of the hidden size"),
    ("Attention", 23, [(2, 6, 30), (2, 6, 30), (2, 6, 30)], {"q_num_heads": 4, "kv_num_heads": 4}, "30 hidden units of input 0 do not divide into 4"),
    ("Attention", 23, [(2, 6, 30), (2, 6, 30), (2, 6, 30)], {}, "attribute q_num_heads is needed"),
    ("Attention", 23, [(2, 3, 6, 8), (2, 2, 6, 8), (2, 2, 6, 8)], {}, "3 query heads do not share 2"),
    ("GridSample", 20, [(1, 2, 5, 5), (1, 3, 4, 3)], {}, "coordinates of the grid"),
    ("DFT", 20, [(2, 8, 3)], {}, "the last dimension is 3"),
    ("DFT", 20, [(2, 8, 2), None, -1], {}, "holds the real and imaginary parts"),
    ("STFT", 17, [(1, 4, 1), 2, (8,)], {}, "a frame of 8 is longer than the signal of 4"),
    ("Det", 22, [(2, 3)], {}, "the two sides of the matrices"),
    ("Col2Im", 18, [(1, 7, 9), [4, 4], [2, 2]], {}, "7 columns do not divide into blocks of 4"),
    ("Col2Im", 18, ["float[1, n, 9]", [4, 4], [0, 2]], {}, "cannot be computed"),
    ("Trilu", 14, [(3,)], {}, "a matrix is needed"),
    ("RandomNormal", 1, [], {"shape": [2, -1]}, "negative size"),
    ("SequenceErase", 11, [], {}, "is missing"),
    ("Softmax", 13, [(2, 3)], {"axis": "one"}, "must be of type INT, but is STRING"),
    ("Transpose", 13, [(2, 3)], {"perm": [0.5, 1.5]}, "must be of type INTS, but is FLOATS"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "version", "inputs", "attributes", "message"), CASES)
def test_refused_with_a_reason(
    op: str, version: int, inputs: list[Any], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message) as caught:
        infer(op, version, inputs, attributes, 2 if op == "Split" else 1)
    assert caught.value.where == f"{op} 'the_{op}'"


BOMBS: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("Expand", [(1, 1), [2**20, 2**20]], {}, f"float[{2**20}, {2**20}]"),
    ("ConstantOfShape", [[2**38]], {}, f"float[{2**38}]"),
    ("Tile", [(2, 2), [2**40, 2**20]], {}, f"float[{2**41}, {2**21}]"),
    ("Pad", [(2,), [2**40, 0]], {}, f"float[{2**40 + 2}]"),
    ("Range", [0, 2**62, 1], {}, f"int64[{2**62}]"),
    ("OneHot", ["int64[8]", 2**50, (2,)], {}, f"float[8, {2**50}]"),
    ("Resize", [(1, 1, 2**20, 2**20), None, [1.0, 1.0, 2.0**20, 2.0**20]], {}, f"float[1, 1, {2**40}, {2**40}]"),
    ("SplitToSequence", [(2**40,), 1], {}, "sequence(float['*'])"),
    ("ConstantOfShape", ["int64[40]"], {}, f"float[{', '.join(f'y.{i}' for i in range(40))}]"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes", "expected"), BOMBS)
def test_bombs_are_predicted_and_not_built(
    op: str, inputs: list[Any], attributes: dict[str, Any], expected: str
) -> None:
    assert str(infer(op, 19, inputs, attributes)[0]) == expected


def test_an_error_names_the_users_own_line() -> None:
    from tests.unit.ops.build import facts, node

    from sardonyx.ops import infer_node

    add = node("Add", 2)
    add.metadata_props["pkg.torch.onnx.stack_trace"] = (
        'File "/home/me/model.py", line 41, in forward'
    )
    with pytest.raises(ShapeError, match=r"Add 'the_Add' \(model.py:41\): shapes"):
        infer_node(add, [facts((2,)), facts((3,))], 14)


def test_arrays_of_any_kind_become_facts() -> None:
    from sardonyx.ops import facts_of_array

    assert str(facts_of_array(np.zeros((2, 3), np.float16))) == "float16[2, 3]"
    assert facts_of_array(np.zeros(2000, np.int64)).value is None
    assert list(facts_of_array(np.array([1, 2])).value) == [1, 2]
