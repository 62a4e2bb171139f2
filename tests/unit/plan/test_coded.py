"""Weights of 8 and 4 bits that stay so: products in integers, with an error no larger than float32's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

import sardonyx as sx
from sardonyx.api import plan_text

LIMITS = {
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT8: (0, 255),
    TensorProto.INT4: (-8, 7),
    TensorProto.UINT4: (0, 15),
}


@dataclass(frozen=True)
class Case:
    """Weights [K, N], or [N, K] for a Gemm; `block` values of K share a scale, all where it is 0."""

    inner: int
    columns: int
    type: int
    block: int = 0
    zero: int | None = 0  # None: every scale has its own
    gemm: bool = False
    rows: int | str = "m"


def made(case: Case, random: np.random.Generator) -> tuple[ModelProto, NDArray[np.float64]]:
    """The model, and its weights [K, N] in float64."""
    along = int(case.gemm)
    shape = (case.columns, case.inner) if case.gemm else (case.inner, case.columns)
    sizes = [case.columns]
    attributes = {"axis": 1 - along}
    if case.block:
        sizes = list(shape)
        sizes[along] = -(-case.inner // case.block)
        attributes = {"axis": along, "block_size": case.block}
    lowest, highest = LIMITS[case.type]
    codes = random.integers(lowest, highest + 1, shape)
    scales = random.uniform(0.01, 0.1, sizes).astype(np.float32)
    zeros = np.full(sizes, case.zero or 0)
    if case.zero is None:
        zeros = random.integers(lowest, highest + 1, sizes)
    tensors = [
        helper.make_tensor("q", case.type, shape, codes.reshape(-1).tolist()),
        helper.make_tensor("s", TensorProto.FLOAT, sizes, scales.reshape(-1).tolist()),
        helper.make_tensor("z", case.type, sizes, zeros.reshape(-1).tolist()),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], **attributes),
        helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
        if case.gemm
        else helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [case.rows, size])]
        for name, size in (("x", case.inner), ("y", case.columns))
    ]
    graph = helper.make_graph(nodes, "g", *ports, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, _decoded(case, codes, scales.astype(np.float64), zeros, along)


def _decoded(case: Case, codes: Any, scales: Any, zeros: Any, along: int) -> NDArray[np.float64]:
    if case.block:
        scales, zeros = (np.repeat(one, case.block, along) for one in (scales, zeros))
        scales, zeros = (one.take(range(case.inner), along) for one in (scales, zeros))
    else:
        scales, zeros = (np.expand_dims(one, along) for one in (scales, zeros))
    weights = (codes - zeros) * scales
    return np.asarray(weights.T if case.gemm else weights)


def error(answer: Any, x: NDArray[np.float32], weights: NDArray[np.float64]) -> float:
    """By how much a product is off, of the sum of the sizes of its terms."""
    exact = x.astype(np.float64) @ weights
    sizes = np.abs(x.astype(np.float64)) @ np.abs(weights)
    return float((np.abs(answer - exact) / np.maximum(sizes, 1e-30)).max())


CASES = [
    Case(64, 16, TensorProto.INT8),
    Case(100, 40, TensorProto.INT8, gemm=True),
    Case(256, 33, TensorProto.UINT8, zero=120),
    Case(130, 48, TensorProto.UINT8, zero=None),
    Case(600, 70, TensorProto.INT8, block=256, zero=5),
    Case(128, 32, TensorProto.INT4, block=32),
    Case(200, 50, TensorProto.UINT4, block=32, zero=None, gemm=True),
    Case(512, 64, TensorProto.INT4, block=16, zero=3),
    Case(512, 17, TensorProto.UINT4, block=128, zero=8),
    Case(96, 20, TensorProto.INT4),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_less_exact_than_float32(case: Case) -> None:
    random = np.random.default_rng(case.inner)
    model, weights = made(case, random)
    session = sx.Session(model)
    for rows in (1, 5, 70):
        # Some numbers a thousand times larger than others: what is rounded off them must not be seen.
        x = np.exp(3 * random.standard_normal((rows, case.inner))).astype(np.float32)
        x *= random.choice([-1, 1], x.shape).astype(np.float32)
        (answer,) = session.run(None, {"x": x})
        assert error(answer, x, weights) <= (5e-7 if rows < 9 else 2e-6)
    assert all(one.backend == "native" for one in session.placement)


@pytest.mark.parametrize(("precision", "bound"), [("fast", 1e-5), ("bfloat16", 4e-3)])
@pytest.mark.parametrize("case", [CASES[0], CASES[6]], ids=str)
def test_lower_precisions_have_their_bounds(case: Case, precision: Any, bound: float) -> None:
    random = np.random.default_rng(1)
    model, weights = made(case, random)
    x = random.standard_normal((3, case.inner)).astype(np.float32)
    (answer,) = sx.Session(model, precision=precision).run(None, {"x": x})
    assert error(answer, x, weights) <= bound


@pytest.mark.parametrize("case", [CASES[1], CASES[5]], ids=str)
def test_infinities_nan_huge_tiny_and_zero(case: Case) -> None:
    random = np.random.default_rng(2)
    model, weights = made(case, random)
    x = random.standard_normal((6, case.inner)).astype(np.float32)
    x[0, 3], x[1, 2], x[2, 1] = np.inf, np.nan, 1e35
    x[3] *= np.float32(1e-30)
    x[4] = 0
    (answer,) = sx.Session(model).run(None, {"x": x})
    with np.errstate(invalid="ignore"):
        exact = x.astype(np.float64) @ weights
    np.testing.assert_array_equal(np.isnan(answer), np.isnan(exact))
    known = ~np.isnan(exact[0])
    np.testing.assert_array_equal(answer[0][known], exact[0][known])
    sizes = np.abs(x[2:].astype(np.float64)) @ np.abs(weights)
    assert (np.abs(answer[2:] - exact[2:]) <= 1e-6 * sizes).all()


def test_threads_and_rows_do_not_change_a_bit() -> None:
    model, _ = made(Case(256, 160, TensorProto.INT4, block=32), np.random.default_rng(3))
    x = np.random.default_rng(4).standard_normal((4, 256)).astype(np.float32)
    one, two = (sx.Session(model, threads=threads) for threads in (1, 2))
    (whole,) = one.run(None, {"x": x})
    np.testing.assert_array_equal(whole, two.run(None, {"x": x})[0])
    for row in range(4):
        np.testing.assert_array_equal(whole[row], one.run(None, {"x": x[row : row + 1]})[0][0])
    assert one.run(None, {"x": x[:0]})[0].shape == (0, 160)


def test_batches_of_rows() -> None:
    model, weights = made(Case(64, 24, TensorProto.INT8), np.random.default_rng(6))
    for port in (*model.graph.input, *model.graph.output):
        port.type.tensor_type.shape.dim.insert(0, port.type.tensor_type.shape.dim[0])
        port.type.tensor_type.shape.dim[0].dim_param = "batch"
    x = np.random.default_rng(7).standard_normal((3, 2, 64)).astype(np.float32)
    session = sx.Session(model)
    (answer,) = session.run(None, {"x": x})
    assert all(one.backend == "native" for one in session.placement)
    assert error(answer, x, weights) <= 3e-7


def test_where_it_is_used() -> None:
    """For few rows or any number of them, and never where sums must be those of the definition."""

    def planned(case: Case, precision: Any = "float32") -> str:
        model, _ = made(case, np.random.default_rng(5))
        return plan_text(model, precision=precision)

    assert "digits 4" in planned(CASES[5])
    assert "digits 8" in planned(Case(64, 16, TensorProto.INT8, rows=1))
    assert "digits" not in planned(Case(64, 16, TensorProto.INT8, rows=64))
    assert "digits" not in planned(CASES[5], "strict")


@given(
    st.integers(32, 150),
    st.integers(16, 40),
    st.sampled_from(sorted(LIMITS)),
    st.sampled_from([0, 16, 32, 48]),
    st.sampled_from([0, 3, None]),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=12, deadline=None)
def test_any_sizes(
    inner: int, columns: int, kind: int, block: int, zero: int | None, gemm: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    model, weights = made(Case(inner, columns, kind, block, zero, gemm), random)
    x = random.standard_normal((2, inner)).astype(np.float32)
    (answer,) = sx.Session(model).run(None, {"x": x})
    assert error(answer, x, weights) <= 3e-7
