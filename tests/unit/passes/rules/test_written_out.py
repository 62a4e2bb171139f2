"""Softmax, powers and Einsum written out, and what they are."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same, text

LOWERED = "m = ReduceMax <axes = [-1]> (x) s = Sub (x, m) e = Exp (s) t = ReduceSum (e, last)"


def of_x(body: str, opset: int = 17, numbers: str = "") -> str:
    listed = f"int64[1] last = {{-1}}, float half = {{0.5}}, float minus = {{-1}}{numbers}"
    return text(f"(float[A, 3, 4] x) => (float[P, Q, R] y) <{listed}> {{ {body} }}", opset)


WRITTEN = {
    "softmax": (f"{LOWERED} y = Div (e, t)", ["Softmax"]),
    "log softmax": (f"{LOWERED} l = Log (t) y = Sub (s, l)", ["LogSoftmax"]),
    "another maximum": (
        "m = ReduceMax <axes = [1]> (x) s = Sub (x, m) e = Exp (s) t = ReduceSum (e, last) y = Div (e, t)",
        ["ReduceMax", "Sub", "Exp", "ReduceSum", "Div"],
    ),
    "no maximum": ("e = Exp (x) t = ReduceSum (e, last) y = Div (e, t)", ["Exp", "ReduceSum", "Div"]),
    "root of a square": ("a = Mul (x, x) y = Pow (a, half)", ["Mul", "Sqrt"]),
    "root of anything": ("y = Pow (x, half)", ["Pow"]),
    "reciprocal": ("y = Pow (x, minus)", ["Reciprocal"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_written_out(name: str) -> None:
    body, expected = WRITTEN[name]
    result = optimized(of_x(body))
    assert operators(result) == expected
    same(of_x(body), result, steps=32)


def test_why_not() -> None:
    result = optimized(of_x("e = Exp (x) t = ReduceSum (e, last) y = Div (e, t)"))
    assert "Exp overflows" in refusals(result, "softmax-written-out")[0]
    result = optimized(of_x("y = Pow (x, half)"))
    assert "Sqrt gives NaN and -0" in refusals(result, "power-as-operator")[0]


def test_softmax_of_an_inner_axis_needs_opset_13() -> None:
    body = """m = ReduceMax <axes = [1]> (x) s = Sub (x, m) e = Exp (s)
    t = ReduceSum <axes = [1]> (e) y = Div (e, t)"""
    result = optimized(of_x(body, 11))
    assert "Softmax" not in operators(result)
    assert "before opset 13" in refusals(result, "softmax-written-out")[0]


PRODUCTS = {
    "bij,bjk->bik": ("float[B, 3, 4] x, float[B, 4, 5] z", ["MatMul"]),
    "bij,bkj->bik": ("float[B, 3, 4] x, float[B, 5, 4] z", ["Transpose", "MatMul"]),
    "bsd,dh->bsh": ("float[B, S, 4] x, float[4, 5] z", ["MatMul"]),
    "ij, jk": ("float[I, 4] x, float[4, 5] z", ["MatMul"]),
    "ij,jk->ki": ("float[I, 4] x, float[4, 5] z", ["MatMul", "Transpose"]),
    "bji,bkj->bik": ("float[B, 4, 3] x, float[B, 5, 4] z", ["Einsum"]),
    "bij,cjk->bik": ("float[B, 3, 4] x, float[2, 4, 5] z", ["Einsum"]),
    "i,j->ij": ("float[3] x, float[4] z", ["Einsum"]),
    "bij,bij->b": ("float[B, 3, 4] x, float[B, 3, 4] z", ["Einsum"]),
    "...ij,...jk->...ik": ("float[B, 3, 4] x, float[B, 4, 5] z", ["Einsum"]),
}


@pytest.mark.parametrize("equation", PRODUCTS)
def test_einsum(equation: str) -> None:
    ports, expected = PRODUCTS[equation]
    result_shape = (
        ", ".join("PQRS"[: len(equation.split("->")[-1])]) if "->" in equation else "P, Q"
    )
    if "..." in equation:
        result_shape = "P, Q, R"
    model = text(
        f'({ports}) => (float[{result_shape}] y) {{ y = Einsum <equation = "{equation}"> (x, z) }}'
    )
    result = optimized(model)
    assert operators(result) == expected
    same(model, result, steps=32)


@pytest.mark.parametrize(
    ("equation", "expected"),
    [("ij->ji", ["Transpose"]), ("ij->i", ["Einsum"]), ("ii->i", ["Einsum"])],
)
def test_einsum_of_one(equation: str, expected: list[str]) -> None:
    shape = ", ".join("PQ"[: len(equation.split("->")[-1])])
    model = text(
        f'(float[3, 3] x) => (float[{shape}] y) {{ y = Einsum <equation = "{equation}"> (x) }}'
    )
    result = optimized(model)
    assert operators(result) == expected
    same(model, result, steps=32)
