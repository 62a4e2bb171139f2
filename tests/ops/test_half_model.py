"""A whole network at precision bfloat16: as near to float64 as docs/numerics.md says of that type."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.doubles import in_double
from onnx import ModelProto, numpy_helper, parser

import sardonyx as sx
from sardonyx.backends.c.cpu import host_cpu
from sardonyx.comparison.tolerance import TOLERANCES

# An image, by strided, plain and depthwise convolutions, as tokens of one attention, by a block of products to ten numbers.
TEXT = """<ir_version: 10, opset_import: ["": 20]> g (float[1, 3, 33, 33] x) => (float[1, 10] y)
<float[1] eighth = {0.125}, int64[3] tokens = {1, 64, -1}, int64[4] split = {1, -1, 2, 64}, int64[3] joined = {1, -1, 128}, int64[1] one = {1}> {
  a0 = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w3x64x3) a = Relu(a0)
  b0 = Conv<pads = [1, 1, 1, 1]>(a, w64x64x3) b1 = Relu(b0) b = Add(a, b1)
  c0 = Conv<pads = [1, 1, 1, 1], group = 64>(b, d64x3) c = Relu(c0)
  e0 = Conv(c, w64x64x1) e1 = Sigmoid(e0) e = Mul(e0, e1)
  t0 = Reshape(e, tokens) t = Transpose<perm = [0, 2, 1]>(t0)
  q0 = MatMul(t, m64x128q) k0 = MatMul(t, m64x128k) v0 = MatMul(t, m64x128v)
  q1 = Reshape(q0, split) k1 = Reshape(k0, split) v1 = Reshape(v0, split)
  q = Transpose<perm = [0, 2, 1, 3]>(q1) k = Transpose<perm = [0, 2, 3, 1]>(k1) v = Transpose<perm = [0, 2, 1, 3]>(v1)
  s0 = MatMul(q, k) s = Mul(s0, eighth) p = Softmax(s) o0 = MatMul(p, v)
  o1 = Transpose<perm = [0, 2, 1, 3]>(o0) o = Reshape(o1, joined)
  n0 = Add(o, v0) n = LayerNormalization(n0, ones128)
  g0 = MatMul(n, m128x256) g1 = Gelu(g0) g = MatMul(g1, m256x128) r = Add(n, g)
  z0 = ReduceMax<keepdims = 0>(r, one) y = MatMul(z0, m128x10)
}"""

# Two blocks of MobileNet, for images of any size.
BLOCKS = """<ir_version: 10, opset_import: ["": 20]> g (float[n, 3, h, w] x) => (float[n, 10] y)
<float zero = {0}, float six = {6}> {
  a0 = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w3x64x3) a = Clip(a0, zero, six)
  b0 = Conv<pads = [1, 1, 1, 1], group = 64>(a, d64x3) b = Clip(b0, zero, six)
  c = Conv(b, w64x64x1)
  e0 = Conv(c, w64x192x1) e = Clip(e0, zero, six)
  f0 = Conv<strides = [2, 2], pads = [1, 1, 1, 1], group = 192>(e, d192x3) f = Clip(f0, zero, six)
  g0 = Conv(f, w192x48x1) g = GlobalMaxPool(g0)
  t = Flatten(g) y = MatMul(t, m48x10)
}"""


def network(text: str = TEXT) -> ModelProto:
    proto = parser.parse_model(text)
    draw = np.random.default_rng(5)
    shapes = {
        "w3x64x3": (64, 3, 3, 3),
        "w64x64x3": (64, 64, 3, 3),
        "d64x3": (64, 1, 3, 3),
        "w64x64x1": (64, 64, 1, 1),
        **{f"m64x128{name}": (64, 128) for name in "qkv"},
        "m128x256": (128, 256),
        "m256x128": (256, 128),
        "m128x10": (128, 10),
        "w64x192x1": (192, 64, 1, 1),
        "d192x3": (192, 1, 3, 3),
        "w192x48x1": (48, 192, 1, 1),
        "m48x10": (48, 10),
    }
    for name, shape in shapes.items():
        if name not in text:
            continue
        inner = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        weights = draw.standard_normal(shape) * np.sqrt(2 / inner)
        proto.graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), name))
    if "ones128" in text:
        ones = np.ones(128, np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(ones, "ones128"))
    return proto


def kernels_of(proto: ModelProto, *shape: int) -> set[str]:
    """Which kernels an image takes, whose answer is near enough, and the same with any number of threads."""
    x = np.random.default_rng(6).standard_normal(shape).astype(np.float32)
    one, two = (sx.Session(proto, precision="bfloat16", threads=n) for n in (1, 2))
    answer = np.asarray(one.run(None, {"x": x})[0])
    assert answer.tobytes() == np.asarray(two.run(None, {"x": x})[0]).tobytes()
    exact = np.asarray(sx.Session(in_double(proto)).run(None, {"x": x.astype(np.float64)})[0])
    allowed = TOLERANCES["bfloat16"]
    limit = allowed.rtol * np.abs(exact) + allowed.of_largest * np.abs(exact).max()
    assert (np.abs(answer - exact) <= limit).all()
    return {step.kernel for step in one.profile({"x": x}, runs=1).steps}


def test_a_network_keeps_the_contract_of_its_precision() -> None:
    kernels = kernels_of(network(), 1, 3, 33, 33)
    if "fp16" in host_cpu().features:
        assert {"convolution · winograd f16", "product · gemm f16", "attention f16"} <= kernels
        assert any(
            name.startswith("convolution · direct") and name.endswith("f16") for name in kernels
        )


@pytest.mark.parametrize("shape", [(1, 3, 33, 33), (2, 3, 7, 50), (1, 3, 1, 1)])
def test_values_that_are_stored_as_float16(shape: tuple[int, ...]) -> None:
    kernels = kernels_of(network(BLOCKS), *shape)
    if "fp16" in host_cpu().features:
        assert "convolution · depthwise f16" in kernels


def test_nan_goes_through_values_that_are_stored_as_float16() -> None:
    x = np.zeros((1, 3, 9, 9), np.float32)
    x[0, 1, 4, 4] = np.nan
    answer = np.asarray(sx.Session(network(BLOCKS), precision="bfloat16").run(None, {"x": x})[0])
    assert np.isnan(answer).all()
