"""Products and convolutions of bytes by kernels of the backend: to the bit what the reference backend answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import sardonyx as sx
from sardonyx import Session
from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.kernels.isa import AVX512, NEON, Isa
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.passes.preparing.prepare import prepare
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.kernels import ConvolutionKernel, ProductKernel
from sardonyx.plan.make import make_plan

Array = np.ndarray[Any, np.dtype[Any]]
TYPES = st.sampled_from([np.int8, np.uint8])


def model_of(
    nodes: list[onnx.NodeProto], feeds: dict[str, Array], weights: dict[str, Array]
) -> onnx.ModelProto:
    """A model whose inputs are the feeds and whose output is `y`."""
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in feeds.items()
    ]
    constants = [numpy_helper.from_array(x, name) for name, x in weights.items()]
    outputs = [onnx.ValueInfoProto(name="y")]
    graph = helper.make_graph(nodes, "case", inputs, outputs, constants)
    imports = [helper.make_opsetid("", 21)]
    model = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=imports, ir_version=10)
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def answers(model: onnx.ModelProto, feeds: dict[str, Array]) -> tuple[Array, Array]:
    """Ours, and the reference backend's."""
    expected = compile_model(sx.load(model)).run(dict(feeds), ["y"], Guard())[0]
    return Session(model, fallback="refuse").run(None, feeds)[0], np.asarray(expected)


def kernels_of(model: onnx.ModelProto, isa: Isa = NEON) -> list[ProductKernel | ConvolutionKernel]:
    """The kernels of the backend in the plan."""
    loaded = sx.load(model)
    prepared = prepare(loaded, infer_shapes(loaded))
    plan = make_plan(prepared.model, prepared.shapes, None, target_of(isa)).plan
    return [k for k in plan.kernels if isinstance(k, (ProductKernel, ConvolutionKernel))]


def drawn(generator: np.random.Generator, dtype: type, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def narrow(generator: np.random.Generator, dtype: type, *shape: int) -> tuple[Array, Array]:
    """Weights and a zero point that leave signed bytes."""
    if dtype is np.int8:
        return drawn(generator, np.int8, *shape), np.array(0, np.int8)
    return drawn(generator, np.uint8, *shape), np.array(128, np.uint8)


@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, -128), (np.int8, 0), (np.int8, 5), (np.uint8, 0), (np.uint8, 131), (np.uint8, 128)])  # fmt: skip
@pytest.mark.parametrize("columns", [16, 24, 37])
def test_halves_are_rounded_to_even_whatever_the_zero_point(
    dtype: type, zero: int, columns: int
) -> None:
    """Sums times 0.5, which are ties every other time; short ones, so that their epilogue may be in registers."""
    generator = np.random.default_rng(columns)
    feeds = {"x": drawn(generator, np.int8, 1, 8, 5, 7)}
    weights = {
        "w": generator.integers(-1, 2, (columns, 8, 1, 1), np.int8),
        "half": np.array(0.5, np.float32),
        "one": np.array(1, np.float32),
        "zero": np.array(zero, dtype),
    }
    nodes = [
        helper.make_node("ConvInteger", ["x", "w"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["floats"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["floats", "half"], ["halves"]),
        helper.make_node("QuantizeLinear", ["halves", "one", "zero"], ["y"]),
    ]
    model = model_of(nodes, feeds, weights)
    [kernel] = kernels_of(model)
    assert kernel.choice.variant == ("direct" if columns == 16 else "direct 8x8")
    got, expected = answers(model, feeds)
    np.testing.assert_array_equal(got, expected)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    a=TYPES,
    b=TYPES,
    m=st.integers(1, 19),
    k=st.integers(2, 70),
    n=st.integers(2, 40),
    batch=st.sampled_from([(), (3,), (2, 2)]),
)
def test_matmul_integer(
    seed: int, a: type, b: type, m: int, k: int, n: int, batch: tuple[int, ...]
) -> None:
    generator = np.random.default_rng(seed)
    x = drawn(generator, a, *batch, m, k)
    w, zero = narrow(generator, b, k, n)
    weights = {"w": w, "xz": drawn(generator, a), "wz": zero}
    model = model_of(
        [helper.make_node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"])], {"x": x}, weights
    )
    assert kernels_of(model)
    ours, expected = answers(model, {"x": x})
    np.testing.assert_array_equal(ours, expected)


def test_a_zero_point_that_only_a_run_knows() -> None:
    generator = np.random.default_rng(7)
    x, w = generator.standard_normal((5, 33)).astype(np.float32), drawn(generator, np.int8, 33, 9)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["y"]),
    ]
    model = model_of(nodes, {"x": x}, {"w": w})
    assert kernels_of(model)
    ours, expected = answers(model, {"x": x})
    np.testing.assert_array_equal(ours, expected)


