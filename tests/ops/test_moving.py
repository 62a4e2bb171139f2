"""Operators that move elements: cutting, joining, padding, repeating, views."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.ops.channels_last import agree_channels_last
from tests.ops.harness import (
    Case,
    agree,
    plan_of,
    run_compiled,
    run_interpreted,
    run_reference,
)

import sardonyx as sx
from sardonyx.errors import RunError
from sardonyx.ops.lowering import NotNative

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
HALF = X.astype(np.float16)
BYTES = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)
EMPTY = np.zeros((0, 4, 5), np.float32)
LOW, HIGH = -(1 << 63), (1 << 63) - 1


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def known(
    op: str, inputs: list[Any], attributes: dict[str, Any] | None = None, **more: Any
) -> Case:
    """All inputs but the first are constants of the model."""
    constants = frozenset(i for i, x in enumerate(inputs) if i and x is not None)
    return Case(op, inputs, attributes or {}, constants=constants, **more)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1], [3], [1], None),
        ([-2], [HIGH], [-1], None),
        ([0, 1], [2, -1], [0, 2], [1, 2]),
        ([-1], [LOW], [1], [-1]),
        ([LOW], [HIGH], [0], None),
        ([5], [9], [1], None),
    ],
)
def test_slice(
    starts: list[int], ends: list[int], axes: list[int], steps: list[int] | None, symbolic: bool
) -> None:
    stride = None if steps is None else ints(*steps)
    inputs = [X, ints(*starts), ints(*ends), ints(*axes), stride]
    plan = agree(known("Slice", inputs, symbolic=symbolic))
    assert len(plan.steps) == 1


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(3, 0, -2), (LOW, LOW, -1), (HIGH, -5, -3), (2, 2, 1), (-9, 9, HIGH), (3, -9, LOW)],
)
def test_slice_bounds_are_clamped(start: int, end: int, step: int) -> None:
    agree(known("Slice", [X, ints(start), ints(end), ints(1), ints(step)]))


def test_slice_of_opset_1_has_attributes() -> None:
    agree(Case("Slice", [X], {"starts": [1, 0], "ends": [3, -1], "axes": [0, 2]}, opset=9))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis: int, symbolic: bool) -> None:
    plan = agree(Case("Concat", [X, X + 1, X * 2], {"axis": axis}, symbolic=symbolic))
    assert len(plan.steps) == 1


def test_concat_of_long_rows_and_of_nothing() -> None:
    rows = RNG.standard_normal((2, 3, 9, 8)).astype(np.float32)
    agree(Case("Concat", [rows, rows[:, :1], rows[:, :0]], {"axis": 1}))
    agree(Case("Concat", [BYTES.ravel(), BYTES.ravel()[:7]], {"axis": 0}))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_concat_with_channels_last(axis: int) -> None:
    rows = RNG.standard_normal((2, 3, 9, 8)).astype(np.float32)
    agree_channels_last(Case("Concat", [rows, rows + 1], {"axis": axis}))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [(0, 0, 1, 2, 0, 0, 3, 1), (0, 1, 0, 0, 0, 2, 0, 0)])
def test_pad_with_channels_last(mode: str, pads: tuple[int, ...]) -> None:
    rows = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    agree_channels_last(known("Pad", [rows, ints(*pads)], {"mode": mode}))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_and_space_with_channels_last(mode: str) -> None:
    deep = RNG.standard_normal((2, 12, 3, 5)).astype(np.float32)
    agree_channels_last(Case("DepthToSpace", [deep], {"blocksize": 2, "mode": mode}))
    wide = RNG.standard_normal((2, 3, 4, 6)).astype(np.float32)
    agree_channels_last(Case("SpaceToDepth", [wide], {"blocksize": 2}))


def test_concat_checks_sizes_that_only_a_run_knows() -> None:
    fails(Case("Concat", [X, X[:2]], {"axis": 1}, symbolic=True))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize(
    "pads", [(0, 1, 2, 1, 0, 3), (1, 0, 0, 2, 0, 0), (0, -1, 2, 0, 0, -2), (0, 0, -2, 0, 0, 9)]
)
@pytest.mark.parametrize("symbolic", [False, True])
def test_pad(mode: str, pads: tuple[int, ...], symbolic: bool) -> None:
    agree(known("Pad", [X, ints(*pads)], {"mode": mode}, symbolic=symbolic))


def test_pad_with_a_value_along_some_axes() -> None:
    agree(known("Pad", [HALF, ints(1, 2), np.array(7, np.float16), ints(-1)]))
    agree(known("Pad", [BYTES, ints(1, 0, 0, 2), np.array(7, np.uint8), ints(0, 1)]))
    agree(Case("Pad", [X], {"pads": [0, 1, 0, 0, 0, 2], "value": 1.5}, opset=2))


def test_pad_repeats_nothing() -> None:
    fails(known("Pad", [EMPTY, ints(1, 0, 0, 0, 0, 0)], {"mode": "edge"}, symbolic=True))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("repeats", [(1, 1, 1), (2, 1, 1), (1, 2, 3), (0, 1, 1)])
def test_tile(repeats: tuple[int, ...], symbolic: bool) -> None:
    agree(known("Tile", [X, ints(*repeats)], symbolic=symbolic))


@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_depth_and_space(op: str, mode: str, symbolic: bool) -> None:
    image = RNG.standard_normal((2, 8, 4, 6)).astype(np.float32)
    agree(Case(op, [image], {"blocksize": 2, "mode": mode}, symbolic=symbolic))


def test_depth_that_does_not_divide() -> None:
    fails(Case("DepthToSpace", [X[None]], {"blocksize": 2}, symbolic=True))
    fails(Case("SpaceToDepth", [X[None]], {"blocksize": 2}, symbolic=True))


@pytest.mark.parametrize("perm", [(2, 1, 0), (0, 2, 1), (1, 0, 2)])
@pytest.mark.parametrize("x", [X, HALF, EMPTY, X > 0])
def test_transpose(perm: tuple[int, ...], x: np.ndarray) -> None:
    agree(Case("Transpose", [x], {"perm": list(perm)}))


def test_strided_and_misaligned_inputs() -> None:
    agree(Case("Transpose", [X[::2, :, ::-1]], {"perm": [2, 0, 1]}))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64, np.float16])
@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((37, 53), (1, 0)),
        ((64, 32), (1, 0)),
        ((3, 17, 5, 19), (0, 2, 3, 1)),  # few, or many, of the last axis
        ((2, 35, 21, 18), (0, 3, 1, 2)),
        ((2, 3, 9, 40), (0, 2, 3, 1)),
        ((5, 20, 33), (2, 1, 0)),
        ((0, 37, 53), (0, 2, 1)),
    ],
)
def test_transpose_in_blocks(
    shape: tuple[int, ...], perm: tuple[int, ...], dtype: type[np.generic], symbolic: bool
) -> None:
    x = RNG.integers(0, 100, shape).astype(dtype)
    agree(Case("Transpose", [x], {"perm": list(perm)}, symbolic=symbolic))
    agree(Case("Concat", [X.transpose(2, 1, 0), X.transpose(2, 1, 0)], {"axis": 1}))


@pytest.mark.parametrize("parts", [None, [1, 3], [4, 0]])
@pytest.mark.parametrize("symbolic", [False, True])
def test_split(parts: list[int] | None, symbolic: bool) -> None:
    inputs = [X] if parts is None else [X, ints(*parts)]
    attributes = {"axis": 1} | ({"num_outputs": 2} if parts is None else {})
    agree(known("Split", inputs, attributes, outputs=2, symbolic=symbolic))


@pytest.mark.parametrize("symbolic", [False, True])
def test_split_leaves_the_last_ones_small(symbolic: bool) -> None:
    case = Case("Split", [X], {"axis": -1, "num_outputs": 4}, outputs=4, symbolic=symbolic)
    agree(case)


def test_split_checks_the_sum() -> None:
    fails(known("Split", [X, ints(1, 2)], {"axis": 1}, outputs=2, symbolic=True))


@pytest.mark.parametrize("symbolic", [False, True])
def test_shape_and_size(symbolic: bool) -> None:
    agree(Case("Shape", [X], {"start": 1}, symbolic=symbolic))
    if symbolic:  # a number that is known before the run needs no kernel
        assert len(agree(Case("Size", [X], symbolic=True)).steps) == 1


def test_dropout_drops_nothing() -> None:
    agree(Case("Dropout", [X], outputs=2))
    fails(Case("Dropout", [X, np.array(1.5, np.float32)], outputs=2))
    training = known("Dropout", [X, np.array(0.5, np.float32), np.array(True)])
    with pytest.raises(NotNative, match="trains"):
        plan_of(sx.load(training.model()))


def test_views_check_what_only_a_run_knows() -> None:
    fails(known("Squeeze", [X, ints(0)], symbolic=True))
    fails(known("Reshape", [X, ints(-1, 7)], symbolic=True))
    agree(known("Reshape", [X, ints(-1, 6)], symbolic=True))


# Parameters that are data


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "shapes", "axis"),
    [
        ("Slice", [X, ints(0, -1), ints(9, LOW), ints(-1, 1), ints(2, -1)], {}, [(3, 4, 3)], 2),
        ("Slice", [X, ints(1), ints(2)], {}, [(1, 4, 5)], 0),
        ("Pad", [X, ints(0, 1, -1, 2, 0, 0)], {}, [(5, 5, 4)], 1),
        ("Pad", [X, ints(1, 2), None, ints(-2)], {"mode": "reflect"}, [(3, 7, 5)], 1),
        ("Tile", [X, ints(1, 2, 1)], {}, [(3, 8, 5)], 1),
        ("Expand", [X[:, :1], ints(4, 1)], {}, [(3, 4, 5)], 1),
        ("Reshape", [X, ints(0, -1)], {}, [(3, 20)], 1),
        ("Split", [X, ints(1, 3)], {"axis": 1}, [(3, 1, 5), (3, 3, 5)], 1),
        ("ConstantOfShape", [ints(2, 3)], {}, [(2, 3)], 0),
        ("Range", [ints(1)[0], ints(10)[0], ints(4)[0]], {}, [(3,)], 0),
        ("Range", [ints(3)[0], ints(-4)[0], ints(-2)[0]], {}, [(4,)], 0),
        ("Range", [np.float32(0), np.float32(1), np.float32(0.25)], {}, [(4,)], 0),
        ("OneHot", [ints(0, 2), ints(3), np.float32([0, 1])], {}, [(2, 3)], 1),
        ("TopK", [X, ints(2)], {}, [(3, 4, 2), (3, 4, 2)], 2),
    ],
)
def test_parameters_are_read_and_checked(
    op: str,
    inputs: list[Any],
    attributes: dict[str, Any],
    shapes: list[tuple[int, ...]],
    axis: int,
) -> None:
    """The declared shape of the output is believed only as far as the data bear it out."""
    arrays = [None if x is None else np.asarray(x) for x in inputs]
    case = Case(op, arrays, attributes, outputs=len(shapes))
    run_three_ways(_declared(case, shapes), case.feeds())
    lies = [tuple(d + (a == axis) for a, d in enumerate(shape)) for shape in shapes]
    model = sx.load(_declared(case, lies))
    with pytest.raises(RunError):
        run_compiled(model, plan_of(model), case.feeds())


def test_a_step_of_0_and_an_axis_named_twice_stop_the_run() -> None:
    for axes, steps in ((ints(0, 1), ints(1, 0)), (ints(1, -2), ints(1, 1))):
        case = Case("Slice", [X, ints(0, 0), ints(9, 9), axes, steps])
        model = sx.load(_declared(case, [X.shape]))
        with pytest.raises(RunError):
            run_compiled(model, plan_of(model), case.feeds())


def test_neighbours_are_one_kernel() -> None:
    """Relu - Concat - Neg and Relu - Pad - Neg, Slice - Neg and Gather - Neg."""
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 4, 5])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    middles = {
        "Slice": helper.make_node("Slice", ["x", "one", "three"], ["b"]),
        "Concat": helper.make_node("Concat", ["a", "x"], ["b"], axis=1),
        "Pad": helper.make_node("Pad", ["a", "pads"], ["b"]),
        "Gather": helper.make_node("Gather", ["x", "one"], ["b"]),
    }
    weights = {"one": ints(1), "three": ints(3), "pads": ints(0, 0, 1, 0, 0, 2)}
    for middle in middles.values():
        nodes = [
            helper.make_node("Relu", ["x"], ["a"]),
            middle,
            helper.make_node("Neg", ["b"], ["y"]),
        ]
        used = [onnx.numpy_helper.from_array(w, n) for n, w in weights.items() if n in middle.input]
        graph = helper.make_graph(nodes, "g", [x], [y], used)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        assert len(run_three_ways(model, {"x": X}).steps) == 1, middle.op_type


def test_split_costs_nothing_where_its_parts_are_read() -> None:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
        helper.make_node("Mul", ["a", "b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert len(run_three_ways(model, {"x": X[0, :, :4]}).steps) == 1


def _declared(case: Case, shapes: list[tuple[int, ...]]) -> onnx.ModelProto:
    model = case.model()
    for value, shape in zip(model.graph.output, shapes, strict=True):
        kind = value.type.tensor_type.elem_type
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, shape))
    return model


def run_three_ways(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> Any:
    model = sx.load(proto)
    expected, plan = run_reference(model, feeds), plan_of(model)
    for run in (run_interpreted, run_compiled):
        for got, want in zip(run(model, plan, feeds), expected, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=run.__name__)
    return plan


def fails(case: Case) -> None:
    """Reference, interpreter and compiled code all stop with a RunError."""
    model = sx.load(case.model())
    plan = plan_of(model)
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    for run in (run_interpreted, run_compiled):
        with pytest.raises(RunError):
            run(model, plan, case.feeds())
