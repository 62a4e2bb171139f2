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