def test_weights_that_leave_no_bytes_are_multiplied_by_loops() -> None:
    generator = np.random.default_rng(8)
    x, w = drawn(generator, np.uint8, 5, 8), drawn(generator, np.uint8, 8, 300)
    weights = {"w": w, "xz": np.array(3, np.uint8), "wz": np.array(9, np.uint8)}
    node = helper.make_node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"])
    model = model_of([node], {"x": x}, weights)
    assert not kernels_of(model)
    ours, expected = answers(model, {"x": x})
    np.testing.assert_array_equal(ours, expected)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    dtype=TYPES,
    channels=st.sampled_from([1, 2, 3, 4, 6, 8, 12, 20]),
    filters=st.sampled_from([1, 4, 6, 12, 24]),
    grouped=st.sampled_from(["one", "two", "each"]),
    kernel=st.sampled_from([(1, 1), (3, 3), (2, 5), (3,)]),
    stride=st.integers(1, 2),
    dilation=st.integers(1, 2),
    pad=st.integers(0, 2),
)
def test_conv_integer(
    seed: int,
    dtype: type,
    channels: int,
    filters: int,
    grouped: str,
    kernel: tuple[int, ...],
    stride: int,
    dilation: int,
    pad: int,
) -> None:
    generator = np.random.default_rng(seed)
    groups = {"one": 1, "two": 2, "each": channels}[grouped]
    channels, filters = (-(-count // groups) * groups for count in (channels, filters))
    rank = len(kernel)
    x = drawn(generator, dtype, 2, channels, *(9, 11)[:rank])
    w, zero = narrow(generator, np.int8, filters, channels // groups, *kernel)
    attributes = {
        "strides": [stride] * rank,
        "dilations": [dilation] * rank,
        "pads": [pad] * rank + [0] * rank,
        "group": groups,
    }
    weights = {"w": w, "xz": drawn(generator, dtype), "wz": zero}
    node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], **attributes)
    model = model_of([node], {"x": x}, weights)
    assert kernels_of(model)
    ours, expected = answers(model, {"x": x})
    np.testing.assert_array_equal(ours, expected)


def near(generator: np.random.Generator, dtype: type, zero: int, *shape: int) -> Array:
    """Numbers near the zero point, as activations are; a few of them anywhere."""
    limits = np.iinfo(dtype)
    found = generator.normal(zero, 25, shape).round().clip(limits.min, limits.max).astype(dtype)
    return np.where(generator.random(shape) < 0.02, drawn(generator, dtype, *shape), found)


@pytest.mark.parametrize(
    ("dtype", "zero"),
    [(np.uint8, 0), (np.uint8, 131), (np.uint8, 255), (np.int8, -128), (np.int8, 4)],
)
@pytest.mark.parametrize("anywhere", [False, True])
class TestLargeEnoughForEveryKernel:
    """Rules prefer other kernels where there is more to multiply: those for few large numbers among them."""

    def test_products(self, dtype: type, zero: int, anywhere: bool) -> None:
        generator = np.random.default_rng(zero % 7)
        x = drawn(generator, dtype, 30, 258) if anywhere else near(generator, dtype, zero, 30, 258)
        weights = {
            "w": drawn(generator, np.int8, 258, 100),
            "xz": np.array(zero, dtype),
            "wz": np.array(0, np.int8),
        }
        node = helper.make_node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"])
        ours, expected = answers(model_of([node], {"x": x}, weights), {"x": x})
        np.testing.assert_array_equal(ours, expected)

    @pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2)])
    def test_convolutions(
        self, dtype: type, zero: int, anywhere: bool, kernel: int, stride: int
    ) -> None:
        generator, shape = np.random.default_rng(zero % 7), (1, 128, 9, 9)
        x = drawn(generator, dtype, *shape) if anywhere else near(generator, dtype, zero, *shape)
        weights = {
            "w": drawn(generator, np.int8, 100, 128, kernel, kernel),
            "xz": np.array(zero, dtype),
            "wz": np.array(0, np.int8),
        }
        attributes = {"strides": [stride] * 2, "pads": [kernel // 2] * 4}
        node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], **attributes)
        ours, expected = answers(model_of([node], {"x": x}, weights), {"x": x})
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize(("rows", "expected"), [(1, "gemv"), (64, "gemm split")])
def test_without_vnni_few_large_numbers_are_taken_in_turns(rows: int, expected: str) -> None:
    generator = np.random.default_rng(2)
    x, w = drawn(generator, np.uint8, rows, 256), drawn(generator, np.int8, 256, 128)
    zeros = {"xz": np.array(9, np.uint8), "wz": np.array(0, np.int8)}
    node = helper.make_node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"])
    model = model_of([node], {"x": x}, {"w": w, **zeros})
    assert [k.choice.variant for k in kernels_of(model, AVX512)] == [expected]
    vnni = replace(AVX512, unsigned_bytes=True)
    assert "split" not in kernels_of(model, vnni)[0].choice.variant


