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
