"""Small models, one for every kind of kernel whose C is kept here to be read."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser

from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.emit import emit
from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.model.load import load
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.make import make_plan

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'

TEXTS = {
    "relu_chain": """g (float[n, 64] x, float[64] b) => (float[n, 64] y) {
        a = Add (x, b)
        r = Relu (a)
        y = Mul (r, r)
    }""",
    "softmax": """g (float[rows, columns] x) => (float[rows, columns] y) { y = Softmax <axis = -1> (x) }""",
    "layer_norm": """g (float[rows, 64] x, float[64] s, float[64] b) => (float[rows, 64] y) {
        y = LayerNormalization <axis = -1> (x, s, b)
    }""",
    "conv_epilogue": """g (float[n, 32, 14, 14] x, float[n, 64, 7, 7] r) => (float[n, 64, 7, 7] y)
        <float[64, 32, 3, 3] w, float[64] b> {
        c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w, b)
        s = Add (c, r)
        y = Relu (s)
    }""",
    "winograd": """g (float[1, 32, 14, 14] x) => (float[1, 64, 14, 14] y) <float[64, 32, 3, 3] w, float[64] b> {
        c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
        y = Relu (c)
    }""",
    "gemm_static": """g (float[8, 64] x) => (float[8, 32] y) <float[64, 32] w, float[32] b> {
        h = Gemm (x, w, b)
        y = Sigmoid (h)
    }""",
    "gemm_dynamic": """g (float[m, k] a, float[k, n] b) => (float[m, n] y) { y = MatMul (a, b) }""",
    "gather": """g (float[rows, 8] x, int64[count] at) => (float[count, 8] y) { y = Gather <axis = 0> (x, at) }""",
    "reduce": """g (float[rows, 100] x) => (float[rows] y) {
        axes = Constant <value_ints = [1]> ()
        y = ReduceMean <keepdims = 0> (x, axes)
    }""",
    "max_pool": """g (float[n, 16, h, w] x) => (float[n, 16, oh, ow] y) {
        y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)
    }""",
    "transpose": """g (float[a, b, c] x) => (float[c, a, b] y) { y = Transpose <perm = [2, 0, 1]> (x) }""",
    "top_k": """g (float[rows, 50] x) => (float[rows, 5] values, int64[rows, 5] at) {
        k = Constant <value_ints = [5]> ()
        values, at = TopK (x, k)
    }""",
    "lstm": """g (float[seq, batch, 8] x) => (float[seq, 1, batch, 4] y)
        <float[1, 16, 8] w, float[1, 16, 4] r> {
        y = LSTM <hidden_size = 4> (x, w, r)
    }""",
}


def proto(text: str) -> onnx.ModelProto:
    """The model, with seeded weights for the values between < and >."""
    parsed = onnx.parser.parse_model(HEADER + text)
    rng = np.random.default_rng(0)
    for value in parsed.graph.value_info:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        weights = rng.standard_normal(shape, np.float32)
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(weights, value.name))
    return parsed


def units(source: onnx.ModelProto) -> dict[str, str]:
    """Its C, for a processor that is always the same."""
    model = load(source)
    return emit(make_plan(model, infer_shapes(model), None, target_of(NEON)).plan, NEON).units
