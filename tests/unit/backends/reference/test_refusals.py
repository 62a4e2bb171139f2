"""Values that the standard forbids are errors; those it allows at the edge have their answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from tests.unit.backends.reference.models import floats, run_node

from sardonyx.errors import RunError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
IMAGE = np.ones((1, 2, 4, 4), np.float32)
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def recurrent(op: str, gates: int, **more: Any) -> tuple[str, int, list[Any], dict[str, Any]]:
    inputs = [np.ones((2, 1, 3), np.float32), np.ones((1, gates * 4, 3), np.float32)]
    inputs += [np.ones((1, gates * 4, 4), np.float32), None, np.array([3], np.int32)]
    return op, 14, inputs, {"hidden_size": 4, **more}


REFUSED: dict[str, tuple[str, int, list[Any], dict[str, Any]]] = {
    "x / 0": ("Div", 14, [ints(1), ints(0)], {}),
    "x % 0": ("Mod", 13, [ints(1), ints(0)], {}),
    "fmod(x, 0) of integers": ("Mod", 13, [ints(1), ints(0)], {"fmod": 1}),
    "0 ** -1 of integers": ("Pow", 15, [ints(0), ints(-1)], {}),
    "Gather past the end": ("Gather", 13, [X, ints(2)], {}),
    "Gather before the start": ("Gather", 13, [X, ints(-3)], {}),
    "GatherElements": ("GatherElements", 13, [X, np.full((2, 3, 4), 3)], {"axis": 1}),
    "GatherND": ("GatherND", 13, [X, ints(0, 3)[None]], {}),
    "ScatterElements": ("ScatterElements", 18, [X, np.full((1, 1, 1), 9), X[:1, :1, :1]], {}),
    "ScatterND": ("ScatterND", 18, [X, ints(2)[None], X[:1]], {}),
    "Scatter": ("Scatter", 9, [X, np.full((1, 1, 1), 9), X[:1, :1, :1]], {}),
    "TensorScatter": ("TensorScatter", 24, [X, X[:, :2], ints(0, 2)], {"axis": 1}),
    "SequenceAt": ("SequenceAt", 11, [[X, X], np.array(2)], {}),
    "SequenceErase": ("SequenceErase", 11, [[X, X], np.array(-3)], {}),
    "SequenceInsert": ("SequenceInsert", 11, [[X, X], X, np.array(3)], {}),
    "MaxUnpool": (
        "MaxUnpool",
        11,
        [IMAGE[:, :1, :1, :1], np.full((1, 1, 1, 1), 99)],
        {"kernel_shape": [2, 2]},
    ),
    "RoiAlign image": ("RoiAlign", 16, [IMAGE, floats(0, 0, 1, 1)[None], ints(1)], {}),
    "RoiAlign NaN": ("RoiAlign", 16, [IMAGE, floats(0, 0, np.nan, 1)[None], ints(0)], {}),
    "a class that is none": ("NegativeLogLikelihoodLoss", 13, [X[0], ints(0, 4, 0)], {}),
    "a negative class": ("NegativeLogLikelihoodLoss", 13, [X[0], ints(0, -1, 0)], {}),
    "RotaryEmbedding": (
        "RotaryEmbedding",
        23,
        [
            np.ones((1, 1, 1, 4), np.float32),
            np.ones((3, 2), np.float32),
            np.ones((3, 2), np.float32),
            ints(-1)[None],
        ],
        {},
    ),
    "Slice step 0": ("Slice", 13, [X, ints(0), ints(1), ints(0), ints(0)], {}),
    "Slice axes twice": ("Slice", 13, [X, ints(0, 0), ints(1, 1), ints(1, -2)], {}),
    "Reshape two -1": ("Reshape", 14, [X, ints(-1, -1)], {}),
    "Reshape -2": ("Reshape", 14, [X, ints(-2, 12)], {}),
    "Reshape 0 past the rank": ("Reshape", 14, [X, ints(2, 3, 4, 0)], {}),
    "Reshape misfit": ("Reshape", 14, [X, ints(5, 5)], {}),
    "Reshape overflow": ("Reshape", 14, [X, ints(1 << 40, 1 << 40)], {}),
    "Reshape allowzero with -1": ("Reshape", 14, [X[:0], ints(0, -1)], {"allowzero": 1}),
    "Reshape nothing to infer": ("Reshape", 14, [X[:0], ints(0, -1)], {}),
    "Split negative": ("Split", 13, [X, ints(3, -1)], {}),
    "Split misfit": ("Split", 13, [X, ints(2)], {"axis": 1}),
    "TopK past the axis": ("TopK", 11, [X, ints(5)], {}),
    "TopK negative": ("TopK", 11, [X, ints(-1)], {}),
    "Conv stride 0": ("Conv", 11, [IMAGE, np.ones((1, 2, 2, 2), np.float32)], {"strides": [0, 1]}),
    "Conv groups": ("Conv", 11, [IMAGE, np.ones((1, 2, 2, 2), np.float32)], {"group": 3}),
    "Conv pads": ("Conv", 11, [IMAGE, np.ones((1, 2, 2, 2), np.float32)], {"pads": [-1, 0, 0, 0]}),
    "Conv kernel": ("Conv", 11, [IMAGE, np.ones((1, 2, 7, 7), np.float32)], {}),
    "MaxPool kernel 0": ("MaxPool", 11, [IMAGE], {"kernel_shape": [0, 1]}),
    "Resize scale 0": ("Resize", 13, [IMAGE, None, floats(1, 1, 0, 1)], {}),
    "Resize scale NaN": ("Resize", 13, [IMAGE, None, floats(1, 1, np.nan, 1)], {}),
    "Resize scale negative": ("Resize", 13, [IMAGE, None, floats(1, 1, -1, 1)], {}),
    "Resize scale infinite": ("Resize", 13, [IMAGE, None, floats(1, 1, np.inf, 1)], {}),
    "Range delta 0": ("Range", 11, [np.array(0), np.array(5), np.array(0)], {}),
    "Range delta NaN": ("Range", 11, [np.array(0.0), np.array(5.0), np.array(np.nan)], {}),
    "Range limit infinite": ("Range", 11, [np.array(0.0), np.array(np.inf), np.array(1.0)], {}),
    "Tile negative": ("Tile", 13, [X, ints(1, -1, 1)], {}),
    "Expand misfit": ("Expand", 13, [X, ints(5)], {}),
    "Pad cuts too much": ("Pad", 13, [X, ints(0, 0, -3, 0, 0, -3)], {}),
    "Transpose": ("Transpose", 13, [X], {"perm": [0, 0, 1]}),
    "Concat axis": ("Concat", 13, [X, X], {"axis": 3}),
    "Squeeze": ("Squeeze", 13, [X, ints(0)], {}),
    "Unsqueeze twice": ("Unsqueeze", 13, [X, ints(0, -5)], {}),
    "ArgMax of nothing": ("ArgMax", 13, [X[:, :0]], {"axis": 1}),
    "OneHot depth 0": ("OneHot", 11, [ints(0), np.array(0), floats(0, 1)], {}),
    "ReverseSequence": ("ReverseSequence", 10, [X[0], ints(4, 0, 0, 0)], {}),
    "Dropout ratio 1": ("Dropout", 13, [X, np.float32(1), np.array(True)], {}),
    "Einsum labels": ("Einsum", 12, [X[0], X[0]], {"equation": "ij,jk->ik"}),
    "Cast of a word": ("Cast", 13, [np.array(["x"], object)], {"to": TensorProto.FLOAT}),
    "BatchNormalization": ("BatchNormalization", 15, [IMAGE, *[floats(1, 1, 1)] * 4], {}),
    "GridSample shape": ("GridSample", 16, [IMAGE, np.zeros((2, 1, 1, 2), np.float32)], {}),
    "ConcatFromSequence of nothing": ("ConcatFromSequence", 11, [[X, X[:, :2]]], {"axis": 0}),
    "RNN sequence_lens past T": recurrent("RNN", 1),
    "GRU sequence_lens past T": recurrent("GRU", 3),
    "LSTM sequence_lens past T": recurrent("LSTM", 4),
    "LSTM direction": recurrent("LSTM", 4, direction="bidirectional"),
    "LSTM activation": recurrent("LSTM", 4, activations=["Cosh", "Tanh", "Tanh"]),
    "a group that is lookahead": (
        "RegexFullMatch",
        20,
        [np.array(["a"], object)],
        {"pattern": "(?=a)"},
    ),
    "a backreference": ("RegexFullMatch", 20, [np.array(["aa"], object)], {"pattern": r"(a)\1"}),
    "a pattern too large": (
        "RegexFullMatch",
        20,
        [np.array(["a"], object)],
        {"pattern": "((a{99}){99}){99}"},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_out_of_bounds_is_an_error_that_names_the_node(name: str) -> None:
    op, version, inputs, attributes = REFUSED[name]
    outputs = {"TopK": 2, "Split": 2}.get(op, 1)
    with pytest.raises(RunError) as caught:
        run_node(op, version, *inputs, outputs=outputs, **attributes)
    assert caught.value.where == f"{op} 'n'"


INT32 = np.iinfo(np.int32)
ANSWERED: dict[str, tuple[str, int, list[Any], dict[str, Any], Any]] = {
    "INT_MIN / -1": (
        "Div",
        14,
        [np.array([INT32.min], np.int32), np.array([-1], np.int32)],
        {},
        [INT32.min],
    ),
    "INT_MIN % -1": (
        "Mod",
        13,
        [np.array([INT32.min], np.int32), np.array([-1], np.int32)],
        {},
        [0],
    ),
    "fmod(INT_MIN, -1)": ("Mod", 13, [ints(LEAST), ints(-1)], {"fmod": 1}, [0]),
    "quotients truncate": ("Div", 14, [ints(-7, 7, -7, 7), ints(2, -2, -2, 2)], {}, [-3, -3, 3, 3]),
    "remainders follow the divisor": ("Mod", 13, [ints(-7, 7), ints(3, -3)], {}, [2, -2]),
    "fmod follows the dividend": ("Mod", 13, [ints(-7, 7), ints(3, -3)], {"fmod": 1}, [-1, 1]),
    "0 / 0 over nothing": ("Div", 14, [np.zeros((0, 3), np.int32), np.zeros(3, np.int32)], {}, []),
    "negative powers truncate": (
        "Pow",
        15,
        [ints(2, 1, -1, -1), ints(-1, -3, -3, -2)],
        {},
        [0, 1, -1, 1],
    ),
    "a left shift past the width": (
        "BitShift",
        11,
        [np.array([1, 1, 1], np.uint8), np.array([7, 8, 200], np.uint8)],
        {"direction": "LEFT"},
        [128, 0, 0],
    ),
    "a right shift past the width": (
        "BitShift",
        28,
        [np.array([-8, 8, -8], np.int8), np.array([100, 100, -1], np.int8)],
        {"direction": "RIGHT"},
        [-1, 0, -1],
    ),
    "floats to int8 saturate": (
        "Cast",
        13,
        [floats(np.nan, np.inf, -np.inf, 3e10, -1.9)],
        {"to": TensorProto.INT8},
        [0, 127, -128, 127, -1],
    ),
    "floats to int64 saturate": (
        "Cast",
        13,
        [floats(np.nan, 1e30, -1e30)],
        {"to": TensorProto.INT64},
        [0, MOST, LEAST],
    ),
    "floats to uint64 saturate": (
        "Cast",
        13,
        [floats(-1, 2e19, 5)],
        {"to": TensorProto.UINT64},
        [0, 2**64 - 1, 5],
    ),
    "integers wrap": ("Cast", 13, [ints(200, 300, -1)], {"to": TensorProto.INT8}, [-56, 44, -1]),
    "a slice backward over everything": (
        "Slice",
        13,
        [np.arange(4), ints(MOST), ints(LEAST), ints(0), ints(-1)],
        {},
        [3, 2, 1, 0],
    ),
    "a slice with the widest bounds": (
        "Slice",
        13,
        [np.arange(4), ints(LEAST), ints(MOST), ints(0), ints(1)],
        {},
        [0, 1, 2, 3],
    ),
    "a slice that ends before it starts": (
        "Slice",
        13,
        [np.arange(4), ints(3), ints(1), ints(0), ints(1)],
        {},
        [],
    ),
    "indices from the end": ("Gather", 13, [np.arange(4), ints(-1, -4)], {}, [3, 0]),
    "TopK of none": ("TopK", 11, [floats(1, 2), ints(0)], {}, []),
    "ties go to the lower index": ("TopK", 11, [floats(1, 3, 3, 2), ints(2)], {}, [3, 3]),
    "QuantizeLinear scale 0": (
        "QuantizeLinear",
        13,
        [floats(0, 1, -1), np.float32(0), np.uint8(7)],
        {},
        [7, 255, 0],
    ),
    "QuantizeLinear NaN": (
        "QuantizeLinear",
        13,
        [floats(np.nan, np.inf), np.float32(1), np.int8(-3)],
        {},
        [-3, 127],
    ),
    "a maximum over nothing": (
        "ReduceMax",
        18,
        [np.zeros((2, 0), np.float32), ints(1)],
        {"keepdims": 0},
        [-np.inf] * 2,
    ),
    "a minimum over no integers": (
        "ReduceMin",
        18,
        [np.zeros((1, 0), np.int32), ints(1)],
        {"keepdims": 0},
        [INT32.max],
    ),
    "a product over nothing": (
        "ReduceProd",
        18,
        [np.zeros((1, 0), np.float32), ints(1)],
        {"keepdims": 0},
        [1],
    ),
    "a mean over nothing": (
        "ReduceMean",
        18,
        [np.zeros((1, 0), np.float32), ints(1)],
        {"keepdims": 0},
        [np.nan],
    ),
    "a log-sum over nothing": (
        "ReduceLogSum",
        18,
        [np.zeros((1, 0), np.float32), ints(1)],
        {"keepdims": 0},
        [-np.inf],
    ),
    "OneHot outside is all off": (
        "OneHot",
        11,
        [ints(-1, 3, -4, 1), np.array(3), floats(0, 1)],
        {},
        [[0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0]],
    ),
    "NaN boxes overlap nothing": (
        "NonMaxSuppression",
        11,
        [
            floats(0, 0, 1, 1, np.nan, np.nan, np.nan, np.nan, 0, 0, 1, 1).reshape(1, 3, 4),
            floats(3, 2, 1).reshape(1, 1, 3),
            ints(9),
            floats(0.5),
        ],
        {},
        [[0, 0, 0], [0, 0, 1]],
    ),
    "GridSample NaN is the left edge": (
        "GridSample",
        16,
        [np.arange(3, dtype=np.float32).reshape(1, 1, 1, 3), floats(np.nan, 0).reshape(1, 1, 1, 2)],
        {"align_corners": 1},
        [[[[0]]]],
    ),
    "a window that starts in the padding is left out": (
        "MaxPool",
        12,
        [np.arange(3, dtype=np.float32).reshape(1, 1, 3)],
        {"kernel_shape": [1], "strides": [2], "pads": [0, 1], "ceil_mode": 1},
        [[[0, 2]]],
    ),
    "NonZero of a scalar": ("NonZero", 13, [np.array(5)], {}, []),
    "Trilu far away": ("Trilu", 14, [np.ones((1, 2), np.float32), np.array(MOST)], {}, [[0, 0]]),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_a_value_at_the_edge_has_its_answer(name: str) -> None:
    op, version, inputs, attributes, expected = ANSWERED[name]
    outputs = {"TopK": 2}.get(op, 1)
    result = run_node(op, version, *inputs, outputs=outputs, **attributes)
    np.testing.assert_array_equal(
        (result[0] if outputs > 1 else result).reshape(np.shape(expected)), expected
    )


EMPTY = np.zeros((0, 3), np.float32)


@pytest.mark.parametrize(
    ("op", "version", "inputs", "attributes", "shape"),
    [
        ("Relu", 14, [EMPTY], {}, (0, 3)),
        ("Softmax", 13, [EMPTY], {}, (0, 3)),
        ("Softmax", 13, [EMPTY.T], {}, (3, 0)),
        ("MatMul", 13, [EMPTY, np.ones((3, 2), np.float32)], {}, (0, 2)),
        ("MatMul", 13, [EMPTY.T, EMPTY], {}, (3, 3)),
        ("Gemm", 13, [EMPTY, np.ones((3, 2), np.float32), floats(1, 1)], {}, (0, 2)),
        ("Concat", 13, [EMPTY, np.ones((2, 3), np.float32)], {"axis": 0}, (2, 3)),
        ("Gather", 13, [np.ones((2, 3), np.float32), ints()], {}, (0, 3)),
        (
            "Conv",
            11,
            [np.zeros((0, 2, 4, 4), np.float32), np.ones((3, 2, 2, 2), np.float32)],
            {},
            (0, 3, 3, 3),
        ),
        (
            "MaxPool",
            12,
            [np.zeros((0, 2, 4, 4), np.float32)],
            {"kernel_shape": [2, 2]},
            (0, 2, 3, 3),
        ),
        (
            "AveragePool",
            11,
            [np.zeros((1, 0, 4, 4), np.float32)],
            {"kernel_shape": [2, 2]},
            (1, 0, 3, 3),
        ),
        (
            "Resize",
            13,
            [np.zeros((0, 1, 2, 2), np.float32), None, floats(1, 1, 2, 2)],
            {},
            (0, 1, 4, 4),
        ),
        ("LayerNormalization", 17, [EMPTY, floats(1, 1, 1)], {}, (0, 3)),
        ("MeanVarianceNormalization", 13, [np.zeros((0, 2, 3, 3), np.float32)], {}, (0, 2, 3, 3)),
        ("GlobalAveragePool", 1, [np.zeros((1, 2, 0, 3), np.float32)], {}, (1, 2, 1, 1)),
        ("Transpose", 13, [EMPTY], {}, (3, 0)),
        ("TopK", 11, [EMPTY, ints(2)], {}, (0, 2)),
        ("CumSum", 14, [EMPTY, np.array(0)], {}, (0, 3)),
        ("NonZero", 13, [EMPTY], {}, (2, 0)),
        ("Unique", 11, [EMPTY], {}, (0,)),
        ("Pad", 13, [EMPTY, ints(1, 0, 1, 0)], {}, (2, 3)),
        ("Tile", 13, [EMPTY, ints(2, 2)], {}, (0, 6)),
        ("OneHot", 11, [ints(), np.array(4), floats(0, 1)], {}, (0, 4)),
        ("GatherND", 13, [np.ones((2, 3), np.float32), np.zeros((0, 1), np.int64)], {}, (0, 3)),
        ("Where", 16, [np.zeros((0, 1), bool), EMPTY, EMPTY], {}, (0, 3)),
        ("Einsum", 12, [EMPTY, np.ones((3, 2), np.float32)], {"equation": "ij,jk->ik"}, (0, 2)),
        (
            "NonMaxSuppression",
            11,
            [np.zeros((1, 0, 4), np.float32), np.zeros((1, 1, 0), np.float32)],
            {},
            (0, 3),
        ),
        ("RoiAlign", 16, [IMAGE, np.zeros((0, 4), np.float32), ints()], {}, (0, 2, 1, 1)),
        (
            "LSTM",
            14,
            [
                np.zeros((0, 2, 3), np.float32),
                np.ones((1, 16, 3), np.float32),
                np.ones((1, 16, 4), np.float32),
            ],
            {"hidden_size": 4},
            (0, 1, 2, 4),
        ),
        (
            "GRU",
            14,
            [
                np.zeros((2, 0, 3), np.float32),
                np.ones((1, 12, 3), np.float32),
                np.ones((1, 12, 4), np.float32),
            ],
            {"hidden_size": 4},
            (2, 1, 0, 4),
        ),
        ("DynamicQuantizeLinear", 11, [EMPTY], {}, (0, 3)),
        ("StringSplit", 20, [np.array([], object)], {}, (0, 0)),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_empty_tensors_have_their_shape(
    op: str, version: int, inputs: list[Any], attributes: dict[str, Any], shape: tuple[int, ...]
) -> None:
    outputs = {"TopK": 2, "StringSplit": 2, "DynamicQuantizeLinear": 3}.get(op, 1)
    result = run_node(op, version, *inputs, outputs=outputs, **attributes)
    assert (result if outputs == 1 else result[0]).shape == shape
