"""Where, Not, And, Or, Xor and comparisons."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same, text

CONSTANTS = "bool[1] t = {1}, bool[1] f = {0}, bool[2] tf = {1, 0}, int64 three = {3}"
INPUTS = "bool[N, 2] c, bool[N, 2] d, float[N, 2] x, float[N, 2] z, int64[N, 2] i, int64[N, 2] j"
TABLE = {
    "where true": ("float", "a = Where (t, x, z) y = Relu (a)", ["Relu"]),
    "where false": ("float", "a = Where (f, x, z) y = Relu (a)", ["Relu"]),
    "where both": ("float", "a = Where (tf, x, z) y = Relu (a)", ["Where", "Relu"]),
    "where the same": ("float", "a = Where (c, x, x) y = Relu (a)", ["Relu"]),
    "where not": ("float", "a = Not (c) y = Where (a, x, z)", ["Where"]),
    "where of truths": ("bool", "a = Where (c, t, f) y = And (a, d)", ["And"]),
    "where of falsehoods": ("bool", "y = Where (c, f, t)", ["Not"]),
    "not less": ("bool", "a = Less (i, j) y = Not (a)", ["GreaterOrEqual"]),
    "not greater or equal": ("bool", "a = GreaterOrEqual (i, j) y = Not (a)", ["Less"]),
    "not less of floats": ("bool", "a = Less (x, z) y = Not (a)", ["Less", "Not"]),
    "and true": ("bool", "a = And (t, c) y = Or (a, d)", ["Or"]),
    "or false": ("bool", "a = Or (c, f) y = Or (a, d)", ["Or"]),
    "xor true": ("bool", "y = Xor (c, t)", ["Not"]),
    "equals false": ("bool", "y = Equal (f, c)", ["Not"]),
    "and itself": ("bool", "a = And (c, c) y = Or (a, d)", ["Or"]),
    "neither": ("bool", "a = Not (c) b = Not (d) y = And (a, b)", ["Or", "Not"]),
    "float equals itself": ("bool", "y = Equal (x, x)", ["Equal"]),
}


@pytest.mark.parametrize("name", TABLE)
def test_conditions(name: str) -> None:
    kind, nodes, expected = TABLE[name]
    source = text(f"({INPUTS}) => ({kind}[N, 2] y) <{CONSTANTS}> {{ {nodes} }}")
    result = optimized(source)
    assert operators(result) == expected
    same(source, result)


def test_reasons() -> None:
    source = text(f"({INPUTS}) => (bool[N, 2] y) {{ a = Less (x, z) y = Not (a) }}")
    reason = refusals(optimized(source), "not-of-comparison")
    assert reason == ["a comparison with NaN is false, and so is its opposite"]


def test_known_comparison_of_a_known_shape() -> None:
    source = text("(float[3] x, bool[3] c) => (bool[3] y) { a = Less (x, x) y = Or (a, c) }")
    result = optimized(source)
    assert operators(result) == ["Identity"]
    same(source, result)
