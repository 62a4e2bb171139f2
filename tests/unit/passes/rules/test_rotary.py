"""Rotary embeddings written out: halves and pairs, heads and rows, all columns and the first ones."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same, text

NUMBERS = """int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] last = {-1},
    int64[1] far = {9223372036854775807}, int64[2] both = {4, 4}, int64[2] some = {8, 3},
    int64[5] twice = {1, 1, 1, 1, 2}, int64[4] flat = {0, 0, 0, 8}, int64[4] wide = {0, 0, 3, 8},
    int64[5] parted = {0, 0, 0, 4, 2}, float scale = {0.5}, int64 first = {0}, int64 second = {1},
    float[2,4] odd = {1, 2, 3, 4, 5, 6, 7, 8}, float[2,4] even = {1, 2, 1, 2, 5, 6, 5, 6}"""
HALVES = "a, b = Split <axis = -1> (x, both) n = Neg (b) r = Concat <axis = -1> (n, a)"
PAIRS = """a = Slice (x, zero, far, last, two) b = Slice (x, one, far, last, two) n = Neg (b)
    u = Unsqueeze (n, last) v = Unsqueeze (a, last) s = Concat <axis = -1> (u, v) r = Reshape (s, flat)"""
TWICE = "w = Concat <axis = -1> (t, t) c = Cos (w) d = Sin (w)"
SPREAD = """p = Unsqueeze (t, last) q = Expand (p, twice) w = Reshape (q, flat) c = Cos (w) d = Sin (w)"""
TURN = "e = Mul (x, c) g = Mul (r, d) y = Add (e, g)"


def model(
    body: str, x: str = "float[B, 2, S, 8]", t: str = "float[B, 1, S, 4]", opset: int = 23
) -> str:
    return text(f"({x} x, {t} t) => ({x} y) <{NUMBERS}> {{ {body} }}", opset)


ANGLES = ["Cos", "Sin", "Reshape", "Squeeze", "Unsqueeze", "Expand", "Shape", "Concat"]


def without_angles(found: list[str]) -> list[str]:
    return [op for op in found if op not in ANGLES]


WRITTEN = {
    "halves": f"{TWICE} {HALVES} {TURN}",
    "halves by slices": f"{TWICE} {HALVES} {TURN}".replace(
        "a, b = Split <axis = -1> (x, both)",
        "h = Add (two, two) a = Slice (x, zero, h, last) b = Slice (x, h, far, last)",
    ),
    "the sum the other way round": f"{TWICE} {HALVES} e = Mul (c, x) g = Mul (d, r) y = Add (g, e)",
    "angles with a factor": f"{TWICE.replace('c =', 'k =')} c = Mul (k, scale) {HALVES} {TURN}",
    "pairs": f"{SPREAD} {PAIRS} {TURN}",
    "of halves": """c = Cos (t) d = Sin (t) a, b = Split <axis = -1> (x, both) ac = Mul (a, c) bd = Mul (b, d)
        bc = Mul (c, b) ad = Mul (a, d) f = Sub (ac, bd) s = Add (ad, bc) y = Concat <axis = -1> (f, s)""",
    "of pairs": """c = Cos (t) d = Sin (t) z = Reshape (x, parted) a = Gather <axis = -1> (z, first)
        b = Gather <axis = 4> (z, second) ac = Mul (a, c) bd = Mul (b, d) bc = Mul (b, c) ad = Mul (a, d)
        f = Sub (ac, bd) s = Add (bc, ad) u = Unsqueeze (f, last) v = Unsqueeze (s, last)
        w = Concat <axis = -1> (u, v) y = Reshape (w, flat)""",
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("batch", ["B", "1"])
def test_heads(name: str, batch: str) -> None:
    written = model(WRITTEN[name], t=f"float[{batch}, 1, S, 4]")
    result = optimized(written)
    expected = ["Mul", "RotaryEmbedding"] if "factor" in name else ["RotaryEmbedding"]
    assert without_angles(operators(result)) == expected
    assert ("Expand" in operators(result)) is (batch == "1")
    same(written, result, steps=4)
    turned = next(node for node in result.model.graph if node.op_type == "RotaryEmbedding")
    assert turned.attributes["interleaved"].as_int() == int("pairs" in name)


@pytest.mark.parametrize("angles", [(TWICE, HALVES), (SPREAD, PAIRS)])
def test_rows(angles: tuple[str, str]) -> None:
    """Before the heads come first, it is one of rows: the Reshapes cost nothing."""
    body = f"{angles[0]} {angles[1]} {TURN}"
    written = model(body, "float[B, S, 3, 8]", "float[1, S, 1, 4]")
    result = optimized(written)
    assert without_angles(operators(result)) == ["RotaryEmbedding"]
    same(written, result, steps=4)


@pytest.mark.parametrize("layout", ["heads", "rows"])
def test_the_first_columns(layout: str) -> None:
    x, t = (
        ("float[B, 2, S, 11]", "float[B, 1, S, 4]")
        if layout == "heads"
        else ("float[B, S, 2, 11]", "float[B, S, 1, 4]")
    )
    body = (
        f"{TWICE} {HALVES} {TURN}".replace("x", "i").replace("aiis", "axis").replace("y =", "j =")
    )
    written = model(
        f"i, k = Split <axis = -1> (x, some) {body} y = Concat <axis = -1> (j, k)", x, t
    )
    result = optimized(written)
    assert without_angles(operators(result)) == ["RotaryEmbedding"]
    turned = next(node for node in result.model.graph if node.op_type == "RotaryEmbedding")
    assert turned.attributes["rotary_embedding_dim"].as_int() == 8
    same(written, result, steps=4)


def test_angles_that_are_constant() -> None:
    body = f"{HALVES.replace('both', 'pair')} e = Mul (x, even) g = Mul (r, even) y = Add (e, g)"
    ports = "(float[B, 2, 2, 4] x) => (float[B, 2, 2, 4] y)"
    written = text(f"{ports} <int64[2] pair = {{2, 2}}, {NUMBERS}> {{ {body} }}", 23)
    result = optimized(written)
    assert without_angles(operators(result)) == ["RotaryEmbedding"]
    same(written, result, steps=4)
    result = optimized(written.replace("x, even", "x, odd").replace("r, even", "r, odd"))
    assert "known to have the same angle" in refusals(result, "rotary-embedding")[0]


@pytest.mark.parametrize(
    ("body", "x", "t", "opset", "reason"),
    [
        (f"{TWICE} {HALVES} {TURN}", "float[B, 2, S, 8]", "float[B, 1, S, 4]", 20,
         "RotaryEmbedding came with opset 23"),
        (f"{TWICE} {HALVES} {TURN.replace('y =', 'h =')} y = Add (h, g)", "float[B, 2, S, 8]",
         "float[B, 1, S, 4]", 23, "another node reads a value inside of it"),
        (f"{TWICE} {HALVES} {TURN}", "float[B, 2, S, 8]", "float[B, 2, S, 4]", 23, "not one row a token"),
        (f"{TWICE} {HALVES} {TURN}", "float[B, H, S, 8]", "float[B, 1, S, 4]", 23,
         "the number of heads is not known"),
        (f"{SPREAD} {HALVES} {TURN}", "float[B, 2, S, 8]", "float[B, 1, S, 4]", 23,
         "known to have the same angle"),
    ],
)  # fmt: skip
def test_refusals(body: str, x: str, t: str, opset: int, reason: str) -> None:
    result = optimized(model(body, x, t, opset))
    assert "RotaryEmbedding" not in operators(result)
    assert any(reason in found for found in refusals(result, "rotary-embedding"))
    same(model(body, x, t, opset), result, steps=4)


def test_a_sum_with_another_sign_is_none() -> None:
    body = f"{TWICE} {HALVES} e = Mul (x, c) g = Mul (r, d) y = Sub (e, g)"
    assert "RotaryEmbedding" not in operators(optimized(model(body)))
    swapped = f"{TWICE} {HALVES.replace('(n, a)', '(a, n)')} {TURN}"
    assert "RotaryEmbedding" not in operators(optimized(model(swapped)))
