"""Small models whose plans have every kind of step, tensor and kernel."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser

from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.model.load import load
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.make import make_plan
from sardonyx.plan.plan import Plan

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'

TEXTS = {
    # A packed operand, few rows; a fused chain behind it.
    "dense": """dense (float[2, 64] x) => (float[2, 32] y) <float[64, 32] w, float[32] b> {
        h = Gemm (x, w, b)
        y = Relu (h)
    }""",
    # Symbols, their sums and quotients; products of two activations; a reduction with its neighbours.
    "attention": """attention (float[batch, seq, 16] x) => (float[batch, seq, 16] y) {
        t = Transpose <perm = [0, 2, 1]> (x)
        scores = MatMul (x, t)
        p = Softmax <axis = -1> (scores)
        y = MatMul (p, x)
    }""",
    "pooled": """pooled (float[batch, 4, h, w] x) => (float[batch, 4, oh, ow] y) {
        y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)
    }""",
    # Channels last: copies into the order, convolutions wide, narrow and depthwise.
    "convolutions": """convolutions (float[batch, 3, 32, 32] x) => (float[batch, 64, 16, 16] y)
        <float[32, 3, 3, 3] w0, float[32, 1, 3, 3] w1, float[64, 32, 1, 1] w2, float[64] b> {
        a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w0)
        r = Relu (a)
        d = Conv <pads = [1, 1, 1, 1], group = 32> (r, w1)
        c = Conv (d, w2, b)
        y = Sigmoid (c)
    }""",
    # Nodes on the reference backend between native ones; a size that only data decides.
    "mixed": """mixed (float[n] x) => (float[m] y, string[n] s) {
        two = Constant <value_float = 2.0> ()
        a = Mul (x, two)
        s = Cast <to = 8> (a)
        u = Unique (a)
        y = Exp (u)
    }""",
    # Checks with reasons; infinities and a zero with a sign.
    "gathered": """gathered (float[rows, 8] x, int64[k] at) => (float[k, 8] y, float[k] top) {
        g = Gather <axis = 0> (x, at)
        zero = Constant <value_float = -0.0> ()
        y = Add (g, zero)
        axes = Constant <value_ints = [1]> ()
        top = ReduceMax <keepdims = 0> (g, axes)
    }""",
}


def model(name: str) -> onnx.ModelProto:
    """The model, with seeded weights where it has any."""
    proto = onnx.parser.parse_model(HEADER + TEXTS[name])
    rng = np.random.default_rng(0)
    for value in proto.graph.value_info:  # those between < and > above
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        weights = rng.standard_normal(shape, np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, value.name))
    return proto


def plan(name: str) -> Plan:
    """The model's plan, for a processor that is always the same."""
    loaded = load(model(name))
    return make_plan(loaded, infer_shapes(loaded), None, target_of(NEON)).plan
