"""Products side by side on one input: Gemms of its rows, where that saves nodes and is right."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same, text

W = "float[4, 2] w = {1., 2., -3., 4., 5., 6., -7., 8.}, float[2] c = {1., -2.}"
V = ", float[4, 2] v = {8., 2., -3., 4., 1., 6., -7., 5.}"
ONE = "a = MatMul (x, w) b = Add (a, c) y = Reshape (b, to)"
TWO = f"{ONE} d = MatMul (x, v) e = Add (c, d) z = Reshape (e, to)"
STATIC = "float[2, 3, 4] x => float[P, Q, R, S] y, float[E, F, G, H] z"
KEPT = "int64[4] to = {0, 0, 2, 1}"


def model(nodes: str, ports: str, to: str = KEPT, more: str = V) -> str:
    return text(f"({ports.replace(' => ', ') => (')}) <{W}{more}, {to}> {{ {nodes} }}")


@pytest.mark.parametrize(
    ("sizes", "to"),
    [("2, 3, 4", KEPT), ("N, 3, 4", "int64[4] to = {-1, 3, 1, 2}"), ("1, N, 4", KEPT)],
)
def test_two_products_share_the_rows(sizes: str, to: str) -> None:
    found = model(TWO, STATIC.replace("2, 3, 4", sizes), to)
    result = optimized(found, 2)
    assert sorted(operators(result)) == ["Gemm", "Gemm", "Reshape", "Reshape", "Reshape"]
    same(found, result, steps=8)


def test_refusals() -> None:
    dynamic = optimized(model(TWO, STATIC.replace("2, 3, 4", "N, M, 4")), 2)
    assert "Gemm" not in operators(dynamic)
    assert set(refusals(dynamic, "products-of-rows")) == {
        "more than one size of the result is known only in the run"
    }
    one = optimized(model(ONE, "float[2, 3, 4] x => float[P, Q, R, S] y", more=""), 2)
    assert refusals(one, "products-of-rows") == [
        "it is the only product of its input that is reshaped"
    ]


@pytest.mark.parametrize(
    "change",
    [
        ("z = Reshape (e, to)", "g = Relu (e) z = Reshape (g, to)"),  # not reshaped at once
        ("float[2] c = {1., -2.}", "float[1] c = {1.}"),  # not a bias of columns
    ],
)
def test_other_patterns_stay(change: tuple[str, str]) -> None:
    found = model(TWO, STATIC).replace(*change)
    result = optimized(found, 2)
    assert "Gemm" not in operators(result)
    same(found, result)
