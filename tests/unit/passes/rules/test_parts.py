"""Slices, Concats and Gathers: merged, cut apart and put together."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same, text

CUTS = (
    "int64[1] n0 = {0}, int64[1] n1 = {1}, int64[1] n2 = {2}, int64[1] n3 = {3}, int64[1] n4 = {4}"
)
CUTS += ", int64[1] m1 = {-1}, int64[1] m2 = {-2}, int64[1] big = {9223372036854775807}"
CUTS += ", int64[1] least = {-9223372036854775807}"


def model(nodes: str, x: str = "float[N, 6, 4] x", opset: int = 17, more: str = "") -> str:
    return text(f"({x}) => (float[P, Q, R] y) <{CUTS}{more}> {{ {nodes} }}", opset)


TABLE = {
    "slice of slice, other axes": (
        "a = Slice (x, n1, n3, n1) y = Slice (a, n0, n2, n2)",
        ["Slice"],
    ),
    "slice of slice, same axis": (
        "a = Slice (x, n1, big, n1) y = Slice (a, n1, n3, n1)",
        ["Slice"],
    ),
    "slice of slice, unknown size": (
        "a = Slice (x, n1, big, n0) y = Slice (a, n1, n3, n0)",
        ["Slice"],
    ),
    "slice of slice, backwards": (
        "a = Slice (x, m1, least, n1, m1) y = Slice (a, n1, big, n1, n2)",
        ["Slice"],
    ),
    "slice of slice, from the end": (
        "a = Slice (x, m2, big, n1) y = Slice (a, m1, big, n1)",
        ["Slice"],
    ),
    "slices that tile": (
        "a = Slice (x, n0, n2, n1) b = Slice (x, n2, big, n1) c = Relu (b) d = Neg (a) y = Concat <axis = 1> (c, d)",
        ["Split", "Relu", "Neg", "Concat"],
    ),
    "slices with a rest": (
        "a = Slice (x, n0, n2, n1) b = Slice (x, n3, big, n1) c = Relu (b) d = Neg (a) y = Concat <axis = 1> (c, d)",
        ["Slice", "Slice", "Relu", "Neg", "Concat"],
    ),
    "split and concat": (
        "a, b = Split <axis = 1> (x) c = Concat <axis = 1> (a, b) y = Relu (c)",
        ["Relu"],
    ),
    "split and concat in another order": (
        "a, b = Split <axis = 1> (x) c = Concat <axis = 1> (b, a) y = Relu (c)",
        ["Split", "Concat", "Relu"],
    ),
    "split and concat along another axis": (
        "a, b = Split <axis = 1> (x) c = Concat <axis = 2> (a, b) y = Relu (c)",
        ["Split", "Concat", "Relu"],
    ),
    "concat of neighbours": (
        "a = Slice (x, n1, n2, n1) b = Slice (x, n2, n4, n1) y = Concat <axis = -2> (a, b)",
        ["Slice"],
    ),
    "concat of concat": (
        "a = Concat <axis = 1> (x, x) y = Concat <axis = -2> (x, a, x)",
        ["Concat"],
    ),
    "concat of concat, other axis": (
        "a = Concat <axis = 1> (x, x) y = Concat <axis = 2> (a, a)",
        ["Concat", "Concat"],
    ),
    "gather in order": ("y = Gather <axis = 1> (x, i)", ["Slice"]),
    "gather of all": ("a = Gather <axis = 2> (x, all) y = Relu (a)", ["Relu"]),
    "gather backwards": ("y = Gather <axis = 1> (x, back)", ["Slice"]),
    "gather of anything": ("y = Gather <axis = 1> (x, mixed)", ["Gather"]),
}
MORE = ", int64[3] i = {1, 2, 3}, int64[4] all = {0, 1, -2, 3}, int64[2] back = {3, 1}, int64[3] mixed = {0, 2, 3}"


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("name", TABLE)
def test_parts(name: str, opset: int) -> None:
    nodes, expected = TABLE[name]
    source = model(nodes, opset=opset, more=MORE)
    result = optimized(source)
    assert operators(result) == expected
    same(source, result)


def test_size_that_is_not_known() -> None:
    source = model("a = Slice (x, m2, big, n0) y = Slice (a, n1, n2, n0)")
    result = optimized(source)
    assert operators(result) == ["Slice", "Slice"]
    assert refusals(result, "slice-of-slice") == ["what they take of axis 0 depends on its size N"]
    same(source, result)


def test_gather_along_a_size_that_is_not_known() -> None:
    result = optimized(model("y = Gather <axis = 0> (x, i)", more=MORE))
    assert operators(result) == ["Gather"]
    assert "is not known" in refusals(result, "gather-in-order")[0]


def test_value_in_between_is_read() -> None:
    source = text(
        "(float[N, 4] x) => (float[N, 8] a, float[N, 12] y) "
        "{ a = Concat <axis = 1> (x, x) y = Concat <axis = 1> (a, x) }"
    )
    result = optimized(source)
    assert operators(result) == ["Concat", "Concat"]
    assert refusals(result, "concat-of-concat") == ["the inner one is read elsewhere too"]


def test_before_opset_10_slices_have_attributes() -> None:
    source = text(
        "(float[N, 6, 4] x) => (float[N, 2, 2] y) { "
        "a = Slice <axes = [1], starts = [1], ends = [4]> (x) "
        "y = Slice <axes = [1, 2], starts = [1, 2], ends = [9, 9]> (a) }",
        opset=9,
    )
    result = optimized(source)
    assert operators(result) == ["Slice"]
    same(source, result)


def test_part_of_a_shape() -> None:
    source = text(
        "(float[N, M, 4] x) => (int64[2] y) <int64[2] i = {0, 1}> { s = Shape (x) y = Gather (s, i) }"
    )
    result = optimized(source)
    assert operators(result) == ["Shape"]
    same(source, result)
