from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError
from sardonyx.ops.lowerings.quantized import BLOCK

RNG = np.random.default_rng(5)
SMALL = [np.int8, np.uint8, np.int16, np.uint16]


def normal(*shape: int, scale: float = 20.0) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape) * scale).astype(np.float32)


def integers(dtype: type, *shape: int) -> np.ndarray:
    bounds = np.iinfo(dtype)
    return RNG.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)


def scalar(value: float, dtype: type = np.float32) -> np.ndarray:
    return np.array(value, dtype)


X = normal(2, 3, 5)
STRANGE = np.array([np.nan, np.inf, -np.inf, 0.5, 1.5, -0.5, 1e30, -1e30, 0], np.float32)


# QuantizeLinear and DequantizeLinear


@pytest.mark.parametrize("dtype", SMALL)
def test_quantized_by_one_scale(dtype: type) -> None:
    for x in (X, STRANGE):
        agree(Case("QuantizeLinear", [x, scalar(0.3), integers(dtype)]))


@pytest.mark.parametrize("scale", [0.1, 0.37, 3e-6, 1 / 255, 2.0, 41.3])
def test_quotients_are_rounded_as_divisions_are(scale: float) -> None:
    """By a constant scale no division is computed: ties, their neighbours and what overflows show that none is missed."""
    by = np.float32(scale)
    ties = ((np.arange(-300, 300) + 0.5) * np.float64(by)).astype(np.float32)
    beside = [np.nextafter(ties, np.float32(side)) for side in (np.inf, -np.inf)]
    x = np.concatenate([ties, *beside, normal(500, scale=100 * scale), STRANGE])
    agree(Case("QuantizeLinear", [x, by, scalar(117, np.uint8)], constants=frozenset({1, 2})))


@pytest.mark.parametrize("scale", [0.0, np.nan, np.inf, -0.5])
def test_scales_that_are_no_scales_have_an_answer(scale: float) -> None:
    agree(Case("QuantizeLinear", [STRANGE, scalar(scale), scalar(3, np.uint8)]))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("symbolic", [False, True])
def test_one_scale_a_slice(axis: int, symbolic: bool) -> None:
    count = X.shape[axis]
    scales, zeros = np.abs(normal(count)) + 1, integers(np.int8, count)
    case = Case("QuantizeLinear", [X, scales, zeros], {"axis": axis}, symbolic=symbolic)
    agree(case)
    codes = integers(np.int8, *X.shape)
    agree(Case("DequantizeLinear", [codes, scales, zeros], {"axis": axis}, symbolic=symbolic))


def test_one_scale_for_all_slices_when_it_runs() -> None:
    agree(Case("QuantizeLinear", [X, normal(1), integers(np.int8, 1)], symbolic=True))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_one_scale_a_block(axis: int) -> None:
    shape = list(X.shape)
    shape[axis] = -(-shape[axis] // 2)
    scales, zeros = np.abs(normal(*shape)) + 1, integers(np.uint8, *shape)
    attributes = {"axis": axis, "block_size": 2}
    agree(Case("QuantizeLinear", [X, scales, zeros], attributes))
    codes = integers(np.uint8, *X.shape)
    agree(Case("DequantizeLinear", [codes, scales, zeros], attributes, symbolic=True))


@pytest.mark.parametrize("small", [np.float16, ml_dtypes.bfloat16])
def test_division_in_the_type_of_the_scale(small: type) -> None:
    x = normal(40).astype(small)
    agree(Case("QuantizeLinear", [x, scalar(0.3, small), scalar(7, np.int8)]))


def test_precision_decides_the_division() -> None:
    attributes = {"precision": TensorProto.FLOAT16}
    agree(Case("QuantizeLinear", [normal(60), scalar(0.3), scalar(7, np.int8)], attributes))


def test_integers_are_quantized_by_division_in_float32() -> None:
    x = np.array([5, -7, 1000, -(2**31), 2**31 - 1], np.int32)
    agree(Case("QuantizeLinear", [x, scalar(2.0), scalar(1, np.int8)]))


def test_the_type_of_codes_without_a_zero_point() -> None:
    agree(Case("QuantizeLinear", [X, scalar(0.3)]))
    agree(Case("QuantizeLinear", [X, scalar(0.3)], {"output_dtype": TensorProto.INT16}))


@pytest.mark.parametrize("dtype", [*SMALL, np.int32])
@pytest.mark.parametrize("scale", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_dequantized(dtype: type, scale: type) -> None:
    zero = [] if dtype == np.int32 else [integers(dtype)]
    agree(Case("DequantizeLinear", [integers(dtype, 3, 4), scalar(0.01, scale), *zero]))


def test_codes_of_nothing_and_of_one_number() -> None:
    for x in (normal(0, 3), normal()):
        agree(Case("QuantizeLinear", [x, scalar(0.3), scalar(3, np.uint8)]))
        agree(Case("DynamicQuantizeLinear", [x], outputs=3))


def test_scales_that_do_not_fit_stop_the_run() -> None:
    fits = Case("QuantizeLinear", [X, normal(3), integers(np.int8, 3)], symbolic=True)
    wrong = Case("QuantizeLinear", [X, normal(2), integers(np.int8, 2)], symbolic=True)
    model = sx.load(fits.model())
    with pytest.raises(RunError):
        run_reference(model, wrong.feeds())
    with pytest.raises(RunError, match="2"):
        run_compiled(model, plan_of(model), wrong.feeds())


def test_quantizing_is_one_kernel_with_its_neighbours() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["b"]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8])]
    weights = [
        helper.make_tensor("scale", TensorProto.FLOAT, [], [0.1]),
        helper.make_tensor("zero", TensorProto.UINT8, [], [5]),
    ]
    graph = helper.make_graph(nodes, "chain", inputs, outputs, weights)
    model = sx.load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    )
    plan, feeds = plan_of(model), {"x": normal(3, 8, scale=1)}
    assert len(plan.steps) == 1
    (got,), (expected,) = run_compiled(model, plan, feeds), run_reference(model, feeds)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


