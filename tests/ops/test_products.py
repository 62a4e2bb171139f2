from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def product(op: str, inner: int, other: int, **attributes: Any) -> Case:
    """A product of matrices of symbolic sizes, with inner dimensions of these sizes."""
    a, b = normal(2, inner), normal(other, 4)
    if attributes.get("transA"):
        a = a.T.copy()
    if attributes.get("transB"):
        b = b.T.copy()
    return Case(op, [a, b], attributes, symbolic=True)


PRODUCTS: list[tuple[str, dict[str, Any]]] = [
    ("MatMul", {}),
    ("Gemm", {}),
    ("Gemm", {"transA": 1, "transB": 1}),
]


@pytest.mark.parametrize(("op", "attributes"), PRODUCTS)
def test_products_of_symbolic_sizes(op: str, attributes: dict[str, Any]) -> None:
    agree(product(op, 3, 3, **attributes))


@pytest.mark.parametrize(("op", "attributes"), PRODUCTS)
@pytest.mark.parametrize("inner", [1, 2, 300])
def test_factors_that_do_not_fit_stop_the_run(
    op: str, attributes: dict[str, Any], inner: int
) -> None:
    """Neither plain loops nor the packed kernels read past the smaller factor."""
    model = sx.load(product(op, 3, 3, **attributes).model())
    feeds = product(op, inner, 3, **attributes).feeds()
    with pytest.raises(RunError):
        run_reference(model, feeds)
    with pytest.raises(RunError, match="inner"):
        run_compiled(model, plan_of(model), feeds)
    with pytest.raises(RunError, match="inner"):
        sx.Session(model).run(None, feeds)


def test_integer_factors_that_do_not_fit_stop_the_run() -> None:
    fits = [np.ones((2, 3), np.uint8), np.ones((3, 4), np.uint8)]
    model = sx.load(Case("MatMulInteger", fits, symbolic=True).model())
    feeds = {"x0": np.ones((2, 9), np.uint8), "x1": fits[1]}
    with pytest.raises(RunError, match="inner"):
        run_compiled(model, plan_of(model), feeds)


def test_an_operand_whose_elements_are_looked_up() -> None:
    """As torch's as_strided is written: every element by an index that is computed beside it."""
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 20]>
        strided (float[m] x, int64[n, 1, 1] start, float[4, 5] w) => (float[n, 5] y)
        <int64[1, 4, 1] steps = {0, 1, 2, 3}, int64[2] shape = {-1, 4}> {
            index = Add (start, steps)
            columns = Gather <axis = 0> (x, index)
            rows = Reshape (columns, shape)
            y = Gemm (rows, w)
        }
    """)
    x, w, start = normal(12), normal(4, 5), np.array([8, 0, 3])
    feeds = {"x": x, "start": start[:, None, None], "w": w}
    (y,) = sx.Session(model, fallback="refuse").run(None, feeds)
    np.testing.assert_allclose(y, x[start[:, None] + np.arange(4)] @ w, rtol=1e-5, atol=1e-6)