def test_without_vnni_convolutions_take_fewer_products() -> None:
    generator = np.random.default_rng(2)
    x, w = drawn(generator, np.uint8, 1, 64, 28, 28), drawn(generator, np.int8, 64, 64, 3, 3)
    zeros = {"xz": np.array(9, np.uint8), "wz": np.array(0, np.int8)}
    node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], pads=[1] * 4)
    model = model_of([node], {"x": x}, {"w": w, **zeros})
    assert [k.choice.variant for k in kernels_of(model, AVX512)] == ["winograd"]
    assert [k.choice.variant for k in kernels_of(model, NEON)] == ["direct"]


def quantized_conv(
    generator: np.random.Generator, op: str, bias: bool, per_channel: bool
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Between QuantizeLinear and DequantizeLinear, as exporters of quantized models write it."""
    x = generator.standard_normal((2, 6, 7, 8)).astype(np.float32)
    shape = (10, 6, 3, 3) if op == "Conv" else (8, 10) if op == "MatMul" else (10, 8)
    axis = 1 if op == "MatMul" else 0
    scales = (generator.random(10) * 0.02 + 0.01).astype(np.float32)
    weights = {
        "xs": np.array(0.03, np.float32),
        "xz": np.array(121, np.uint8),
        "w": drawn(generator, np.int8, *shape),
        "ws": scales if per_channel else scales[:1].reshape(()),
        "wz": np.zeros(10 if per_channel else (), np.int8),
        "b": generator.standard_normal(10).astype(np.float32),
        "ys": np.array(0.25, np.float32),
        "yz": np.array(100, np.uint8),
        "flat": np.array([-1, 8], np.int64),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=axis),
    ]
    operands = ["xd", "wd"] + (["b"] if bias and op != "MatMul" else [])
    if op == "Gemm":
        nodes.insert(2, helper.make_node("Reshape", ["xd", "flat"], ["xr"]))
        operands[0] = "xr"
        nodes.append(helper.make_node(op, operands, ["t"], transB=1))
    else:
        nodes.append(helper.make_node(op, operands, ["t"]))
    nodes += [
        helper.make_node("Relu", ["t"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "ys", "yz"], ["y"]),
    ]
    return model_of(nodes, {"x": x}, weights), {"x": x}


@pytest.mark.parametrize("op", ["Conv", "MatMul"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
def test_between_quantize_and_dequantize(op: str, bias: bool, per_channel: bool) -> None:
    model, feeds = quantized_conv(np.random.default_rng(3), op, bias, per_channel)
    found = kernels_of(model)
    assert [kernel.dtype for kernel in found] == ["i32"]
    ours, expected = answers(model, feeds)
    steps = np.abs(ours - expected) / 0.25
    assert steps.max() <= 1  # sums that lie at a tie may be rounded to either side
    assert (steps > 0).mean() < 0.01


def test_the_processor_decides_which_sign_bytes_have() -> None:
    """With VNNI the first factor has no sign: it is the other type whose highest bits are turned."""
    assert not target_of(NEON).unsigned_bytes
    assert target_of(replace(AVX512, unsigned_bytes=True)).unsigned_bytes


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    a=TYPES,
    b=TYPES,
    batch=st.sampled_from([(), (1,), (3,), (2, 2)]),
    sizes=st.tuples(st.integers(5, 19), st.integers(0, 70), st.integers(0, 35)),
    turned=st.booleans(),
    open_sizes=st.booleans(),
    shared=st.booleans(),
)
def test_products_of_two_computed_values(
    seed: int,
    a: type,
    b: type,
    batch: tuple[int, ...],
    sizes: tuple[int, int, int],
    turned: bool,
    open_sizes: bool,
    shared: bool,
) -> None:
    generator = np.random.default_rng(seed)
    m, k, n = sizes
    left = drawn(generator, a, *batch, m, k)
    own = () if shared else batch
    right = drawn(generator, b, *own, *((n, k) if turned else (k, n)))
    zeros = {"az": drawn(generator, a), "bz": drawn(generator, b)}
    nodes = [helper.make_node("MatMulInteger", ["a", "c" if turned else "b", "az", "bz"], ["y"])]
    if turned:
        axes = [*range(len(own)), len(own) + 1, len(own)]
        nodes.insert(0, helper.make_node("Transpose", ["b"], ["c"], perm=axes))
    model = model_of(nodes, {"a": left, "b": right}, zeros)
    if open_sizes:
        for port in model.graph.input:
            for at, size in enumerate(port.type.tensor_type.shape.dim):
                size.dim_param = f"{port.name}{at}"
        del model.graph.value_info[:]
    ours, expected = answers(model, {"a": left, "b": right})
    np.testing.assert_array_equal(ours, expected)
    if not open_sizes and m * k * n and m > 8:
        (kernel,) = kernels_of(model)
        assert isinstance(kernel, ProductKernel)
        assert kernel.begin is not None


@pytest.mark.parametrize("inner", [64, 65, 700])
def test_qlinear_products_of_two_computed_values(inner: int) -> None:
    generator = np.random.default_rng(inner)
    feeds = {
        "a": drawn(generator, np.uint8, 2, 12, inner),
        "b": drawn(generator, np.int8, 2, inner, 20),
    }
    constants = {
        "as": np.array(0.02, np.float32),
        "az": np.array(131, np.uint8),
        "bs": np.array(0.01, np.float32),
        "bz": np.array(-3, np.int8),
        "ys": np.array(0.05, np.float32),
        "yz": np.array(7, np.uint8),
    }
    node = helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    model = model_of([node], feeds, constants)
    ours, expected = answers(model, feeds)
    np.testing.assert_array_equal(ours, expected)
    assert kernels_of(model)
