"""Each operator in old and new opsets: the table's answer, and never less than onnx's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.numpy_helper import from_array as tensor
from tests.unit.ops.build import facts, infer, node, text

from sardonyx.ops.call import Call
from sardonyx.ops.fallback import infer_with_onnx

F16, F32, I32 = np.float16, np.float32, np.int32

CASES: list[tuple[str, int, list[Any], dict[str, Any], str]] = [
    ("Add", 1, [(2, 3, 4), (3,)], {"broadcast": 1, "axis": 1}, "float[2, 3, 4]"),
    ("Add", 6, [(2, 3, 4), (3, 4)], {"broadcast": 1}, "float[2, 3, 4]"),
    ("Add", 7, [(2, 1, 4), (3, 1)], {}, "float[2, 3, 4]"),
    ("And", 1, ["bool[2, 3]", "bool[2, 3]"], {}, "bool[2, 3]"),
    ("Greater", 7, [(2, 3), (3,)], {}, "bool[2, 3]"),
    ("Max", 6, [(2, 3), (2, 3)], {}, "float[2, 3]"),
    ("Max", 8, [(2, 3), (3,), (1,)], {}, "float[2, 3]"),
    ("Mean", 13, [(2, 1), (1, 3)], {}, "float[2, 3]"),
    ("Where", 16, ["bool[2, 1]", (1, 3), ()], {}, "float[2, 3]"),
    ("PRelu", 6, [(2, 3, 4), (3,)], {}, "float[2, 3, 4]"),
    ("PRelu", 16, [(2, 3, 4), (3, 1)], {}, "float[2, 3, 4]"),
    ("Clip", 6, [(2, 3)], {"min": 0.0, "max": 1.0}, "float[2, 3]"),
    ("Clip", 13, [(2, 3), None, ()], {}, "float[2, 3]"),
    ("Cast", 1, [(2,)], {"to": "INT32"}, "int32[2]"),
    ("Cast", 9, [(2,)], {"to": 7}, "int64[2]"),
    ("CastLike", 15, [(2,), "int8[9]"], {}, "int8[2]"),
    ("BitCast", 26, [(2,)], {"to": 6}, "int32[2]"),
    ("Dropout", 1, [(2, 3)], {"is_test": 1}, "float[2, 3]; float[2, 3]"),
    ("Dropout", 7, [(2, 3)], {}, "float[2, 3]; float[2, 3]"),
    ("Dropout", 12, [(2, 3)], {}, "float[2, 3]; bool[2, 3]"),
    ("ReduceSum", 1, [(2, 3, 4)], {"axes": [1], "keepdims": 0}, "float[2, 4]"),
    ("ReduceSum", 11, [(2, 3, 4)], {"axes": [-1]}, "float[2, 3, 1]"),
    ("ReduceSum", 13, [(2, 3, 4), [0, 2]], {"keepdims": 0}, "float[3]"),
    ("ReduceSum", 13, [(2, 3)], {"noop_with_empty_axes": 1}, "float[2, 3]"),
    ("ReduceMean", 13, [(2, 3)], {}, "float[1, 1]"),
    ("ReduceMean", 18, [(2, 3), [1]], {}, "float[2, 1]"),
    ("ReduceMax", 18, [(2, 3), []], {"keepdims": 0}, "float[]"),
    ("ArgMax", 1, [(2, 3)], {"axis": 1}, "int64[2, 1]"),
    ("ArgMin", 13, [(2, 3)], {"keepdims": 0}, "int64[3]"),
    ("CumSum", 14, [(2, 3), 0], {}, "float[2, 3]"),
    ("MatMul", 1, [(2, 3), (3, 4)], {}, "float[2, 4]"),
    ("MatMul", 13, [(5, 1, 2, 3), (7, 3, 4)], {}, "float[5, 7, 2, 4]"),
    ("MatMul", 13, [(3,), (3,)], {}, "float[]"),
    ("MatMul", 13, [(3,), (5, 3, 4)], {}, "float[5, 4]"),
    ("MatMulInteger", 10, ["uint8[2, 3]", "int8[3, 4]"], {}, "int32[2, 4]"),
    ("Gemm", 1, [(2, 3), (3, 4), (4,)], {"broadcast": 1}, "float[2, 4]"),
    ("Gemm", 13, [(3, 2), (4, 3)], {"transA": 1, "transB": 1}, "float[2, 4]"),
    ("Einsum", 12, [(2, 3, 4), (2, 4, 5)], {"equation": "bij, bjk -> bik"}, "float[2, 3, 5]"),
    ("Einsum", 12, [(2, 3, 4)], {"equation": "...ij->...ji"}, "float[2, 4, 3]"),
    ("Einsum", 12, [(3, 3)], {"equation": "ii"}, "float[]"),
    ("Conv", 1, [(1, 4, 9, 9), (6, 2, 3, 3)], {"group": 2, "pads": [1, 1, 1, 1], "strides": [2, 2]}, "float[1, 6, 5, 5]"),
    ("Conv", 11, [(1, 1, 7), (1, 1, 3)], {"auto_pad": "SAME_UPPER", "strides": [2]}, "float[1, 1, 4]"),
    ("Conv", 22, [(1, 1, 7), (1, 1, 3)], {"auto_pad": "VALID", "dilations": [2]}, "float[1, 1, 3]"),
    ("ConvInteger", 10, ["uint8[1, 1, 5, 5]", "uint8[2, 1, 3, 3]"], {}, "int32[1, 2, 3, 3]"),
    ("ConvTranspose", 1, [(1, 2, 3, 3), (2, 4, 3, 3)], {"strides": [2, 2], "output_padding": [1, 1]}, "float[1, 4, 8, 8]"),
    ("ConvTranspose", 11, [(1, 2, 3), (2, 4, 3)], {"auto_pad": "SAME_LOWER", "strides": [2]}, "float[1, 4, 6]"),
    ("ConvTranspose", 22, [(1, 2, 3), (2, 4, 3)], {"output_shape": [10], "strides": [3]}, "float[1, 4, 10]"),
    ("MaxPool", 1, [(1, 2, 6, 6)], {"kernel_shape": [2, 2], "strides": [2, 2]}, "float[1, 2, 3, 3]"),
    ("MaxPool", 12, [(1, 2, 6)], {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}, "float[1, 2, 3]; int64[1, 2, 3]"),
    ("AveragePool", 19, [(1, 1, 7)], {"kernel_shape": [2], "dilations": [3], "pads": [1, 0]}, "float[1, 1, 5]"),
    ("AveragePool", 22, [(1, 1, 2)], {"kernel_shape": [1], "strides": [2], "ceil_mode": 1}, "float[1, 1, 1]"),
    ("LpPool", 18, [(1, 1, 7)], {"kernel_shape": [3], "auto_pad": "SAME_UPPER", "strides": [3]}, "float[1, 1, 3]"),
    ("GlobalAveragePool", 1, [(2, 3, 4, 5)], {}, "float[2, 3, 1, 1]"),
    ("MaxUnpool", 11, [(1, 1, 2, 2), "int64[1, 1, 2, 2]"], {"kernel_shape": [2, 2], "strides": [2, 2]}, "float[1, 1, 4, 4]"),
    ("MaxRoiPool", 1, [(1, 3, 8, 8), (5, 5)], {"pooled_shape": [2, 2]}, "float[5, 3, 2, 2]"),
    ("RoiAlign", 16, [(1, 3, 8, 8), (5, 4), "int64[5]"], {"output_height": 2}, "float[5, 3, 2, 1]"),
    ("Softmax", 1, [(2, 3)], {"axis": 2}, "float[2, 3]"),
    ("Softmax", 13, [(2, 3)], {}, "float[2, 3]"),
    ("BatchNormalization", 6, [(2, 3, 4), (3,), (3,), (3,), (3,)], {}, "float[2, 3, 4]"),
    ("BatchNormalization", 15, [(2, 3, 4), (3,), (3,), (3,), (3,)], {"training_mode": 1}, "float[2, 3, 4]; float[3]; float[3]"),
    ("LayerNormalization", 17, [(2, 3, 4), (3, 4)], {"axis": 1}, "float[2, 3, 4]; float[2, 1, 1]; float[2, 1, 1]"),
    ("Reshape", 1, [(2, 3, 4)], {"shape": [0, -1]}, "float[2, 12]"),
    ("Reshape", 13, [(2, 3, 4), [0, -1]], {}, "float[2, 12]"),
    ("Reshape", 14, [(0, 3), [3, 0]], {"allowzero": 1}, "float[3, 0]"),
    ("Flatten", 9, [(2, 3, 4)], {"axis": 2}, "float[6, 4]"),
    ("Flatten", 13, [(2, 3, 4)], {"axis": -1}, "float[6, 4]"),
    ("Squeeze", 1, [(1, 3, 1)], {"axes": [0]}, "float[3, 1]"),
    ("Squeeze", 11, [(1, 3, 1)], {}, "float[3]"),
    ("Squeeze", 13, [(1, 3, 1), [-1]], {}, "float[1, 3]"),
    ("Unsqueeze", 1, [(3,)], {"axes": [0, 2]}, "float[1, 3, 1]"),
    ("Unsqueeze", 13, [(3,), [-1]], {}, "float[3, 1]"),
    ("Transpose", 1, [(2, 3, 4)], {}, "float[4, 3, 2]"),
    ("Transpose", 13, [(2, 3, 4)], {"perm": [1, 0, 2]}, "float[3, 2, 4]"),
    ("Expand", 8, [(3, 1), [2, 1, 6]], {}, "float[2, 3, 6]"),
    ("Tile", 6, [(2, 3), [2, 0]], {}, "float[4, 0]"),
    ("Shape", 1, [(2, 3, 4)], {}, "int64[3]"),
    ("Shape", 15, [(2, 3, 4)], {"start": 1, "end": -1}, "int64[1]"),
    ("Size", 13, [(2, 3, 4)], {}, "int64[]"),
    ("Concat", 1, [(2, 3), (2, 4)], {}, "float[2, 7]"),
    ("Concat", 13, [(2, 3), (5, 3)], {"axis": -2}, "float[7, 3]"),
    ("Split", 2, [(6, 2)], {}, "float[3, 2]; float[3, 2]"),
    ("Split", 11, [(6, 2)], {"split": [2, 4]}, "float[2, 2]; float[4, 2]"),
    ("BatchNormalization", 7, [(2, 3, 4), (3, 4), (3, 4), (3, 4), (3, 4)], {"spatial": 0}, "float[2, 3, 4]"),
    ("Split", 13, [(6, 2), [1, 5]], {}, "float[1, 2]; float[5, 2]"),
    ("Split", 18, [(7, 2)], {"num_outputs": 2}, "float[4, 2]; float[3, 2]"),
    ("Slice", 1, [(5, 6)], {"starts": [1, -3], "ends": [4, 100]}, "float[3, 3]"),
    ("Slice", 10, [(5, 6), [0], [-1], [1]], {}, "float[5, 5]"),
    ("Slice", 13, [(5, 6), [-1], [-(2**63)], [0], [-2]], {}, "float[3, 6]"),
    ("Slice", 13, [(5,), [-9], [-9], [0], [-1]], {}, "float[1]"),
    ("Pad", 1, [(2, 3)], {"paddings": [0, 1, 2, 0]}, "float[4, 4]"),
    ("Pad", 2, [(2, 3)], {"pads": [0, 1, 2, 0]}, "float[4, 4]"),
    ("Pad", 13, [(2, 3), [0, -1, 2, 0]], {}, "float[4, 2]"),
    ("Pad", 18, [(2, 3), [1, 1], None, [-1]], {"mode": "edge"}, "float[2, 5]"),
    ("CenterCropPad", 18, [(5, 6), [3, 9]], {}, "float[3, 9]"),
    ("Gather", 1, [(5, 6), "int64[2, 3]"], {"axis": 1}, "float[5, 2, 3]"),
    ("GatherElements", 11, [(5, 6), "int64[2, 6]"], {}, "float[2, 6]"),
    ("GatherND", 12, [(2, 3, 4), "int64[2, 1]"], {"batch_dims": 1}, "float[2, 4]"),
    ("Scatter", 9, [(3, 3), "int64[2, 3]", (2, 3)], {}, "float[3, 3]"),
    ("ScatterND", 16, [(8,), "int64[4, 1]", (4,)], {}, "float[8]"),
    ("TensorScatter", 24, [(2, 3, 8, 4), (2, 3, 1, 4)], {}, "float[2, 3, 8, 4]"),
    ("TopK", 1, [(3, 4)], {"k": 2}, "float[3, 2]; int64[3, 2]"),
    ("TopK", 10, [(3, 4), [2]], {"axis": 0}, "float[2, 4]; int64[2, 4]"),
    ("TopK", 24, [(3, 4), [4]], {}, "float[3, 4]; int64[3, 4]"),
    ("OneHot", 11, ["int64[2, 3]", 5, (2,)], {"axis": 1}, "float[2, 5, 3]"),
    ("Upsample", 1, [(1, 1, 2, 3)], {"height_scale": 2.0, "width_scale": 3.0}, "float[1, 1, 4, 9]"),
    ("Upsample", 7, [(1, 1, 2, 3)], {"scales": [1.0, 1.0, 2.0, 1.5]}, "float[1, 1, 4, 4]"),
    ("Upsample", 9, [(1, 1, 2, 3), [1.0, 1.0, 2.0, 2.0]], {}, "float[1, 1, 4, 6]"),
    ("Resize", 10, [(1, 1, 2, 3), [1.0, 1.0, 0.5, 0.7]], {}, "float[1, 1, 1, 2]"),
    ("Resize", 11, [(1, 1, 2, 10), np.zeros(0, F32), [1.0, 1.0, 2.0, 0.7]], {}, "float[1, 1, 4, 7]"),
    ("Resize", 19, [(1, 1, 2, 3), None, None, [4, 4]], {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}, "float[1, 1, 3, 4]"),
    ("GridSample", 20, [(1, 2, 5, 5, 5), (1, 3, 4, 6, 3)], {}, "float[1, 2, 3, 4, 6]"),
    ("AffineGrid", 20, [(2, 2, 3), [2, 3, 5, 6]], {}, "float[2, 5, 6, 2]"),
    ("DepthToSpace", 1, [(1, 8, 2, 3)], {"blocksize": 2}, "float[1, 2, 4, 6]"),
    ("SpaceToDepth", 13, [(1, 2, 4, 6)], {"blocksize": 2}, "float[1, 8, 2, 3]"),
    ("QuantizeLinear", 10, [(2, 3), ()], {}, "uint8[2, 3]"),
    ("QuantizeLinear", 21, [(2, 6), (2, 3)], {"axis": 1, "block_size": 2, "output_dtype": 22}, "int4[2, 3]".replace("3", "6")),
    ("DequantizeLinear", 13, ["int8[2, 3]", (3,)], {"axis": 1}, "float[2, 3]"),
    ("DequantizeLinear", 19, ["int8[2, 3]", "float16[]"], {}, "float16[2, 3]"),
    ("DynamicQuantizeLinear", 11, [(2, 3)], {}, "uint8[2, 3]; float[]; uint8[]"),
    ("QLinearMatMul", 10, ["uint8[2, 3]", (), "uint8[]", "uint8[3, 4]", (), "uint8[]", (), "uint8[]"], {}, "uint8[2, 4]"),
    ("QLinearConv", 10, ["uint8[1, 1, 5]", (), "uint8[]", "int8[2, 1, 3]", (), "int8[]", (), "int8[]"], {}, "int8[1, 2, 3]"),
    ("Constant", 1, [], {"value": tensor(np.ones((2, 3), F16))}, "float16[2, 3]"),
    ("Constant", 12, [], {"value_ints": [1, 2, 3]}, "int64[3]"),
    ("Constant", 13, [], {"value_float": 2.0}, "float[]"),
    ("ConstantOfShape", 9, [[2, 3]], {}, "float[2, 3]"),
    ("ConstantOfShape", 21, [[]], {"value": tensor(np.zeros(1, I32))}, "int32[]"),
    ("Range", 11, [10, 4, -2], {}, "int64[3]"),
    ("Range", 11, [0.0, 1.0, 0.25], {}, "float[4]"),
    ("EyeLike", 9, ["int32[3, 4]"], {"dtype": 1}, "float[3, 4]"),
    ("RandomNormal", 1, [], {"shape": [2, 3]}, "float[2, 3]"),
    ("RandomUniformLike", 22, ["int32[3]"], {"dtype": 11}, "double[3]"),
    ("Bernoulli", 15, [(2,)], {}, "float[2]"),
    ("Multinomial", 7, [(2, 5)], {"sample_size": 4}, "int32[2, 4]"),
    ("RNN", 7, [(5, 2, 3), (1, 4, 3), (1, 4, 4)], {"hidden_size": 4}, "float[5, 1, 2, 4]; float[1, 2, 4]"),
    ("GRU", 14, [(2, 5, 3), (2, 12, 3), (2, 12, 4)], {"hidden_size": 4, "direction": "bidirectional", "layout": 1}, "float[2, 5, 2, 4]; float[2, 2, 4]"),
    ("LSTM", 22, [(5, 2, 3), (1, 16, 3), (1, 16, 4)], {"hidden_size": 4}, "float[5, 1, 2, 4]; float[1, 2, 4]; float[1, 2, 4]"),
    ("Attention", 23, [(2, 4, 6, 8), (2, 2, 9, 8), (2, 2, 9, 5)], {}, "float[2, 4, 6, 5]"),
    ("Attention", 24, [(2, 6, 32), (2, 9, 16), (2, 9, 10), None, (2, 2, 3, 8), (2, 2, 3, 5)], {"q_num_heads": 4, "kv_num_heads": 2}, "float[2, 6, 20]; float[2, 2, 12, 8]; float[2, 2, 12, 5]"),
    ("RotaryEmbedding", 23, [(2, 4, 6, 8), (2, 6, 4), (2, 6, 4)], {}, "float[2, 4, 6, 8]"),
    ("LinearAttention", 27, [(2, 6, 8), (2, 6, 4), (2, 6, 10), None, (2, 6, 2), (2, 6, 2)], {"q_num_heads": 4, "kv_num_heads": 2}, "float[2, 6, 20]; float[2, 2, 2, 5]"),
    ("CausalConvWithState", 27, [(2, 3, 9), (3, 1, 4)], {}, "float[2, 3, 9]; float[2, 3, 3]"),
    ("DFT", 17, [(2, 8, 1)], {"axis": 1, "onesided": 1}, "float[2, 5, 2]"),
    ("DFT", 20, [(2, 8, 2), 6], {}, "float[2, 6, 2]"),
    ("STFT", 17, [(2, 128, 1), 8, (16,)], {}, "float[2, 15, 9, 2]"),
    ("HannWindow", 17, [10], {}, "float[10]"),
    ("MelWeightMatrix", 17, [8, 16, 8192, 0.0, 8192.0], {}, "float[9, 8]"),
    ("Det", 22, [(5, 3, 3)], {}, "float[5]"),
    ("Col2Im", 18, [(1, 8, 9), [4, 4], [2, 2]], {}, "float[1, 2, 4, 4]"),
    ("Trilu", 14, [(2, 3)], {}, "float[2, 3]"),
    ("NegativeLogLikelihoodLoss", 13, [(3, 5, 2), "int64[3, 2]"], {"reduction": "none"}, "float[3, 2]"),
    ("SoftmaxCrossEntropyLoss", 13, [(3, 5), "int64[3]"], {}, "float[]; float[3, 5]"),
    ("StringConcat", 20, ["string[2, 1]", "string[3]"], {}, "string[2, 3]"),
    ("TfIdfVectorizer", 9, ["int64[2, 6]"], {"ngram_indexes": [0, 3, 5], "ngram_counts": [0], "pool_int64s": [1, 2, 3], "mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0}, "float[2, 6]"),
]  # fmt: skip


def _id(case: tuple[str, int, list[Any], dict[str, Any], str]) -> str:
    return f"{case[0]}-{case[1]}-{case[4]}"


@pytest.mark.parametrize("case", CASES, ids=map(_id, CASES))
def test_shapes_of_every_version(case: tuple[str, int, list[Any], dict[str, Any], str]) -> None:
    op, version, inputs, attributes, expected = case
    assert text(infer(op, version, inputs, attributes, expected.count(";") + 1)) == expected


# onnx computes these otherwise: wrongly, or in another precision; docs/numerics.md has the verdicts.
ONNX_DIFFERS = {
    "Resize-11-float[1, 1, 4, 7]",  # 10 * 0.7 in more than float32 is 6.9999999
    "STFT-17-float[2, 15, 9, 2]",  # onesided is the default, but is taken for absent
}


@pytest.mark.parametrize("case", CASES, ids=map(_id, CASES))
def test_onnx_itself_agrees_where_it_knows(
    case: tuple[str, int, list[Any], dict[str, Any], str],
) -> None:
    op, version, inputs, attributes, expected = case
    known = [facts(part) for part in inputs]
    count = expected.count(";") + 1
    call = Call(node(op, known, attributes, count), known, version)
    ours = infer(op, version, inputs, attributes, count)
    for mine, theirs in zip(ours, infer_with_onnx(call), strict=True):
        assert theirs.dtype in (None, mine.dtype)
        if theirs.shape is None or _id(case) in ONNX_DIFFERS:
            continue
        assert mine.shape is not None
        for a, b in zip(mine.shape, theirs.shape, strict=True):
            assert not isinstance(b, int) or a == b
