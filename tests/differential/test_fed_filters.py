"""Convolutions whose filters are fed: the same kernels as for constants, so the same answers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import sardonyx as sx
from sardonyx.plan.kernels import ConvolutionKernel

RNG = np.random.default_rng(0)
Array = np.ndarray[Any, np.dtype[Any]]

CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("Conv", (2, 16, 9, 7), (50, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
    ("Conv", (1, 3, 20, 21), (16, 3, 5, 5), {"strides": [2, 1]}),
    ("Conv", (1, 24, 9, 9), (36, 6, 3, 2), {"group": 4, "dilations": [2, 1]}),
    ("Conv", (1, 40, 8, 8), (40, 1, 3, 3), {"group": 40, "pads": [1, 1, 1, 1]}),
    ("Conv", (1, 5, 8, 8), (15, 1, 3, 3), {"group": 5}),
    ("Conv", (1, 70, 6), (9, 70, 1), {}),
    ("Conv", (1, 4, 5, 6, 7), (3, 4, 2, 1, 3), {}),
    ("Conv", (1, 130, 6, 6), (64, 130, 1, 5), {}),  # blocks of channels that do not fill up
    ("ConvTranspose", (1, 16, 7, 7), (16, 20, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("ConvTranspose", (1, 8, 5), (8, 3, 5), {"strides": [3]}),
    ("ConvTranspose", (1, 8, 5, 4), (8, 5, 3, 3), {"group": 2}),
    ("ConvTranspose", (1, 6, 5, 5), (6, 1, 4, 4), {"group": 6, "strides": [2, 2]}),
    ("ConvTranspose", (1, 6, 5, 5), (6, 2, 3, 3), {"group": 6, "strides": [2, 1]}),
]


def model(
    op: str, shape: tuple[int, ...], weights: Array, attributes: dict[str, Any], *, fed: bool
) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(weights.dtype)
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    held = []
    if fed:
        inputs.append(helper.make_tensor_value_info("w", kind, weights.shape))
    else:
        held.append(numpy_helper.from_array(weights, "w"))
    node = helper.make_node(op, ["x", "w"], ["y"], **attributes)
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph([node], "g", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def contractions(session: sx.Session) -> list[ConvolutionKernel]:
    assert session._native is not None
    return [k for k in session._native.plan.kernels if isinstance(k, ConvolutionKernel)]


def answers(
    op: str, x: Array, weights: Array, attributes: dict[str, Any], precision: Any = "float32"
) -> tuple[Array, Array]:
    """By filters that are fed, and by constant ones."""
    fed = sx.Session(model(op, x.shape, weights, attributes, fed=True), precision=precision)
    held = sx.Session(model(op, x.shape, weights, attributes, fed=False), precision=precision)
    assert contractions(fed)
    assert all(step.backend == "native" for step in fed.placement)
    (got,) = fed.run(None, {"x": x, "w": weights})
    (again,) = fed.run(None, {"x": x, "w": weights})
    np.testing.assert_array_equal(got, again)
    (want,) = held.run(None, {"x": x})
    return np.asarray(got), np.asarray(want)


@pytest.mark.parametrize(("op", "shape", "weights", "attributes"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_as_constants(
    op: str,
    shape: tuple[int, ...],
    weights: tuple[int, ...],
    attributes: dict[str, Any],
    dtype: Any,
) -> None:
    x, w = (RNG.standard_normal(sizes).astype(dtype) for sizes in (shape, weights))
    got, want = answers(op, x, w, attributes)
    rough = 2e-2 if np.dtype(dtype).itemsize == 2 else 2e-5
    np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=rough, atol=rough)


@settings(max_examples=40)
@given(
    channels=st.integers(1, 40),
    filters=st.integers(1, 70),
    groups=st.integers(1, 3),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.integers(1, 2),
    transposed=st.booleans(),
)
def test_any_sizes(
    channels: int,
    filters: int,
    groups: int,
    kernel: tuple[int, int],
    stride: int,
    transposed: bool,
) -> None:
    op = "ConvTranspose" if transposed else "Conv"
    stride = min(stride, *kernel) if transposed else stride
    inner, outer = channels * groups, filters * groups
    sizes = (inner, filters, *kernel) if transposed else (outer, channels, *kernel)
    x = RNG.standard_normal((1, inner, 6, 5)).astype(np.float32)
    w = RNG.standard_normal(sizes).astype(np.float32)
    attributes = {"group": groups, "strides": [stride, stride]}
    held = sx.Session(model(op, x.shape, w, attributes, fed=False), fallback="refuse")
    fed = sx.Session(model(op, x.shape, w, attributes, fed=True), fallback="refuse")
    (got,), (want,) = fed.run(None, {"x": x, "w": w}), held.run(None, {"x": x})
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_filters_that_are_computed() -> None:
    """As in StyleGAN: weights times a style."""
    text = """
        <ir_version: 10, opset_import: ["": 21]>
        g (float[1, 8, 9, 9] x, float[1, 8, 1, 1] style) => (float[1, 12, 9, 9] y)
        <float[12, 8, 3, 3] w> {
            styled = Mul (w, style)
            y = Conv<pads = [1, 1, 1, 1]> (x, styled)
        }
    """
    proto = onnx.parser.parse_model(text)
    w = RNG.standard_normal((12, 8, 3, 3)).astype(np.float32)
    del proto.graph.initializer[:]
    proto.graph.initializer.append(numpy_helper.from_array(w, "w"))
    session = sx.Session(proto)
    assert len(contractions(session)) == 1
    feeds = {
        "x": RNG.standard_normal((1, 8, 9, 9)).astype(np.float32),
        "style": RNG.standard_normal((1, 8, 1, 1)).astype(np.float32),
    }
    (got,) = session.run(None, feeds)
    plain = sx.Session(
        model("Conv", (1, 8, 9, 9), w * feeds["style"], {"pads": [1] * 4}, fed=False)
    )
    np.testing.assert_allclose(got, plain.run(None, {"x": feeds["x"]})[0], rtol=1e-5, atol=1e-5)


def test_no_filters_and_no_channels() -> None:
    for sizes in ((0, 4, 3, 3), (3, 0, 3, 3)):
        x = np.ones((1, sizes[1], 5, 5), np.float32)
        w = np.ones(sizes, np.float32)
        session = sx.Session(model("Conv", x.shape, w, {}, fed=True))
        (got,) = session.run(None, {"x": x, "w": w})
        assert got.shape == (1, sizes[0], 3, 3)
        assert not got.any()


@pytest.mark.parametrize("precision", ["strict", "fast", "bfloat16"])
def test_other_precisions(precision: str) -> None:
    x = RNG.standard_normal((1, 32, 8, 8)).astype(np.float32)
    w = RNG.standard_normal((48, 32, 3, 3)).astype(np.float32)
    got, want = answers("Conv", x, w, {"pads": [1, 1, 1, 1]}, precision)
    lost = (
        5e-3 * np.abs(want).max() if precision == "bfloat16" else 2e-2
    )  # by sums of 288 rounded products
    np.testing.assert_allclose(got, want, rtol=2e-2, atol=lost)
