"""Operators whose output's size only their data decide."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.ops.harness import (
    Case,
    agree,
    close,
    plan_of,
    run_compiled,
    run_interpreted,
    run_reference,
)

import sardonyx as sx
from sardonyx.errors import RunError
from sardonyx.ops.lowerings.choosing import BLOCK
from sardonyx.plan.plan import Plan

RNG = np.random.default_rng(11)


def holes(*shape: int, dtype: type = np.float32) -> np.ndarray:
    """Numbers with many zeros among them."""
    return (RNG.integers(-2, 3, shape) * RNG.integers(0, 2, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, np.bool_])
def test_non_zero(dtype: type) -> None:
    agree(Case("NonZero", [np.abs(holes(3, 4, 5)).astype(dtype)]))


@pytest.mark.parametrize("shape", [(0,), (7,), (3, 0, 2), (2, 1, 3, 2)], ids=str)
@pytest.mark.parametrize("symbolic", [False, True])
def test_non_zero_of_any_shape(shape: tuple[int, ...], symbolic: bool) -> None:
    agree(Case("NonZero", [holes(*shape)], symbolic=symbolic))


def test_nothing_and_everything_is_not_zero() -> None:
    agree(Case("NonZero", [np.zeros((3, 4), np.float32)]))
    agree(Case("NonZero", [np.array([np.nan, -0.0, np.inf, 1e-45], np.float32)]))


def test_one_plan_serves_any_data() -> None:
    case = Case("NonZero", [holes(2, 2)], symbolic=True)
    model = sx.load(case.model())
    plan = plan_of(model)
    for shape in ((3, 4), (1, 1), (5, 0), (2, 3 * BLOCK + 7)):
        x = holes(*shape)
        close(run_compiled(model, plan, {"x0": x})[0], np.array(np.nonzero(x)), str(shape))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("symbolic", [False, True])
def test_compress(axis: int | None, symbolic: bool) -> None:
    x = holes(3, 4, 5)
    attributes = {} if axis is None else {"axis": axis}
    condition = np.array([False, True, True])
    agree(Case("Compress", [x, condition], attributes, symbolic=symbolic))
    agree(Case("Compress", [x, condition], attributes, constants=frozenset({1})))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.bool_])
@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_compress_much(dtype: type, axis: int | None) -> None:
    x = np.abs(holes(70, 3, 300)).astype(dtype)
    attributes = {} if axis is None else {"axis": axis}
    length = x.size if axis is None else x.shape[axis]
    condition = RNG.integers(0, 2, length).astype(np.bool_)
    case = Case("Compress", [x, condition], attributes, symbolic=True)
    agree(case, interpreted=False)
    one, two = (sx.Session(case.model(), threads=n).run(None, case.feeds())[0] for n in (1, 2))
    assert np.array_equal(one, two)


def test_compress_by_nothing() -> None:
    agree(Case("Compress", [holes(3, 4), np.zeros(0, np.bool_)], {"axis": 0}))
    agree(Case("Compress", [holes(3, 4), np.zeros(3, np.bool_)], {"axis": 0}))
    agree(Case("Compress", [holes(0, 4), np.zeros(0, np.bool_)], {"axis": 0}))


def test_a_condition_past_the_end_chooses_nothing_there() -> None:
    case = Case("Compress", [holes(3), np.array([True, False, False, True])], {"axis": 0})
    model = sx.load(case.model())
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    with pytest.raises(RunError, match="chooses number 3 of 3"):
        run_compiled(model, plan_of(model), case.feeds())


# Unique


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("symbolic", [False, True])
def test_unique(axis: int | None, ordered: int, symbolic: bool) -> None:
    attributes = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    x = RNG.integers(0, 2, (4, 5, 2)).astype(np.float32)
    x[:, 3] = x[:, 1]
    x[2] = x[0]
    agree(Case("Unique", [x], attributes, outputs=4, symbolic=symbolic))


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float64, np.int8, np.uint8, np.uint32, np.int64, np.uint64, np.bool_]
)
def test_unique_elements_of_every_type(dtype: type) -> None:
    for outputs in (1, 2, 3, 4):
        agree(Case("Unique", [np.abs(holes(13)).astype(dtype)], outputs=outputs))
        agree(Case("Unique", [np.abs(holes(13)).astype(dtype)], {"sorted": 0}, outputs=outputs))
    agree(Case("Unique", [np.abs(holes(13)).astype(dtype)], {"axis": 0}, outputs=4))


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16, np.int64])
def test_unique_of_numbers_that_differ_in_every_byte(dtype: type, ordered: int) -> None:
    bits = RNG.integers(0, 256, 400 * np.dtype(dtype).itemsize, np.uint8)
    x = bits.view(dtype)
    x[x != x] = 7  # NaN that numpy warns of
    x[200:] = RNG.permutation(x[:200])
    agree(Case("Unique", [x], {"sorted": ordered}, outputs=4, symbolic=True), interpreted=False)


def test_unique_among_nothing_and_among_what_is_no_number() -> None:
    agree(Case("Unique", [np.zeros(0, np.float32)], outputs=4))
    agree(Case("Unique", [np.zeros((3, 0), np.float32)], {"axis": 1}, outputs=4))
    strange = np.array([np.nan, 1, np.inf, -np.nan, -np.inf, 0.0, -0.0, 1, 1e-45], np.float32)
    agree(Case("Unique", [strange], outputs=4))
    agree(Case("Unique", [strange.astype(np.float64)], {"sorted": 0}, outputs=4))


def test_unique_of_many_is_sorted() -> None:
    case = Case("Unique", [RNG.integers(0, 500, 3001)], outputs=4)
    agree(case, interpreted=False)


# NonMaxSuppression


def boxes(batches: int, count: int) -> np.ndarray:
    corners = RNG.random((batches, count, 2, 2)).astype(np.float32)
    return corners.reshape(batches, count, 4)


def suppression(
    count: int = 12,
    most: int | None = 4,
    overlap: float | None = 0.3,
    least: float | None = 0.1,
    **more: object,
) -> Case:
    scores = RNG.random((2, 3, count)).astype(np.float32).round(1)  # some are equal
    inputs = [boxes(2, count), scores]
    for value, dtype in ((most, np.int64), (overlap, np.float32), (least, np.float32)):
        inputs.append(None if value is None else np.array([value], dtype))
    attributes = {"center_point_box": more.pop("centred", 0)}
    return Case("NonMaxSuppression", inputs, attributes, **more)


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("symbolic", [False, True])
def test_suppression(centred: int, symbolic: bool) -> None:
    agree(suppression(centred=centred, symbolic=symbolic))
    agree(suppression(centred=centred, constants=frozenset({2, 3, 4})))


@pytest.mark.parametrize("most", [None, 0, -1, 1, 1 << 40])
def test_limits_of_suppression(most: int | None) -> None:
    agree(suppression(most=most))


@pytest.mark.parametrize("overlap", [None, 0.0, 1.0])
@pytest.mark.parametrize("least", [None, -1.0, 0.5, 2.0, np.nan])
def test_thresholds_of_suppression(overlap: float | None, least: float | None) -> None:
    agree(suppression(overlap=overlap, least=least))


def test_suppression_of_nothing() -> None:
    agree(suppression(count=0))


def test_boxes_and_scores_that_are_no_numbers() -> None:
    case = suppression(least=None)
    case.inputs[0][0, 3, 1] = np.nan
    case.inputs[0][1, 2] = 0.5
    case.inputs[1][0, 1, 2:5] = np.nan, np.inf, -np.inf
    agree(case)


def test_equal_scores_of_boxes_are_taken_in_order() -> None:
    case = suppression(most=9, overlap=1.0, least=None)
    case.inputs[1][0, 0] = [0.0, -0.0, 1e-45, -1e-45, 0.0, 5, -5, 5, -0.0, -1e-45, np.inf, 0.0]
    case.inputs[1][1] = 0.5
    agree(case)


@pytest.mark.parametrize("overlap", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("count", [16, 17, 333])
@pytest.mark.parametrize("constants", [frozenset(), frozenset({2})], ids=["fed", "known"])
def test_suppression_by_blocks(count: int, overlap: float, constants: frozenset[int]) -> None:
    """More boxes are chosen than are compared at a time, or as many."""
    case = suppression(count, 1 << 40, overlap, -1.0, constants=constants)
    agree(case, interpreted=False)
    agree(suppression(count, 33, overlap, 0.2, constants=constants), interpreted=False)


def test_any_number_of_threads_suppresses_alike() -> None:
    case = suppression(700, most=100, overlap=0.6, least=None)
    one, two = (sx.Session(case.model(), threads=n).run(None, case.feeds())[0] for n in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("overlap", [-0.1, 1.5, np.nan])
def test_an_overlap_outside_of_0_to_1_is_an_error(overlap: float) -> None:
    case = suppression(overlap=overlap)
    model = sx.load(case.model())
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    with pytest.raises(RunError, match="iou_threshold"):
        run_compiled(model, plan_of(model), case.feeds())


# Between other nodes


def chain(*nodes: onnx.NodeProto, feeds: dict[str, np.ndarray]) -> Plan:
    """Nodes whose last output is y agree on the reference backend, interpreted and compiled."""
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype), [f"{name}{i}" for i in range(x.ndim)]
        )
        for name, x in feeds.items()
    ]
    graph = helper.make_graph(list(nodes), "chain", inputs, [onnx.ValueInfoProto(name="y")])
    imports = [helper.make_opsetid("", 21)]
    proto = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=imports, ir_version=10)
    )
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    model = sx.load(proto)
    plan = plan_of(model)
    (expected,) = run_reference(model, feeds)
    close(run_interpreted(model, plan, feeds)[0], np.asarray(expected), "interpreted")
    close(run_compiled(model, plan, feeds)[0], np.asarray(expected), "compiled")
    return plan


def test_sizes_that_a_kernel_counts_reach_kernels_that_read_nothing_of_it() -> None:
    chain(
        helper.make_node("NonZero", ["x"], ["i"]),
        helper.make_node("Shape", ["i"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["y"]),
        feeds={"x": holes(4, 5)},
    )
    chain(
        helper.make_node("ReduceSum", ["x", "axes"], ["r"]),
        helper.make_node("Shape", ["r"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["y"]),
        feeds={"x": holes(4, 5), "axes": np.array([1])},
    )


def test_a_view_before_and_a_pointwise_neighbour_after_are_fused() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("NonZero", ["t"], ["i"]),
        helper.make_node("Neg", ["i"], ["y"]),
    ]
    plan = chain(*nodes, feeds={"x": holes(4, 5)})
    assert len(plan.steps) == 3  # count, learn the size, store


def test_what_was_chosen_is_gathered() -> None:
    chain(
        helper.make_node("NonZero", ["x"], ["i"]),
        helper.make_node("Transpose", ["i"], ["t"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "t"], ["g"]),
        helper.make_node("Relu", ["g"], ["y"]),
        feeds={"x": holes(4, 5)},
    )
