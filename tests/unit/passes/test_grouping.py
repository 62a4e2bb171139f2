"""Groups of channels that are normalised between two Reshapes, and what only looks like it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.comparison.tolerance import TOLERANCES
from sardonyx.passes.preparing.prepare import prepare
from sardonyx.passes.shapes import infer_shapes

RNG = np.random.default_rng(4)


def model_of(
    opset: int = 17,
    shape: str = "2, 12, 5, 7",
    parted: str = "0, 4, -1",
    kind: str = "float",
    after: str = "0, 12, 5, 7",
) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": {opset}]>
        groups ({kind}[{shape}] x) => ({kind}[] y)
        <int64[3] parts = {{{parted}}}, int64[{after.count(",") + 1}] whole = {{{after}}},
         {kind}[4] scale = {{1, 0.5, -2, 3}}, {kind}[4] bias = {{0, 1, 2, -1}},
         {kind}[12, 1, 1] factor = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}> {{
            a = Reshape (x, parts)
            b = InstanceNormalization <epsilon = 0.01> (a, scale, bias)
            c = Reshape (b, whole)
            d = Mul (c, factor)
            y = Relu (d)
        }}""")


def assert_right(got: NDArray[np.float32], x: NDArray[np.float32]) -> None:
    """What `model_of` defines, in float64; a rounding of the largest term in its group for each of eight steps."""
    sets = x.astype(np.float64).reshape(x.shape[0], 4, 105)
    normal = (sets - sets.mean(2, keepdims=True)) / np.sqrt(sets.var(2, keepdims=True) + 0.01)
    scale, bias = np.array([[1, 0.5, -2, 3], [0, 1, 2, -1]])[:, None, :, None]
    factor = np.arange(1, 13)[:, None, None]
    want = (normal * scale + bias).reshape(x.shape) * factor
    largest = np.abs(normal).max(2, keepdims=True, initial=0) * np.abs(scale) + np.abs(bias)
    terms = np.broadcast_to(largest[..., None], (x.shape[0], 4, 3, 35)).reshape(x.shape) * factor
    assert got.shape == x.shape
    assert np.all(np.abs(got - np.maximum(want, 0)) <= 8 * 2.0**-24 * terms)


def operators(proto: onnx.ModelProto) -> list[str]:
    model = sx.load(proto)
    return [node.op_type for node in prepare(model, infer_shapes(model)).model.graph]


@pytest.mark.parametrize("opset", [9, 13, 17, 18, 20, 21])
def test_groups_are_normalised_by_one_operator(opset: int) -> None:
    proto = model_of(opset)
    assert operators(proto) == ["GroupNormalization", "Mul", "Relu"]
    x = RNG.standard_normal((2, 12, 5, 7)).astype(np.float32)
    session = sx.Session(proto, fallback="refuse")
    (got,) = session.run(None, {"x": x})
    assert_right(got, x)
    assert [one.node.split()[0] for one in session.placement] == [
        node.op_type for node in proto.graph.node
    ]


def test_of_a_batch_and_images_of_any_size() -> None:
    proto = model_of(shape="n, 12, h, w")
    assert operators(proto).count("Reshape") == 2  # the image's size is not known to stay
    shape = onnx.helper.make_node("Shape", ["x"], ["own"])
    proto.graph.node.insert(0, shape)
    proto.graph.node[3].input[1] = "own"
    assert "GroupNormalization" in operators(proto)
    session = sx.Session(proto)
    for batch in (0, 1, 3):
        x = RNG.standard_normal((batch, 12, 5, 7)).astype(np.float32)
        assert_right(session.run(None, {"x": x})[0], x)


@pytest.mark.parametrize(
    "proto",
    [
        model_of(parted="2, 4, 105", after="0, 12, 7, 5"),  # the image is another one after it
        model_of(shape="1, 12, 5, 7", parted="1, 4, 105", after="1, 12, 1, 35"),
        model_of(shape="4, 3, 5, 7", parted="1, 4, 105", after="1, 12, 5, 7"),
        model_of(kind="double"),  # would be summed in float32
    ],
    ids=["turned", "flat", "over the batch", "double"],
)
def test_what_only_looks_like_groups(proto: onnx.ModelProto) -> None:
    assert "GroupNormalization" not in operators(proto)


def test_what_others_read_stays() -> None:
    proto = model_of()
    proto.graph.output.append(onnx.helper.make_tensor_value_info("a", 1, None))
    assert operators(proto) == ["Reshape", "GroupNormalization", "Mul", "Relu"]
    proto.graph.output.append(onnx.helper.make_tensor_value_info("b", 1, None))
    assert "GroupNormalization" not in operators(proto)


@pytest.mark.parametrize("groups", [1, 2, 4, 16])
def test_between_convolutions(groups: int) -> None:
    """Where channels lie last, as the convolutions around it have them."""
    proto = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        net (float[1, 8, 9, 10] x, float[{groups}] scale, float[{groups}] bias) => (float[1, 8, 9, 10] y)
        <int64[3] parts = {{0, {groups}, -1}}, int64[4] whole = {{1, 32, 9, 10}}> {{
            wide = Conv (x, W)
            a = Reshape (wide, parts)
            b = InstanceNormalization (a, scale, bias)
            c = Reshape (b, whole)
            y = Conv (c, V)
        }}""")
    for name, shape in (("W", (32, 8, 1, 1)), ("V", (8, 32, 1, 1))):
        weights = RNG.standard_normal(shape).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    feeds = {name: RNG.standard_normal(groups).astype(np.float32) for name in ("scale", "bias")}
    feeds["x"] = RNG.standard_normal((1, 8, 9, 10)).astype(np.float32)
    (expected,) = compile_model(sx.load(proto)).run(dict(feeds), ["y"], Guard())
    (got,) = sx.Session(proto, fallback="refuse").run(None, feeds)
    allowed = TOLERANCES["float32"]
    largest = float(np.abs(expected).max())
    np.testing.assert_allclose(got, expected, allowed.rtol, allowed.of_largest * largest)