# DynamicQuantizeLinear


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_scale_from_the_extremes(symbolic: bool) -> None:
    agree(Case("DynamicQuantizeLinear", [X], outputs=3, symbolic=symbolic))
    for x in (np.abs(X), -np.abs(X), np.zeros((2, 3), np.float32), STRANGE[[3, 4, 5, 8]]):
        agree(Case("DynamicQuantizeLinear", [x], outputs=3))


def test_extremes_of_several_blocks() -> None:
    x = normal(3, BLOCK - 1)
    x[2, -1], x[0, 5] = 1e4, -1e4
    agree(Case("DynamicQuantizeLinear", [x], outputs=3), interpreted=False)


# Integer products


@pytest.mark.parametrize("a", [np.int8, np.uint8])
@pytest.mark.parametrize("b", [np.int8, np.uint8])
def test_integer_products_with_zero_points(a: type, b: type) -> None:
    left, right = integers(a, 2, 3, 5), integers(b, 5, 4)
    zero_a, zero_b = integers(a), integers(b)
    agree(Case("MatMulInteger", [left, right]))
    agree(Case("MatMulInteger", [left, right, zero_a, zero_b]))
    agree(Case("MatMulInteger", [left, right, None, integers(b, 4)]))


def test_zero_points_of_rows_and_columns() -> None:
    left, right = integers(np.uint8, 3, 5), integers(np.int8, 5, 4)
    zeros = [integers(np.uint8, 3), integers(np.int8, 4)]
    for symbolic in (False, True):
        agree(Case("MatMulInteger", [left, right, *zeros], symbolic=symbolic))


def test_integer_products_of_vectors_of_nothing_and_of_many_columns() -> None:
    agree(Case("MatMulInteger", [integers(np.uint8, 5), integers(np.int8, 5)]))
    agree(Case("MatMulInteger", [integers(np.uint8, 2, 0), integers(np.int8, 0, 3)]))
    wide = [integers(np.uint8, 3, 7), integers(np.int8, 7, 201)]
    agree(Case("MatMulInteger", wide), interpreted=False)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("columns", [0, 4])
@pytest.mark.parametrize("symbolic", [False, True])
def test_quantized_products(dtype: type, columns: int, symbolic: bool) -> None:
    inputs = [
        integers(dtype, 2, 3, 6),
        scalar(0.02),
        integers(dtype),
        integers(dtype, 6, 4),
        np.abs(normal(columns, scale=0.02)) if columns else scalar(0.03),
        integers(dtype, columns) if columns else integers(dtype),
        scalar(0.15),
        integers(dtype),
    ]
    agree(Case("QLinearMatMul", inputs, symbolic=symbolic))


def test_quantized_products_by_rows() -> None:
    inputs = [
        integers(np.uint8, 3, 6),
        np.abs(normal(3, scale=0.02)),
        integers(np.uint8, 3),
        integers(np.uint8, 6, 4),
        scalar(0.03),
        integers(np.uint8),
        np.abs(normal(3, scale=0.2)),
        integers(np.uint8, 3),
    ]
    agree(Case("QLinearMatMul", inputs))
