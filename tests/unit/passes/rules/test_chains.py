"""Chains of constants, products of constants, reductions and limits in a row."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same, text

NUMBERS = "float two = {2.0}, float three = {3.0}, float half = {0.5}, float minus = {-1.0}, float zero = {0.0}"
NUMBERS += ", float less = {-2.999}, float huge = {1e30}, float tiny = {1e-30}, float six = {6.0}"
NUMBERS += ", float[4] row = {1.0, 2.0, -3.0, 4.0}, float[4, 1] column = {10.0, 20.0, 30.0, 40.0}"
NUMBERS += ", int64 i5 = {5}, int64 i7 = {7}, int64 most = {9223372036854775807}"

FLOATS = {
    "x + a + b": ("a = Add (x, two) y = Add (three, a)", ["Add"]),
    "x - a + b": ("a = Sub (x, six) y = Add (a, row)", ["Add"]),
    "x * a * b": ("a = Mul (x, two) y = Mul (a, row)", ["Mul"]),
    "x / a * b": ("a = Div (x, two) y = Mul (a, three)", ["Mul"]),
    "(x * a + b) * c + d": (
        "a = Mul (x, row) b = Add (a, two) c = Mul (b, three) y = Add (c, row)",
        ["Mul", "Add"],
    ),
    "a - (b - x)": ("a = Sub (two, x) y = Sub (three, a)", ["Add"]),
    "-(a - x)": ("a = Sub (two, x) y = Neg (a)", ["Add"]),
    "-(x * a)": ("a = Mul (x, two) y = Neg (a)", ["Mul"]),
    "x * a + b stays": ("a = Mul (x, two) y = Add (a, three)", ["Mul", "Add"]),
    "constants cancel": ("a = Add (x, three) y = Add (a, less)", ["Add", "Add"]),
    "product overflows": ("a = Mul (x, huge) y = Mul (a, huge)", ["Mul", "Mul"]),
    "product underflows": ("a = Mul (x, tiny) y = Mul (a, tiny)", ["Mul", "Mul"]),
    "constants would grow": ("a = Add (x, row) y = Add (a, column)", ["Add", "Add"]),
    "x - (-z)": ("a = Neg (z) y = Sub (x, a)", ["Add"]),
    "(-x) + z": ("a = Neg (x) y = Add (a, z)", ["Sub"]),
    "(-x) * (-z)": ("a = Neg (x) b = Neg (z) y = Mul (a, b)", ["Mul"]),
    "-(x - z) stays": ("a = Sub (x, z) y = Neg (a)", ["Sub", "Neg"]),
    "abs(-x)": ("a = Neg (x) y = Abs (a)", ["Abs"]),
    "relu(sigmoid(x))": ("a = Sigmoid (x) y = Relu (a)", ["Sigmoid"]),
    "max(x, 0)": ("y = Max (x, zero)", ["Relu"]),
    "min(max(x, 0), 6)": ("a = Max (zero, x) y = Min (a, six)", ["Clip"]),
    "max(min(x, 6), 3)": ("a = Min (x, six) y = Max (a, three)", ["Clip"]),
    "max(min(x, 3), 6) is 6": ("a = Min (x, three) y = Max (a, six)", ["Clip"]),
    "reduce max twice": (
        "a = ReduceMax <axes = [1], keepdims = 1> (x) y = ReduceMax <axes = [-2], keepdims = 1> (a)",
        ["ReduceMax"],
    ),
    "reduce mean twice": (
        "a = ReduceMean <axes = [0], keepdims = 0> (x) b = ReduceMean <axes = [0], keepdims = 0> (a) y = Add (b, x)",
        ["ReduceMean", "Add"],
    ),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    nodes, expected = FLOATS[name]
    source = text(f"(float[4, 4] x, float[4, 4] z) => (float[P, Q] y) <{NUMBERS}> {{ {nodes} }}")
    result = optimized(source)
    assert operators(result) == expected
    same(source, result, steps=8)


INTEGERS = {
    "x + a + b": ("a = Add (x, most) y = Add (i7, a)", ["Add"]),
    "x * a * b": ("a = Mul (x, most) y = Mul (a, i7)", ["Mul"]),
    "a - x + b": ("a = Sub (i5, x) y = Add (a, i7)", ["Sub"]),
    "(x + a) * b + a": ("a = Add (x, i5) b = Mul (a, i7) y = Add (b, i5)", ["Mul", "Add"]),
    "x / a / b": ("a = Div (x, i5) y = Div (a, i7)", ["Div", "Div"]),
    "-(x + a)": ("a = Add (x, i5) y = Neg (a)", ["Sub"]),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap_around(name: str) -> None:
    nodes, expected = INTEGERS[name]
    source = text(f"(int64[N, 4] x) => (int64[N, 4] y) <{NUMBERS}> {{ {nodes} }}")
    result = optimized(source)
    assert operators(result) == expected
    same(source, result)


REASONS = {
    "constants cancel": "the constants nearly cancel: x would be rounded less than before",
    "product overflows": "a product of the constants overflows, or nearly",
    "product underflows": "a product of the constants underflows",
    "constants would grow": "the constants are broadcast against each other, and would grow",
}


@pytest.mark.parametrize("name", REASONS)
def test_reasons(name: str) -> None:
    source = text(
        f"(float[4, 4] x, float[4, 4] z) => (float[P, Q] y) <{NUMBERS}> {{ {FLOATS[name][0]} }}"
    )
    assert REASONS[name] in refusals(optimized(source), "float-chain")


WEIGHTS = "float[2, 8] A = {1., 2., 3., 4., 5., 6., 7., 8., -1., -2., 3., 4., 5., 6., 7., 9.}"
WEIGHTS += ", float[8, 2] B = {1., 2., 3., 4., 5., 6., 7., 8., -1., -2., 3., 4., 5., 6., 7., 9.}"
WEIGHTS += (
    ", float[2] b = {1., -2.}, float[2] c = {3., 0.5}, float two = {2.0}, float[2] v = {1., 2.}"
)
PRODUCTS = {
    "product of constants": (
        "s = Sigmoid (x) a = MatMul (s, A) y = MatMul (a, B)",
        ["Sigmoid", "MatMul"],
    ),
    "x may be infinite": ("a = MatMul (x, A) y = MatMul (a, B)", ["MatMul", "MatMul"]),
    "scaled by columns": (
        "s = MatMul (x, A) a = MatMul (s, B) y = Mul (a, c)",
        ["MatMul", "MatMul"],
    ),
    "with bias": (
        "a = MatMul (x3, W) d = Add (a, b) e = Mul (two, d) y = Relu (e)",
        ["MatMul", "Add", "Relu"],
    ),
    "scaled before": ("a = Mul (x, c) y = MatMul (a, W)", ["MatMul"]),
    "gemm": ("a = Gemm <transB = 1> (x, W, b) y = Div (a, c)", ["Gemm"]),
    "gemm, normalised": (
        "a = Gemm <transB = 1> (x, W, b) y = BatchNormalization (a, b, c, c, v)",
        ["Gemm"],
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    nodes, expected = PRODUCTS[name]
    rank = "P, Q, R" if "x3" in nodes else "P, Q"
    source = text(
        f"(float[4, 2] x, float[1, 4, 2] x3) => (float[{rank}] y) "
        f"<{WEIGHTS}, float[2, 2] W = {{1., 2., -3., 4.}}> {{ {nodes} }}"
    )
    result = optimized(source)
    assert operators(result) == expected
    same(source, result, steps=64)


CONVOLUTIONS = {
    "normalised before": (
        "a = BatchNormalization (x, b, c, c, v) y = Conv (a, K)",
        ["Conv"],
    ),
    "normalised before padding": (
        "a = BatchNormalization (x, b, c, c, v) y = Conv <pads = [1, 1, 1, 1]> (a, K)",
        ["BatchNormalization", "Conv"],
    ),
    "scaled before padding": ("a = Mul (x, two) y = Conv <pads = [1, 1, 1, 1]> (a, K)", ["Conv"]),
    "groups": ("a = Sub (d, x) y = Conv <group = 2> (a, G)", ["Conv"]),
    "transposed, padding cut off": (
        "a = Pad (x, pads) y = ConvTranspose <strides = [2, 2], pads = [2, 2, 2, 2]> (a, K)",
        ["ConvTranspose"],
    ),
    "transposed, padding left": (
        "a = Pad (x, pads) y = ConvTranspose <strides = [2, 2], pads = [1, 1, 2, 2]> (a, K)",
        ["Pad", "ConvTranspose"],
    ),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    nodes, expected = CONVOLUTIONS[name]
    kernel = ", ".join(f"{n % 7 - 3}.0" for n in range(16))
    source = text(
        f"(float[1, 2, 4, 5] x) => (float[P, Q, R, S] y) <{WEIGHTS}, float[2, 2, 2, 2] K = {{{kernel}}}, "
        f"float[2, 1, 1, 2] G = {{1., 2., 3., 4.}}, int64[8] pads = {{0, 0, 1, 1, 0, 0, 1, 1}}, "
        f"float[2, 1, 1] d = {{1., 2.}}> {{ {nodes} }}"
    )
    result = optimized(source)
    assert operators(result) == expected
    same(source, result, steps=64)
