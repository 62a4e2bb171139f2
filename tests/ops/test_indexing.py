"""Operators that read and write where data says, that choose, and that make elements from positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
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

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
TYPES = ["float32", "float16", "float64", "int8", "uint64", "bool"]


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def fails(case: Case) -> None:
    """Reference, interpreter and compiled code all stop with a RunError."""
    model = sx.load(case.model())
    plan = plan_of(model)
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    for run in (run_interpreted, run_compiled):
        with pytest.raises(RunError):
            run(model, plan, case.feeds())


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [ints(0, -1, 2), np.array(1, np.int32), ints().reshape(2, 0)])
def test_gather(axis: int, indices: np.ndarray, symbolic: bool) -> None:
    agree(Case("Gather", [X, indices], {"axis": axis}, symbolic=symbolic))


@pytest.mark.parametrize("dtype", TYPES)
def test_gather_of_every_type(dtype: str) -> None:
    agree(Case("Gather", [np.abs(X * 3).astype(dtype), ints(2, 0)], {"axis": 2}))


def test_gather_of_constant_indices() -> None:
    agree(Case("Gather", [X, ints(1, -1)], {"axis": 1}, constants=frozenset({1})))


@pytest.mark.parametrize("symbolic", [False, True])
def test_gather_elements(symbolic: bool) -> None:
    indices = RNG.integers(-4, 4, (2, 6, 5))
    agree(Case("GatherElements", [X, indices], {"axis": 1}, symbolic=symbolic))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("indices", "batch"),
    [
        (ints(0, 1, 2, -1).reshape(2, 2), 0),
        (ints(2, 1, 0).reshape(3, 1), 1),
        (ints(1, 2, 0, 0, -4, 4).reshape(1, 2, 3), 0),
    ],
)
def test_gather_nd(indices: np.ndarray, batch: int, symbolic: bool) -> None:
    if symbolic and batch:
        pytest.skip("whether two symbols are one batch is not known")
    depth = indices.shape[-1]
    constants = frozenset({1}) if symbolic else frozenset[int]()
    assert depth <= 3
    agree(
        Case(
            "GatherND", [X, indices], {"batch_dims": batch}, constants=constants, symbolic=symbolic
        )
    )


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_scatter_elements(reduction: str, symbolic: bool) -> None:
    """Several updates meet at one place; they apply in their order."""
    indices = ints(0, -1, 0, 3, 3, 3, 1, 1, 1).reshape(1, 3, 3)
    updates = RNG.standard_normal((1, 3, 3)).astype(np.float32)
    attributes = {"axis": 1, "reduction": reduction}
    agree(Case("ScatterElements", [X, indices, updates], attributes, symbolic=symbolic))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_scatter_nd(reduction: str, dtype: str) -> None:
    indices = ints(2, 0, 2).reshape(3, 1)
    updates = (RNG.standard_normal((3, 4, 5)) * 4).astype(dtype)
    data = (X * 4).astype(dtype)
    agree(Case("ScatterND", [data, indices, updates], {"reduction": reduction}))


def test_scatter_nd_of_single_elements_over_symbols() -> None:
    inputs = [X, ints(2, 0, 1, 0, 3, 4).reshape(2, 3), np.float32([7, 8])]
    agree(Case("ScatterND", inputs, constants=frozenset({1}), symbolic=True))


def test_scatter_of_opset_9() -> None:
    agree(Case("Scatter", [X, ints(1, 0).reshape(1, 1, 2), X[:1, :1, :2]], {"axis": 1}, opset=10))


@pytest.mark.parametrize(("mode", "first"), [("linear", (0, 3)), ("circular", (5, 3))])
@pytest.mark.parametrize("symbolic", [False, True])
def test_tensor_scatter(mode: str, first: tuple[int, ...], symbolic: bool) -> None:
    cache = RNG.standard_normal((2, 6, 3)).astype(np.float32)
    inputs = [cache, cache[:, :3] * 2, ints(*first)]
    agree(Case("TensorScatter", inputs, {"mode": mode}, symbolic=symbolic))


@pytest.mark.parametrize(
    "case",
    [
        Case("Gather", [X, ints(0, 3)]),
        Case("Gather", [X, ints(0, -4)], symbolic=True),
        Case("Gather", [X[:0], ints(0)]),
        Case("GatherElements", [X, np.full((1, 1, 1), 4)], {"axis": 1}),
        Case("GatherElements", [X[:2], np.zeros((3, 1, 1), np.int64)], {"axis": 1}, symbolic=True),
        Case("GatherND", [X, ints(0, 4).reshape(1, 2)]),
        Case("ScatterElements", [X, np.full((1, 1, 1), -6), X[:1, :1, :1]], {"axis": 2}),
        Case(
            "ScatterElements",
            [X[:2], np.zeros((3, 1, 1), np.int64), X[:, :1, :1]],
            {"axis": 1},
            symbolic=True,
        ),
        Case("ScatterElements", [X, np.zeros((2, 1, 1), np.int64), X[:1, :1, :1]], symbolic=True),
        Case("ScatterND", [X, ints(3).reshape(1, 1), X[:1]]),
        Case(
            "ScatterND",
            [X, ints(0, 1).reshape(2, 1), X[:1]],
            constants=frozenset({1}),
            symbolic=True,
        ),
        Case("TensorScatter", [X[:2], X[:2, :2], ints(0, 3)]),
        Case("TensorScatter", [X[:2], X[:2, :2], ints(0, -1)], {"mode": "circular"}),
        Case("ReverseSequence", [X, ints(4, 0, 0, 0)]),
        Case("OneHot", [ints(1), ints(0), np.float32([0, 1])], constants=frozenset({1})),
        Case("TopK", [X, ints(6)], outputs=2, constants=frozenset({1}), symbolic=True),
    ],
    ids=lambda case: case.op,
)
def test_values_outside_stop_the_run(case: Case) -> None:
    fails(case)


@pytest.mark.parametrize("attributes", [{}, {"batch_axis": 0, "time_axis": 1}])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_reverse_sequence(attributes: dict[str, Any], dtype: str) -> None:
    lengths = ints(3, 0, 1, 2) if not attributes else ints(4, 0, 3)
    agree(Case("ReverseSequence", [np.abs(X * 9).astype(dtype), lengths], attributes))


# Choosing


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("axis", "k"), [(-1, 1), (-1, 5), (1, 3), (0, 2), (2, 0)])
def test_top_k(axis: int, k: int, largest: int, symbolic: bool) -> None:
    attributes = {"axis": axis, "largest": largest}
    constants = frozenset({1})
    agree(Case("TopK", [X, ints(k)], attributes, 2, constants=constants, symbolic=symbolic))


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int64", "uint8"])
def test_top_k_of_equal_elements_takes_the_first(dtype: str, largest: int) -> None:
    x = RNG.integers(0, 4, (2, 33)).astype(dtype)
    case = Case("TopK", [x, ints(20)], {"largest": largest}, 2, constants=frozenset({1}))
    agree(case)


@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_nan_is_the_largest(largest: int) -> None:
    x = np.float32([[1, np.nan, -np.inf, 3, np.nan, np.inf, -0.0, 0.0]])
    for k in (3, 8):
        agree(Case("TopK", [x, ints(k)], {"largest": largest}, 2, constants=frozenset({1})))


WAYS = [(1, 1), (64, 1), (65, 1), (500, 47), (63, 63), (333, 48), (129, 129), (1000, 83), (77, 0)]


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "int64", "uint64"])
def test_top_k_by_a_heap_and_sorted(dtype: str, largest: int) -> None:
    for size, k in WAYS:
        x = RNG.integers(-30, 30, (3, size)).astype(dtype)
        x[1] = RNG.integers(-60000, 60000, size).astype(dtype)
        attributes = {"largest": largest, "sorted": k % 2}
        case = Case("TopK", [x, ints(k)], attributes, 2, constants=frozenset({1}))
        agree(case, interpreted=size < 100)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_top_k_of_strange_numbers(dtype: str, largest: int) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    some = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1, -1], dtype)
    x = RNG.choice(some, (4, 300))
    x[1], x[2, 40:], x[3, :260] = np.nan, np.nan, 0.0
    for k in (1, 7, 30, 60, 300):
        case = Case("TopK", [x, ints(k)], {"largest": largest}, 2, constants=frozenset({1}))
        agree(case, interpreted=False)


def test_one_plan_of_top_k_serves_few_and_many() -> None:
    case = Case("TopK", [X[0, 0], ints(2)], outputs=2, symbolic=True)
    model = sx.load(case.model())
    plan = plan_of(model)
    for size, k in ((5, 0), (5, 5), (600, 47), (600, 50), (600, 49), (90, 90), (2000, 60)):
        feeds = {"x0": RNG.integers(0, 50, size).astype(np.float32), "x1": ints(k)}
        for mine, expected in zip(
            run_compiled(model, plan, feeds), run_reference(model, feeds), strict=True
        ):
            close(mine, expected, f"{k} of {size}")


@pytest.mark.parametrize("k", [5, 300])
def test_any_number_of_threads_finds_the_same_top_k(k: int) -> None:
    x = RNG.integers(0, 500, (40, 900)).astype(np.float32)
    case = Case("TopK", [x, ints(k)], outputs=2, constants=frozenset({1}))
    one, two = (sx.Session(case.model(), threads=n).run(None, case.feeds()) for n in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_top_k_of_old_versions() -> None:
    agree(Case("TopK", [X], {"k": 2, "axis": 1}, 2, opset=9))
    agree(Case("TopK", [X, ints(2)], {"axis": 1}, 2, constants=frozenset({1}), opset=10))


# Making


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "uint8"])
def test_one_hot(axis: int, dtype: str) -> None:
    indices = np.array([[0, 3, 9], [1, 1, 2]]).astype(dtype)
    values = np.array([-1, 5], np.float16)
    agree(Case("OneHot", [indices, ints(4), values], {"axis": axis}, constants=frozenset({1})))


def test_one_hot_counts_from_the_end() -> None:
    inputs = [ints(-1, -4, -5, 2), ints(4), np.array([False, True])]
    agree(Case("OneHot", inputs, constants=frozenset({1}), symbolic=True))


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 99, -(1 << 62)])
def test_trilu(upper: int, k: int | None) -> None:
    inputs = [X] if k is None else [X, np.array(k, np.int64)]
    agree(Case("Trilu", inputs, {"upper": upper}))


@pytest.mark.parametrize("dtype", TYPES)
def test_trilu_of_every_type(dtype: str) -> None:
    agree(Case("Trilu", [np.abs(X * 3).astype(dtype)], symbolic=True))


@pytest.mark.parametrize("k", [0, 2, -1, 9])
@pytest.mark.parametrize("dtype", [None, 1, 7, 9, 10])
def test_eye_like(k: int, dtype: int | None) -> None:
    attributes = {"k": k} | ({} if dtype is None else {"dtype": dtype})
    agree(Case("EyeLike", [X[0]], attributes, symbolic=k == 2))


def test_range_over_a_symbol_has_no_index_to_check() -> None:
    """Positions as GPT-2 makes them: Shape - Range - Gather - Add is one kernel without checks."""
    import onnx
    from onnx import helper

    def number(name: str, value: int) -> onnx.TensorProto:
        return onnx.numpy_helper.from_array(np.array(value, np.int64), name)

    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["length"]),
        helper.make_node("Range", ["zero", "length", "one"], ["positions"]),
        helper.make_node("Gather", ["x", "positions"], ["rows"]),
        helper.make_node("Add", ["rows", "x"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 5])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], [number("zero", 0), number("one", 1)])
    model = sx.load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    )
    plan = plan_of(model)
    assert len(plan.steps) == 1
    assert plan.kernels[0].reasons == ()
    for run in (run_interpreted, run_compiled):
        (got,) = run(model, plan, {"x": X[0]})
        np.testing.assert_array_equal(got, X[0] + X[0])
