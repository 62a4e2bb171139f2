"""Activation functions written out, in every order of factors that exporters have."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same, text

NUMBERS = """float half = {0.5}, float one = {1}, float two = {2}, float three = {3}, float six = {6}, float zero = {0},
    float root = {1.4142135}, float inverse = {0.70710677}, float sixth = {0.16666667}, float c = {0.7978845608},
    float k = {0.044715}, float q = {1.702}, float off = {0.75}, float[7,1] column = {3, 3, 3, 3, 3, 3, 3}"""
ERF = "d = Mul (x, inverse) e = Erf (d)"
END = "u = Tanh (t) v = Add (u, one) h = Mul (x, half) y = Mul (h, v)"


def model(body: str, opset: int = 24) -> str:
    return text(f"(float[N, 4] x) => (float[P, Q] y) <{NUMBERS}> {{ {body} }}", opset)


WRITTEN = {
    "half x first": ("h = Mul (half, x) d = Div (x, root) e = Erf (d) a = Add (one, e) y = Mul (h, a)", "Gelu"),
    "half of the gate": (f"{ERF} a = Add (e, one) g = Mul (a, half) y = Mul (x, g)", "Gelu"),
    "a gate of halves": (f"{ERF} a = Mul (e, half) g = Add (a, half) y = Mul (g, x)", "Gelu"),
    "by two": (f"{ERF} a = Add (e, one) p = Mul (x, a) y = Div (p, two)", "Gelu"),
    "tanh of a power": (f"p = Pow (x, three) b = Mul (k, p) a = Add (x, b) t = Mul (c, a) {END}", "Gelu"),
    "tanh of a product": (f"p = Mul (x, x) r = Mul (p, x) b = Mul (k, r) a = Add (b, x) t = Mul (a, c) {END}", "Gelu"),
    "tanh, factor first": (f"r = Mul (x, k) p = Mul (x, x) b = Mul (r, p) a = Add (x, b) t = Mul (a, c) {END}", "Gelu"),
    "tanh, x outside": (f"m = Mul (x, c) r = Mul (x, k) p = Mul (r, x) a = Add (one, p) t = Mul (m, a) {END}", "Gelu"),
    "hard swish": ("a = Add (x, three) b = Clip (a, zero, six) m = Mul (x, b) y = Div (m, six)", "HardSwish"),
    "hard swish by a gate": ("a = Add (x, three) b = Clip (a, zero, six) m = Div (b, six) y = Mul (x, m)", "HardSwish"),
    "hard swish, x by six": ("a = Add (x, three) b = Clip (a, zero, six) m = Mul (x, sixth) y = Mul (m, b)", "HardSwish"),
    "hard swish by limits": ("a = Add (x, three) b = Max (a, zero) d = Min (b, six) m = Div (d, six) y = Mul (x, m)",
                             "HardSwish"),
    "mish": ("s = Softplus (x) t = Tanh (s) y = Mul (x, t)", "Mish"),
    "swish": ("s = Sigmoid (x) y = Mul (x, s)", "Swish"),
    "quick gelu": ("a = Mul (q, x) s = Sigmoid (a) y = Mul (s, x)", "Swish"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_written_out(name: str) -> None:
    body, expected = WRITTEN[name]
    result = optimized(model(body))
    assert operators(result) == [expected]
    same(model(body), result, steps=64)


LEFT = {
    "another factor": f"{ERF} a = Add (e, one) g = Mul (a, off) y = Mul (x, g)",
    "another offset": f"{ERF} a = Add (e, off) g = Mul (a, half) y = Mul (x, g)",
    "another cubic": f"p = Pow (x, three) b = Mul (off, p) a = Add (x, b) t = Mul (c, a) {END}",
    "a square": f"p = Pow (x, two) b = Mul (k, p) a = Add (x, b) t = Mul (c, a) {END}",
    "another limit": "a = Add (x, three) b = Clip (a, one, six) m = Mul (x, b) y = Div (m, six)",
}


@pytest.mark.parametrize("name", LEFT)
def test_left(name: str) -> None:
    result = optimized(model(LEFT[name]))
    assert not {"Gelu", "HardSwish"} & set(operators(result))
    same(model(LEFT[name]), result, steps=64)


def test_a_number_that_broadcasts() -> None:
    """Seven times the number 3: x of one row would become seven."""
    body = "a = Add (x, column) b = Clip (a, zero, six) m = Mul (x, b) y = Div (m, six)"
    result = optimized(model(body))
    assert "HardSwish" not in operators(result)
    assert any("broadcasts" in reason for reason in refusals(result, "hard-swish-written-out"))


def test_an_old_opset() -> None:
    result = optimized(model(WRITTEN["by two"][0], 17))
    assert refusals(result, "gelu") == ["Gelu came with opset 20; the model has 17"]
