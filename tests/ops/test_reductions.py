from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
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
from sardonyx.ops.lowering import NotNative
from sardonyx.ops.lowerings.reductions import REDUCTIONS

RNG = np.random.default_rng(1)
X = RNG.standard_normal((3, 5, 7)).astype(np.float32)
AXES = frozenset({1})  # the axes are an initializer


def axes(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def reduction(op: str, x: np.ndarray, along: tuple[int, ...], **attributes: int) -> Case:
    return Case(op, [x, axes(*along)], attributes, constants=AXES)


def fails(case: Case) -> None:
    """The reference backend and the compiled kernel both stop."""
    model = sx.load(case.model())
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    with pytest.raises(RunError):
        run_compiled(model, plan_of(model), case.feeds())


# Reduce*


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("along", [(-1,), (1,)], ids=str)
def test_every_reduction_over_rows_and_columns(op: str, along: tuple[int, ...]) -> None:
    positive = np.abs(X) + np.float32(0.1)
    agree(reduction(op, positive if op == "ReduceLogSum" else X, along))


@pytest.mark.parametrize("along", [(0,), (0, 2), (1, 2), (0, 1), (2, 0, 1)], ids=str)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_and_keepdims(along: tuple[int, ...], keepdims: int) -> None:
    agree(reduction("ReduceSum", X, along, keepdims=keepdims))


@pytest.mark.parametrize("along", [(0,), (1, 2)], ids=str)
def test_symbolic_sizes(along: tuple[int, ...]) -> None:
    for op in ("ReduceMean", "ReduceLogSumExp"):
        agree(Case(op, [X, axes(*along)], constants=AXES, symbolic=True))


def test_no_axes_mean_all_of_them_or_none() -> None:
    agree(Case("ReduceSum", [X]))
    agree(reduction("ReduceMax", X, ()))
    agree(reduction("ReduceSumSquare", X, (), noop_with_empty_axes=1))
    agree(Case("ReduceL1", [X], {"noop_with_empty_axes": 1}))


def test_axes_are_an_attribute_before_opset_13_and_18() -> None:
    agree(Case("ReduceSum", [X], {"axes": [0, -1]}, opset=11))
    agree(Case("ReduceMax", [X], {"axes": [1], "keepdims": 0}, opset=13))


@pytest.mark.parametrize("op", REDUCTIONS)
def test_integers(op: str) -> None:
    """Sums wrap in their own type; means truncate; roots and logarithms are cut to integers."""
    x = RNG.integers(-9, 9, (4, 6)).astype(np.int32)
    x = np.abs(x) + 1 if op == "ReduceLogSum" else x
    agree(Case(op, [x, axes(1)], constants=AXES, opset=18))  # later ones take fewer types


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_extremes_of_integers_at_the_ends_of_their_type(dtype: str) -> None:
    ends = np.iinfo(dtype)
    x = np.array([[ends.min, ends.max], [ends.max, ends.max], [ends.min, ends.min]], dtype)
    agree(reduction("ReduceMax", x, (1,)))
    agree(reduction("ReduceMin", x, (0,)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp"])
def test_floats(op: str, dtype: type) -> None:
    agree(reduction(op, X.astype(dtype), (2,)))


def test_products_and_means_wrap_and_truncate() -> None:
    agree(reduction("ReduceProd", np.full((2, 40), 3, np.int32), (1,)))
    agree(reduction("ReduceMean", np.array([[-7, -8], [2**31 - 1, 2**31 - 1]], np.int32), (1,)))
    agree(reduction("ReduceMean", np.array([[2**63, 2**63 - 2]], np.uint64), (1,)))


def test_truth_values_have_extremes() -> None:
    x = RNG.random((3, 4)) < 0.3
    agree(reduction("ReduceMax", x, (1,)))
    agree(reduction("ReduceMin", x, (0,)))


@pytest.mark.parametrize("op", REDUCTIONS)
def test_nothing_to_reduce(op: str) -> None:
    agree(reduction(op, np.zeros((2, 0, 3), np.float32), (1,)))


def test_nothing_comes_of_nothing() -> None:
    agree(reduction("ReduceSum", np.zeros((0, 4), np.float32), (1,)))
    agree(reduction("ReduceMax", np.zeros((4, 0), np.float32), (0,)))


def test_a_scalar_reduces_to_itself() -> None:
    agree(Case("ReduceMean", [np.array(3.5, np.float32)]))


def test_not_a_number_and_infinities_stay() -> None:
    x = np.array([[1, np.nan, 3], [-np.inf, 2, 3], [np.inf, 0, np.inf]], np.float32)
    for op in ("ReduceMax", "ReduceMin", "ReduceLogSumExp", "ReduceSum"):
        agree(reduction(op, x, (1,)))
    agree(reduction("ReduceLogSumExp", np.full((2, 2), -np.inf, np.float32), (1,)))
    agree(reduction("ReduceLogSumExp", np.full((2, 2), 1000, np.float32), (1,)))


def test_the_mean_of_no_integers_is_an_error() -> None:
    none = np.zeros((3, 0), np.int32)
    fails(Case("ReduceMean", [none, axes(1)], constants=AXES, symbolic=True))


@pytest.mark.parametrize("columns", [20, 64, 67, 200, 300])
def test_columns_are_folded_in_blocks(columns: int) -> None:
    x = RNG.standard_normal((3, columns)).astype(np.float32)
    for symbolic in (False, True):
        agree(Case("ReduceSum", [x, axes(0)], constants=AXES, symbolic=symbolic))


def test_axes_of_one_element_are_in_nobodys_way() -> None:
    x = RNG.standard_normal((2, 6, 1, 1)).astype(np.float32)
    plan = agree(reduction("ReduceSum", x, (1, 3)))
    (kernel,) = plan.kernels
    assert "Array" not in str(kernel), "the folded axis is the innermost that has a length"


def test_long_sums_are_as_exact_as_a_plain_loop() -> None:
    x = RNG.random((2, 20000)).astype(np.float32)
    case = reduction("ReduceSum", x, (1,))
    model = sx.load(case.model())
    (got,) = run_compiled(model, plan_of(model), case.feeds())
    exact = x.astype(np.float64).sum(1, keepdims=True)
    plain = np.add.accumulate(x, axis=1, dtype=np.float32)[:, -1:]
    assert np.abs(got - exact).max() <= np.abs(plain - exact).max()


def test_the_number_of_threads_changes_no_bit() -> None:
    x = RNG.standard_normal((301, 997)).astype(np.float32)
    for along in ((0,), (1,)):
        case = reduction("ReduceSum", x, along)
        model = sx.load(case.model())
        plan = plan_of(model)
        one, two = (run_compiled(model, plan, case.feeds(), threads)[0] for threads in (1, 2))
        np.testing.assert_array_equal(one, two)


def test_an_input_with_strides_of_its_own() -> None:
    x = RNG.standard_normal((7, 2, 5)).astype(np.float32).transpose(2, 0, 1)[::2, ::-1]
    agree(reduction("ReduceSum", x, (1,)))


@pytest.mark.parametrize("along", [(1,), (-1, 0), (2, 0, 1)], ids=str)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("symbolic", [False, True])
def test_axes_that_only_the_run_knows(
    along: tuple[int, ...], keepdims: int, symbolic: bool
) -> None:
    case = Case("ReduceSum", [X, axes(*along)], {"keepdims": keepdims}, symbolic=symbolic)
    if symbolic and not keepdims:
        with pytest.raises(NotNative, match="rank"):  # nobody knows how many axes there are
            plan_of(sx.load(case.model()))
        return
    agree(case)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_every_reduction_over_axes_that_only_the_run_knows(op: str) -> None:
    agree(Case(op, [np.abs(X) + np.float32(0.1), axes(0, 2)], {"keepdims": 0}))


@pytest.mark.parametrize("noop", [0, 1])
def test_no_axes_in_the_run(noop: int) -> None:
    attributes = {"noop_with_empty_axes": noop}
    agree(Case("ReduceSum", [X, axes()], attributes))
    agree(Case("ReduceSum", [X, axes()], attributes, symbolic=True))


@pytest.mark.parametrize("along", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_nothing_over_axes_that_only_the_run_knows(along: tuple[int, ...], keepdims: int) -> None:
    agree(Case("ReduceProd", [np.zeros((0, 3), np.int32), axes(*along)], {"keepdims": keepdims}))


@pytest.mark.parametrize("along", [(3,), (-4,), (1, -2)], ids=str)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_that_are_none(along: tuple[int, ...], keepdims: int) -> None:
    fails(Case("ReduceSum", [X, axes(*along)], {"keepdims": keepdims}))


def test_neighbours_are_fused_on_both_sides() -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("ReduceSum", ["a", "axes"], ["b"], keepdims=0),
        helper.make_node("Sqrt", ["b"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 5, 7])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 7])
    weights = [onnx.numpy_helper.from_array(axes(1), "axes")]
    graph = helper.make_graph(nodes, "chain", [x], [y], weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model = sx.load(proto)
    plan = plan_of(model)
    assert len(plan.steps) == 1
    expected = np.sqrt(np.exp(X).sum(1))
    close(run_interpreted(model, plan, {"x": X})[0], expected, "interpreted")
    close(run_compiled(model, plan, {"x": X})[0], expected, "compiled")


# ArgMax, ArgMin

TIES = np.array([[2, 5, 5, 1], [0, 0, 0, 0], [7, 1, 1, 7]], np.float32)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_first_or_last_of_equals(op: str, last: int, axis: int) -> None:
    agree(Case(op, [TIES], {"axis": axis, "select_last_index": last, "keepdims": last}))


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_not_a_number_beats_all(op: str) -> None:
    x = np.array([[1, np.nan, 3, np.nan], [np.inf, 2, -np.inf, 0]], np.float32)
    for last in (0, 1):
        agree(Case(op, [x], {"axis": 1, "select_last_index": last}))


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float64"])
def test_extreme_indices_of_every_type(dtype: str) -> None:
    x = RNG.integers(0, 9, (3, 5, 4)).astype(dtype)
    agree(Case("ArgMax", [x], {"axis": 1}, symbolic=True))
    agree(Case("ArgMin", [x], {"axis": 2}))


def test_the_lowest_values_have_an_index_too() -> None:
    agree(Case("ArgMax", [np.full((2, 3), -np.inf, np.float32)], {"axis": 1}))
    agree(Case("ArgMin", [np.full((2, 3), 127, np.int8)], {"axis": 0, "select_last_index": 1}))


def test_an_empty_axis_has_no_extreme() -> None:
    fails(Case("ArgMax", [np.zeros((2, 0), np.float32)], {"axis": 1}, symbolic=True))
    agree(Case("ArgMax", [np.zeros((0, 3), np.float32)], {"axis": 1}, symbolic=True))


# CumSum, CumProd


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_running(op: str, reverse: int, exclusive: int) -> None:
    attributes = {"reverse": reverse, "exclusive": exclusive}
    for axis in (1, -1):
        agree(Case(op, [X, np.array(axis)], attributes, constants=AXES))


@pytest.mark.parametrize("axis", [0, 2, -2])
def test_running_along_an_axis_that_only_the_run_knows(axis: int) -> None:
    agree(Case("CumSum", [X, np.array([axis], np.int32)], symbolic=axis == 0))


@pytest.mark.parametrize("axis", [3, -4])
def test_running_along_no_axis(axis: int) -> None:
    fails(Case("CumSum", [X, np.array(axis)]))


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float16", "float64"])
def test_running_types(dtype: str) -> None:
    x = RNG.integers(0, 5, (4, 3)).astype(dtype)
    agree(Case("CumSum", [x, np.array(0)], constants=AXES))


def test_running_over_nothing() -> None:
    agree(Case("CumSum", [np.zeros((3, 0), np.float32), np.array(1)], constants=AXES))


@pytest.mark.parametrize("along", [(2, 3), (1,), (2,), (1, 2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("sizes", [[2, 6, 5, 7], ["n", 6, "h", "w"]])
def test_what_a_convolution_wrote(along: tuple[int, ...], sizes: list[int | str]) -> None:
    """It lies channels last, and is read so."""
    x = RNG.standard_normal((2, 6, 5, 7)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Neg", ["c"], ["d"]),
        helper.make_node("ReduceMean", ["d", "axes"], ["mean"], keepdims=0),
        helper.make_node("ArgMax", ["d"], ["top"], axis=along[-1]),
        helper.make_node("CumSum", ["d", "first"], ["sums"]),
    ]
    constants = {"w": np.eye(6, dtype=np.float32)[:, :, None, None], "axes": np.array(along)}
    constants["first"] = np.array(along[0])
    graph = helper.make_graph(
        nodes,
        "read",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [
            helper.make_tensor_value_info("mean", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("top", TensorProto.INT64, None),
            helper.make_tensor_value_info("sums", TensorProto.FLOAT, None),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    mean, top, sums = sx.Session(model).run(None, {"x": x})
    close(mean, np.asarray(-x.mean(along)), "ReduceMean")
    np.testing.assert_array_equal(top, (-x).argmax(along[-1], keepdims=True))
    close(sums, -x.cumsum(along[0]), "CumSum")


@pytest.mark.parametrize(
    "op", ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp"]
)
@pytest.mark.parametrize(
    "width", [1, 4, 5, 8, 9, 15, 16, 17, 31, 33, 49, 63, 64, 65, 100, 112, 129]
)
def test_rows_that_fill_vectors_and_that_do_not(op: str, width: int) -> None:
    """Short ones are written out, masked, or taken by as many vectors as leave little over."""
    x = RNG.standard_normal((7, width)).astype(np.float32)
    x[2, width // 2], x[3, -1], x[4, -1], x[5] = np.nan, np.inf, -np.inf, -0.0
    agree(reduction(op, x, (1,)))
