"""Attention written out: fused where the operator means the same, left where it does not."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same, text

HEADS = "float[B, 2, S, 4]"
NUMBERS = "float c = {0.25}, float r = {2.0}, float z = {0.0}, float low = {-1e30}"


def of_heads(body: str, opset: int = 23, more: str = "") -> str:
    ports = f"{HEADS} q, {HEADS} k, {HEADS} v{more}"
    return text(f"({ports}) => ({HEADS} y) <{NUMBERS}> {{ {body} }}", opset)


KEYS = "t = Transpose <perm = [0, 1, 3, 2]> (k)"
END = "p = Softmax <axis = -1> (s) y = MatMul (p, v)"


@pytest.mark.parametrize(
    "body",
    [
        f"{KEYS} s = MatMul (q, t) {END}",
        f"{KEYS} a = MatMul (q, t) s = Mul (a, c) {END}",
        f"{KEYS} a = MatMul (q, t) s = Div (a, r) {END}",
        f"{KEYS} a = Mul (q, c) b = Mul (t, c) s = MatMul (a, b) {END}",
        f"{KEYS} a = Div (q, r) s = MatMul (a, t) {END.replace('-1', '3')}",
    ],
)
def test_heads(body: str) -> None:
    model = of_heads(body)
    result = optimized(model)
    assert operators(result) == ["Attention"]
    same(model, result, steps=64)


def test_a_finite_mask_is_an_input() -> None:
    body = f"{KEYS} a = MatMul (q, t) m = Where (w, z, low) s = Add (a, m) {END}"
    model = of_heads(body, more=", bool[B, 1, S, S] w")
    result = optimized(model)
    assert operators(result) == ["Where", "Attention"]
    same(model, result, steps=64)


@pytest.mark.parametrize(
    ("body", "more", "rule", "reason"),
    [
        (f"{KEYS} a = MatMul (q, t) s = Add (a, m) {END}", ", float[B, 1, S, S] m",
         "attention-with-mask", "the mask may be -inf in a whole row"),
        (f"{KEYS} s = MatMul (q, t) p = Softmax <axis = -1> (s) n = IsNaN (p) g = Where (n, z, p) "
         "y = MatMul (g, v)", "", "attention", "a NaN among queries or keys becomes 0 here"),
        (f"{KEYS} a = MatMul (q, t) s = Neg (a) {END}", "", "attention", None),
        (f"{KEYS} a = MatMul (q, t) e = Sub (z, c) s = Mul (a, e) {END}", "", "attention",
         "the factor of the scores is -0.25"),
        (f"{KEYS} s = MatMul (q, t) p = Softmax <axis = -1> (s) o = MatMul (p, v) g = ReduceMax (s) "
         "y = Add (o, g)", "", "attention", "another node reads the scores"),
        (f"{KEYS} s = MatMul (q, t) p = Softmax <axis = -1> (s) y = MatMul (p, u)",
         ", float[1, 2, S, 4] u", "attention", "differ in batch or heads"),
    ],
)  # fmt: skip
def test_refusals(body: str, more: str, rule: str, reason: str | None) -> None:
    model = of_heads(body, more=more)
    result = optimized(model)
    assert "Attention" not in operators(result)
    found = refusals(result, rule)
    assert (not found) if reason is None else any(reason in one for one in found)
    same(model, result, steps=64)


def test_an_old_opset_has_no_attention() -> None:
    result = optimized(of_heads(f"{KEYS} s = MatMul (q, t) {END}", 20))
    assert refusals(result, "attention") == ["Attention came with opset 23; the model has 20"]


ROWS = "float[B, S, 8]"


@pytest.mark.parametrize("turn", ["early", "late"])
def test_rows(turn: str) -> None:
    keys = (
        "kt = Transpose <perm = [0, 2, 3, 1]> (kh)"
        if turn == "early"
        else "kb = Transpose <perm = [0, 2, 1, 3]> (kh) kt = Transpose <perm = [0, 1, 3, 2]> (kb)"
    )
    body = f"""qh = Reshape (q, h) kh = Reshape (k, h) vh = Reshape (v, h)
    qt = Transpose <perm = [0, 2, 1, 3]> (qh) vt = Transpose <perm = [0, 2, 1, 3]> (vh) {keys}
    a = MatMul (qt, kt) s = Mul (a, c) p = Softmax <axis = -1> (s) o = MatMul (p, vt)
    ot = Transpose <perm = [0, 2, 1, 3]> (o) y = Reshape (ot, w)"""
    ports = f"({ROWS} q, {ROWS} k, {ROWS} v) => ({ROWS} y)"
    numbers = "float c = {0.5}, int64[4] h = {0, 0, 2, 4}, int64[3] w = {0, 0, 8}"
    model = text(f"{ports} <{numbers}> {{ {body} }}", 23)
    result = optimized(model)
    assert operators(result) == ["Attention"]
    assert next(iter(result.model.graph)).attributes["q_num_heads"].as_int() == 2
    same(model, result, steps=64)


REPEATED = """ku = Unsqueeze (k, two) ke = Expand (ku, times) kr = Reshape (ke, heads)
    vu = Unsqueeze (v, two) ve = Expand (vu, times) vr = Reshape (ve, heads)"""
GROUPS = "int64[1] two = {2}, int64[5] times = {1, 1, 3, 1, 1}, int64[4] heads = {0, 6, -1, 4}, float c = {0.5}"
SHARED = "float[B, 6, S, 4] q, float[B, 2, T, 4] k, float[B, 2, T, 4] v"


@pytest.mark.parametrize(
    "body",
    [
        f"{REPEATED} t = Transpose <perm = [0, 1, 3, 2]> (kr) s = MatMul (q, t) "
        "p = Softmax <axis = -1> (s) y = MatMul (p, vr)",
        f"{REPEATED} y = Attention <scale = 0.5> (q, kr, vr)",
    ],
)
def test_queries_that_share_keys(body: str) -> None:
    model = text(f"({SHARED}) => (float[B, 6, S, 4] y) <{GROUPS}> {{ {body} }}", 23)
    result = optimized(model)
    assert operators(result) == ["Attention"]
    same(model, result, steps=64)


def test_keys_repeated_as_a_whole_are_other_heads() -> None:
    """Heads 0 1 0 1 0 1 are not 0 0 0 1 1 1."""
    body = "e = Concat <axis = 1> (k, k, k) f = Concat <axis = 1> (v, v, v) y = Attention (q, e, f)"
    model = text(f"({SHARED}) => (float[B, 6, S, 4] y) {{ {body} }}", 23)
    result = optimized(model)
    assert operators(result) == ["Concat", "Concat", "Attention"]


FIXED = "float[B, 2, 3, 4] q, float[B, 2, 3, 4] k, float[B, 2, 3, 4] v"
BOTH = "float low = {-1}, float none = {0}, float c = {0.25}"
TRIANGLE = "bool[3,3] w = {1, 0, 0, 1, 1, 0, 1, 1, 1}"
LOW = "i = Log (none) m = Where (w, none, i)"  # 0 and -inf


@pytest.mark.parametrize(
    "body",
    [
        f"{LOW} {KEYS} a = MatMul (q, t) s = Add (a, m) {END}",
        "y = Attention <scale = 0.5> (q, k, v, w)",
        f"{LOW} y = Attention <scale = 0.5> (q, k, v, m)",
    ],
)
def test_a_constant_mask_of_what_comes_later(body: str) -> None:
    model = text(f"({FIXED}) => (float[B, 2, 3, 4] y) <{TRIANGLE}, {BOTH}> {{ {body} }}", 23)
    result = optimized(model)
    assert operators(result) == ["Attention"]
    node = next(iter(result.model.graph))
    assert node.attributes["is_causal"].as_int() == 1
    assert len(node.inputs) == 3
    same(model, result, steps=64)


@pytest.mark.parametrize("mask", ["1, 0, 0, 1, 1, 0, 1, 1, 0", "0, 0, 0, 1, 1, 0, 1, 1, 1"])
def test_other_constant_masks_stay(mask: str) -> None:
    given = f"bool[3,3] w = {{{mask}}}, {BOTH}"
    model = text(
        f"({FIXED}) => (float[B, 2, 3, 4] y) <{given}> {{ y = Attention (q, k, v, w) }}", 23
    )
    result = optimized(model)
    assert "is_causal" not in next(iter(result.model.graph)).attributes
    same(model, result, steps=64)


@pytest.mark.parametrize(
    ("inside", "outside", "scale"), [("Div (a, r)", "r", 1.0), ("Mul (a, c)", "r", 0.5)]
)
def test_capped_scores(inside: str, outside: str, scale: float) -> None:
    body = f"{KEYS} a = MatMul (q, t) d = {inside} h = Tanh (d) s = Mul (h, {outside}) {END}"
    model = of_heads(body)
    result = optimized(model)
    assert operators(result) == ["Attention"]
    attributes = next(iter(result.model.graph)).attributes
    assert attributes["softcap"].as_float() == 2.0
    assert attributes["scale"].as_float() == scale
    same(model, result, steps=64)


def test_rows_that_are_turned() -> None:
    """RotaryEmbedding between the rows and the Attention of heads is one of rows too."""
    body = """qh = Reshape (q, h) kh = Reshape (k, h) vh = Reshape (v, h)
    qt = Transpose <perm = [0, 2, 1, 3]> (qh) kt = Transpose <perm = [0, 2, 1, 3]> (kh)
    vt = Transpose <perm = [0, 2, 1, 3]> (vh) qr = RotaryEmbedding (qt, cos, sin)
    kr = RotaryEmbedding <interleaved = 0> (kt, cos, sin) o = Attention <scale = 0.5> (qr, kr, vt)
    ot = Transpose <perm = [0, 2, 1, 3]> (o) y = Reshape (ot, w)"""
    ports = f"({ROWS} q, {ROWS} k, {ROWS} v, float[B, S, 2] cos, float[B, S, 2] sin) => ({ROWS} y)"
    numbers = "int64[4] h = {0, 0, 2, 4}, int64[3] w = {0, 0, 8}"
    model = text(f"{ports} <{numbers}> {{ {body} }}", 23)
    result = optimized(model)
    assert operators(result) == ["RotaryEmbedding", "RotaryEmbedding", "Attention"]
    same(model, result, steps=64)


def test_a_bias_of_positions_is_a_mask() -> None:
    """Looked up in a table, and added to numbers that hide: both finite, and their sum."""
    body = f"""g = Gather (table, at) h = Transpose <perm = [2, 0, 1]> (g) u = Unsqueeze (h, zero)
    n = Where (w, z, low) m = Add (u, n) {KEYS} a = MatMul (q, t) s = Add (a, m) {END}"""
    numbers = NUMBERS + ", float[3,2] table = {1, 2, 3, -4, 5, 6}, int64[1] zero = {0}"
    ports = f"{HEADS} q, {HEADS} k, {HEADS} v, int64[S, S] at, bool[B, 1, S, S] w"
    model = text(f"({ports}) => ({HEADS} y) <{numbers}> {{ {body} }}", 23)
    result = optimized(model)
    assert "Attention" in operators(result)
    assert "Softmax" not in operators(result)
    infinite = optimized(model.replace("low = {-1e30}", "low = {-3e38}").replace("-4", "-1e38"))
    assert "the mask may be -inf" in refusals(infinite, "attention-with-mask")[0]
