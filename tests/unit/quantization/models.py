"""Small models with seeded weights, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.numpy_helper
import onnx.parser
import onnx.reference
import onnx_ir as ir
import onnxruntime

import sardonyx as sx
from sardonyx.model.save import to_proto

Array = npt.NDArray[Any]


def build(graph: str, weights: Mapping[str, Array], opset: int = 19) -> ir.Model:
    """A model of its text, with initializers of these names."""
    proto = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> {graph}')
    for name, array in weights.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return sx.load(proto)


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def residual_network() -> ir.Model:
    """Convolutions with a residual connection, pools and a classifier."""
    weights = {
        "w1": normal(8, 3, 3, 3, seed=1, scale=0.3),
        "b1": normal(8, seed=2),
        "w2": normal(8, 8, 3, 3, seed=3, scale=0.2),
        "b2": normal(8, seed=4),
        "w3": normal(16, 8, 1, 1, seed=5, scale=0.4),
        "w4": normal(16, 5, seed=6, scale=0.3),
        "b4": normal(5, seed=7),
    }
    text = """
    net (float[batch, 3, 8, 8] x) => (float[batch, 5] y) {
        c1 = Conv<pads=[1, 1, 1, 1]>(x, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<pads=[1, 1, 1, 1]>(r1, w2, b2)
        s = Add(c2, r1)
        r2 = Relu(s)
        m = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(r2)
        c3 = Conv(m, w3)
        r3 = Relu(c3)
        g = GlobalAveragePool(r3)
        f = Flatten(g)
        y = Gemm(f, w4, b4)
    }"""
    return build(text, weights)


def word_network() -> ir.Model:
    """A table of words, a normalisation and a layer with a residual connection, as transformers have them."""
    weights = {
        "table": normal(100, 64, seed=1),
        "gain": 1 + normal(64, seed=2, scale=0.1),
        "shift": normal(64, seed=3, scale=0.1),
        "w1": normal(64, 128, seed=4, scale=0.15),
        "b1": normal(128, seed=5, scale=0.1),
        "w2": normal(128, 64, seed=6, scale=0.1),
        "w3": normal(5, 64, seed=7, scale=0.2),
        "b3": normal(5, seed=8),
    }
    text = """
    net (int64[batch, length] ids) => (float[batch, 5] y) {
        e = Gather(table, ids)
        n = LayerNormalization(e, gain, shift)
        h = MatMul(n, w1)
        a = Add(h, b1)
        r = Relu(a)
        o = MatMul(r, w2)
        s = Add(o, e)
        axes = Constant<value_ints=[1]>()
        m = ReduceMean<keepdims=0>(s, axes)
        y = Gemm<transB=1>(m, w3, b3)
    }"""
    return build(text, weights)


def attention_network() -> ir.Model:
    """One head that attends, of any number of words."""
    weights = {name: normal(16, 16, seed=at, scale=0.4) for at, name in enumerate("qkvo")}
    text = """
    net (float[batch, length, 16] x) => (float[batch, length, 16] y) {
        queries = MatMul(x, q)
        keys = MatMul(x, k)
        values = MatMul(x, v)
        turned = Transpose<perm=[0, 2, 1]>(keys)
        scores = MatMul(queries, turned)
        quarter = Constant<value_float=0.25>()
        scaled = Mul(scores, quarter)
        weights = Softmax(scaled)
        mixed = MatMul(weights, values)
        y = MatMul(mixed, o)
    }"""
    return build(text, weights)


def outlier_network() -> tuple[ir.Model, list[dict[str, Array]]]:
    """Two products; one input of the second is a hundred times larger than the others."""
    weights = {"w": normal(8, 8, seed=1, scale=0.3), "v": normal(8, 4, seed=2)}
    weights["v"][0] *= 1e-3
    weights["w"][:, 0] *= 1e3
    text = "g (float[n, 8] x) => (float[n, 4] y) { [w_product] a = MatMul(x, w)  b = Relu(a)  y = MatMul(b, v) }"
    return build(text, weights), [{"x": normal(16, 8, seed=seed)} for seed in range(3)]


def words(seed: int, length: int = 12) -> dict[str, Array]:
    ids = np.random.default_rng(seed).integers(0, 100, (4, length))
    return {"ids": ids.astype(np.int64)}


def run_everywhere(model: ir.Model, feeds: Mapping[str, Array]) -> tuple[list[Array], ...]:
    """The answers of our session, of onnxruntime and of the specification."""
    proto = to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    peer = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return (
        sx.Session(model).run(None, feeds),
        peer.run(None, dict(feeds)),
        onnx.reference.ReferenceEvaluator(proto).run(None, dict(feeds)),
    )
