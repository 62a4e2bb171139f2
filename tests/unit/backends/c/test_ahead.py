"""Memory that results go to is asked for where a row of it lies in one piece."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.emit import emit
from sardonyx.backends.c.kernels.isa import AVX2, AVX512, Isa
from sardonyx.model.load import load
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.make import make_plan

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def function(body: str, isa: Isa = AVX512) -> str:
    """`store_row_soon` of the only contraction; "" where there is none."""
    model = load(onnx.parser.parse_model(f"{HEADER}g {body}"))
    plan = make_plan(model, infer_shapes(model), None, target_of(isa)).plan
    texts = [text for text in emit(plan, isa).units.values() if "static void contract(" in text]
    (text,) = texts
    head = "static inline void store_row_soon("
    assert (head in text) == ("store_row_soon(&own" in text)
    return text[text.index(head) :].partition("\n}\n")[0] if head in text else ""


def asked(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if "__builtin_prefetch(" in line]


def test_rows_that_lie_in_one_piece() -> None:
    text = function("(float[n, 64] x, float[64, 96] w, float[96] b) => (float[n, 96] y) { y = Gemm (x, w, b) }")  # fmt: skip
    assert len(asked(text)) == 1  # not the biases, which are the same for all rows
    assert "96 * m + n" in text
    assert "i += 16" in text


def test_what_is_added_to_them_too() -> None:
    text = function(
        "(float[n, 64] x, float[64, 96] w, float[n, 96] r) => (float[n, 96] y) { p = MatMul (x, w)  y = Add (p, r) }"
    )
    assert len(asked(text)) == 2


@pytest.mark.parametrize(
    "body",
    [
        # Neighbours of a row are far from each other: channels first.
        "(float[n, 64, 7, 7] x, float[96, 64, 1, 1] w) => (float[n, 96, 7, 7] y) { y = Conv (x, w) }",
        # Sums of several pieces wait in memory anyway.
        "(float[n, 640] x, float[640, 96] w) => (float[n, 96] y) { y = MatMul (x, w) }",
        # Operations that are many are done a row at a time.
        "(float[n, 64] x, float[64, 96] w) => (float[n, 96] y) { p = MatMul (x, w)  y = Tanh (p) }",
    ],
)
def test_nothing_to_ask_for(body: str) -> None:
    assert not function(body)


def test_only_where_it_was_measured() -> None:
    assert not function("(float[n, 64] x, float[64, 96] w) => (float[n, 96] y) { y = MatMul (x, w) }", AVX2)  # fmt: skip
